/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way to the server. The thread that brings the next batch writes it itself when nothing is
 * queued; what the stream does not take is copied into the queue, and frames that are not of the ordered
 * stream wait for the next place between two records.
 *
 * Thread rule: see relay_state.h. Whoever sets `writing` owns the head of the queue until it clears it. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "wire/hops.h"

#define WRITE_PARTS 32
#define FLUSH_MOST (4u << 20)       /* bytes that one call writes; then the session's thread goes on */

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
	second_measure(r, scan_at_boundary(&r->out) && !relay_queued(r));
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
	queue_push(scan_at_boundary(&r->out) && !r->aside.head ? &r->queue : &r->aside, b);
	return 0;
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

void outbound_pass(struct relay *r, const uint8_t *p, size_t n, size_t boundary, struct buffer *b,
	struct answers *a)
{
	bool split = r->aside.head && boundary <= n;
	int e = split ? push_split(r, p, n, boundary) : send_bytes(r, p, n, b, a);
	if (split)
		outbound_flush(r, a);
	if (e)
		relay_fail(r, e, a);
}

void outbound_finish(struct relay *r)
{
	queue_clear(&r->queue);
	queue_clear(&r->aside);
	queue_clear(&r->second.queue);
	lend_finish(r);
	lent_finish(r);
	free(r->waiting);
}
