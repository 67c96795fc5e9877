/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of a block and of a warp. A barrier counts lanes, not warps, so that partly exited and diverged
 * warps are right.
 *
 * Thread rule: a block belongs to the thread that runs it. */
#include "server/soft/exec.h"
#include "server/soft/builtin.h"
#include "server/soft/check.h"

enum { ILLEGAL_INSTRUCTION = 715 };

static void release(struct block *b, unsigned id)
{
	struct barrier *r = &b->bar[id];
	for (unsigned k = 0; k < b->nwarps; k++) {
		struct warp *w = &b->warps[k];
		for (unsigned i = 0; i < w->nsplits; i++) {
			struct split *s = &w->split[i];
			if (s->state != WAIT_BARRIER || s->bar != id)
				continue;
			s->state = RUNNABLE;
			check_leave(w, id, s->mask);
			if (s->bar_d == UINT32_MAX)
				continue;
			uint32_t kind = s->want,
				 v = kind == BAR_POPC ? r->popc
						      : 0 - (uint32_t)(kind == BAR_AND ? r->popc == r->arrived
										       : r->popc != 0);
			uint32_t *d = (uint32_t *)(s->f->regs + s->bar_d);
			for (uint32_t m = s->mask; m; m &= m - 1)
				d[__builtin_ctz(m)] = v;
		}
	}
	check_barrier(b, id);
	*r = (struct barrier){0};
}

int barrier_arrive(struct warp *w)
{
	struct split *s = &w->split[w->cur];
	struct block *b = w->block;
	const struct op *o = w->at;
	uint32_t l = (uint32_t)__builtin_ctz(s->mask), id = REG(w, uint32_t, o->a)[l];
	if (id >= MAX_BARRIERS) { /* PTX has 16; the last one is the cluster's */
		b->launch->error_line = o->line;
		return ILLEGAL_INSTRUCTION;
	}
	struct barrier *r = &b->bar[id];
	r->used = true;
	r->expected = o->b == UINT32_MAX ? 0 : REG(w, uint32_t, o->b)[l];
	r->arrived += (uint32_t)__builtin_popcount(s->mask);
	if (o->c != UINT32_MAX) {
		const int32_t *p = REG(w, int32_t, o->c);
		for (uint32_t m = s->mask; m; m &= m - 1)
			r->popc += p[__builtin_ctz(m)] != 0;
	}
	check_arrive(w, id, s->mask);
	s->pc = o + 1;
	if (o->x != BAR_ARRIVE) {
		s->state = WAIT_BARRIER;
		s->bar = (uint8_t)id;
		s->bar_d = o->d;
		s->want = o->x;
	}
	if (r->arrived >= (r->expected ? r->expected : b->live))
		release(b, id);
	return 0;
}

/* Threads have ended: those that wait for all threads may have all that are left. */
void barrier_exit(struct block *b)
{
	for (unsigned id = 0; id < MAX_BARRIERS; id++) {
		struct barrier *r = &b->bar[id];
		if (r->used && !r->expected && r->arrived >= b->live)
			release(b, id);
	}
}

uint32_t warp_barrier_mask(const struct warp *w, const struct op *o)
{
	return REG(w, uint32_t, o->a)[__builtin_ctz(w->mask)];
}
