/* SPDX-License-Identifier: Apache-2.0 */
/* Running blocks: each warp is a list of splits (frame, pc, lanes, state); the deepest frame and, in it, the
 * lowest pc runs first; splits of one place merge. A budget of backward branches hands over to other splits
 * and warps, so that locks inside a warp make progress.
 *
 * Thread rule: a block belongs to the thread that runs it. */
#include "server/soft/exec.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "server/soft/check.h"
#include "server/soft/memory.h"

enum {
	OUT_OF_MEMORY = 2,
	LAUNCH_TIMEOUT = 702,
	LAUNCH_FAILED = 719,
	UNKNOWN_ERROR = 999,
	LAUNCH_INVALID = 1
};
/* Devices give out shared memory by units and see no access inside one that is beyond what was asked for, so
 * that compilers load a vector of which they want the first words. */
enum { SHARED_UNIT = 128 };
enum { BUDGET = 20000, BUDGET_COOPERATIVE = 256, SLICE = 64 };

uint64_t exec_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

const struct op *warp_stop(struct warp *w, const struct op *o, enum event e)
{
	w->event = (uint8_t)e;
	w->at = o;
	return STOP;
}

const struct op *warp_fault(struct warp *w, const struct op *o, int code)
{
	w->fault = code;
	return warp_stop(w, o, EV_FAULT);
}

static void drop(struct warp *w, unsigned k)
{
	w->split[k] = w->split[--w->nsplits];
	w->forced = -1;
}

/* Splits of one place become one. A waiting one that meets a running one is run again: its operation looks
 * once more who is there. */
static void merge(struct warp *w)
{
	for (unsigned i = 0; i < w->nsplits; i++)
		for (unsigned k = i + 1; k < w->nsplits; k++) {
			struct split *a = &w->split[i], *b = &w->split[k];
			if (a->f != b->f || a->pc != b->pc || a->state == WAIT_BARRIER ||
				b->state == WAIT_BARRIER || a->state == WAIT_WARP || b->state == WAIT_WARP)
				continue;
			a->mask |= b->mask;
			a->force |= b->force;
			if (a->state == WAIT_SYNC && b->state == WAIT_SYNC)
				a->want |= b->want;
			else
				a->state = RUNNABLE;
			drop(w, k--);
		}
}

/* Waiting splits whose lanes have come or have ended. */
static void wake(struct warp *w)
{
	uint32_t at_barrier = 0;
	for (unsigned k = 0; k < w->nsplits; k++)
		if (w->split[k].state == WAIT_WARP)
			at_barrier |= w->split[k].mask;
	for (unsigned k = 0; k < w->nsplits; k++) {
		struct split *s = &w->split[k];
		uint32_t want = s->want & w->exists & ~w->exited;
		if (s->state == WAIT_WARP && !(want & ~at_barrier)) {
			check_join(w, want);
			s->state = RUNNABLE;
		} else if (s->state == WAIT_SYNC && !(want & ~s->mask)) {
			s->state = RUNNABLE;
		}
	}
}

static int pick(struct warp *w)
{
	if (w->nsplits > 1) {
		merge(w);
		wake(w);
	} else if (w->nsplits && w->split[0].state >= WAIT_SYNC) {
		wake(w);
	}
	if (w->forced >= 0 && w->forced < (int)w->nsplits && w->split[w->forced].state == RUNNABLE) {
		int k = w->forced;
		w->forced = -1;
		return k;
	}
	int best = -1;
	for (unsigned k = 0; k < w->nsplits; k++) {
		const struct split *s = &w->split[k], *t = best < 0 ? NULL : &w->split[best];
		if (s->state == RUNNABLE &&
			(!t || s->f->depth > t->f->depth || (s->f->depth == t->f->depth && s->pc < t->pc)))
			best = (int)k;
	}
	return best;
}

