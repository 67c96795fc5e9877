/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of video arithmetic: scalar (vadd, vmad, ...) with a part of each operand, and packed (vadd2,
 * vadd4, ...) with lanes that are chosen.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include "server/soft/exec_video.h"
#include <string.h>

static const struct {
	const char *name;
	uint8_t op, lanes;
} names[] = {{"vadd", VIDEO_ADD, 1}, {"vadd2", VIDEO_ADD, 2}, {"vadd4", VIDEO_ADD, 4}, {"vsub", VIDEO_SUB, 1},
	{"vsub2", VIDEO_SUB, 2}, {"vsub4", VIDEO_SUB, 4}, {"vavrg2", VIDEO_AVRG, 2},
	{"vavrg4", VIDEO_AVRG, 4}, {"vabsdiff", VIDEO_ABSDIFF, 1}, {"vabsdiff2", VIDEO_ABSDIFF, 2},
	{"vabsdiff4", VIDEO_ABSDIFF, 4}, {"vmin", VIDEO_MIN, 1}, {"vmin2", VIDEO_MIN, 2},
	{"vmin4", VIDEO_MIN, 4}, {"vmax", VIDEO_MAX, 1}, {"vmax2", VIDEO_MAX, 2}, {"vmax4", VIDEO_MAX, 4},
	{"vshl", VIDEO_SHL, 1}, {"vshr", VIDEO_SHR, 1}, {"vmad", VIDEO_MAD, 1}, {"vset", VIDEO_SET, 1},
	{"vset2", VIDEO_SET, 2}, {"vset4", VIDEO_SET, 4}};

/* The operand without the part that it names and without its sign. */
static struct ptx_operand plain(const struct ptx_operand *o)
{
	struct ptx_operand p = *o;
	p.field = (struct ptx_field){0};
	p.minus = false;
	return p;
}

/* Which part of a scalar operand. */
static bool one_part(const struct ptx_operand *o, uint8_t *bits, uint8_t *at)
{
	*bits = o->field.bits ? o->field.bits : 32;
	*at = o->field.at[0];
	return o->field.n <= 1 && *at < 32 / *bits;
}

/* Which lanes of a packed operand; first: those it has by itself. */
static bool many_parts(const struct ptx_operand *o, const struct video_op *x, unsigned first, uint8_t *at)
{
	for (unsigned k = 0; k < x->lanes; k++)
		at[k] = (uint8_t)(first + k);
	if (!o->field.n)
		return true;
	if (o->field.n != x->lanes || o->field.bits != x->bits)
		return false;
	for (unsigned k = 0; k < x->lanes; k++) { /* written from the upper one down */
		at[k] = o->field.at[x->lanes - 1 - k];
		if (at[k] >= 2 * x->lanes)
			return false;
	}
	return true;
}

static bool mask(const struct ptx_operand *o, struct video_op *x)
{
	x->mask = (uint8_t)((1u << x->lanes) - 1);
	if (!o->field.n)
		return true;
	x->mask = 0;
	for (unsigned k = 0; k < o->field.n; k++) {
		if (o->field.at[k] >= x->lanes || o->field.bits != x->bits)
			return false;
		x->mask |= (uint8_t)(1u << o->field.at[k]);
	}
	return true;
}

