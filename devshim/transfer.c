/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers to the host under way: a table of where their bytes go. The id's low 18 bits are its slot, as in
 * CTL_DATA.
 *
 * Thread rule: `lock` guards the table; bytes are placed without it by the thread that has the answer, which
 * has taken the transfer out before. */
#include "devshim/transfer.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/channel.h"
#include "devshim/lanes.h"
#include "devshim/process.h"
#include "devshim/range.h"
#include "wire/copy.h"
#include "wire/deadline.h"
#include "wire/limits.h"
#include "wire/msg.h"
#include "wire/uncancelled.h"

#define SLOTS (1u << 18)
#define PAGE 4096u
#define SETTLE_MS 2000          /* another thread has the bytes already and only copies them */
#define BOUNCE COPY_PIECE       /* for places that are not one run of bytes */

struct pending { struct transfer place; uint64_t id, got; };

static struct {
	pthread_mutex_t lock;
	struct pending *slot[SLOTS];
	uint64_t last;
} table;    /* all zero, a good mutex too: it is large, and must not be in the file */

/* Deliveries are numbered in the order of the frames that carry them, and frames reach different threads: a
 * range that was placed before an earlier one waits here for it. */
struct stretch { struct stretch *next; uint32_t from, end; };
static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	_Atomic uint32_t placed;        /* all up to this number are in place */
	struct stretch *ahead;
} order = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static bool is_placed(uint32_t told) { return (int32_t)(atomic_load(&order.placed) - told) >= 0; }

/* Under the lock: moves on over all ranges that begin at or before the end of what is placed. */
static void advance(uint32_t to)
{
	bool again = true;
	if (!is_placed(to))
		atomic_store(&order.placed, to);
	while (again) {
		again = false;
		for (struct stretch **r = &order.ahead; *r; ) {
			struct stretch *one = *r;
			if (!is_placed(one->from)) {
				r = &one->next;
				continue;
			}
			if (!is_placed(one->end))
				atomic_store(&order.placed, one->end);
			*r = one->next;
			free(one);
			again = true;
		}
	}
	pthread_cond_broadcast(&order.more);
}

/* The deliveries (from, end] are in place. */
static void range_placed(uint32_t from, uint32_t end)
{
	pthread_mutex_lock(&order.lock);
	struct stretch *r = is_placed(from) ? NULL : malloc(sizeof *r);
	if (r) {
		*r = (struct stretch){.next = order.ahead, .from = from, .end = end};
		order.ahead = r;
	} else {
		advance(end);
	}
	pthread_mutex_unlock(&order.lock);
}

static uint64_t bytes_of(const struct transfer *t) { return (uint64_t)t->width * t->height * t->depth; }

static bool is_plain(const struct transfer *t)
{
	return (t->height == 1 || t->pitch == t->width) &&
			(t->depth == 1 || t->slice == t->pitch * t->height);
}

uint64_t transfer_new(const struct transfer *t)
{
	int saved = errno;
	struct pending *p = malloc(sizeof *p);
	uint64_t id = 0;
	if (p) {
		pthread_mutex_lock(&table.lock);
		for (unsigned tries = 0; tries < SLOTS && !id; tries++) {
			uint64_t candidate = ++table.last;
			if (candidate % SLOTS && !table.slot[candidate % SLOTS])
				id = candidate;
		}
		if (id) {
			*p = (struct pending){.place = *t, .id = id};
			table.slot[id % SLOTS] = p;
		}
		pthread_mutex_unlock(&table.lock);
		if (!id)
			free(p);
	}
	errno = saved;
	return id;
}

static struct pending *take(uint64_t id)
{
	pthread_mutex_lock(&table.lock);
	struct pending *p = table.slot[id % SLOTS];
	if (p && p->id == id)
		table.slot[id % SLOTS] = NULL;
	else
		p = NULL;
	pthread_mutex_unlock(&table.lock);
	return p;
}

bool transfer_pending(uint64_t id)
{
	pthread_mutex_lock(&table.lock);
	struct pending *p = table.slot[id % SLOTS];
	bool there = p && p->id == id;
	pthread_mutex_unlock(&table.lock);
	return there;
}

static void put_back(struct pending *p)
{
	pthread_mutex_lock(&table.lock);
	table.slot[p->id % SLOTS] = p;
	pthread_mutex_unlock(&table.lock);
}

