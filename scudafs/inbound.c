/* SPDX-License-Identifier: Apache-2.0 */
/* What came from the server: replies find the request that waits for them, data is kept until it is read,
 * upcalls wait in a row. receive.c brings it.
 *
 * Thread rule: see relay_state.h. Only the session's thread brings; any thread takes what is kept, under the
 * lock. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "scudafs/answerer.h"
#include "wire/hops.h"

#define UPCALL_BYTES (sizeof(struct frame) + LIMIT_UPCALL)

static void keep(struct relay *r, struct queue *q, struct buffer *b)
{
	queue_push(q, b);
	r->held += b->len - b->off + sizeof(*b);
}

static void dropped(struct relay *r, const struct buffer *b)
{
	r->held -= b->len - b->off + sizeof(*b);
}

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

static void queue_remove(struct queue *q, struct buffer *b)
{
	struct buffer **at = &q->head, *before = NULL;
	while (*at != b) {
		before = *at;
		at = &before->next;
	}
	*at = b->next;
	if (q->tail == b)
		q->tail = before;
	q->bytes -= b->len - b->off;
	b->next = NULL;
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
		dropped(r, b);
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
		keep(r, &r->replies, b);
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
				keep(r, &r->replies, b);
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
			dropped(r, b);
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

/* ---- data ---- */

static struct transfer **transfer_at(struct relay *r, uint64_t id)
{
	struct transfer **at = &r->transfers[id % TRANSFER_BUCKETS];
	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

/* A buffer's bytes are [off, len) of a frame whose data starts behind the header; `tag` is the offset in
 * the transfer of the byte at `off`; bytes that were read out of order are noted only as a count: `taken`
 * in front of the data, where the header was. */
static uint64_t *taken_of(struct buffer *b)
{
	return (uint64_t *)b->data;
}

/* Collects n bytes at `offset` into the request. False when they are not all here. */
static bool collect(struct transfer *t, struct request *q)
{
	uint64_t want = q->offset, end = q->offset + q->size;
	struct buffer *b = t->queue.head, *first;
	while (b && b->tag + (b->len - b->off) <= want)
		b = b->next;
	first = b;
	int parts = 0;
	for (; b && want < end && b->tag <= want; b = b->next, parts++)
		want = b->tag + (b->len - b->off);
	if (want < end)
		return false;
	struct buffer *whole = parts > REQUEST_PARTS ? buffer_create(q->size) : NULL;
	if (parts > REQUEST_PARTS && !whole)
		return false;
	want = q->offset;
	for (b = first; want < end; b = b->next) {
		size_t skip = want - b->tag, n = b->len - b->off - skip;
		if (n > end - want)
			n = end - want;
		if (whole) {
			memcpy(whole->data + whole->len, b->data + b->off + skip, n);
			whole->len += n;
		} else {
			q->hold[q->parts] = buffer_ref(b);
			q->part[q->parts++] = (struct iovec){b->data + b->off + skip, n};
		}
		*taken_of(b) += n;
		want += n;
	}
	if (whole) {
		q->hold[0] = whole;
		q->part[0] = (struct iovec){whole->data, whole->len};
		q->parts = 1;
	}
	return true;
}

/* Lets go of buffers that were read completely, and of the transfer when none is left. */
static void tidy(struct relay *r, struct transfer **at)
{
	struct transfer *t = *at;
	for (struct buffer *b = t->queue.head; b;) {
		struct buffer *next = b->next;
		if (*taken_of(b) >= b->len - b->off) {
			dropped(r, b);
			queue_remove(&t->queue, b);
			buffer_unref(b);
		}
		b = next;
	}
	if (!t->queue.head) {
		*at = t->next;
		free(t);
	}
}

/* Answers q if its bytes are here. */
static bool serve(struct relay *r, struct request *q, struct answers *a)
{
	struct transfer **at = transfer_at(r, q->transfer);
	if (!*at || !collect(*at, q))
		return false;
	tidy(r, at);
	if (q->state != PARK_NONE)
		relay_unpark(r, q);
	answers_add(a, q, 0);
	r->read_at = clock_ms();
	return true;
}

int inbound_data(struct relay *r, const struct frame *f, const uint8_t *p, size_t n, struct buffer *b)
{
	struct answers a;
	uint64_t id = f->ctx & 0x3ffff;
	if (n == sizeof(*f))
		return 0;
	b = b ? buffer_ref(b) : buffer_copy(p, n);
	if (!b)
		return ENOMEM;
	answers_init(&a);
	b->off = sizeof(*f);
	b->tag = f->seq;
	*taken_of(b) = 0;
	pthread_mutex_lock(&r->lock);
	struct transfer **at = transfer_at(r, id), *t = *at;
	int e = 0;
	if (!t) {
		t = *at = calloc(1, sizeof(*t));
		if (t)
			t->id = id;
	}
	const struct buffer *last = t ? t->queue.tail : NULL;
	if (!t)
		e = ENOMEM;
	else if (f->seq >> 40 || (last && f->seq < last->tag + (last->len - last->off)))
		e = EPROTO;
	if (e == EPROTO)
		log_warning("session %u: %s sent byte %llu of transfer %llu out of order", r->id, r->address,
			(unsigned long long)f->seq, (unsigned long long)f->ctx);
	if (e) {
		buffer_unref(b);
	} else {
		keep(r, &t->queue, b);
		for (struct request *q = r->parked, *next; q; q = next) {
			next = q->next == r->parked ? NULL : q->next;
			if (q->state != PARK_DATA || q->transfer != id)
				continue;
			if (serve(r, q, &a) && !*transfer_at(r, id))
				break;
		}
	}
	pthread_mutex_unlock(&r->lock);
	answerer_send(&a);
	return e;
}

void relay_data(struct relay *r, uint64_t transfer, uint64_t offset, size_t n, struct request *q)
{
	struct answers a;
	answers_init(&a);
	q->wait = (struct ctl_wait){0};
	q->transfer = transfer;
	q->offset = offset;
	q->size = n;
	pthread_mutex_lock(&r->lock);
	if (!n || n > LIMIT_REPLY)
		answers_add(&a, q, -EINVAL);
	else if (serve(r, q, &a)) {
		if (r->paused && r->held < LIMIT_QUEUE)
			relay_wake(r);
	} else if (r->error)
		answers_add(&a, q, -r->error);
	else
		relay_park(r, q, PARK_DATA, &a);
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
		dropped(r, b);
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
	keep(r, &r->upcalls, b);
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
	for (unsigned i = 0; i < TRANSFER_BUCKETS; i++)
		while (r->transfers[i]) {
			struct transfer *t = r->transfers[i];
			r->transfers[i] = t->next;
			queue_clear(&t->queue);
			free(t);
		}
	buffer_unref(r->large);
}
