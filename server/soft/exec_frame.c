/* SPDX-License-Identifier: Apache-2.0 */
/* Call frames: register files of functions, special registers, arguments and results, returns and exits.
 *
 * Thread rule: a warp belongs to the thread that runs its block. */
#include "server/soft/exec.h"
#include <stdlib.h>
#include <string.h>
#include "server/soft/builtin.h"
#include "server/soft/ir.h"

enum { OUT_OF_MEMORY = 2, ILLEGAL_ADDRESS = 700, ILLEGAL_INSTRUCTION = 715, LAUNCH_FAILED = 719 };

static uint32_t special(const struct warp *w, unsigned sr, uint32_t l)
{
	const struct block *b = w->block;
	const struct engine_launch *e = b->launch->l;
	uint32_t t = w->id * LANES + l;
	switch (sr) {
	case SR_TID_X: return t % e->block[0];
	case SR_TID_Y: return t / e->block[0] % e->block[1];
	case SR_TID_Z: return t / e->block[0] / e->block[1];
	case SR_NTID_X: return e->block[0];
	case SR_NTID_Y: return e->block[1];
	case SR_NTID_Z: return e->block[2];
	case SR_CTAID_X: return b->ctaid[0];
	case SR_CTAID_Y: return b->ctaid[1];
	case SR_CTAID_Z: return b->ctaid[2];
	case SR_NCTAID_X: return e->grid[0];
	case SR_NCTAID_Y: return e->grid[1];
	case SR_NCTAID_Z: return e->grid[2];
	case SR_LANEID: return l;
	case SR_WARPID: return w->id;
	case SR_NWARPID: return MAX_WARPS;
	case SR_SMID: return b->smid % engine_workers();
	case SR_NSMID: return engine_workers();
	case SR_LANEMASK_EQ: return 1u << l;
	case SR_LANEMASK_LT: return (1u << l) - 1;
	case SR_LANEMASK_LE: return (2u << l) - 1;
	case SR_LANEMASK_GE: return ~((1u << l) - 1);
	case SR_LANEMASK_GT: return ~((2u << l) - 1);
	case SR_TOTAL_SMEM: return (uint32_t)b->shared_bytes;
	case SR_AGGR_SMEM: return (uint32_t)b->shared_bytes;
	case SR_DYNAMIC_SMEM: return (uint32_t)e->dynamic_shared;
	case SR_CLUSTERID_X:
	case SR_CLUSTERID_Y:
	case SR_CLUSTERID_Z: {
		unsigned k = sr - SR_CLUSTERID_X;
		return b->ctaid[k] / e->cluster[k];
	}
	case SR_CLUSTER_CTAID_X:
	case SR_CLUSTER_CTAID_Y:
	case SR_CLUSTER_CTAID_Z: {
		unsigned k = sr - SR_CLUSTER_CTAID_X;
		return b->ctaid[k] % e->cluster[k];
	}
	case SR_CLUSTER_CTARANK: return b->rank;
	case SR_NCLUSTERID_X:
	case SR_NCLUSTERID_Y:
	case SR_NCLUSTERID_Z: {
		unsigned k = sr - SR_NCLUSTERID_X;
		return e->grid[k] / e->cluster[k];
	}
	case SR_CLUSTER_NCTAID_X:
	case SR_CLUSTER_NCTAID_Y:
	case SR_CLUSTER_NCTAID_Z: return e->cluster[sr - SR_CLUSTER_NCTAID_X];
	case SR_CLUSTER_NCTARANK: return e->cluster[0] * e->cluster[1] * e->cluster[2];
	case SR_CLUSTER_EXPLICIT: return b->cluster != NULL;
	case SR_DYNAMIC_BASE: return b->code->dynamic_base;
	case SR_ENVREG + 1: return (uint32_t)(b->launch->workspace >> 32);
	case SR_ENVREG + 2: return (uint32_t)b->launch->workspace;
	default: return 0;
	}
}

