/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of functions: each instruction in turn, predicates, branches, the stack of local variables, and
 * what a kernel needs with all that it calls.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 2, RECURSION_STACK = 16 << 10, ALLOCA_STACK = 16 << 10, MAX_STACK = 16 << 20,
		MAX_CHAIN = 64 };

/* It runs the operation behind it. */
static bool wraps(const struct decoder *d, const struct op *o)
{
	return o->fn == d->handlers[H_moded].full || o->fn == x_checked;
}

/* Puts a predicate's wrapper in front of each operation from `first` on (a wrapper and what it wraps count as
 * one). */
static void wrap_predicate(struct decoder *d, uint32_t first, uint32_t pred, bool negated)
{
	uint32_t n = d->nops - first, groups = 0;
	for (uint32_t k = 0; k < n; k++)
		groups += k == 0 || !wraps(d, &d->ops[first + k - 1]);
	struct op *old = malloc((n + 1) * sizeof *old);
	if (!old) {
		d->failed = true;
		return;
	}
	memcpy(old, d->ops + first, n * sizeof *old);
	d->nops = first;
	if (groups > 1) {
		uint32_t t = temp(d, 4);
		emit3(d, "mov_pred", t, pred, NONE, NONE);
		pred = t;
	}
	for (uint32_t k = 0; k < n; k++) {
		bool pair = wraps(d, &old[k]) && k + 1 < n;
		struct op *o = emit(d, negated ? H_predicated_not : H_predicated);
		o->a = pred;
		o->x = pair ? 3 : 2;
		*emit_raw(d) = old[k];
		if (pair)
			*emit_raw(d) = old[++k];
	}
	free(old);
}

/* Operations that end or suspend a split: under a predicate they are branched around. */
static bool is_control(const struct decoder *d)
{
	static const char *const names[] = {"ret", "exit", "call", "bar", "barrier", "trap", "brx", "brkpt",
		"nanosleep", "shfl", "vote", "match", "redux", "elect", "activemask", "wmma", "mma",
		"ldmatrix", "stmatrix", "movmatrix", "mbarrier", "wgmma", "tensormap"};
	for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
		if (op_is(d, names[k]))
			return true;
	return false;
}

static void instruction(struct decoder *d, uint32_t index)
{
	const struct ptx_insn *i = &d->f->insns[index];
	d->i = i;
	d->uncovered = d->plain = false;
	d->used32 = d->used64 = d->nwiden = 0;
	uint32_t pred = i->pred ? reg_slot(d, i->pred - 1) : NONE;
	if (op_is(d, "bra")) {
		if (i->nop != 1 || i->op[0].kind != OP_LABEL)
			uncover(d);
		else
			emit_branch(d,
				!i->pred      ? H_bra
				: i->pred_neg ? H_bra_ifnot
					      : H_bra_if,
				pred, i->op[0].reg);
		if (d->uncovered)
			emit_x(d, x_uncovered);
		return;
	}
	bool around = i->pred && is_control(d);
	uint32_t skip = d->nops;
	if (around) {
		struct op *o = emit(d, i->pred_neg ? H_bra_if : H_bra_ifnot);
		o->a = pred;
	}
	d->plain = i->nop && i->op[0].kind == OP_REG && d->alias[i->op[0].reg] == i;
	if (d->plain)
		return; /* a copy that nobody has to make */
	uint32_t first = d->nops, fixups = d->nfixups;
	/* What these say beyond their opcode is about orders that always hold here. */
	bool lax = op_is(d, "fence") || op_is(d, "membar") || op_is(d, "griddepcontrol") ||
		   op_is(d, "prefetch") || op_is(d, "pmevent") || op_is(d, "createpolicy") ||
		   op_is(d, "applypriority");
	bool read = !i->m->unknown || lax;
	d->plain = read && (decode_move(d) || decode_compare(d) || decode_arith(d) || decode_convert(d) ||
		decode_memory(d));
	if (!d->plain && !(read && (decode_atomic(d) || decode_flow(d) || decode_warp(d) || decode_bulk(d) ||
					   decode_cluster(d) || decode_matrix(d) || decode_wgmma(d) ||
					   decode_video(d) || decode_texture(d))))
		uncover(d);
	if (!d->uncovered)
		finish_widen(d);
	if (d->uncovered) {
		d->plain = false;
		d->nops = first;
		d->nfixups = fixups;
		emit_x(d, x_uncovered);
	}
	if (around)
		d->ops[skip].imm = d->nops; /* resolved with the labels: see resolve */
	else if (i->pred)
		wrap_predicate(d, first, pred, i->pred_neg);
}

