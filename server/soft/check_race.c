/* SPDX-License-Identifier: Apache-2.0 */
/* Races in shared memory, by vector clocks. Each byte remembers its last writer and two readers since; an
 * access is a race when one of them is another thread, one of both writes, and nothing orders them. A barrier
 * of all threads begins a new epoch, in which nothing of an older one matters: most kernels have no other
 * order, and then there are no clocks at all. Barriers of some threads, of a warp, and fences make clocks:
 * clock[t][u] is how far thread t knows what u did. Two stores of the same value are no race.
 *
 * Thread rule: belongs to the worker that runs the block. */
#include "server/soft/check.h"
#include <stdlib.h>
#include <string.h>

struct record {
	const struct code *code;
	uint32_t epoch, line; /* epoch 0: none */
	uint16_t thread, clock;
	uint8_t value;
	bool atomic;
};
struct cell {
	struct record write, read[2];
};
struct race {
	struct cell *cell;
	size_t bytes;
	uint32_t epoch, first; /* of this block */
	unsigned threads, room;
	bool clocks; /* made in this epoch */
	bool lost; /* a clock is full: nothing is said until the next epoch */
	uint16_t *clock; /* threads x threads */
	uint16_t *fence, *barrier; /* what fences, and those that arrived at a barrier, know */
};

static uint16_t *row(struct race *r, uint32_t t)
{
	return r->clock + (size_t)t * r->threads;
}

static void need_clocks(struct race *r)
{
	if (r->clocks)
		return;
	memset(r->clock, 0, (size_t)r->threads * r->threads * sizeof *r->clock);
	memset(r->fence, 0, r->threads * sizeof *r->fence);
	memset(r->barrier, 0, (size_t)MAX_BARRIERS * r->threads * sizeof *r->barrier);
	for (unsigned t = 0; t < r->threads; t++)
		row(r, t)[t] = 1;
	r->clocks = true;
}

static void most(uint16_t *to, const uint16_t *from, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		to[k] = to[k] > from[k] ? to[k] : from[k];
}

/* What t does from now on is not covered by what it has told so far. */
static void advance(struct race *r, uint32_t t)
{
	r->lost |= ++row(r, t)[t] == UINT16_MAX;
}

static void new_epoch(struct race *r)
{
	if (r->epoch == UINT32_MAX) {
		memset(r->cell, 0, r->bytes * sizeof *r->cell);
		r->epoch = r->first = 0;
	}
	r->epoch++;
	r->clocks = r->lost = false;
}

void race_start(struct race **at, const struct block *b)
{
	struct race *r = *at;
	if (!r)
		r = *at = calloc(1, sizeof *r);
	if (!r)
		return;
	if (b->shared_bytes > r->bytes) {
		free(r->cell);
		r->cell = calloc(b->shared_bytes, sizeof *r->cell);
		r->bytes = r->cell ? b->shared_bytes : 0;
	}
	if (b->nthreads > r->room) {
		free(r->clock);
		size_t n = b->nthreads;
		r->clock = calloc(n * (n + 1 + MAX_BARRIERS), sizeof *r->clock);
		r->room = r->clock ? b->nthreads : 0;
	}
	r->threads = b->nthreads;
	if (r->clock) {
		r->fence = r->clock + (size_t)r->threads * r->threads;
		r->barrier = r->fence + r->threads;
	}
	new_epoch(r);
	r->first = r->epoch;
	r->lost = !r->clock || !check.race;
}

void race_free(struct race *r)
{
	if (!r)
		return;
	free(r->cell);
	free(r->clock);
	free(r);
}

void race_barrier(struct race *r)
{
	new_epoch(r);
	r->lost = !r->clock || !check.race;
}

#define OF_LANES(t)                                                                                          \
	for (uint32_t m_ = lanes, t; m_ && (t = first + (uint32_t)__builtin_ctz(m_), 1); m_ &= m_ - 1)