static bool modifiers(struct decoder *d, struct video_op *x)
{
	static const uint8_t usual[] = {MOD_SAT, MOD_ADD, MOD_MIN, MOD_MAX, MOD_CLAMP, MOD_WRAP, MOD_PO,
		MOD_SHR7, MOD_SHR15, MOD_EQ, MOD_NE, MOD_LT, MOD_LE, MOD_GT, MOD_GE};
	static const uint8_t compare[] = {MOD_EQ, MOD_NE, MOD_LT, MOD_LE, MOD_GT, MOD_GE};
	bool shift = x->op == VIDEO_SHL || x->op == VIDEO_SHR, mad = x->op == VIDEO_MAD,
	     set = x->op == VIDEO_SET;
	unsigned seconds = has(d, MOD_ADD) + has(d, MOD_MIN) + has(d, MOD_MAX), compares = 0;
	for (unsigned k = 0; k < sizeof compare; k++)
		if (has(d, compare[k])) {
			x->compare = (uint8_t)(VIDEO_EQ + k);
			compares++;
		}
	x->saturate = has(d, MOD_SAT);
	x->wrap = has(d, MOD_WRAP);
	x->plus_one = has(d, MOD_PO);
	x->shift = has(d, MOD_SHR7) ? 7 : has(d, MOD_SHR15) ? 15 : 0;
	x->second = has(d, MOD_ADD)   ? VIDEO_PLUS
		    : has(d, MOD_MIN) ? VIDEO_LEAST
		    : has(d, MOD_MAX) ? VIDEO_MOST
				      : VIDEO_ALONE;
	return only_mods(d->i->m, usual, sizeof usual) && seconds <= (mad ? 0u : 1u) && compares == set &&
	       shift == (has(d, MOD_CLAMP) || has(d, MOD_WRAP)) && (mad || (!x->plus_one && !x->shift)) &&
	       (x->lanes == 1 || !seconds || x->second == VIDEO_PLUS) && !(set && x->saturate);
}

static bool video(struct decoder *d, struct video_op *x)
{
	const struct ptx_insn *i = d->i;
	bool mad = x->op == VIDEO_MAD, set = x->op == VIDEO_SET;
	unsigned types = set ? 2 : 3;
	if (!modifiers(d, x) || i->m->ntypes != types || i->nop < 3 || i->nop > 4)
		return false;
	for (unsigned k = 0; k < types; k++)
		if (i->m->types[k] != T_U32 && i->m->types[k] != T_S32)
			return false;
	x->d_signed = i->m->types[0] == T_S32 && (!set || x->lanes == 1); /* a set's: for what follows */
	x->a_signed = i->m->types[types - 2] == T_S32;
	x->b_signed = i->m->types[types - 1] == T_S32;
	x->bits = (uint8_t)(32 / x->lanes);
	if (x->lanes == 1) {
		bool third = i->nop == 4, merges = i->op[0].field.n;
		if (!one_part(&i->op[1], &x->a_bits, &x->a_at[0]) ||
			!one_part(&i->op[2], &x->b_bits, &x->b_at[0]) ||
			third != (mad || merges || x->second != VIDEO_ALONE) ||
			(merges && (mad || x->second != VIDEO_ALONE)))
			return false;
		if (merges) {
			x->second = VIDEO_MERGE;
			if (!one_part(&i->op[0], &x->bits, &x->mask))
				return false;
		}
	} else if (i->nop != 4 || !mask(&i->op[0], x) || !many_parts(&i->op[1], x, 0, x->a_at) ||
		   !many_parts(&i->op[2], x, x->lanes, x->b_at)) {
		return false;
	}
	x->minus_product = mad && i->op[1].minus != i->op[2].minus;
	x->minus_c = mad && i->op[3].minus;
	if ((i->op[1].minus || i->op[2].minus || (i->nop > 3 && i->op[3].minus)) && (!mad || x->plus_one))
		return false;
	uint32_t s[3] = {NONE, NONE, NONE};
	for (unsigned n = 0; n + 1u < i->nop; n++) {
		struct ptx_operand p = plain(&i->op[n + 1]);
		s[n] = source(d, &p, T_B32, 4);
	}
	struct ptx_operand to = plain(&i->op[0]);
	uint32_t dst = target(d, &to, 4, false);
	struct op *o = emit_x(d, x_video);
	o->d = dst;
	o->a = s[0];
	o->b = s[1];
	o->c = s[2];
	o->p = x;
	return true;
}

bool decode_video(struct decoder *d)
{
	for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
		if (!op_is(d, names[k].name))
			continue;
		struct video_op *x = arena_alloc(d->m->arena, sizeof *x);
		if (x)
			*x = (struct video_op){.op = names[k].op, .lanes = names[k].lanes};
		if (!x || !video(d, x))
			uncover(d);
		return true;
	}
	return false;
}
