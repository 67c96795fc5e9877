/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: of registers, constants, variables, parameters and temporaries, and the one that an operand is read
 * from or written to.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include <stdlib.h>
#include <string.h>
#include "server/soft/lane_bits.h"
#include "server/soft/lane_half.h"

enum { MAX_FRAME = 16 << 20 };

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
