/* SPDX-License-Identifier: Apache-2.0 */
/* The core of decoding: emitting operations, slots of registers, constants and temporaries, predicates, branches, and what a function needs.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/lane_math.h"

enum { OUT_OF_MEMORY = 2, MAX_FRAME = 64 << 20, RECURSION_STACK = 16 << 10 };

void *grow(void *p, uint32_t *cap, uint32_t need, size_t each)
{
	if (need <= *cap)
		return p;
	uint32_t c = *cap * 2 > need ? *cap * 2 : need < 16 ? 16 : need;
	void *q = reallocarray(p, c, each);
	if (q)
		*cap = c;
	return q;
}

static struct op *emit_raw(struct decoder *d)
{
	static struct op scrap;
	struct op *o = grow(d->ops, &d->cops, d->nops + 1, sizeof *o);
	if (!o) {
		d->failed = true;
		return &scrap;
	}
	d->ops = o;
	o += d->nops++;
	*o = (struct op){.line = d->i ? d->i->line : 0, .d = NONE, .a = NONE, .b = NONE, .c = NONE, .e = NONE};
	return o;
}

struct op *emit_x(struct decoder *d, handler *fn)
{
	struct op *o = emit_raw(d);
	o->fn = o->pfn = fn;
	return o;
}

struct op *emit(struct decoder *d, enum handler_id h)
{
	if (h == H_NONE) {
		uncover(d);
		return emit_x(d, x_uncovered);
	}
	struct op *o = emit_raw(d);
	o->fn = d->handlers[h].full;
	o->pfn = d->handlers[h].partial;
	return o;
}

struct op *emit_name(struct decoder *d, const char *fmt, ...)
{
	char b[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(b, sizeof b, fmt, ap);
	va_end(ap);
	return emit(d, handlers_find(b));
}

struct op *emit3(struct decoder *d, const char *name, uint32_t dst, uint32_t a, uint32_t b, uint32_t c)
{
	struct op *o = emit(d, handlers_find(name));
	o->d = dst;
	o->a = a;
	o->b = b;
	o->c = c;
	return o;
}

void emit_branch(struct decoder *d, enum handler_id h, uint32_t pred, uint32_t label)
{
	struct op *o = emit(d, h);
	o->a = pred;
	struct fixup *x = grow(d->fixups, &d->cfixups, d->nfixups + 1, sizeof *x);
	if (!x) {
		d->failed = true;
		return;
	}
	d->fixups = x;
	x[d->nfixups++] = (struct fixup){d->nops - 1, label};
}

void uncover(struct decoder *d)
{
	d->uncovered = true;
	if (d->c->uncovered || !d->i)
		return;
	int n = asprintf(&d->c->uncovered, "%s at line %u", d->i->m->text, d->i->line);
	if (n < 0) {
		d->c->uncovered = NULL;
		d->failed = true;
	}
}

uint32_t slot_new(struct decoder *d, unsigned width)
{
	if (d->frame > MAX_FRAME) {
		d->failed = true;
		return 0;
	}
	uint32_t at = d->frame;
	d->frame += width == 8 ? SLOT64 : SLOT32;
	return at;
}

uint32_t temp(struct decoder *d, unsigned width)
{
	uint32_t *t = width == 8 ? d->temps64 : d->temps32;
	unsigned *n = width == 8 ? &d->ntemps64 : &d->ntemps32, *used = width == 8 ? &d->used64 : &d->used32;
	if (*used == MAX_TEMPS) {
		uncover(d);
		return t[0];
	}
	if (*used == *n)
		t[(*n)++] = slot_new(d, width);
	return t[(*used)++];
}

static uint32_t constant_slot(struct decoder *d, uint64_t value, unsigned width, unsigned sr)
{
	struct constant **b = &d->bucket[(value ^ value >> 29 ^ value >> 52 ^ sr * 7 ^ width) % CONST_BUCKETS];
	for (struct constant *k = *b; k; k = k->next)
		if (k->value == value && k->width == width && k->sreg == sr)
			return k->slot;
	struct constant *k = calloc(1, sizeof *k);
	if (!k) {
		d->failed = true;
		return 0;
	}
	*k = (struct constant){value, slot_new(d, width), (uint8_t)width, (uint8_t)sr, *b};
	*b = k;
	d->nconst++;
	return k->slot;
}

uint32_t constant(struct decoder *d, uint64_t value, unsigned width)
{
	return constant_slot(d, width == 8 ? value : (uint32_t)value, width, 0);
}

static unsigned sreg_width(enum ptx_sreg sr)
{
	return sr == SR_SHARED_BASE || sr == SR_PARAM_BASE || sr == SR_LOCAL_BASE || sr == SR_GRIDID ? 8 : 4;
}

uint32_t sreg(struct decoder *d, enum ptx_sreg sr)
{
	if (sr >= SR_CLOCK && sr <= SR_PM) {
		bool wide = sr == SR_CLOCK64 || sr == SR_GLOBALTIMER || sr == SR_PM;
		struct op *o = emit_x(d, x_clock);
		uint32_t t = temp(d, wide ? 8 : 4);
		o = &d->ops[d->nops - 1];
		o->d = t;
		o->x = sr;
		o->y = wide;
		return t;
	}
	return constant_slot(d, 0, sreg_width(sr), sr);
}

uint32_t param_slot(struct decoder *d, struct ptx_var *v)
{
	if (v->placed)
		return (uint32_t)v->address;
	uint64_t words = ((v->bytes + 7) & ~7ull) / 4;
	if (words > PTX_MAX_PARAM / 4 || d->frame > MAX_FRAME) {
		d->failed = true;
		return 0;
	}
	v->placed = true;
	v->address = d->frame;
	d->frame += (uint32_t)words * SLOT32;
	return (uint32_t)v->address;
}

/* The address of a variable as a value. Shared: the offset. */
static uint32_t variable(struct decoder *d, struct ptx_var *v, int64_t off, unsigned width)
{
	v = v->def ? v->def : v;
	if (v->space == SP_SHARED) {
		if (!v->bytes || v->is_extern) {
			uint32_t base = sreg(d, SR_DYNAMIC_BASE);
			if (off) {
				uint32_t t = temp(d, 4);
				emit3(d, "add_b32", t, base, constant(d, (uint64_t)off, 4), NONE);
				base = t;
			}
			if (width == 4)
				return base;
			uint32_t t = temp(d, 8);
			emit3(d, "cvt_u64_u32", t, base, NONE, NONE);
			return t;
		}
		return constant(d, v->address + (uint64_t)off, width);
	}
	if (v->space == SP_GLOBAL || v->space == SP_CONST) {
		if (!v->address && v->type != T_TEXREF && v->type != T_SURFREF && v->type != T_SAMPLERREF)
			uncover(d);     /* an extern that no text defines */
		return constant(d, v->address + (uint64_t)off, width);
	}
	uint64_t at = v->address;
	uint32_t base = sreg(d, SR_LOCAL_BASE);
	if (v->space == SP_PARAM && d->f->entry && v->formal) {
		base = sreg(d, SR_PARAM_BASE);
		d->c->param_address = true;
	} else if (v->space == SP_PARAM) {
		at = v->spill;
		if (!v->spilled)
			uncover(d);
	}
	uint32_t t = temp(d, 8);
	emit3(d, "add_b64", t, base, constant(d, at + (uint64_t)off, 8), NONE);
	if (width == 8)
		return t;
	uint32_t n = temp(d, 4);
	emit3(d, "lo_b32", n, t, NONE, NONE);
	return n;
}