static void resolve(struct decoder *d)
{
	handler *branches[] = {d->handlers[H_bra_if].full, d->handlers[H_bra_ifnot].full};
	for (uint32_t k = 0; k < d->nops; k++)
		if (d->ops[k].fn == branches[0] || d->ops[k].fn == branches[1])
			d->ops[k].to = d->ops + d->ops[k].imm;
	for (uint32_t k = 0; k < d->nfixups; k++) {
		struct op *o = &d->ops[d->fixups[k].op];
		o->to = d->ops + d->insn_op[d->f->labels[d->fixups[k].label]];
	}
	for (uint32_t k = 0; k < d->nops; k++)
		if (d->ops[k].fn == x_brx) {
			const struct ptx_table *t = d->ops[k].p;
			const struct op **table = arena_alloc(d->m->arena, (t->n + 1) * sizeof *table);
			if (!table) {
				d->failed = true;
				return;
			}
			for (uint32_t n = 0; n < t->n; n++)
				table[n] = d->ops + d->insn_op[d->f->labels[t->label[n]]];
			d->ops[k].table = table;
		}
}

/* Locals, and the parameters whose address a function takes, get their place in the stack of each lane. */
static void layout_local(struct decoder *d)
{
	uint64_t at = 0;
	for (struct ptx_var *v = d->f->vars; v; v = v->next)
		if (v->space == SP_LOCAL) {
			at = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
			v->address = at;
			at += v->bytes;
		}
	if (at > 1 << 24)
		d->failed = true;
	d->c->local_bytes = (uint32_t)((at + 15) & ~15ull);
}

static void spill_params(struct decoder *d)
{
	struct ptx_func *f = d->f;
	if (f->entry)
		return;
	for (struct ptx_var *v = f->params; v; v = v->next) {
		param_slot(d, v);
		if (!v->addressed)
			continue;
		uint64_t at = (d->c->local_bytes + v->align - 1) & ~(uint64_t)(v->align - 1);
		struct op *o = emit_x(d, x_copy_params);
		uint32_t base = sreg(d, SR_LOCAL_BASE);
		o = &d->ops[d->nops - 1];
		o->a = (uint32_t)v->address;
		o->b = base;
		o->imm = (int64_t)at;
		o->x = (uint32_t)v->bytes;
		v->spilled = true;
		v->spill = (uint32_t)at;
		d->c->local_bytes = (uint32_t)((at + v->bytes + 15) & ~15ull);
	}
	for (struct ptx_var *v = f->rets; v; v = v->next)
		param_slot(d, v);
}

static void mark_addressed(struct ptx_func *f)
{
	for (uint32_t k = 0; k < f->ninsns; k++)
		for (unsigned n = 0; n < f->insns[k].nop; n++) {
			const struct ptx_operand *o = &f->insns[k].op[n];
			if (o->kind == OP_VAR && !o->addr && o->var->space == SP_PARAM)
				o->var->addressed = true;
		}
}

