/* SPDX-License-Identifier: Apache-2.0 */
/* Data of copies to the host, from the server: kept by transfer and offset until the program reads it, in
 * whatever pieces.
 *
 * Thread rule: see relay_state.h. Only the session's thread brings; any thread takes what is kept, under the
 * lock. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "scudafs/answerer.h"

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
			inbound_dropped(r, b);
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
		inbound_keep(r, &t->queue, b);
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

void inbound_data_finish(struct relay *r)
{
	for (unsigned i = 0; i < TRANSFER_BUCKETS; i++)
		while (r->transfers[i]) {
			struct transfer *t = r->transfers[i];
			r->transfers[i] = t->next;
			queue_clear(&t->queue);
			free(t);
		}
}