static uint32_t literal(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned width)
{
	uint64_t v = o->bits;
	if (o->kind == OP_FLT32 && t == T_F64) {
		v = f64_bits(bits_f32((uint32_t)o->bits));
	} else if (o->kind == OP_FLT64 && t != T_F64 && t != T_B64) {
		v = f32_bits((float)bits_f64(o->bits));
		if (t == T_F16 || t == T_B16)
			v = d2h(bits_f64(o->bits));
		else if (t == T_BF16)
			v = f2b(round_odd(bits_f64(o->bits)));
	}
	return constant(d, v, width);
}

static uint32_t resize(struct decoder *d, uint32_t s, unsigned have, unsigned want)
{
	if (have == want)
		return s;
	uint32_t t = temp(d, want);
	emit3(d, want == 8 ? "cvt_u64_u32" : "lo_b32", t, s, NONE, NONE);
	return t;
}

static uint32_t reg_slot(struct decoder *d, uint32_t r)
{
	const struct ptx_insn *copy = d->alias[r];
	if (copy && copy->op[1].kind != OP_REG)
		return source(d, &copy->op[1], copy->m->types[0], lane_bytes(d->f->regs[r]));
	if (copy)
		return reg_slot(d, copy->op[1].reg);
	if (d->reg_slot[r] == NONE)
		d->reg_slot[r] = slot_new(d, lane_bytes(d->f->regs[r]));
	return d->reg_slot[r];
}