void transfer_drop(uint64_t id)
{
	int saved = errno;
	free(take(id));
	errno = saved;
}

bool transfer_place(const struct transfer *t, uint64_t offset, const void *p, size_t n)
{
	uint64_t all = bytes_of(t);
	if (offset > all || n > all - offset)
		return false;
	if (is_plain(t)) {
		memcpy(t->to + offset, p, n);
		return true;
	}
	for (size_t at = 0; at < n;) {
		uint64_t row = (offset + at) / t->width, in_row = (offset + at) % t->width;
		size_t part = t->width - in_row < n - at ? t->width - in_row : n - at;
		memcpy(t->to + row / t->height * t->slice + row % t->height * t->pitch + in_row,
				(const uint8_t *)p + at, part);
		at += part;
	}
	return true;
}

/* The rest of a plain transfer whose first bytes have come: then all will, or the session ends. Several
 * threads read at once. */
struct rest { uint64_t id, from, end; uint8_t *to; };

static int receive_piece(void *arg, uint64_t i)
{
	const struct rest *r = arg;
	/* The first piece ends at a page, so that a request has room for all of the others. */
	uint64_t skew = (uintptr_t)(r->to + r->from) & (PAGE - 1);
	uint64_t at = r->from + i * LIMIT_BATCH - (i ? skew : 0);
	uint64_t end = r->from + (i + 1) * LIMIT_BATCH - skew;
	end = end < r->end ? end : r->end;
	while (at < end) {
		long n = channel_read_data(r->id, at, r->to + at, end - at);
		if (n < 0 && n != -EAGAIN)
			return (int)n;
		at += n < 0 ? 0 : (uint64_t)n;
	}
	return 0;
}

/* Takes what is there of the transfer's data, up to `end`. 0, -EAGAIN when nothing came for a while, or
 * another -errno. NULL: the bytes of a transfer that the program has given up. */
static int receive(struct pending *p, uint64_t id, uint64_t *got, uint64_t end)
{
	bool direct = p && is_plain(&p->place);
	uint8_t *bounce = direct || *got == end ? NULL : malloc(BOUNCE);
	int e = 0;
	if (!direct && *got < end && !bounce)
		return -ENOMEM;
	while (*got < end && !e) {
		if (direct && *got && end - *got >= LANES_LEAST) {
			struct rest rest = {id, *got, end, p->place.to};
			/* One piece more than the bytes need, for the skew. */
			e = lanes_run(receive_piece, &rest, (end - *got) / LIMIT_BATCH + 2);
			*got = e ? *got : end;
			continue;
		}
		size_t n = end - *got, most = direct && end > COPY_MEDIUM ? LIMIT_REPLY : COPY_PIECE;
		n = n < most ? n : most;
		long r = channel_read_data(id, *got, direct ? p->place.to + *got : bounce, n);
		if (r < 0) {
			e = (int)r;
		} else {
			if (p && !direct)
				transfer_place(&p->place, *got, bounce, (size_t)r);
			*got += (uint64_t)r;
		}
	}
	free(bounce);
	return e;
}

/* The data was sent ahead of the answer that we have: a daemon that does not have it has lost it. */
static int receive_rest(struct pending *p, uint64_t id, uint64_t *got, uint64_t end)
{
	int e = receive(p, id, got, end);
	return e == -EAGAIN ? -EPROTO : e;
}

static bool succeeded(const struct answer *a)
{
	struct msg m;
	msg_init(&m, (void *)a->head, a->frame.head_len);
	return get_i64(&m) == 0 && !m.bad;
}

int transfer_receive(uint64_t id, uint64_t seq, struct answer *a)
{
	struct pending *p = take(id);
	if (!p)
		return -EINVAL;
	int saved = errno, e;
	bool answered = false;
	uint64_t end = bytes_of(&p->place);
	/* The bytes come first, and the answer alone if the copy failed. */
	do {
		e = receive(p, id, &p->got, end);
		if (e == -EAGAIN) {
			e = channel_await_once(seq, 0, a);
			answered = e == 0;
		}
	} while (e == -EAGAIN);
	if (!e && !answered)
		e = channel_await(seq, 0, a);
	if (!e && answered && succeeded(a))
		e = receive_rest(p, id, &p->got, end);
	put_back(p);
	errno = saved;
	return e;
}

