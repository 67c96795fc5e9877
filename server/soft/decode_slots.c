/* SPDX-License-Identifier: Apache-2.0 */
/* Which registers share a slot, so that the register file of a warp stays in the first caches: copies become
 * aliases, the rest is coloured by liveness. Liveness is that of one thread; lanes of other splits are safe,
 * since every operation leaves the lanes outside its mask alone.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS ((uint64_t)4 << 20) /* of all bit sets; beyond it every register has its own slot */

typedef void visit(void *arg, uint32_t reg, bool def);

/* Instructions whose first operand is no destination. */
static bool no_target(const struct ptx_insn *i)
{
	static const char *const names[] = {"st", "red", "bra", "brx", "membar", "fence", "ret", "exit",
		"trap", "nanosleep", "prefetch", "prefetchu", "cp", "sust", "stmatrix", "discard",
		"applypriority", "setmaxnreg", "stackrestore", "sured", "tensormap", "multimem"};
	for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
		if (!strcmp(i->m->opcode, names[k]))
			return true;
	bool barrier = !strcmp(i->m->opcode, "bar") || !strcmp(i->m->opcode, "barrier");
	return (barrier && !ptx_has(i->m, MOD_RED)) ||
	       (!strcmp(i->m->opcode, "wmma") && ptx_has(i->m, MOD_STORE));
}

static void operand(const struct ptx_operand *o, bool def, visit *v, void *arg, unsigned depth)
{
	if (o->kind == OP_REG)
		v(arg, o->reg, def && !o->addr);
	for (uint32_t k = 0; o->kind == OP_VEC && k < o->n && depth < 4; k++)
		operand(&o->vec[k], def && !o->addr, v, arg, depth + 1);
}

void insn_registers(const struct ptx_insn *i, visit *v, void *arg)
{
	bool none = no_target(i);
	if (!strcmp(i->m->opcode, "call"))
		none = i->nop < 2 || i->op[0].kind != OP_VEC;
	unsigned targets = none || !i->nop ? 0 : i->op[0].dual ? 2 : 1;
	if (i->pred)
		v(arg, i->pred - 1, false);
	for (unsigned k = 0; k < i->nop; k++)
		if (k >= targets)
			operand(&i->op[k], false, v, arg, 0);
	if (!strcmp(i->m->opcode, "wgmma") && i->nop) /* what it adds to */
		operand(&i->op[0], false, v, arg, 0);
	for (unsigned k = 0; k < targets; k++)
		operand(&i->op[k], true, v, arg, 0);
}

struct counts {
	struct decoder *d;
	uint32_t *defs;
};
static void count(void *arg, uint32_t r, bool def)
{
	struct counts *c = arg;
	if (def)
		c->defs[r]++;
	else
		c->d->uses[r]++;
}

static bool copies(const struct ptx_insn *i)
{
	if (i->pred || i->nop != 2 || i->m->ntypes != 1 || i->m->unknown || i->op[0].kind != OP_REG ||
		i->op[0].part || i->op[0].field.n)
		return false;
	if (!strcmp(i->m->opcode, "mov"))
		return !i->m->nmods;
	return !strcmp(i->m->opcode, "cvta") && i->m->nspaces == 1 && i->m->space[0] != SP_SHARED &&
			i->m->space[0] != SP_CLUSTER &&
	       i->m->types[0] == T_U64;
}

/* A register with one definition, which copies something that never changes, or another register with one
 * definition, is that thing: its definition comes before every use, so between the two the source cannot have
 * been defined anew. */
static void find_aliases(struct decoder *d, const uint32_t *defs)
{
	const struct ptx_func *f = d->f;
	for (uint32_t k = 0; k < f->ninsns; k++) {
		const struct ptx_insn *i = &f->insns[k];
		if (!copies(i))
			continue;
		uint32_t r = i->op[0].reg;
		const struct ptx_operand *s = &i->op[1];
		unsigned w = lane_bytes(f->regs[r]);
		if (defs[r] != 1 || f->regs[r] == T_B128 || w != lane_bytes(i->m->types[0]))
			continue;
		bool ok = s->kind == OP_INT || s->kind == OP_FLT32 || s->kind == OP_FLT64;
		ok |= s->kind == OP_SREG && (s->reg < SR_CLOCK || s->reg > SR_PM) && w == 4 &&
		      s->reg != SR_GRIDID;
		ok |= s->kind == OP_REG && !s->part && !s->field.n && !s->minus && !s->neg &&
				defs[s->reg] == 1 &&
		      lane_bytes(f->regs[s->reg]) == w && s->reg != r &&
		      (f->regs[s->reg] == T_PRED) == (f->regs[r] == T_PRED) && f->regs[s->reg] != T_B128;
		if (ok)
			d->alias[r] = i;
	}
	for (uint32_t r = 0; r < f->nregs;
		r++) { /* a circle of copies, which no program means, is no alias */
		uint32_t n = 0, s = r;
		while (d->alias[s] && d->alias[s]->op[1].kind == OP_REG && n++ < 64)
			s = d->alias[s]->op[1].reg;
		if (n >= 64)
			d->alias[r] = NULL;
	}
}