/* Until here the running split goes on without looking: the next place of its frame where others are. */
static const struct op *join_point(const struct warp *w, const struct split *s)
{
	const struct op *limit = STOP;
	for (unsigned k = 0; k < w->nsplits; k++) {
		const struct split *t = &w->split[k];
		if (t != s && t->f == s->f && t->state != WAIT_BARRIER && t->state != WAIT_WARP &&
			t->pc > s->pc && t->pc < limit)
			limit = t->pc;
	}
	return limit;
}

/* The mask as lanes, four at a time. */
static void spread(struct warp *w, uint32_t mask)
{
#define FOUR(m)                                                                                              \
	{                                                                                                    \
		-((m)&1), -((m) >> 1 & 1), -((m) >> 2 & 1), -((m) >> 3 & 1)                                  \
	}
	static const int32_t four[16][4] = {FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6),
		FOUR(7), FOUR(8), FOUR(9), FOUR(10), FOUR(11), FOUR(12), FOUR(13), FOUR(14), FOUR(15)};
#undef FOUR
	w->lanes_bits = mask;
	for (int k = 0; k < 8; k++)
		memcpy(w->lanes_mask + 4 * k, four[mask >> 4 * k & 15], sizeof four[0]);
}

static const struct op *interpret(struct warp *w, struct split *s)
{
	const struct op *o = s->pc;
	w->r = s->f->regs;
	w->mask = s->mask;
	w->lm = w->lanes_mask;
	if (w->lanes_bits != s->mask)
		spread(w, s->mask);
	const struct op *limit = w->limit = w->nsplits > 1 ? join_point(w, s) : STOP;
	if (s->mask == ~0u) {
		do
			o = o->fn(w, o);
		while (o < limit);
	} else {
		do
			o = o->pfn(w, o);
		while (o < limit);
	}
	return o;
}

static void split_off(struct warp *w, struct split *s)
{
	struct split *n = &w->split[w->nsplits++];
	*n = (struct split){.f = s->f, .pc = w->to, .mask = w->targets};
	s->mask &= ~w->targets;
	s->pc = w->at + 1;
}

/* What the operation at w->at asks for. Returns 0 or a CUresult; *yield says that others should have a turn.
 */
static int handle(struct warp *w, struct split *s, bool *yield)
{
	struct block *b = w->block;
	s->force = false;
	switch (w->event) {
	case EV_SPLIT: split_off(w, s); return 0;
	case EV_YIELD:
		s->pc = w->to;
		*yield = true;
		return 0;
	case EV_SLEEP:
		s->pc = w->at + 1;
		*yield = true;
		return 0;
	case EV_RETRY:
		s->pc = w->at;
		*yield = true;
		return 0;
	case EV_CALL: /* calls count as backward branches do: a recursion may be as long as a loop */
		*yield = --w->budget < 0;
		return frame_call(w);
	case EV_RET: frame_return(w); return 0;
	case EV_EXIT:
		w->exited |= s->mask;
		b->live -= (uint32_t)__builtin_popcount(s->mask);
		frame_exit(w, s->f, s->mask);
		drop(w, w->cur);
		cluster_exit(w, w->mask);
		barrier_exit(b);
		return 0;
	case EV_BARRIER: return barrier_arrive(w);
	case EV_PARK:
		s->pc = w->at;
		s->state = WAIT_SYNC;
		s->want = w->targets;
		return 0;
	case EV_WARPSYNC:
		s->pc = w->at + 1;
		s->state = WAIT_WARP;
		s->want = w->targets;
		return 0;
	default: b->launch->error_line = w->at->line; return w->fault;
	}
}

