/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on their way to the server. They are put back into the order of their numbers, their frames are
 * followed by the headers, and the thread that brings the next batch writes it itself when nothing is queued;
 * what the stream does not take is copied into the queue. A batch is taken for good when its turn comes; only
 * the answer waits until the queue is short enough.
 *
 * Thread rule: see relay_state.h. Whoever sets `writing` owns the head of the queue until it clears it. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "wire/hops.h"

#define WRITE_PARTS 32
#define DIRECT_MOST (128u << 10)    /* a batch up to here is written by the thread that brings it */
#define TAKES 16                    /* from shared memory in one call */
#define FLUSH_MOST (4u << 20)       /* bytes that one call writes; then the session's thread goes on */

/* ---- following the frames ---- */

static bool at_boundary(const struct scan *s)
{
	return !s->have && !s->left;
}

static bool waiting_add(struct relay *r, uint64_t seq)
{
	if (r->waiting_count == r->waiting_cap) {
		unsigned cap = r->waiting_cap ? 2 * r->waiting_cap : 16;
		uint64_t *p = cap > 2 * LIMIT_THREADS ? NULL : realloc(r->waiting, cap * sizeof(*p));
		if (!p)
			return false;
		r->waiting = p;
		r->waiting_cap = cap;
	}
	r->waiting[r->waiting_count++] = seq;
	return true;
}

bool outbound_awaited(const struct relay *r, uint64_t seq)
{
	for (unsigned i = 0; i < r->waiting_count; i++)
		if (r->waiting[i] == seq)
			return true;
	return false;
}

bool outbound_answered(struct relay *r, uint64_t seq)
{
	for (unsigned i = 0; i < r->waiting_count; i++)
		if (r->waiting[i] == seq) {
			r->waiting[i] = r->waiting[--r->waiting_count];
			return true;
		}
	return false;
}

static const char *note_frame(struct relay *r, const struct frame *f)
{
	const char *why = NULL;
	if (frame_check(f, true, &why))
		return why;
	if (f->flags & FRAME_STRIPED)
		return "a flag that is not the program's";
	hop(HOP_MOUNT_TAKEN, f->seq);
	switch (f->kind) {
	case FRAME_HELLO:
	case FRAME_WAIT:
		if (!waiting_add(r, f->seq))
			return "too many records wait for an answer";
		/* A marker is no round trip: the program looks for its answer two thousand posts later. */
		r->asks |= !(f->flags & FRAME_PACE);
		break;
	case FRAME_POST:
		atomic_fetch_add_explicit(&counters.posts, 1, memory_order_relaxed);
		break;
	case FRAME_THREAD_END:
		break;
	default:
		return "a kind that does not belong into the ordered stream";
	}
	atomic_fetch_add_explicit(&counters.frames_out, 1, memory_order_relaxed);
	return NULL;
}

/* Follows n bytes of the ordered stream. Returns NULL, or what is wrong with them; *boundary: the first
 * place between two records, n + 1 if none. `own`: NULL, or the same bytes, which are ours to change; then a
 * record of which the whole header is there may go by two connections. */
static const char *follow(struct relay *r, const uint8_t *p, uint8_t *own, size_t n, size_t *boundary)
{
	struct scan *s = &r->out;
	*boundary = at_boundary(s) ? 0 : n + 1;
	for (size_t at = 0; at < n;) {
		size_t part = n - at;
		if (s->left) {
			/* A striped bulk comes as stretches alone. */
			if (s->left <= r->second.left)
				return "bytes of a bulk that comes another way";
			part = part < s->left - r->second.left ? part : s->left - r->second.left;
			s->left -= part;
		} else {
			size_t need = sizeof(s->header) - s->have;
			part = part < need ? part : need;
			memcpy((uint8_t *)&s->header + s->have, p + at, part);
			s->have += part;
			if (part == need) {
				const char *why = note_frame(r, &s->header);
				if (why)
					return why;
				if (own && part == sizeof(s->header) && second_takes(r, &s->header))
					own[at + offsetof(struct frame, flags)] |= FRAME_STRIPED;
				s->have = 0;
				s->left = s->header.head_len + s->header.bulk_len;
			}
		}
		at += part;
		if (*boundary > n && at_boundary(s))
			*boundary = at;
	}
	return NULL;
}

