/* SPDX-License-Identifier: Apache-2.0 */
/* What came from the server: replies find the request that waits for them or are kept, upcalls wait in a row.
 * receive.c brings it; the data of copies is in inbound_data.c.
 *
 * Thread rule: see relay_state.h. Only the session's thread brings; any thread takes what is kept, under the
 * lock. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <string.h>
#include "wire/hops.h"

#define UPCALL_BYTES (sizeof(struct frame) + LIMIT_UPCALL)

bool inbound_full(const struct relay *r, uint64_t now)
{
	if (r->held < LIMIT_QUEUE)
		return false;
	if (r->held >= HELD_MOST)
		return true;
	/* Whoever waits for data or a reply waits for something behind what is here. While data is being
	 * taken it will come in time. */
	if (relay_parked(r, PARK_DATA))
		return false;
	return !relay_parked(r, PARK_REPLY) || clock_since(now, r->read_at) < READING_MS;
}

/* ---- replies ---- */

static struct buffer *queue_find(const struct queue *q, uint64_t tag, uint64_t mask)
{
	struct buffer *b = q->head;
	while (b && (b->tag & mask) != tag)
		b = b->next;
	return b;
}

bool inbound_give(struct relay *r, struct request *q, struct answers *a)
{
	if (r->channel && channel_has_answered(r->channel, q->wait.seq)) {
		q->wait.len = 0;
		q->wait.flags = CTL_SHARED;
		answers_add(a, q, 0);
		return true;
	}
	struct buffer *b = queue_find(&r->replies, q->wait.seq, UINT64_MAX);
	if (!b)
		return false;
	size_t n = b->len - b->off;
	q->wait.len = (uint32_t)n;
	if (n > q->size) {
		q->wait.flags = CTL_LARGE;
	} else {
		inbound_dropped(r, b);
		queue_remove(&r->replies, b);
		q->wait.flags = 0;
		q->part[0] = (struct iovec){&q->wait, sizeof(q->wait)};
		q->part[1] = (struct iovec){b->data + b->off, n};
		q->hold[0] = b;
		q->parts = 2;
	}
	answers_add(a, q, 0);
	return true;
}

/* The reply that is complete goes to the slot that waits for it, where it may lie already. Under the lock. */
static int reply_to_slot(struct relay *r, int slot, const struct frame *f, const uint8_t *p, size_t n,
	struct buffer *b)
{
	uint8_t *to = channel_begin(r->channel, slot, n);
	if (to && p)
		memcpy(to, p, n);
	if (!to) {
		b = b ? buffer_ref(b) : buffer_copy(p, n);
		if (!b)
			return ENOMEM;
		b->tag = f->seq;
		inbound_keep(r, &r->replies, b);
	}
	int e = relay_memory(r);
	if (!e)
		channel_end(r->channel, slot, n, !to);
	return e;
}

/* A reply has come, complete. `b` is NULL when it lies in the receive buffer, p when it lies in its slot. */
int inbound_reply(struct relay *r, const struct frame *f, const uint8_t *p, size_t n, struct buffer *b)
{
	struct answers a;
	struct iovec v[2];
	struct request *q = NULL, *found = NULL;
	int e = 0;
	answers_init(&a);
	hop(HOP_MOUNT_HEARD, f->seq);
	pthread_mutex_lock(&r->lock);
	int slot = r->channel ? channel_waiting(r->channel, f->seq) : -1;
	if (!outbound_answered(r, f->seq)) {
		log_warning("session %u: %s answered record %llu, which asked nothing", r->id, r->address,
			(unsigned long long)f->seq);
		e = EPROTO;
	} else {
		for (q = r->parked; q && !found; q = q->next == r->parked ? NULL : q->next)
			if (q->state == PARK_REPLY && q->wait.seq == f->seq)
				found = q;
		if (found)
			relay_unpark(r, found);
		if (slot >= 0) {
			e = reply_to_slot(r, slot, f, p, n, b);
			relay_tell_until(r, &a);
		} else if (!found || n > found->size) {
			b = b ? buffer_ref(b) : buffer_copy(p, n);
			if (b) {
				b->tag = f->seq;
				inbound_keep(r, &r->replies, b);
			} else {
				e = ENOMEM;
			}
		}
	}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	if (!found) {
		hop(HOP_MOUNT_GIVEN, f->seq);
		return e;
	}
	found->wait.len = slot >= 0 ? 0 : (uint32_t)n;
	found->wait.flags = slot >= 0 ? CTL_SHARED : n > found->size ? CTL_LARGE : 0;
	v[0] = (struct iovec){&found->wait, sizeof(found->wait)};
	v[1] = (struct iovec){(void *)p, n};
	found->answer(found, -e, v, e ? 0 : found->wait.flags ? 1 : 2);
	hop(HOP_MOUNT_GIVEN, f->seq);
	return e;
}

