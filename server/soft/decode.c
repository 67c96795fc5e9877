/* SPDX-License-Identifier: Apache-2.0 */
/* The core of decoding: emitting operations, slots of registers, constants, variables and temporaries.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/check.h"
#include "server/soft/lane_bits.h"
#include "server/soft/lane_half.h"

enum { MAX_FRAME = 16 << 20, MAX_UNCOVERED = 2048 };

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

struct op *emit_raw(struct decoder *d)
{
	static struct op scrap;
	struct op *o = grow(d->ops, &d->cops, d->nops + 1, sizeof *o);
	if (!o) {
		d->failed = true;
		return &scrap;
	}
	d->ops = o;
	o += d->nops++;
	*o = (struct op){
		.line = d->i ? d->i->line : 0, .d = NONE, .a = NONE, .b = NONE, .c = NONE, .e = NONE};
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

void emit_check(struct decoder *d, unsigned kind, unsigned bytes, unsigned each)
{
	if (!check_on())
		return;
	struct op *o = emit_x(d, x_checked);
	o->x = bytes;
	o->y = kind | each << 8;
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

/* Why, where it is not just missing. */
static const char *reason(const struct ptx_insn *i)
{
	static const struct {
		const char *opcode, *why;
	} t[] = {{"tcgen05", " (sm_100a's alone)"},
		{"multimem", " (there is no multicast memory)"}};
	for (size_t k = 0; k < sizeof t / sizeof *t; k++)
		if (!strcmp(i->m->opcode, t[k].opcode))
			return t[k].why;
	return "";
}

/* What a call wants, and nobody has. */
static const char *wanted(const struct ptx_insn *i)
{
	for (unsigned k = 0; k < i->nop && k < 2 && !strcmp(i->m->opcode, "call"); k++)
		if (i->op[k].kind == OP_FUNC)
			return i->op[k].func->name;
	return NULL;
}

/* Notes the instruction, once for each mnemonic. */
void uncover(struct decoder *d)
{
	d->uncovered = true;
	if (!d->i)
		return;
	const char *before = d->c->uncovered, *name = d->i->m->text;
	size_t n = strlen(name);
	for (const char *p = before; p && (p = strstr(p, name)); p += n)
		if ((p == before || p[-1] == ' ') && p[n] == ' ')
			return;
	if (before && strlen(before) > MAX_UNCOVERED)
		return;
	char *text;
	const char *of = wanted(d->i);
	if (asprintf(&text, "%s%s%s%s%.80s at line %u%s", before ? before : "", before ? ", " : "", name,
		    of ? " of " : "", of ? of : "", d->i->line, reason(d->i)) < 0) {
		d->failed = true;
		return;
	}
	free(d->c->uncovered);
	d->c->uncovered = text;
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
	struct constant **b =
		&d->bucket[(value ^ value >> 29 ^ value >> 52 ^ sr * 7 ^ width) % CONST_BUCKETS];
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
			uncover(d); /* an extern that no text defines */
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

uint32_t reg_slot(struct decoder *d, uint32_t r)
{
	const struct ptx_insn *copy = d->alias[r];
	if (copy && copy->op[1].kind != OP_REG)
		return source(d, &copy->op[1], copy->m->types[0], lane_bytes(d->f->regs[r]));
	if (copy)
		return reg_slot(d, copy->op[1].reg);
	if (d->reg_slot[r] == NONE) {
		bool pair = d->f->regs[r] == T_B128;
		d->reg_slot[r] = slot_new(d, pair ? 8 : lane_bytes(d->f->regs[r]));
		if (pair)
			slot_new(d, 8);
	}
	return d->reg_slot[r];
}

bool pair_slots(struct decoder *d, const struct ptx_operand *o, uint32_t half[2])
{
	if (o->kind == OP_SINK) {
		half[0] = half[1] = temp(d, 8);
		return true;
	}
	if (o->kind != OP_REG || o->part || o->field.n || o->minus || o->neg || d->f->regs[o->reg] != T_B128)
		return false;
	half[0] = reg_slot(d, o->reg);
	half[1] = half[0] + SLOT64;
	return true;
}

uint32_t source(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned width)
{
	if (o->minus)
		uncover(d);
	switch (o->kind) {
	case OP_REG: {
		if (o->part || o->field.n) {
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
	case OP_FLT64: return literal(d, o, t, width);
	case OP_VAR: return variable(d, o->var, o->off, width);
	case OP_FUNC: {
		struct ptx_func *f = o->func->def ? o->func->def : o->func;
		return constant(d, ir_func_value(d->m, f), width);
	}
	case OP_SREG: {
		unsigned have = o->reg == SR_CLOCK64 || o->reg == SR_GLOBALTIMER || o->reg == SR_PM
					? 8
					: sreg_width(o->reg);
		return resize(d, sreg(d, o->reg), have, width);
	}
	default: uncover(d); return constant(d, 0, width);
	}
}

uint32_t target(struct decoder *d, const struct ptx_operand *o, unsigned width, bool sign)
{
	if (o->kind == OP_SINK)
		return temp(d, width);
	if (o->kind != OP_REG || o->part || o->field.n || d->f->regs[o->reg] == T_B128) {
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
		emit3(d,
			x->to == 4 ? "lo_b32"
			: x->sign  ? "cvt_s64_s32"
				   : "cvt_u64_u32",
			x->reg, x->temp, NONE, NONE);
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
	return csr | (ptx_has(m, MOD_RZ)          ? 0x6000
			     : ptx_has(m, MOD_RM) ? 0x2000
			     : ptx_has(m, MOD_RP) ? 0x4000
						  : 0);
}