uint32_t source(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned width)
{
	switch (o->kind) {
	case OP_REG: {
		if (o->part) {
			uncover(d);
			return constant(d, 0, width);
		}
		unsigned have = lane_bytes(d->f->regs[o->reg]);
		uint32_t s = reg_slot(d, o->reg);
		if (d->f->regs[o->reg] == T_B128)
			uncover(d);
		if (o->neg) {
			uint32_t n = temp(d, 4);
			emit3(d, "not_pred", n, s, NONE, NONE);
			return n;
		}
		return resize(d, s, have, width);
	}
	case OP_INT: {
		uint64_t v = (uint64_t)o->off;
		if (t == T_F32)
			v = f32_bits((float)o->off);
		else if (t == T_F64)
			v = f64_bits((double)o->off);
		else if (t == T_PRED)
			v = v ? ~0ull : 0;
		return constant(d, v, width);
	}
	case OP_FLT32:
	case OP_FLT64:
		return literal(d, o, t, width);
	case OP_VAR:
		return variable(d, o->var, o->off, width);
	case OP_FUNC: {
		struct ptx_func *f = o->func->def ? o->func->def : o->func;
		return constant(d, ir_func_value(d->m, f), width);
	}
	case OP_SREG: {
		unsigned have = o->reg == SR_CLOCK64 || o->reg == SR_GLOBALTIMER || o->reg == SR_PM ? 8 : sreg_width(o->reg);
		return resize(d, sreg(d, o->reg), have, width);
	}
	default:
		uncover(d);
		return constant(d, 0, width);
	}
}

uint32_t target(struct decoder *d, const struct ptx_operand *o, unsigned width, bool sign)
{
	if (o->kind == OP_SINK)
		return temp(d, width);
	if (o->kind != OP_REG || o->part || d->f->regs[o->reg] == T_B128) {
		uncover(d);
		return temp(d, width);
	}
	unsigned have = lane_bytes(d->f->regs[o->reg]);
	uint32_t s = reg_slot(d, o->reg);
	if (have == width)
		return s;
	uint32_t t = temp(d, width);
	if (d->nwiden == sizeof d->widen / sizeof *d->widen)
		uncover(d);
	else
		d->widen[d->nwiden++] = (struct widen){t, s, (uint8_t)width, (uint8_t)have, sign};
	return t;
}

void finish_widen(struct decoder *d)
{
	for (unsigned k = 0; k < d->nwiden; k++) {
		struct widen *x = &d->widen[k];
		emit3(d, x->to == 4 ? "lo_b32" : x->sign ? "cvt_s64_s32" : "cvt_u64_u32", x->reg, x->temp, NONE, NONE);
	}
	d->nwiden = 0;
}

bool only_mods(const struct ptx_mnem *m, const uint8_t *mods, unsigned n)
{
	if (m->unknown)
		return false;
	for (unsigned i = 0; i < m->nmods; i++) {
		bool ok = false;
		for (unsigned k = 0; k < n; k++)
			ok |= m->mods[i] == mods[k];
		if (!ok)
			return false;
	}
	return true;
}

void emit_mode(struct decoder *d, unsigned csr)
{
	if (!csr)
		return;
	struct op *o = emit(d, H_moded);
	o->y = csr;
	o->x = 2;
}

unsigned mode_of(const struct ptx_mnem *m, bool flush)
{
	unsigned csr = flush && ptx_has(m, MOD_FTZ) ? 0x8040 : 0;
	return csr | (ptx_has(m, MOD_RZ) ? 0x6000 : ptx_has(m, MOD_RM) ? 0x2000 : ptx_has(m, MOD_RP) ? 0x4000 : 0);
}

/* Puts a predicate's wrapper in front of each operation from `first` on (a mode's wrapper and what it wraps count as one). */
static void wrap_predicate(struct decoder *d, uint32_t first, uint32_t pred, bool negated)
{
	uint32_t n = d->nops - first, groups = 0;
	handler *mode = d->handlers[H_moded].full;
	for (uint32_t k = 0; k < n; k++)
		groups += k == 0 || d->ops[first + k - 1].fn != mode;
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
		bool pair = old[k].fn == mode && k + 1 < n;
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
	static const char *const names[] = {"ret", "exit", "call", "bar", "barrier", "trap", "brx", "brkpt", "nanosleep", "shfl", "vote", "match",
		"redux", "elect", "activemask", "wmma", "mma", "ldmatrix", "stmatrix", "movmatrix", "mbarrier"};
	for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
		if (op_is(d, names[k]))
			return true;
	return false;
}