/* ---- writing ---- */

static void stop_writing(struct relay *r)
{
	r->writing = false;
	if (r->error || r->closing)
		pthread_cond_broadcast(&r->idle);
}

/* Notes the result of a write without the lock; returns the bytes written. */
static size_t wrote(struct relay *r, ssize_t n)
{
	if (n > 0) {
		hop(HOP_MOUNT_SENT, r->out.header.seq);
		r->written += (uint64_t)n;
		if (r->out.left || r->queue.bytes > (size_t)n)
			r->alive = clock_ms();
		atomic_fetch_add_explicit(&r->bytes_out, (uint64_t)n, memory_order_relaxed);
		atomic_fetch_add_explicit(&counters.bytes_out, (uint64_t)n, memory_order_relaxed);
		return (size_t)n;
	}
	if (n == -EAGAIN) {
		r->blocked = true;
		relay_wake(r);
	} else if (!r->error) {
		log_debug("session %u: write: %s", r->id, strerror((int)-n));
		r->broken = ECONNRESET;
		relay_wake(r);
	}
	return 0;
}

/* Room has come: answers the writers that wait for it. */
void outbound_release(struct relay *r, struct answers *a)
{
	relay_tell_until(r, a);
	while (relay_queued(r) <= LIMIT_QUEUE) {
		struct request *q = r->parked;
		while (q && q->state != PARK_ROOM)
			q = q->next == r->parked ? NULL : q->next;
		if (!q)
			return;
		relay_unpark(r, q);
		answers_add(a, q, (int)q->size);
	}
}

void outbound_idle(struct relay *r)
{
	second_measure(r, at_boundary(&r->out) && !relay_queued(r));
}

void outbound_flush(struct relay *r, struct answers *a)
{
	if (r->writing || r->blocked || r->broken || r->error || !r->up)
		return;
	r->writing = true;
	size_t total = 0;
	while (r->queue.head && total < FLUSH_MOST && !r->blocked && !r->broken && !r->error && !r->closing) {
		struct iovec v[WRITE_PARTS];
		int n = 0;
		for (struct buffer *b = r->queue.head; b && n < WRITE_PARTS; b = b->next)
			v[n++] = (struct iovec){b->data + b->off, b->len - b->off};
		pthread_mutex_unlock(&r->lock);
		ssize_t sent = stream_writev(r->stream, v, n);
		pthread_mutex_lock(&r->lock);
		size_t n_sent = wrote(r, sent);
		total += n_sent;
		queue_consume(&r->queue, n_sent);
		outbound_idle(r);
		outbound_release(r, a);
		if (a->head) {
			/* The writers that have room now bring the next batch while we write. */
			pthread_mutex_unlock(&r->lock);
			answers_send(a);
			pthread_mutex_lock(&r->lock);
		}
	}
	stop_writing(r);
	bool more = r->channel && relay_queued(r) <= LIMIT_QUEUE && channel_has_news(r->channel);
	if ((r->queue.head || more) && !r->blocked)
		relay_wake(r);
}

/* Bytes whose place in the stream is now; `b` holds the same bytes when there is a copy already. Many
 * bytes are left to the session's thread, so that the program can bring the next ones meanwhile. */
