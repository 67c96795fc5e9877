/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait in a session for something to come, and how they are answered: parked in the order in
 * which they came, each until what it waits for is there, its caller is interrupted, or its time is over.
 *
 * Thread rule: see relay_state.h. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <string.h>

void answers_send(struct answers *a)
{
	struct request *q = a->head;
	answers_init(a);
	while (q) {
		struct request *next = q->next;
		struct buffer *hold[REQUEST_PARTS];
		memcpy(hold, q->hold, sizeof(hold));
		if (!q->result && q->wait.seq && !q->parts)
			q->part[q->parts++] = (struct iovec){&q->wait, sizeof(q->wait)};
		q->answer(q, q->result, q->part, q->result ? 0 : q->parts);
		for (int i = 0; i < REQUEST_PARTS; i++)
			buffer_unref(hold[i]);
		q = next;
	}
}

void relay_park(struct relay *r, struct request *q, int state, struct answers *a)
{
	if (q->interrupted && q->interrupted(q)) {
		answers_add(a, q, -EINTR);
		return;
	}
	q->state = state;
	q->deadline = clock_ms() + TIME_PARK;
	if (r->paused && (state == PARK_REPLY || state == PARK_DATA))
		relay_wake(r);
	if (r->parked) {
		q->next = r->parked;
		q->prev = r->parked->prev;
		q->prev->next = q->next->prev = q;
	} else {
		r->parked = q->next = q->prev = q;
	}
}

void relay_unpark(struct relay *r, struct request *q)
{
	if (q->state == PARK_ORDER && q->copy) {
		r->ahead -= q->copy->len - q->copy->off;
		buffer_unref(q->copy);
		q->copy = NULL;
	}
	q->state = PARK_NONE;
	if (q->next == q) {
		r->parked = NULL;
		return;
	}
	if (r->parked == q)
		r->parked = q->next;
	q->prev->next = q->next;
	q->next->prev = q->prev;
}

bool relay_parked(const struct relay *r, int state)
{
	for (struct request *q = r->parked; q; q = q->next == r->parked ? NULL : q->next)
		if (q->state == state)
			return true;
	return false;
}

void parked_expire(struct relay *r, uint64_t now, struct answers *a)
{
	while (r->parked && r->parked->deadline <= now) {
		struct request *q = r->parked;
		int state = q->state;
		relay_unpark(r, q);
		if (state == PARK_REPLY) {
			q->wait.flags = CTL_AGAIN;
			q->wait.len = 0;
		}
		/* A read says "nothing yet"; a batch, taken or not, is simply to be sent again under its
		 * number. */
		bool post = state == PARK_ORDER || state == PARK_ROOM;
		answers_add(a, q, state == PARK_REPLY ? 0 : post ? -EINTR : -EAGAIN);
	}
}

void relay_interrupt(unsigned id, const void *token)
{
	struct answers a;
	struct relay *r = sessions_find(id);
	if (!r)
		return;
	answers_init(&a);
	pthread_mutex_lock(&r->lock);
	for (struct request *q = r->parked; q; q = q->next == r->parked ? NULL : q->next)
		if (q->token == token) {
			relay_unpark(r, q);
			answers_add(&a, q, -EINTR);
			break;
		}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	relay_unref(r);
}

/* ---- until something has come true ---- */

/* Has it come true? `transfer` is the number of the wait, 0: stretches that are sent. */
static bool is_true(const struct relay *r, const struct request *q)
{
	if (!q->transfer)
		return arena_sent(channel_arena(r->channel)) >= q->offset;
	return channel_has_answered(r->channel, q->transfer) ||
		channel_got(r->channel, q->transfer) >= q->offset;
}

void relay_tell_until(struct relay *r, struct answers *a)
{
	for (struct request *q = r->parked, *next; q; q = next) {
		next = q->next == r->parked ? NULL : q->next;
		if (q->state != PARK_UNTIL || !is_true(r, q))
			continue;
		relay_unpark(r, q);
		answers_add(a, q, 0);
	}
}

void relay_until(struct relay *r, const struct ctl_until *u, struct request *q)
{
	struct answers a;
	answers_init(&a);
	relay_ref(r);
	q->wait = (struct ctl_wait){0};
	q->transfer = u->seq;
	q->offset = u->count;
	pthread_mutex_lock(&r->lock);
	/* Who waits may have put there what nobody has seen. */
	if (!r->error)
		outbound_drain(r, &a, 0);
	if (r->error || !r->channel)
		answers_add(&a, q, r->error ? -r->error : -EINVAL);
	else if (is_true(r, q))
		answers_add(&a, q, 0);
	else
		relay_park(r, q, PARK_UNTIL, &a);
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	relay_unref(r);
}