void relay_reply(struct relay *r, uint64_t seq, uint64_t offset, size_t n, struct request *q)
{
	struct answers a;
	answers_init(&a);
	q->wait = (struct ctl_wait){0};
	pthread_mutex_lock(&r->lock);
	struct buffer *b = queue_find(&r->replies, seq, 0x3fffffff);
	size_t len = b ? b->len - b->off : 0;
	if (!b) {
		answers_add(&a, q, r->error ? -r->error : -EPROTO);
	} else if (offset >= len) {
		answers_add(&a, q, -EINVAL);
	} else {
		if (n > len - offset)
			n = len - offset;
		q->part[0] = (struct iovec){b->data + b->off + offset, n};
		q->parts = 1;
		if (offset + n == len) {
			inbound_dropped(r, b);
			queue_remove(&r->replies, b);
			q->hold[0] = b;
		} else {
			q->hold[0] = buffer_ref(b);
		}
		answers_add(&a, q, 0);
		r->read_at = clock_ms();
		if (r->paused && r->held < LIMIT_QUEUE)
			relay_wake(r);
	}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
}

/* ---- upcalls ---- */

/* Moves whole frames, as many as fit, into the request. */
static void give_upcalls(struct relay *r, struct request *q, struct answers *a)
{
	size_t room = q->size;
	while (r->upcalls.head && q->parts < REQUEST_PARTS) {
		struct buffer *b = r->upcalls.head;
		size_t n = b->len - b->off;
		if (n > room)
			break;
		room -= n;
		inbound_dropped(r, b);
		queue_pop(&r->upcalls);
		q->hold[q->parts] = b;
		q->part[q->parts++] = (struct iovec){b->data + b->off, n};
	}
	answers_add(a, q, 0);
}

int inbound_upcall(struct relay *r, const struct frame *f, const uint8_t *p, size_t n, struct buffer *b)
{
	struct answers a;
	b = b ? buffer_ref(b) : buffer_copy(p, n);
	if (!b)
		return ENOMEM;
	answers_init(&a);
	pthread_mutex_lock(&r->lock);
	inbound_keep(r, &r->upcalls, b);
	r->upcalls_due += f->kind == FRAME_UPCALL;
	for (struct request *q = r->parked; q; q = q->next == r->parked ? NULL : q->next)
		if (q->state == PARK_UPCALL) {
			relay_unpark(r, q);
			give_upcalls(r, q, &a);
			break;
		}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	return 0;
}

void relay_upcall(struct relay *r, size_t n, struct request *q)
{
	struct answers a;
	answers_init(&a);
	q->wait = (struct ctl_wait){0};
	q->size = n;
	pthread_mutex_lock(&r->lock);
	if (n < UPCALL_BYTES)
		answers_add(&a, q, -EINVAL);
	else if (r->upcalls.head)
		give_upcalls(r, q, &a);
	else if (r->error)
		answers_add(&a, q, -r->error);
	else
		relay_park(r, q, PARK_UPCALL, &a);
	if (r->paused && r->held < LIMIT_QUEUE)
		relay_wake(r);
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
}

void inbound_finish(struct relay *r)
{
	queue_clear(&r->replies);
	queue_clear(&r->upcalls);
	inbound_data_finish(r);
	buffer_unref(r->large);
}