void race_arrive(struct race *r, unsigned barrier, uint32_t first, uint32_t lanes)
{
	if (!r->clock)
		return;
	need_clocks(r);
	OF_LANES(t)
	{
		most(r->barrier + barrier * r->threads, row(r, t), r->threads);
		advance(r, t);
	}
}

void race_leave(struct race *r, unsigned barrier, uint32_t first, uint32_t lanes)
{
	if (!r->clock)
		return;
	need_clocks(r);
	OF_LANES(t) most(row(r, t), r->barrier + barrier * r->threads, r->threads);
}

void race_reset(struct race *r, unsigned barrier)
{
	if (r->clocks)
		memset(r->barrier + barrier * r->threads, 0, r->threads * sizeof *r->barrier);
}

void race_join(struct race *r, uint32_t first, uint32_t lanes)
{
	uint16_t all[MAX_THREADS] = {0};
	if (!r->clock || !(lanes & (lanes - 1)))
		return;
	need_clocks(r);
	OF_LANES(t) most(all, row(r, t), r->threads);
	OF_LANES(t)
	{
		memcpy(row(r, t), all, r->threads * sizeof *all);
		advance(r, t);
	}
}

void race_fence(struct race *r, uint32_t first, uint32_t lanes)
{
	if (!r->clock)
		return;
	need_clocks(r);
	OF_LANES(t)
	{
		most(row(r, t), r->fence, r->threads);
		most(r->fence, row(r, t), r->threads);
		advance(r, t);
	}
}

/* Is what x says done for thread t? */
static bool before(struct race *r, const struct record *x, uint32_t t)
{
	return x->epoch != r->epoch || x->thread == t || (r->clocks && row(r, t)[x->thread] >= x->clock);
}

/* The reader that is of least use later. */
static struct record *reader(struct race *r, struct cell *c, uint32_t t)
{
	for (int k = 0; k < 2; k++)
		if (c->read[k].thread == t && c->read[k].epoch == r->epoch)
			return &c->read[k];
	return before(r, &c->read[0], t) ? &c->read[0] : &c->read[1];
}

static const struct record *conflict(
	struct race *r, const struct cell *c, uint32_t t, unsigned kind, const uint8_t *value)
{
	bool atomic = kind & CHECK_ATOMIC;
	const struct record *x = &c->write;
	if (!before(r, x, t) && !(atomic && x->atomic) &&
		!(value && !(kind & CHECK_READ) && !x->atomic && x->value == *value))
		return x;
	for (int k = 0; k < 2 && kind & CHECK_WRITE; k++)
		if (!before(r, &c->read[k], t) && !(atomic && c->read[k].atomic))
			return &c->read[k];
	return NULL;
}

bool race_note(struct race *r, const struct code *code, uint32_t line, uint32_t thread, uint64_t at,
	unsigned bytes, unsigned kind, const uint8_t *value, struct race_other *other)
{
	bool good = true;
	if (at > r->bytes || r->bytes - at < bytes)
		return true;
	for (unsigned k = 0; k < bytes; k++) {
		struct cell *c = &r->cell[at + k];
		const struct record *x =
			good && !r->lost ? conflict(r, c, thread, kind, value ? value + k : NULL) : NULL;
		if (x) {
			*other = (struct race_other){x->code, x->line, x->thread, x == &c->write};
			good = false;
		}
		struct record now = {.code = code,
			.epoch = r->epoch,
			.line = line,
			.thread = (uint16_t)thread,
			.clock = r->clocks ? row(r, thread)[thread] : 1,
			.value = value ? value[k] : 0,
			.atomic = kind & CHECK_ATOMIC};
		if (kind & CHECK_READ)
			*reader(r, c, thread) = now;
		if (kind & CHECK_WRITE)
			c->write = now;
	}
	return good;
}

bool race_unwritten(const struct race *r, uint64_t at, unsigned bytes)
{
	if (at > r->bytes || r->bytes - at < bytes)
		return false;
	for (unsigned k = 0; k < bytes; k++)
		if (r->cell[at + k].write.epoch >= r->first)
			return false;
	return true;
}