struct basic_block {
	uint32_t first, last, next[2];
	uint32_t table;
};
struct liveness {
	struct decoder *d;
	struct basic_block *blocks;
	uint32_t nblocks, words;
	uint32_t *block_of; /* label position -> block */
	uint64_t *use, *def, *in, *out;
	uint32_t *start, *end;
	uint64_t *now_use, *now_def;
	uint32_t at;
	bool kill;
};

static uint32_t root(const struct decoder *d, uint32_t r)
{
	while (d->alias[r] && d->alias[r]->op[1].kind == OP_REG)
		r = d->alias[r]->op[1].reg;
	return r;
}

static void into_sets(void *arg, uint32_t r, bool def)
{
	struct liveness *l = arg;
	r = root(l->d, r);
	if (l->d->alias[r])
		return;
	uint64_t bit = 1ull << (r & 63);
	if (!def || !l->kill) {
		if (!(l->now_def[r >> 6] & bit))
			l->now_use[r >> 6] |= bit;
	}
	if (def && l->kill)
		l->now_def[r >> 6] |= bit;
}

static void extend(void *arg, uint32_t r, bool def)
{
	struct liveness *l = arg;
	(void)def;
	r = root(l->d, r);
	if (l->at < l->start[r])
		l->start[r] = l->at;
	if (l->at + 1 > l->end[r])
		l->end[r] = l->at + 1;
}

static bool ends(const struct ptx_insn *i)
{
	const char *o = i->m->opcode;
	return !strcmp(o, "bra") || !strcmp(o, "brx") || !strcmp(o, "ret") || !strcmp(o, "exit") ||
	       !strcmp(o, "trap");
}

static bool find_blocks(struct liveness *l)
{
	const struct ptx_func *f = l->d->f;
	bool *leader = calloc(f->ninsns + 2, 1);
	l->block_of = calloc(f->ninsns + 2, sizeof *l->block_of);
	if (!leader || !l->block_of) {
		free(leader);
		return false;
	}
	leader[0] = true;
	for (uint32_t k = 0; k < f->nlabels; k++)
		leader[f->labels[k]] = true;
	for (uint32_t k = 0; k < f->ninsns; k++)
		if (ends(&f->insns[k]))
			leader[k + 1] = true;
	uint32_t n = 0;
	for (uint32_t k = 0; k < f->ninsns; k++)
		n += leader[k];
	l->blocks = calloc(n + 1, sizeof *l->blocks);
	l->nblocks = n;
	n = 0;
	for (uint32_t k = 0; l->blocks && k < f->ninsns; k++) {
		if (leader[k])
			l->blocks[n++].first = k;
		l->block_of[k] = n - 1;
		l->blocks[n - 1].last = k;
	}
	l->block_of[f->ninsns] = NONE;
	free(leader);
	return l->blocks != NULL;
}

static void successors(struct liveness *l, uint32_t b)
{
	const struct ptx_func *f = l->d->f;
	struct basic_block *k = &l->blocks[b];
	const struct ptx_insn *i = &f->insns[k->last];
	k->next[0] = b + 1 < l->nblocks ? b + 1 : NONE;
	k->next[1] = k->table = NONE;
	if (!ends(i))
		return;
	if (!i->pred)
		k->next[0] = NONE;
	if (!strcmp(i->m->opcode, "bra") && i->nop == 1 && i->op[0].kind == OP_LABEL)
		k->next[1] = l->block_of[f->labels[i->op[0].reg]];
	else if (!strcmp(i->m->opcode, "brx") && i->nop == 2 && i->op[1].kind == OP_TABLE)
		k->table = k->last;
}

static bool flow(struct liveness *l, uint32_t b, uint32_t to)
{
	bool changed = false;
	uint64_t *out = l->out + (uint64_t)b * l->words, *in = l->in + (uint64_t)to * l->words;
	for (uint32_t k = 0; k < l->words; k++) {
		uint64_t v = out[k] | in[k];
		changed |= v != out[k];
		out[k] = v;
	}
	return changed;
}