static bool finish_code(struct decoder *d)
{
	struct code *c = d->c;
	c->inits = calloc(d->nconst + 1, sizeof *c->inits);
	if (!c->inits)
		return false;
	for (unsigned pass = 0; pass < 3;
		pass++) /* constants, then what a launch fixes, then what each block changes */
		for (unsigned b = 0; b < CONST_BUCKETS; b++)
			for (struct constant *k = d->bucket[b]; k; k = k->next) {
				bool block = (k->sreg >= SR_CTAID_X && k->sreg <= SR_CTAID_Z) ||
					     (k->sreg >= SR_CLUSTERID_X && k->sreg <= SR_CLUSTER_CTARANK);
				unsigned kind = !k->sreg ? 0 : block ? 2 : 1;
				if (kind != pass)
					continue;
				c->inits[c->ninits++] =
					(struct slot_init){k->slot, k->width, k->sreg, k->value};
				c->nconsts += pass == 0;
				c->nblock += pass == 2;
			}
	struct param_words **to[2] = {&c->params, &c->rets};
	struct ptx_var *from[2] = {d->f->params, d->f->rets};
	unsigned count[2] = {d->f->nparams, d->f->nrets};
	for (int k = 0; k < 2; k++) {
		unsigned n = 0;
		*to[k] = calloc(count[k] + 1, sizeof **to[k]);
		if (!*to[k])
			return false;
		for (struct ptx_var *v = from[k]; v; v = v->next)
			(*to[k])[n++] = (struct param_words){
				d->f->entry ? 0 : (uint32_t)v->address, (uint32_t)((v->bytes + 7) / 8 * 2)};
	}
	c->frame_bytes = (d->frame + 63) & ~63u;
	c->ops = d->ops;
	c->nops = d->nops;
	d->ops = NULL;
	return true;
}

static void decoder_free(struct decoder *d)
{
	for (unsigned b = 0; b < CONST_BUCKETS; b++)
		for (struct constant *k = d->bucket[b], *next; k; k = next) {
			next = k->next;
			free(k);
		}
	free(d->ops);
	free(d->reg_slot);
	free(d->insn_op);
	free(d->labelled);
	free(d->alias);
	free(d->uses);
	free(d->fixups);
	free(d);
}

static int decode_body(
	struct engine_module *m, struct ptx_func *f, struct code *c, struct engine_error *error)
{
	struct decoder *d = calloc(1, sizeof *d);
	if (!d)
		goto no_memory;
	d->m = m;
	d->f = f;
	d->c = c;
	d->cc = NONE;
	d->handlers = handlers_pick();
	d->reg_slot = malloc((f->nregs + 1) * sizeof *d->reg_slot);
	d->insn_op = malloc((f->ninsns + 1) * sizeof *d->insn_op);
	d->labelled = calloc(f->ninsns + 1, sizeof *d->labelled);
	if (!d->reg_slot || !d->insn_op || !d->labelled)
		goto no_memory;
	for (uint32_t k = 0; k < f->nlabels; k++)
		d->labelled[f->labels[k]] = true;
	memset(d->reg_slot, 0xff, f->nregs * sizeof *d->reg_slot);
	mark_addressed(f);
	layout_local(d);
	if (f->entry)
		c->shared_bytes = ir_layout_shared(m, f);
	c->dynamic_base = (c->shared_bytes + 127) & ~127u;
	decode_slots(d);
	if (d->failed)
		goto no_memory;
	for (uint32_t k = 0; k < f->ninsns && !c->dynamic_stack; k++)
		c->dynamic_stack = !strcmp(f->insns[k].m->opcode, "alloca");
	d->stack = c->dynamic_stack ? slot_new(d, 4) : NONE;
	if (c->dynamic_stack)
		emit_x(d, x_stack_enter)->d = d->stack;
	spill_params(d);
	for (uint32_t k = 0; k < f->ninsns && !d->failed; k++) {
		d->insn_op[k] = d->nops;
		if (d->labelled[k])
			shape_forget(d, false);
		instruction(d, k);
		shape_forget(d, d->plain);
	}
	d->i = NULL;
	d->insn_op[f->ninsns] = d->nops;
	if (c->dynamic_stack && !f->entry)
		emit_x(d, x_stack_leave)->a = d->stack;
	emit_x(d, f->entry ? x_exit : x_ret);
	if (!d->failed)
		resolve(d);
	if (d->failed || !finish_code(d))
		goto no_memory;
	decoder_free(d);
	return 0;
no_memory:
	if (d)
		decoder_free(d);
	error->code = OUT_OF_MEMORY;
	snprintf(error->text, sizeof error->text, "%.80s is too large to be decoded", f->name);
	return OUT_OF_MEMORY;
}