static int send_bytes(struct relay *r, const uint8_t *p, size_t n, struct buffer *b, struct answers *a)
{
	size_t sent = 0;
	if (!n)
		return 0;
	bool direct = n < DIRECT_MOST && !r->writing && !r->queue.head && !r->blocked && !r->broken && r->up;
	if (direct) {
		r->writing = true;
		pthread_mutex_unlock(&r->lock);
		struct iovec v = {(void *)p, n};
		ssize_t w = stream_writev(r->stream, &v, 1);
		pthread_mutex_lock(&r->lock);
		sent = wrote(r, w);
	}
	int e = 0;
	if (sent < n && !r->error) {
		b = b && !sent ? buffer_ref(b) : buffer_copy(p + sent, n - sent);
		if (!b)
			e = ENOMEM;
		else if (direct)
			queue_push_front(&r->queue, b);
		else
			queue_push(&r->queue, b);
	}
	if (direct)
		stop_writing(r);
	if (r->queue.bytes >= DIRECT_MOST && !r->writing && !r->blocked)
		relay_wake(r);
	else if (r->queue.head)
		outbound_flush(r, a);
	return e;
}

int outbound_aside(struct relay *r, const void *p, size_t n)
{
	struct buffer *b = buffer_copy(p, n);
	if (!b)
		return -ENOMEM;
	atomic_fetch_add_explicit(&counters.frames_out, 1, memory_order_relaxed);
	queue_push(at_boundary(&r->out) && !r->aside.head ? &r->queue : &r->aside, b);
	return 0;
}

/* ---- order ---- */

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

/* Queues n bytes with the frames that wait for a place between two records at `boundary`. */
static int push_split(struct relay *r, const uint8_t *p, size_t n, size_t boundary)
{
	struct buffer *front = buffer_copy(p, boundary), *back = buffer_copy(p + boundary, n - boundary), *b;
	if (!front || !back) {
		buffer_unref(front);
		buffer_unref(back);
		return ENOMEM;
	}
	/* An empty buffer would look like an ended connection to the writer. */
	if (front->len)
		queue_push(&r->queue, front);
	else
		buffer_unref(front);
	while ((b = queue_pop(&r->aside)))
		queue_push(&r->queue, b);
	if (back->len)
		queue_push(&r->queue, back);
	else
		buffer_unref(back);
	return 0;
}

/* Bytes that were followed go to the server. */
static void pass_on(struct relay *r, const uint8_t *p, size_t n, size_t boundary, struct buffer *b,
	struct answers *a)
{
	bool split = r->aside.head && boundary <= n;
	int e = split ? push_split(r, p, n, boundary) : send_bytes(r, p, n, b, a);
	if (split)
		outbound_flush(r, a);
	if (e)
		relay_fail(r, e, a);
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
	/* Nobody looks at them here, so they must be inside a record. */
	if (n > r->out.left || (r->second.left && r->second.left != r->out.left)) {
		bad_bytes(r, "a stretch that is not one record's bulk", a);
		return;
	}
	r->out.left -= n;
	if (!r->second.left) {
		queue_push(&r->queue, buffer_ref(b));
	} else if (!second_push(r, b)) {
		relay_fail(r, ENOMEM, a);
		return;
	}
	while (at_boundary(&r->out) && (aside = queue_pop(&r->aside)))
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
	const char *why = follow(r, p, NULL, n, &boundary);
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
	pass_on(r, p, n, boundary, b, a);
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
	for (int i = 0; i < TAKES && !r->error && relay_queued(r) <= LIMIT_QUEUE && channel_has_news(r->channel); i++) {
		struct buffer *b;
		size_t boundary;
		unsigned waits;
		const char *why = channel_take(r->channel, &r->batch, &b, &waits, linger);
		r->asks = false;
		if (!why && b)
			why = follow(r, b->data, b->data, b->len, &boundary);
		count_waits(r, waits ? waits : r->asks);
		if (why)
			bad_bytes(r, why, a);
		else if (b)
			pass_on(r, b->data, b->len, boundary, b, a);
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

static void post(struct relay *r, uint64_t batch, const void *p, size_t n, struct buffer *b, struct request *q)
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

void outbound_finish(struct relay *r)
{
	queue_clear(&r->queue);
	queue_clear(&r->aside);
	queue_clear(&r->second.queue);
	free(r->waiting);
}