static uint64_t special64(const struct warp *w, unsigned sr, uint32_t l, uint32_t local)
{
	switch (sr) {
	case SR_SHARED_BASE: return (uint64_t)w->shared;
	case SR_PARAM_BASE: return w->block->launch->params;
	case SR_LOCAL_BASE: return w->local_base + l * w->local_stride + local;
	case SR_GRIDID: return w->block->launch->id;
	default: return 0;
	}
}

static bool uniform(unsigned sr)
{
	return !(sr <= SR_TID_Z || sr == SR_LANEID || (sr >= SR_LANEMASK_EQ && sr <= SR_LANEMASK_GT) ||
		 sr == SR_LOCAL_BASE);
}

void frame_fill(struct warp *w, const struct code *c, uint8_t *regs, uint32_t local, enum fill what)
{
	uint32_t k = what == FILL_ALL ? 0 : what == FILL_LAUNCH ? c->nconsts : c->ninits - c->nblock;
	for (; k < c->ninits; k++) {
		const struct slot_init *s = &c->inits[k];
		bool same = !s->sreg || uniform(s->sreg);
		if (s->width == 8) {
			uint64_t *d = (uint64_t *)(regs + s->offset),
				 v = s->sreg ? special64(w, s->sreg, 0, local) : s->value;
			for (uint32_t l = 0; l < LANES; l++)
				d[l] = v;
			for (uint32_t l = 1; !same && l < LANES; l++)
				d[l] = special64(w, s->sreg, l, local);
		} else {
			uint32_t *d = (uint32_t *)(regs + s->offset),
				 v = s->sreg ? special(w, s->sreg, 0) : (uint32_t)s->value;
			for (uint32_t l = 0; l < LANES; l++)
				d[l] = v;
			for (uint32_t l = 1; !same && l < LANES; l++)
				d[l] = special(w, s->sreg, l);
		}
	}
}

static void copy_words(uint8_t *to, const uint8_t *from, uint32_t words, uint32_t mask)
{
	uint32_t *d = (uint32_t *)to;
	const uint32_t *s = (const uint32_t *)from;
	if (mask == ~0u) {
		memcpy(d, s, (size_t)words * LANES * 4);
		return;
	}
	for (uint32_t k = 0; k < words; k++)
		for (uint32_t m = mask; m; m &= m - 1) {
			uint32_t l = (uint32_t)__builtin_ctz(m);
			d[k * LANES + l] = s[k * LANES + l];
		}
}

static struct frame *frame_new(struct warp *w, const struct code *c, uint32_t local)
{
	for (struct frame **f = &w->free_frames; *f; f = &(*f)->up)
		if ((*f)->code == c) {
			struct frame *found = *f;
			*f = found->up;
			frame_fill(w, c, found->regs, local, FILL_LAUNCH);
			return found;
		}
	if (w->nframes >= MAX_FRAMES)
		return NULL;
	struct frame *f = calloc(1, sizeof *f);
	uint8_t *regs = f ? aligned_alloc(64, c->frame_bytes ? c->frame_bytes : 64) : NULL;
	if (!regs) {
		free(f);
		return NULL;
	}
	memset(regs, 0, c->frame_bytes);
	f->regs = regs;
	w->nframes++;
	frame_fill(w, c, regs, local, FILL_ALL);
	return f;
}

static void frame_free(struct warp *w, struct frame *f)
{
	f->up = w->free_frames;
	w->free_frames = f;
}

void frame_trim(struct warp *w)
{
	for (struct frame *f = w->free_frames, *next; f; f = next) {
		next = f->up;
		free(f->regs);
		free(f);
	}
	w->free_frames = NULL;
	for (unsigned k = 0; k < w->nsplits; k++) /* left by a block that was stopped: each frame once */
		for (struct frame *f = w->split[k].f, *up; f && f != &w->base; f = up) {
			up = f->up;
			for (unsigned i = k + 1; i < w->nsplits; i++)
				for (struct frame *g = w->split[i].f; g && g != &w->base; g = g->up)
					if (g == f)
						goto shared;
			free(f->regs);
			free(f);
			continue;
		shared:
			break;
		}
	w->nsplits = 0;
}