static int decode_one(struct engine_module *m, struct ptx_func *f, struct engine_error *error)
{
	if (f->code)
		return 0;
	struct code *c = arena_alloc(m->arena, sizeof *c);
	if (!c) {
		error->code = OUT_OF_MEMORY;
		return OUT_OF_MEMORY;
	}
	static _Atomic uint64_t ids;
	c->func = f;
	c->id = ++ids;
	int r = decode_body(m, f, c, error);
	if (!r)
		f->code = c;
	return r;
}

/* The deepest stack of the functions in list, each with all that it calls; RECURSION_STACK more when a chain
 * has no end. */
static uint64_t stack_of(struct ptx_func *const *list, unsigned n, bool pointers, uint64_t *need)
{
	bool changed = true;
	for (unsigned round = 0; changed && !pointers && round < MAX_CHAIN; round++) {
		changed = false;
		for (unsigned i = n; i-- > 0;) {
			const struct code *c = list[i]->code;
			uint64_t most = 0;
			for (uint32_t k = 0; k < c->nops; k++) {
				const struct call_info *ci = c->ops[k].fn == x_call ? c->ops[k].p : NULL;
				if (ci && ci->func && ci->func->body && need[ci->func->index] > most)
					most = need[ci->func->index];
			}
			most += c->local_bytes ? c->local_bytes
					       : 16; /* so that any chain without an end grows */
			changed |= most != need[list[i]->index];
			need[list[i]->index] = most;
		}
	}
	if (!changed)
		return need[list[0]->index];
	uint64_t all = RECURSION_STACK;
	for (unsigned i = 0; i < n; i++)
		all += list[i]->code->local_bytes;
	return all;
}

/* All functions that the code of f can reach; through a pointer: every function of the module. Breadth
 * first, no recursion. What a pointer may reach does not make f uncovered: it fails when it gets there. */
int decode_function(struct engine_module *m, struct ptx_func *f, struct engine_error *error)
{
	int r = decode_one(m, f, error);
	if (r || f->code->decoded)
		return r;
	struct ptx_func **reached = calloc(m->nfuncs + 1, sizeof *reached);
	bool *seen = calloc(m->nfuncs + 1, sizeof *seen);
	uint64_t *need = calloc(m->nfuncs + 1, sizeof *need);
	unsigned n = 0, done = 0, direct = 0;
	bool pointers = false;
	if (!reached || !seen || !need) {
		r = error->code = OUT_OF_MEMORY;
		goto out;
	}
	reached[n++] = f;
	seen[f->index] = true;
	while (done < n) {
		struct ptx_func *g = reached[done++];
		r = decode_one(m, g, error);
		if (r)
			goto out;
		if (g->code->uncovered && !f->code->uncovered && !direct)
			f->code->uncovered = strdup(g->code->uncovered);
		f->code->param_address |= g->code->param_address;
		for (uint32_t k = 0; k < g->code->nops; k++) {
			const struct call_info *ci = g->code->ops[k].fn == x_call ? g->code->ops[k].p : NULL;
			pointers |= ci && !ci->func;
			if (ci && ci->func && ci->func->body && !seen[ci->func->index]) {
				seen[ci->func->index] = true;
				reached[n++] = ci->func;
			}
		}
		if (!pointers || done < n || direct)
			continue;
		direct = n;
		for (unsigned k = 0; k < m->nfuncs; k++)
			if (m->funcs[k]->body && !m->funcs[k]->entry && !seen[k]) {
				seen[k] = true;
				reached[n++] = m->funcs[k];
			}
	}
	uint64_t stack = stack_of(reached, n, pointers, need);
	bool dynamic = false;
	for (unsigned k = 0; k < n; k++)
		dynamic |= reached[k]->code->dynamic_stack;
	stack += dynamic ? ALLOCA_STACK : 0;
	f->code->stack_bytes = (uint32_t)(stack < MAX_STACK ? stack : MAX_STACK);
	f->code->decoded = true;
out:
	free(reached);
	free(seen);
	free(need);
	return r;
}
