/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a program, by FUSE or from shared memory, in the order of their numbers. One that comes early
 * waits for its turn; then it is taken for good, its frames are followed, its bytes go on to the server, and
 * only the answer waits: for the reply, or until the queue is short enough.
 *
 * Thread rule: see relay_state.h. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <string.h>

#define TAKES 16                    /* from shared memory in one call */

/* Waits for the reply of q, or gives it at once. */
static void await(struct relay *r, struct request *q, struct answers *a)
{
	if (inbound_give(r, q, a))
		return;
	/* A record in the ring may not have had its turn. */
	bool unseen = r->channel && !channel_is_empty(r->channel);
	if (r->error)
		answers_add(a, q, -r->error);
	else if (!unseen && !outbound_awaited(r, q->wait.seq))
		answers_add(a, q, -EPROTO);
	else
		relay_park(r, q, PARK_REPLY, a);
}

/* The batch of q, which waits for no reply, is taken, now or earlier. */
static void accept(struct relay *r, struct request *q, struct answers *a)
{
	if (r->error)
		answers_add(a, q, -r->error);
	else if (relay_queued(r) > LIMIT_QUEUE)
		relay_park(r, q, PARK_ROOM, a);
	else
		answers_add(a, q, (int)q->size);
}

static void bad_bytes(struct relay *r, const char *why, struct answers *a)
{
	log_warning("session %u: %s[%d] sent a bad frame: %s", r->id, r->command, (int)r->pid, why);
	relay_fail(r, EPROTO, a);
}

/* A stretch of the arena follows what is queued. Its bytes are sent by the session's thread. */
static void pass_stretch(struct relay *r, struct buffer *b, struct answers *a)
{
	struct buffer *aside;
	size_t n = b->len;
	uint64_t apart = relay_apart(r);
	/* Nobody looks at them here, so they must be inside a record. */
	if (n > r->out.left || (apart && apart != r->out.left)) {
		bad_bytes(r, "a stretch that is not one record's bulk", a);
		return;
	}
	r->out.left -= n;
	if (r->lend.left) {
		const char *why = lend_push(r, b);
		if (why) {
			bad_bytes(r, why, a);
			return;
		}
	} else if (!r->second.left) {
		queue_push(&r->queue, buffer_ref(b));
	} else if (!second_push(r, b)) {
		relay_fail(r, ENOMEM, a);
		return;
	}
	while (scan_at_boundary(&r->out) && (aside = queue_pop(&r->aside)))
		queue_push(&r->queue, aside);
	if (!r->writing && !r->blocked)
		relay_wake(r);
}

static void count_waits(struct relay *r, unsigned n)
{
	atomic_fetch_add_explicit(&counters.waits, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->waits, n, memory_order_relaxed);
}

/* The turn of q's batch has come. A wait is parked before its bytes leave, for the reply may come at once;
 * then q is no longer ours. */
static void take(struct relay *r, struct request *q, const uint8_t *p, size_t n, struct buffer *b,
	struct answers *a)
{
	size_t boundary;
	bool waits = q->wait.seq;
	r->batch++;
	r->asks = false;
	const char *why = outbound_follow(r, p, NULL, n, &boundary);
	if (why) {
		bad_bytes(r, why, a);
		answers_add(a, q, -EPROTO);
		return;
	}
	/* One round trip, however many records ask with it, and by whichever way the answer is fetched. */
	if (r->asks)
		count_waits(r, 1);
	if (waits)
		await(r, q, a);
	outbound_pass(r, p, n, boundary, b, a);
	if (!waits)
		accept(r, q, a);
}

/* Batches that came too early and whose turn has come. */
static void take_parked(struct relay *r, struct answers *a)
{
	while (r->ahead && !r->error) {
		struct request *q = r->parked;
		while (q && (q->state != PARK_ORDER || q->batch != r->batch + 1))
			q = q->next == r->parked ? NULL : q->next;
		if (!q)
			return;
		struct buffer *b = buffer_ref(q->copy);
		relay_unpark(r, q);
		take(r, q, b->data + b->off, b->len - b->off, b, a);
		buffer_unref(b);
	}
}

/* Takes a stretch of the arena if the next batch is one. */
static bool drain_arena(struct relay *r, struct answers *a)
{
	struct buffer *b;
	const char *why = arena_take(channel_arena(r->channel), &r->batch, &b);
	if (why)
		bad_bytes(r, why, a);
	if (!b)
		return false;
	pass_stretch(r, b, a);
	buffer_unref(b);
	channel_look_again(r->channel);
	return true;
}

