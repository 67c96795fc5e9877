/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that go straight into memory that the program shares: data to where it is awaited, from a connection
 * or from what the server lends, and large replies into their slot. What there is no room for waits until the
 * program has made some.
 *
 * Thread rule: see relay_state.h. The session's thread alone. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <string.h>

#define LENT_STEP (128u << 10)

/* What lies in the receive buffer is no more than the beginning of the first stripe. */
_Static_assert(RECEIVE_BYTES <= STRIPE, "stripes");

static uint64_t body_of(const struct frame *f) { return f->head_len + (uint64_t)f->bulk_len; }

/* The slot whose area takes the data of the frame; -1: none; -2: the data is wrong. */
static int area_of(struct relay *r, const struct frame *f)
{
	bool ok = true;
	if (!r->channel)
		return -1;
	pthread_mutex_lock(&r->lock);
	int slot = channel_area(r->channel, f->ctx & 0x3ffff, f->seq, body_of(f), &ok);
	pthread_mutex_unlock(&r->lock);
	if (ok)
		return slot;
	log_warning("session %u: %s sent byte %llu of transfer %llu out of order", r->id, r->address,
		(unsigned long long)f->seq, (unsigned long long)f->ctx);
	return -2;
}

uint8_t *direct_place(const struct relay *r, size_t *room)
{
	const struct direct *d = &r->direct;
	*room = d->left;
	if (d->frame.kind == FRAME_REPLY)
		return d->to;
	uint8_t *to = channel_area_at(r->channel, d->slot, d->frame.seq + body_of(&d->frame) - d->left, room);
	*room = *room < d->left ? *room : d->left;
	return to;
}

bool inbound_stalled(const struct relay *r)
{
	size_t room = 1;
	if (r->direct.left)
		direct_place(r, &room);
	return !room;
}

bool inbound_pending(const struct relay *r)
{
	const struct direct *d = &r->direct;
	if (d->on && !d->left)
		return !stripes_missing(r);
	return (r->receive_len || d->from) && d->left && !inbound_stalled(r);
}

/* All up to the next byte is in place: the program may look. */
static int tell(struct relay *r)
{
	struct direct *d = &r->direct;
	struct answers a;
	int e = relay_memory(r);
	if (e)
		return e;
	answers_init(&a);
	channel_area_has(r->channel, d->slot, d->frame.seq + body_of(&d->frame) - d->left);
	pthread_mutex_lock(&r->lock);
	r->read_at = clock_ms();
	relay_tell_until(r, &a);
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	return 0;
}

int direct_end(struct relay *r)
{
	struct direct *d = &r->direct;
	struct frame f = d->frame;
	int e = d->shared ? tell(r) : 0;
	d->on = d->shared = false;
	inbound_whole(r);
	if (f.kind == FRAME_REPLY)
		return inbound_reply(r, &f, NULL, sizeof(f) + body_of(&f), NULL);
	if (!e)
		second_heard(r, body_of(&f));
	return e;
}

/* Those of the other thread are none of ours. */
static void skip_stripe(struct direct *d)
{
	uint64_t at = body_of(&d->frame) - d->left;
	if (d->left && at / STRIPE % 2)
		d->left -= d->left < STRIPE ? d->left : STRIPE;
}

int direct_took(struct relay *r, size_t n)
{
	struct direct *d = &r->direct;
	d->to += n;
	d->left -= n;
	int e = d->frame.kind == FRAME_DATA && !d->shared ? tell(r) : 0;
	if (d->shared)
		skip_stripe(d);
	if (e || d->left || stripes_missing(r))
		return e;
	return direct_end(r);
}

int direct_feed(struct relay *r, const uint8_t *p, size_t n, size_t *used)
{
	int e = 0;
	*used = 0;
	while (!e && r->direct.left && *used < n) {
		size_t room;
		uint8_t *to = direct_place(r, &room);
		room = room < n - *used ? room : n - *used;
		if (!room)
			break;
		memcpy(to, p + *used, room);
		*used += room;
		e = direct_took(r, room);
	}
	return e;
}

int direct_lent(struct relay *r)
{
	struct direct *d = &r->direct;
	uint64_t n = d->frame.bulk_len;
	int e = 0;
	while (!e && d->left) {
		size_t room;
		uint8_t *to = direct_place(r, &room);
		if (!room)
			return 0;
		/* In steps, so that the program copies what is there while the rest comes. */
		room = room < LENT_STEP ? room : LENT_STEP;
		memcpy(to, d->from, room);
		d->from += room;
		e = direct_took(r, room);
	}
	d->from = NULL;
	return e ? e : lent_taken(r, n);
}

int direct_data(struct relay *r, const struct frame *f)
{
	int slot = body_of(f) ? area_of(r, f) : -1;
	struct direct *d = &r->direct;
	if (slot < 0)
		return slot == -2 ? EPROTO : 0;
	*d = (struct direct){.on = true, .frame = *f, .left = body_of(f), .slot = slot};
	size_t room;
	uint8_t *to = direct_place(r, &room);
	d->shared = f->flags & FRAME_STRIPED && room == d->left && stripes_give(r, to, room);
	return 0;
}

int direct_lent_data(struct relay *r, struct frame *f, uint64_t at)
{
	const uint8_t *from = lent_at(r, at, f->bulk_len);
	int e = !from ? EPROTO : r->channel ? direct_data(r, f) : 0;
	if (e)
		return e;
	if (r->direct.on) {
		r->direct.from = from;
		return direct_lent(r);
	}
	/* Nobody waits for it there: it is kept like what has come by the connection. */
	struct buffer *b = buffer_create(sizeof(*f) + (size_t)f->bulk_len);
	if (!b)
		return ENOMEM;
	memcpy(b->data, f, sizeof(*f));
	memcpy(b->data + sizeof(*f), from, (size_t)f->bulk_len);
	b->len = sizeof(*f) + (size_t)f->bulk_len;
	inbound_whole(r);
	e = inbound_data(r, f, b->data, b->len, b);
	buffer_unref(b);
	return e ? e : lent_taken(r, f->bulk_len);
}

void direct_reply(struct relay *r, const struct frame *f, const uint8_t *p, size_t have)
{
	size_t n = sizeof(*f) + body_of(f);
	uint8_t *to = NULL;
	pthread_mutex_lock(&r->lock);
	int slot = channel_waiting(r->channel, f->seq);
	if (slot >= 0)
		to = channel_begin(r->channel, slot, n);
	pthread_mutex_unlock(&r->lock);
	if (!to)
		return;
	memcpy(to, p, have);
	r->direct = (struct direct){.on = true, .frame = *f, .to = to + have, .left = n - have, .slot = slot};
}