static void instruction(struct decoder *d, uint32_t index)
{
	const struct ptx_insn *i = &d->f->insns[index];
	d->i = i;
	d->uncovered = false;
	d->used32 = d->used64 = d->nwiden = 0;
	uint32_t pred = i->pred ? reg_slot(d, i->pred - 1) : NONE;
	if (op_is(d, "bra")) {
		if (i->nop != 1 || i->op[0].kind != OP_LABEL)
			uncover(d);
		else
			emit_branch(d, !i->pred ? H_bra : i->pred_neg ? H_bra_ifnot : H_bra_if, pred, i->op[0].reg);
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
	if (i->nop && i->op[0].kind == OP_REG && d->alias[i->op[0].reg] == i)
		return;                 /* a copy that nobody has to make */
	uint32_t first = d->nops, fixups = d->nfixups;
	/* What these say beyond their opcode is about orders that always hold here. */
	bool lax = op_is(d, "fence") || op_is(d, "membar") || op_is(d, "griddepcontrol") || op_is(d, "prefetch") || op_is(d, "pmevent");
	bool known = (!i->m->unknown || lax) && (decode_arith(d) || decode_convert(d) || decode_memory(d) || decode_atomic(d) || decode_flow(d) ||
	                                decode_warp(d) || decode_matrix(d));
	if (!known)
		uncover(d);
	if (!d->uncovered)
		finish_widen(d);
	if (d->uncovered) {
		d->nops = first;
		d->nfixups = fixups;
		emit_x(d, x_uncovered);
	}
	if (around)
		d->ops[skip].imm = d->nops;     /* resolved with the labels: see resolve */
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
	for (unsigned pass = 0; pass < 3; pass++)       /* constants, then what a launch fixes, then what each block changes */
		for (unsigned b = 0; b < CONST_BUCKETS; b++)
			for (struct constant *k = d->bucket[b]; k; k = k->next) {
				unsigned kind = !k->sreg ? 0 : k->sreg >= SR_CTAID_X && k->sreg <= SR_CTAID_Z ? 2 : 1;
				if (kind != pass)
					continue;
				c->inits[c->ninits++] = (struct slot_init){k->slot, k->width, k->sreg, k->value};
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
			(*to[k])[n++] = (struct param_words){d->f->entry ? 0 : (uint32_t)v->address, (uint32_t)((v->bytes + 7) / 8 * 2)};
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
	free(d->alias);
	free(d->uses);
	free(d->fixups);
	free(d);
}

static int decode_body(struct engine_module *m, struct ptx_func *f, struct code *c, struct engine_error *error)
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
	if (!d->reg_slot || !d->insn_op)
		goto no_memory;
	memset(d->reg_slot, 0xff, f->nregs * sizeof *d->reg_slot);
	mark_addressed(f);
	layout_local(d);
	if (f->entry)
		c->shared_bytes = ir_layout_shared(m, f);
	c->dynamic_base = (c->shared_bytes + 127) & ~127u;
	decode_slots(d);
	if (d->failed)
		goto no_memory;
	spill_params(d);
	for (uint32_t k = 0; k < f->ninsns && !d->failed; k++) {
		d->insn_op[k] = d->nops;
		instruction(d, k);
	}
	d->i = NULL;
	d->insn_op[f->ninsns] = d->nops;
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

/* All functions that the code of f can reach; through a pointer: every function of the module. Breadth first, no recursion. */
int decode_function(struct engine_module *m, struct ptx_func *f, struct engine_error *error)
{
	int r = decode_one(m, f, error);
	if (r || f->code->decoded)
		return r;
	struct ptx_func **todo = calloc(m->nfuncs + 1, sizeof *todo);
	bool *seen = calloc(m->nfuncs + 1, sizeof *seen);
	unsigned n = 0, done = 0;
	uint64_t stack = 0;
	bool pointers = false, calls = false;
	if (!todo || !seen) {
		r = error->code = OUT_OF_MEMORY;
		goto out;
	}
	todo[n++] = f;
	seen[f->index] = true;
	while (done < n && !r) {
		struct ptx_func *g = todo[done++];
		r = decode_one(m, g, error);
		if (r)
			break;
		if (g != f && g->code->uncovered && !f->code->uncovered)
			f->code->uncovered = strdup(g->code->uncovered);
		stack += g->code->local_bytes;
		f->code->param_address |= g->code->param_address;
		for (uint32_t k = 0; k < g->code->nops; k++) {
			const struct op *o = &g->code->ops[k];
			if (o->fn != x_call)
				continue;
			const struct call_info *ci = o->p;
			calls = true;
			pointers |= !ci->func && !ci->builtin;
			if (ci->func && ci->func->body && !seen[ci->func->index]) {
				seen[ci->func->index] = true;
				todo[n++] = ci->func;
			}
		}
		if (pointers && done == n)
			for (unsigned k = 0; k < m->nfuncs; k++)
				if (m->funcs[k]->body && !m->funcs[k]->entry && !seen[k]) {
					seen[k] = true;
					todo[n++] = m->funcs[k];
				}
	}
	if (!r) {
		f->code->stack_bytes = (uint32_t)(stack < 1 << 24 ? stack : 1 << 24) + (calls ? RECURSION_STACK : 0);
		f->code->decoded = true;
	}
out:
	free(todo);
	free(seen);
	return r;
}