bool outbound_drain(struct relay *r, struct answers *a, unsigned linger)
{
	bool any = false;
	if (!r->channel || !r->up)
		return false;
	for (int i = 0; i < TAKES; i++) {
		if (r->error || relay_queued(r) > LIMIT_QUEUE || !channel_has_news(r->channel))
			break;
		struct buffer *b;
		size_t boundary;
		unsigned waits;
		const char *why = channel_take(r->channel, &r->batch, &b, &waits, linger);
		r->asks = false;
		if (!why && b)
			why = outbound_follow(r, b->data, b->data, b->len, &boundary);
		count_waits(r, waits ? waits : r->asks);
		if (why)
			bad_bytes(r, why, a);
		else if (b)
			outbound_pass(r, b->data, b->len, boundary, b, a);
		any |= b != NULL;
		buffer_unref(b);
		if (b)
			arena_look_again(channel_arena(r->channel));
		if (!r->error)
			any |= drain_arena(r, a);
		take_parked(r, a);
	}
	/* Whoever fills the ring faster than we take it must not keep us from all else. */
	if (!r->error && relay_queued(r) <= LIMIT_QUEUE && channel_has_news(r->channel))
		relay_wake(r);
	return any;
}

static void enter(struct relay *r, struct request *q, uint64_t batch, const void *p, size_t n,
	struct buffer *b, struct answers *a)
{
	outbound_drain(r, a, 0);
	if (batch <= r->batch) {
		if (q->wait.seq)
			await(r, q, a);
		else
			accept(r, q, a);
	} else if (r->error) {
		answers_add(a, q, -r->error);
	} else if (batch == r->batch + 1) {
		take(r, q, p, n, b, a);
		take_parked(r, a);
		if (r->channel)
			channel_look_again(r->channel);
		outbound_drain(r, a, 0);
	} else if (batch - r->batch > AHEAD_BATCHES) {
		log_warning("session %u: %s[%d] sent batch %llu after %llu", r->id, r->command, (int)r->pid,
			(unsigned long long)batch, (unsigned long long)r->batch);
		relay_fail(r, EPROTO, a);
		answers_add(a, q, -EPROTO);
	} else if (r->ahead + n > AHEAD_MOST) {
		answers_add(a, q, -EINTR);
	} else if (!(q->copy = b ? buffer_ref(b) : buffer_copy(p, n))) {
		answers_add(a, q, -ENOMEM);
	} else {
		q->batch = batch;
		r->ahead += n;
		relay_park(r, q, PARK_ORDER, a);
		if (q->state != PARK_ORDER) {
			r->ahead -= n;
			buffer_unref(q->copy);
		}
	}
}

/* ---- what the program asks by FUSE ---- */

/* The full number of a batch of which the offset of a write tells the low bits: the nearest to the last
 * one. */
static uint64_t full_number(uint64_t last, uint64_t low, unsigned bits)
{
	uint64_t span = (uint64_t)1 << bits, n = (last & ~(span - 1)) | low;
	if (n > last && n - last > span / 2 && n >= span)
		return n - span;
	if (last > n && last - n > span / 2)
		return n + span;
	return n;
}

static void post(struct relay *r, uint64_t batch, const void *p, size_t n, struct buffer *b,
	struct request *q)
{
	struct answers a;
	answers_init(&a);
	relay_ref(r);
	q->size = n;
	q->wait = (struct ctl_wait){0};
	pthread_mutex_lock(&r->lock);
	enter(r, q, full_number(r->batch, batch, 38), p, n, b, &a);
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	relay_unref(r);
}

void relay_post(struct relay *r, uint64_t batch, const void *p, size_t n, struct request *q)
{
	/* Copied before the lock is taken; no memory is found out there. */
	struct buffer *b = n >= DIRECT_MOST ? buffer_copy(p, n) : NULL;
	post(r, batch, p, n, b, q);
	buffer_unref(b);
}

void relay_post_buffer(struct relay *r, uint64_t batch, struct buffer *b, struct request *q)
{
	post(r, batch, b->data + b->off, b->len - b->off, b, q);
}

void relay_wait(struct relay *r, uint64_t batch, uint64_t seq, const void *p, size_t n, size_t room,
	struct request *q)
{
	struct answers a;
	answers_init(&a);
	relay_ref(r);
	q->size = room;
	q->wait = (struct ctl_wait){.batch = batch, .seq = seq};
	pthread_mutex_lock(&r->lock);
	enter(r, q, batch, p, n, NULL, &a);
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	relay_unref(r);
}

void relay_aside(struct relay *r, const void *p, size_t n, struct request *q)
{
	struct answers a;
	struct frame f;
	const char *why = NULL;
	answers_init(&a);
	relay_ref(r);
	q->size = n;
	q->wait = (struct ctl_wait){0};
	if (n == sizeof(f))
		memcpy(&f, p, n);
	pthread_mutex_lock(&r->lock);
	if (r->error) {
		answers_add(&a, q, -r->error);
	} else if (n != sizeof(f) || frame_check(&f, true, &why) || f.kind != FRAME_UPCALL_DONE ||
			!r->upcalls_due) {
		log_warning("session %u: %s[%d] sent a bad frame aside: %s", r->id, r->command, (int)r->pid,
			why ? why : "not the answer to an UPCALL");
		relay_fail(r, EPROTO, &a);
		answers_add(&a, q, -EPROTO);
	} else if (outbound_aside(r, p, n)) {
		answers_add(&a, q, -ENOMEM);
	} else {
		/* Taken whatever the queue: the server may wait for it before it takes more. */
		r->upcalls_due--;
		answers_add(&a, q, (int)n);
		outbound_flush(r, &a);
	}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	relay_unref(r);
}