static void place_shared(void *arg, uint64_t offset, const void *p, size_t n)
{
	transfer_place(arg, offset, p, n);
}

int transfer_exchange(uint64_t id, struct record *r, struct answer *a)
{
	struct pending *p = take(id);
	if (!p)
		return -EINVAL;
	uint64_t all = bytes_of(&p->place);
	uint64_t pinned = is_plain(&p->place) ? range_arena((uintptr_t)p->place.to, all) : 0;
	int e = channel_wait_data(r, id, all, pinned, place_shared, &p->place, &p->got, a);
	if (!e && p->got < all && succeeded(a))
		e = -EPROTO;
	put_back(p);
	if (e != -ENOTSUP && e != -EAGAIN)
		return e;
	e = e == -ENOTSUP ? channel_send(r) : 0;
	return e ? e : transfer_receive(id, r->seq, a);
}

static struct delivery delivery_at(const uint8_t *bulk, uint32_t i)
{
	struct delivery d;
	memcpy(&d, bulk + i * sizeof d, sizeof d);
	return d;
}

/* The sender's rule of what lies in the bulk: small ones, until the first of any size that is more than the
 * room left. */
static bool is_inside(const struct delivery *d, uint64_t at, uint64_t room, bool *fits)
{
	*fits = *fits && d->bytes <= room - at;
	return d->bytes <= DELIVERY_INLINE && *fits;
}

/* The bytes that all deliveries take when so much of the bulk's room is theirs. */
static uint64_t inside(const struct frame *f, const uint8_t *bulk, uint64_t room)
{
	uint64_t at = (uint64_t)f->deliveries * sizeof(struct delivery);
	bool fits = at <= room;
	for (uint32_t i = 0; i < f->deliveries && fits; i++) {
		struct delivery d = delivery_at(bulk, i);
		if (is_inside(&d, at, room, &fits))
			at += d.bytes;
	}
	return at;
}

void transfer_settle(uint32_t told)
{
	if (__builtin_expect(is_placed(told), 1))
		return;
	uncancelled state = uncancelled_begin();
	int saved = errno;
	struct timespec end = deadline_in(SETTLE_MS);
	pthread_mutex_lock(&order.lock);
	while (!is_placed(told) && process_check() == CUDA_SUCCESS)
		if (pthread_cond_clockwait(&order.more, &order.lock, CLOCK_MONOTONIC, &end))
			break;
	/* A thread that died with its answer: the next calls must not wait for it again. */
	if (!is_placed(told))
		advance(told);
	pthread_mutex_unlock(&order.lock);
	errno = saved;
}

int64_t transfer_deliver(const struct frame *f, const uint8_t *bulk, size_t room, size_t own)
{
	if (!f->deliveries)
		return 0;
	uint64_t at = (uint64_t)f->deliveries * sizeof(struct delivery);
	if (at > f->bulk_len || own > room)
		return -EPROTO;
	/* The rest of the bulk may be less than expected, which leaves more room for deliveries: what the two
	 * take must be the whole. */
	uint64_t used = inside(f, bulk, room - own);
	if (used + own != f->bulk_len)
		used = inside(f, bulk, room);
	if (used > f->bulk_len)
		return -EPROTO;
	uint64_t limit = used + own == f->bulk_len ? room - own : room;
	bool fits = true;
	int e = 0, saved = errno;
	/* In the order of the frames: a later copy to the same place must lie on top. */
	transfer_settle((uint32_t)f->ctx - f->deliveries);
	for (uint32_t i = 0; i < f->deliveries && !e; i++) {
		struct delivery d = delivery_at(bulk, i);
		struct pending *p = take(d.transfer);
		uint64_t got = p ? p->got : 0;
		bool here = is_inside(&d, at, limit, &fits);
		if (p && d.bytes > bytes_of(&p->place)) {
			e = -EPROTO;
		} else if (here) {
			if (p)
				transfer_place(&p->place, 0, bulk + at, d.bytes);
			at += d.bytes;
		} else if (got < d.bytes) {
			e = receive_rest(p, d.transfer, &got, d.bytes);
		}
		free(p);
	}
	range_placed((uint32_t)f->ctx - f->deliveries, (uint32_t)f->ctx);
	errno = saved;
	return e ? e : (int64_t)at;
}
