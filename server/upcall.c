/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions: the driver calls us back, we ask the program to run its function and may wait until it
 * has. Their end comes outside the ordered stream.
 *
 * Thread rule: session_upcall from any thread; it blocks, never for ever: the process ends with the
 * connection. */
#include <string.h>

#include "server/state.h"
#include "wire/msg.h"

struct upcall {
	uint64_t seq;
	bool done;
	struct upcall *next;
};

void upcall_done(struct session *s, uint64_t seq)
{
	pthread_mutex_lock(&s->upcall_lock);
	/* One that nobody waits for is no harm. */
	for (struct upcall *u = s->upcalls; u; u = u->next)
		if (u->seq == seq)
			u->done = true;
	pthread_cond_broadcast(&s->upcall_cond);
	pthread_mutex_unlock(&s->upcall_lock);
}

static void await(struct session *s, struct upcall *u)
{
	struct upcall **at = &s->upcalls;

	pthread_mutex_lock(&s->upcall_lock);
	while (!u->done)
		pthread_cond_wait(&s->upcall_cond, &s->upcall_lock);
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	atomic_fetch_sub(&s->upcalls_waiting, 1);
	pthread_mutex_unlock(&s->upcall_lock);
}

static void ask(struct session *s, uint64_t id, const uint64_t *values, bool wait)
{
	struct upcall u = {0};
	uint8_t head[UPCALL_HEAD];
	struct msg m;
	struct gathered *g;
	struct frame f = {.kind = FRAME_UPCALL};
	struct iovec v[3] = {{&f, sizeof f}, {head, 0}};

	pthread_mutex_lock(&s->upcall_lock);
	u.seq = f.seq = ++s->last_upcall;
	if (wait) {
		u.next = s->upcalls;
		s->upcalls = &u;
		atomic_fetch_add(&s->upcalls_waiting, 1);
	}
	pthread_mutex_unlock(&s->upcall_lock);
	msg_init(&m, head, sizeof head);
	put_u64(&m, id);
	for (unsigned i = 0; values && i < UPCALL_VALUES; i++)
		put_u64(&m, values[i]);
	f.head_len = v[1].iov_len = m.len;
	g = later_gather(s, LIMIT_UPCALL - sizeof f - sizeof head, true);
	f.ctx = (uint32_t)atomic_load(&s->delivered);
	if (g) {
		f.deliveries = g->pairs;
		f.bulk_len = g->len;
		v[2] = (struct iovec){g->bytes, g->len};
	}
	send_frame(s, v, g ? 3 : 2);
	if (g)
		later_sent(s, g, true);
	/* The reader looks more often now. */
	if (wait) {
		baton_wake(s);
		await(s, &u);
	}
}

void session_upcall(struct session *s, uint64_t id, bool wait)
{
	ask(s, id, NULL, wait);
}

void session_upcall_with(struct session *s, uint64_t id, const uint64_t *values)
{
	ask(s, id, values, false);
}
