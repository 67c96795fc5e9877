/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of comparisons: setp and set, of one value, of pairs, combined with another predicate.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include <stdio.h>

/* set.eq.f16x2.f16x2: one half after the other, each 1.0 or 0 (a mask when the result is an integer). */
static void set_pair(struct decoder *d, const char *cmp, const char *comb, unsigned t)
{
	const struct ptx_insn *i = d->i;
	const char *half = t == T_F16X2 ? "f16" : "bf16", *result = i->m->types[0] == t ? half : "u16";
	uint32_t a = flushed(d, source(d, &i->op[1], T_B32, 4), t),
			b = flushed(d, source(d, &i->op[2], T_B32, 4), t), r[2],
		 c = comb ? source(d, &i->op[3], T_PRED, 4) : NONE;
	for (int k = 0; k < 2; k++) {
		uint32_t x = temp(d, 4), y = temp(d, 4), p = temp(d, 4);
		r[k] = temp(d, 4);
		emit3(d, k ? "hi_b16" : "lo_b16", x, a, NONE, NONE);
		emit3(d, k ? "hi_b16" : "lo_b16", y, b, NONE, NONE);
		struct op *o = emit_name(d, "setp_%s_%s", cmp, half);
		o->d = p;
		o->a = x;
		o->b = y;
		if (comb) {
			emit_name(d, "%s_pred", comb);
			d->ops[d->nops - 1].d = p, d->ops[d->nops - 1].a = p, d->ops[d->nops - 1].b = c;
		}
		o = emit_name(d, "set_%s", result);
		o->d = r[k];
		o->a = p;
	}
	emit3(d, "pack_b16", target(d, &i->op[0], 4, false), r[0], r[1], NONE);
}

/* setp and set: compare into a predicate, then combine with another and write both forms. */
bool decode_compare(struct decoder *d)
{
	bool setp = op_is(d, "setp");
	if (!setp && !op_is(d, "set"))
		return false;
	const struct ptx_insn *i = d->i;
	const struct ptx_mnem *m = i->m;
	/* comparisons, which the names spell, and what else there may be */
	static const uint8_t mods[] = {MOD_EQ, MOD_NE, MOD_LT, MOD_LE, MOD_GT, MOD_GE, MOD_LO, MOD_LS, MOD_HI,
		MOD_HS, MOD_EQU, MOD_NEU, MOD_LTU, MOD_LEU, MOD_GTU, MOD_GEU, MOD_NUM, MOD_NAN_, MOD_AND,
		MOD_OR, MOD_XOR, MOD_FTZ};
	static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge", "equ",
		"neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
	const char *cmp = NULL, *comb = has(d, MOD_AND)   ? "and"
					: has(d, MOD_OR)  ? "or"
					: has(d, MOD_XOR) ? "xor"
							  : NULL;
	for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
		if (has(d, mods[k]))
			cmp = names[k];
	unsigned t = m->types[m->ntypes ? m->ntypes - 1 : 0];
	bool dual = i->nop && i->op[0].dual;
	unsigned at = dual ? 2 : 1;
	if (!only_mods(m, mods, sizeof mods))
		cmp = NULL;
	bool pairs = t == T_F16X2 || t == T_BF16X2;
	if (pairs && !setp && cmp && i->nop == (comb ? 4 : 3) && m->ntypes == 2 &&
		(m->types[0] == t || m->types[0] == T_U32 || m->types[0] == T_S32)) {
		set_pair(d, cmp, comb, t);
		return true;
	}
	if (!cmp || !t || (!setp && m->ntypes != 2) || i->nop != at + 2 + (comb ? 1u : 0u) ||
		(pairs && !(setp && dual))) {
		uncover(d);
		return true;
	}
	unsigned w = lane_bytes(t);
	uint32_t a = source(d, &i->op[at], t, w), b = source(d, &i->op[at + 1], t, w), r = temp(d, 4),
		 r2 = NONE;
	if (pairs) {
		a = flushed(d, a, t);
		b = flushed(d, b, t);
		unsigned half = t == T_F16X2 ? T_F16 : T_BF16;
		uint32_t ah = temp(d, 4), bh = temp(d, 4);
		r2 = temp(d, 4);
		emit3(d, "hi_b16", ah, a, NONE, NONE);
		emit3(d, "hi_b16", bh, b, NONE, NONE);
		emit_name(d, "setp_%s_%s", cmp, ptx_type_name(half));
		d->ops[d->nops - 1].d = r2, d->ops[d->nops - 1].a = ah, d->ops[d->nops - 1].b = bh;
		t = half;
	}
	const char *name = ptx_type_name(t);
	char bits[8];
	if (*name == 'b' && !is_half(t)) {
		snprintf(bits, sizeof bits, "u%s", name + 1);
		name = bits;
	}
	a = flushed(d, a, t);
	b = flushed(d, b, t);
	bool simple = setp && !comb && !dual && i->op[0].kind == OP_REG;
	uint32_t dst = simple ? target(d, &i->op[0], 4, false) : r;
	emit_mode(d, mode_of(m, t == T_F32) & 0x8040);
	struct op *o = emit_name(d, "setp_%s_%s", cmp, name);
	o->d = dst;
	o->a = a;
	o->b = b;
	if (simple)
		return true;
	uint32_t c = comb ? source(d, &i->op[at + 2], T_PRED, 4) : NONE;
	uint32_t p = temp(d, 4), q = NONE;
	char both[16];
	snprintf(both, sizeof both, "%s_pred", comb ? comb : "mov");
	emit3(d, both, p, r, c, NONE);
	if (dual) {
		q = temp(d, 4);
		if (pairs)
			emit3(d, both, q, r2, c, NONE);
		else if (comb)
			emit_name(d, "%sn_pred", comb), d->ops[d->nops - 1].d = q, d->ops[d->nops - 1].a = r,
				d->ops[d->nops - 1].b = c;
		else
			emit3(d, "not_pred", q, r, NONE, NONE);
	}
	if (setp) {
		uint32_t first = target(d, &i->op[0], 4, false);
		emit3(d, "mov_pred", first, p, NONE, NONE);
		if (dual) {
			uint32_t second = target(d, &i->op[1], 4, false);
			emit3(d, "mov_pred", second, q, NONE, NONE);
		}
		return true;
	}
	unsigned dt = m->types[0];
	uint32_t out = target(d, &i->op[0], 4, false);
	emit_name(d, "set_%s", dt == T_S32 ? "u32" : dt == T_U16 || dt == T_S16 ? "u16" : ptx_type_name(dt));
	d->ops[d->nops - 1].d = out, d->ops[d->nops - 1].a = p;
	return true;
}