/* Returns 0 or a CUresult. *moved: at least one operation ran. */
static int warp_run(struct warp *w, bool *moved)
{
	bool yield = false;
	w->budget = w->block->launch->l->cooperative ? BUDGET_COOPERATIVE : BUDGET;
	while (w->nsplits && !yield) {
		int k = pick(w);
		if (k < 0)
			return 0;
		*moved = true;
		w->cur = (unsigned)k;
		struct split *s = &w->split[k];
		const struct op *o = interpret(w, s);
		if (o != STOP) {
			s->pc = o;
			continue;
		}
		int r = handle(w, s, &yield);
		if (r)
			return r;
	}
	if (yield && w->nsplits > 1) /* another split of this warp goes first next time */
		w->forced = (int)((w->cur + 1) % w->nsplits);
	return 0;
}

/* No warp can go on. Lanes that a .sync operation waits for will not come: it runs with those that are there.
 */
static bool unblock(struct block *b)
{
	bool any = false;
	for (unsigned k = 0; k < b->nwarps; k++) {
		struct warp *w = &b->warps[k];
		for (unsigned i = 0; i < w->nsplits; i++)
			if (w->split[i].state == WAIT_SYNC || w->split[i].state == WAIT_WARP) {
				w->split[i].force = w->split[i].state == WAIT_SYNC;
				w->split[i].state = RUNNABLE;
				any = true;
				break;
			}
	}
	return any;
}

static int interrupted(const struct block *b)
{
	const struct launch *l = b->launch;
	int error = atomic_load_explicit(&l->error, memory_order_relaxed);
	if (error)
		return error;
	if (l->l->cancel && *l->l->cancel)
		return UNKNOWN_ERROR;
	if (l->deadline_ns && exec_now_ns() > l->deadline_ns)
		return LAUNCH_TIMEOUT;
	return 0;
}

int block_run(struct block *b)
{
	for (unsigned slice = 0; b->live; slice++) {
		bool moved = false;
		uint64_t wake_ns = 0, now = 0;
		for (unsigned k = 0; k < b->nwarps; k++) {
			struct warp *w = &b->warps[k];
			if (w->wake_ns) {
				now = now ? now : exec_now_ns();
				if (w->wake_ns > now) {
					wake_ns = !wake_ns || w->wake_ns < wake_ns ? w->wake_ns : wake_ns;
					continue;
				}
				w->wake_ns = 0;
			}
			int r = warp_run(w, &moved);
			if (r)
				return r;
			if (w->wake_ns)
				wake_ns = !wake_ns || w->wake_ns < wake_ns ? w->wake_ns : wake_ns;
		}
		b->wake_ns = moved ? 0 : wake_ns;
		if (!b->live)
			break;
		int r = interrupted(b);
		if (r)
			return r;
		if (!moved && wake_ns)
			return 0;
		if (!moved && !unblock(b))
			return LAUNCH_FAILED; /* threads wait at a barrier that the others never reach */
		if (slice == SLICE || b->launch->l->cooperative || b->cluster)
			return 0;
	}
	return 0;
}

static int room(
	struct block *b, const struct code *c, unsigned nwarps, size_t shared, size_t stride, size_t nthreads)
{
	if (b->cap_warps < nwarps || b->frame_bytes != c->frame_bytes) {
		for (unsigned k = 0; b->warps && k < b->cap_warps; k++)
			frame_trim(&b->warps[k]);
		free(b->warps);
		free(b->regs);
		b->cap_warps = 0;
		b->code_id = 0;
		b->warps = aligned_alloc(64, (nwarps * sizeof *b->warps + 63) & ~63ull);
		b->regs = aligned_alloc(64, ((size_t)c->frame_bytes * nwarps + 4096 + 63) & ~63ull);
		if (!b->warps || !b->regs) {
			free(b->warps);
			free(b->regs);
			b->warps = NULL;
			b->regs = NULL;
			return OUT_OF_MEMORY;
		}
		memset(b->warps, 0, nwarps * sizeof *b->warps);
		memset(b->regs, 0, (size_t)c->frame_bytes * nwarps);
		b->cap_warps = nwarps;
		b->frame_bytes = c->frame_bytes;
	}
	size_t need = ((shared + 255) & ~255ull) + stride * nthreads;
	if (need > b->memory_bytes) {
		if (b->memory)
			soft_free(b->memory);
		b->memory_bytes = 0;
		b->memory = soft_alloc(need, 256);
		if (!b->memory)
			return OUT_OF_MEMORY;
		b->memory_bytes = need;
	}
	return 0;
}