static void solve(struct liveness *l)
{
	const struct ptx_func *f = l->d->f;
	for (uint32_t b = 0; b < l->nblocks; b++) {
		successors(l, b);
		l->now_use = l->use + (uint64_t)b * l->words;
		l->now_def = l->def + (uint64_t)b * l->words;
		for (uint32_t k = l->blocks[b].first; k <= l->blocks[b].last; k++) {
			l->kill = !f->insns[k].pred;
			insn_registers(&f->insns[k], into_sets, l);
		}
		memcpy(l->in + (uint64_t)b * l->words, l->now_use, l->words * sizeof(uint64_t));
	}
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t b = l->nblocks; b-- > 0;) {
			const struct basic_block *k = &l->blocks[b];
			bool more = false;
			for (int n = 0; n < 2; n++)
				if (k->next[n] != NONE)
					more |= flow(l, b, k->next[n]);
			if (k->table != NONE) {
				const struct ptx_table *t = f->insns[k->table].op[1].table;
				for (uint32_t n = 0; n < t->n; n++)
					if (l->block_of[f->labels[t->label[n]]] != NONE)
						more |= flow(l, b, l->block_of[f->labels[t->label[n]]]);
			}
			if (!more)
				continue;
			changed = true;
			uint64_t *in = l->in + (uint64_t)b * l->words, *out = l->out + (uint64_t)b * l->words;
			const uint64_t *use = l->use + (uint64_t)b * l->words,
				       *def = l->def + (uint64_t)b * l->words;
			for (uint32_t w = 0; w < l->words; w++)
				in[w] = use[w] | (out[w] & ~def[w]);
		}
	}
}

static void intervals(struct liveness *l)
{
	const struct ptx_func *f = l->d->f;
	memset(l->start, 0xff, f->nregs * sizeof *l->start);
	for (uint32_t b = 0; b < l->nblocks; b++) {
		for (uint32_t k = l->blocks[b].first; k <= l->blocks[b].last; k++) {
			l->at = k;
			insn_registers(&f->insns[k], extend, l);
		}
		for (int side = 0; side < 2; side++) {
			const uint64_t *set = (side ? l->out : l->in) + (uint64_t)b * l->words;
			l->at = side ? l->blocks[b].last : l->blocks[b].first;
			for (uint32_t w = 0; w < l->words; w++)
				for (uint64_t m = set[w]; m; m &= m - 1)
					extend(l, w * 64 + (uint32_t)__builtin_ctzll(m), false);
		}
	}
}

static int by_start(const void *a, const void *b, void *start)
{
	uint32_t x = ((const uint32_t *)start)[*(const uint32_t *)a],
		 y = ((const uint32_t *)start)[*(const uint32_t *)b];
	return x < y ? -1 : x > y;
}

struct pool {
	uint32_t slot, until;
};

/* Linear scan: a slot is free again when its interval has ended before the next one starts. Slots of 4 and 8
 * bytes per lane do not mix. */
static void colour(struct liveness *l)
{
	struct decoder *d = l->d;
	const struct ptx_func *f = d->f;
	uint32_t *order = malloc((f->nregs + 1) * sizeof *order), n = 0;
	struct pool *pools[2] = {
		malloc((f->nregs + 1) * sizeof(struct pool)), malloc((f->nregs + 1) * sizeof(struct pool))};
	uint32_t count[2] = {0, 0};
	if (order && pools[0] && pools[1]) {
		for (uint32_t r = 0; r < f->nregs; r++)
			if (l->start[r] != NONE && !d->alias[r] && f->regs[r] != T_B128)
				order[n++] = r;
		qsort_r(order, n, sizeof *order, by_start, l->start);
		for (uint32_t k = 0; k < n; k++) {
			uint32_t r = order[k], w = lane_bytes(f->regs[r]) == 8, c;
			for (c = 0; c < count[w]; c++)
				if (pools[w][c].until <= l->start[r])
					break;
			if (c == count[w])
				pools[w][count[w]++].slot = slot_new(d, w ? 8 : 4);
			pools[w][c].until = l->end[r];
			d->reg_slot[r] = pools[w][c].slot;
		}
	}
	free(order);
	free(pools[0]);
	free(pools[1]);
}

void decode_slots(struct decoder *d)
{
	struct ptx_func *f = d->f;
	d->alias = calloc(f->nregs + 1, sizeof *d->alias);
	d->uses = calloc(f->nregs + 1, sizeof *d->uses);
	uint32_t *defs = calloc(f->nregs + 1, sizeof *defs);
	struct liveness l = {.d = d, .words = (f->nregs + 63) / 64};
	if (!d->alias || !d->uses || !defs) {
		d->failed = true;
		goto out;
	}
	struct counts c = {d, defs};
	for (uint32_t k = 0; k < f->ninsns; k++)
		insn_registers(&f->insns[k], count, &c);
	find_aliases(d, defs);
	if (!f->ninsns || !f->nregs || !find_blocks(&l) || (uint64_t)l.nblocks * l.words * 4 > MAX_WORDS)
		goto out;
	uint64_t n = (uint64_t)l.nblocks * l.words + 1;
	l.use = calloc(n * 4, sizeof *l.use);
	l.start = malloc((f->nregs + 1) * sizeof *l.start);
	l.end = calloc(f->nregs + 1, sizeof *l.end);
	if (l.use && l.start && l.end) {
		l.def = l.use + n;
		l.in = l.def + n;
		l.out = l.in + n;
		solve(&l);
		intervals(&l);
		colour(&l);
	}
out:
	free(defs);
	free(l.use);
	free(l.start);
	free(l.end);
	free(l.blocks);
	free(l.block_of);
}