/* The function that the active lanes call; lanes that call another one are split off and come back to the
 * same operation. */
static struct ptx_func *callee(struct warp *w, struct split *s, const struct call_info *ci)
{
	if (ci->func)
		return ci->func;
	const uint64_t *p = REG(w, uint64_t, ci->slot);
	uint64_t first = p[__builtin_ctz(s->mask)];
	uint32_t others = 0;
	FOR_LANES(w, l)
	if (p[l] != first)
		others |= 1u << l;
	if (others) {
		w->split[w->nsplits++] = (struct split){.f = s->f, .pc = w->at, .mask = others};
		s->mask &= ~others;
		w->mask = s->mask;
	}
	return ir_func_at(w->block->launch->module, first);
}

/* What alloca has taken of the fullest stack of these lanes. */
static uint32_t stack_taken(const struct warp *w, uint32_t lanes)
{
	uint32_t most = 0;
	for (; lanes; lanes &= lanes - 1) {
		uint32_t used = w->stack_used[__builtin_ctz(lanes)];
		most = used > most ? used : most;
	}
	return most;
}

int frame_call(struct warp *w)
{
	struct split *s = &w->split[w->cur];
	const struct call_info *ci = w->at->p;
	struct ptx_func *f = callee(w, s, ci);
	if (f && !f->body) {
		w->block->launch->error_line = w->at->line;
		int r = ci->func ? builtin_call(w, ci) : ILLEGAL_INSTRUCTION;
		s->pc = w->at + 1;
		return r;
	}
	if (!f || !f->code || f->entry || f->nparams != ci->nargs || f->nrets > ci->nrets) {
		w->block->launch->error_line = w->at->line;
		return LAUNCH_FAILED;
	}
	const struct code *c = f->code;
	uint32_t local = s->f->local + s->f->code->local_bytes;
	struct frame *n = NULL;
	uint64_t top = w->local_stride - stack_taken(w, s->mask);
	if (local + c->local_bytes <= top || !c->local_bytes)
		n = frame_new(w, c, local);
	if (!n) {
		w->block->launch->error_line = w->at->line;
		return local + c->local_bytes > top || w->nframes >= MAX_FRAMES ? LAUNCH_FAILED
											    : OUT_OF_MEMORY;
	}
	n->code = c;
	n->up = s->f;
	n->depth = s->f->depth + 1;
	n->lanes = s->mask;
	n->call = w->at;
	n->local = local;
	for (uint32_t k = 0; k < ci->nargs; k++) {
		uint32_t words =
			ci->args[k].words < c->params[k].words ? ci->args[k].words : c->params[k].words;
		copy_words(n->regs + c->params[k].slot, s->f->regs + ci->args[k].slot, words, s->mask);
	}
	s->f = n;
	s->pc = c->ops;
	return 0;
}

static void leave(struct warp *w, struct frame *f, uint32_t lanes)
{
	f->lanes &= ~lanes;
	if (!f->lanes && f != &w->base)
		frame_free(w, f);
}

void frame_return(struct warp *w)
{
	struct split *s = &w->split[w->cur];
	struct frame *f = s->f;
	if (f == &w->base)
		return;
	const struct call_info *ci = f->call->p;
	for (uint32_t k = 0; k < ci->nrets && k < f->code->func->nrets; k++) {
		uint32_t words = ci->rets[k].words < f->code->rets[k].words ? ci->rets[k].words
									    : f->code->rets[k].words;
		copy_words(f->up->regs + ci->rets[k].slot, f->regs + f->code->rets[k].slot, words, s->mask);
	}
	s->f = f->up;
	s->pc = f->call + 1;
	leave(w, f, s->mask);
}

void frame_exit(struct warp *w, struct frame *f, uint32_t lanes)
{
	while (f && f != &w->base) {
		struct frame *up = f->up;
		leave(w, f, lanes);
		f = up;
	}
}