void block_release(struct block *b)
{
	for (unsigned k = 0; b->warps && k < b->cap_warps; k++)
		frame_trim(&b->warps[k]);
	free(b->warps);
	free(b->regs);
	if (b->memory)
		soft_free(b->memory);
	check_block_release(b);
	*b = (struct block){0};
}

static void warp_start(struct block *b, unsigned k, enum fill fill)
{
	struct warp *w = &b->warps[k];
	const struct code *c = b->code;
	unsigned lanes = b->nthreads - k * LANES < LANES ? b->nthreads - k * LANES : LANES;
	if (fill == FILL_ALL)
		frame_trim(w);
	w->block = b;
	w->id = k;
	w->mem_lo = soft_mem_base;
	w->mem_hi = soft_mem_end;
	w->shared = (uint8_t *)b->memory;
	w->shared_size = b->shared_end;
	w->params = b->launch->l->params;
	w->exists = lanes == LANES ? ~0u : (1u << lanes) - 1;
	w->exited = 0;
	w->forced = -1;
	w->wake_ns = 0;
	w->nframes = 0;
	w->cluster_arrived = w->cluster_phase = 0;
	w->group_fences = w->group_commits = 0;
	w->group_waits = false;
	memset(w->stack_used, 0, sizeof w->stack_used);
	w->local_stride = b->local_stride;
	w->local_base =
		b->memory + ((b->shared_bytes + 255) & ~255ull) + (uint64_t)k * LANES * b->local_stride;
	w->base_regs = b->regs + (size_t)k * b->frame_bytes;
	w->base = (struct frame){.code = c, .regs = w->base_regs, .lanes = w->exists};
	frame_fill(w, c, w->base_regs, 0, fill);
	w->split[0] = (struct split){.f = &w->base, .pc = c->ops, .mask = w->exists};
	w->nsplits = 1;
}

int block_start(struct block *b, struct launch *l, uint64_t index)
{
	const struct engine_launch *e = l->l;
	const struct code *c = l->code;
	unsigned nthreads = e->block[0] * e->block[1] * e->block[2], nwarps = (nthreads + LANES - 1) / LANES;
	size_t shared = c->dynamic_base + e->dynamic_shared, stride = (c->stack_bytes + 15) & ~15ull;
	if (c->shared_bytes > shared)
		shared = c->shared_bytes;
	int r = room(b, c, nwarps, shared, stride, nthreads);
	if (r)
		return r;
	enum fill fill = b->code_id != c->id || b->nwarps != nwarps ? FILL_ALL
			 : b->launch_id != l->id                    ? FILL_LAUNCH
								    : FILL_BLOCK;
	b->code_id = c->id;
	b->launch_id = l->id;
	b->launch = l;
	b->code = c;
	b->nthreads = b->live = nthreads;
	b->nwarps = nwarps;
	b->shared_bytes = shared;
	b->shared_end = (shared + SHARED_UNIT - 1) & ~(size_t)(SHARED_UNIT - 1);
	b->local_stride = stride;
	b->waiting = 0;
	b->wake_ns = 0;
	b->fault = 0;
	b->ctaid[0] = (uint32_t)(index % e->grid[0]);
	b->ctaid[1] = (uint32_t)(index / e->grid[0] % e->grid[1]);
	b->ctaid[2] = (uint32_t)(index / e->grid[0] / e->grid[1]);
	memset(b->bar, 0, sizeof b->bar);
	for (unsigned k = 0; k < nwarps; k++)
		warp_start(b, k, fill);
	check_block_start(b);
	return 0;
}
