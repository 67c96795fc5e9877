/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of arithmetic and logic. Most opcodes need no code of their own: opcode, telling modifiers and
 * type spell the name of a handler, and the table of handlers says how wide its lanes are.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include <stdio.h>
#include <string.h>

/* Opcodes of the plain kind and their sources. */
static const struct {
	const char *name;
	uint8_t sources;
} plain[] = {
	{"add", 2},
	{"sub", 2},
	{"mul", 2},
	{"mad", 3},
	{"fma", 3},
	{"div", 2},
	{"rem", 2},
	{"abs", 1},
	{"neg", 1},
	{"min", 2},
	{"max", 2},
	{"and", 2},
	{"or", 2},
	{"xor", 2},
	{"not", 1},
	{"cnot", 1},
	{"shl", 2},
	{"shr", 2},
	{"rcp", 1},
	{"sqrt", 1},
	{"rsqrt", 1},
	{"sin", 1},
	{"cos", 1},
	{"ex2", 1},
	{"lg2", 1},
	{"tanh", 1},
	{"copysign", 2},
	{"popc", 1},
	{"clz", 1},
	{"brev", 1},
	{"bfind", 1},
	{"bfe", 3},
	{"sad", 3},
	{"mul24", 2},
	{"mad24", 3},
	{"shf", 3},
	{"dp4a", 3},
	{"dp2a", 3},
	{"prmt", 3},
	{"bmsk", 2},
	{"szext", 2},
	{"testp", 1},
	{"slct", 3},
	{"selp", 3},
};

/* Modifiers that are part of a handler's name, and those that change only how it is called. */
static const uint8_t naming[] = {MOD_LO, MOD_HI, MOD_WIDE, MOD_SHIFTAMT, MOD_WRAP, MOD_CLAMP, MOD_LEFT,
	MOD_RIGHT, MOD_NAN2, MOD_RELU, MOD_F4E, MOD_B4E, MOD_RC8, MOD_ECL, MOD_ECR, MOD_RC16, MOD_FINITE,
	MOD_INFINITE, MOD_NUMBER, MOD_NOTANUMBER, MOD_NORMAL, MOD_SUBNORMAL};
static const uint8_t calling[] = {MOD_RN, MOD_RZ, MOD_RM, MOD_RP, MOD_FTZ, MOD_SAT, MOD_APPROX, MOD_FULL};

static bool in(const uint8_t *set, unsigned n, unsigned mod)
{
	for (unsigned i = 0; i < n; i++)
		if (set[i] == mod)
			return true;
	return false;
}

static bool is_float(unsigned t)
{
	return t == T_F32 || t == T_F64 || t == T_F16 || t == T_BF16 || t == T_F16X2 || t == T_BF16X2 ||
	       t == T_F32X2;
}

/* The handler of prefix and type: add_s32, else add_b32, else shr_u32 for shr.b32. */
static enum handler_id by_type(const char *prefix, unsigned t)
{
	char b[96];
	snprintf(b, sizeof b, "%s_%s", prefix, ptx_type_name(t));
	enum handler_id h = handlers_find(b);
	if (h || is_float(t) || t == T_U16X2 || t == T_S16X2)
		return h;
	for (int k = 0; k < (*ptx_type_name(t) == 's' ? 1 : 2) && !h; k++) {
		snprintf(b, sizeof b, "%s_%c%u", prefix, "bu"[k], ptx_type_bytes(t) * 8);
		h = t == T_PRED ? H_NONE : handlers_find(b);
	}
	return h;
}

uint32_t flushed(struct decoder *d, uint32_t s, unsigned t)
{
	if (!has(d, MOD_FTZ) || !is_half(t))
		return s;
	uint32_t f = temp(d, 4);
	emit_name(d, "ftz_%s", ptx_type_name(t));
	d->ops[d->nops - 1].d = f, d->ops[d->nops - 1].a = s;
	return f;
}

static void after(struct decoder *d, uint32_t dst, unsigned t)
{
	if (has(d, MOD_SAT) && is_float(t))
		emit_name(d, "sat_%s", ptx_type_name(t))->d = dst, d->ops[d->nops - 1].a = dst;
	if (has(d, MOD_RELU) && (t == T_S32 || t == T_S16X2))
		emit3(d, t == T_S32 ? "max_s32" : "max_s16x2", dst, dst, constant(d, 0, 4), NONE);
	if (has(d, MOD_FTZ) && is_half(t))
		emit_name(d, "ftz_%s", ptx_type_name(t))->d = dst, d->ops[d->nops - 1].a = dst;
	if (has(d, MOD_FTZ) && t == T_F32 &&
		(op_is(d, "min") || op_is(d, "max") || op_is(d, "abs") || op_is(d, "neg") || op_is(d, "sat")))
		emit3(d, "ftz_f32", dst, dst, NONE, NONE);
}

/* Runs handler h on the instruction's operands, its widths taken from the table. */
static void run(struct decoder *d, enum handler_id h, unsigned sources, unsigned t)
{
	const struct ptx_insn *i = d->i;
	if (!h || i->nop != sources + 1) {
		uncover(d);
		return;
	}
	uint32_t s[3] = {NONE, NONE, NONE};
	for (unsigned k = 0; k < sources; k++) {
		unsigned w = handler_width(h, k + 1);
		s[k] = flushed(d,
			source(d, &i->op[k + 1],
				w == lane_bytes(t) ? t
				: w == 8           ? T_B64
						   : T_B32,
				w),
			t);
	}
	const char *name = ptx_type_name(t);
	uint32_t dst = target(d, &i->op[0], handler_width(h, 0), *name == 's');
	if (is_float(t))
		emit_mode(d, mode_of(i->m, t == T_F32) & (is_half(t) ? 0u : ~0u));
	struct op *o = emit(d, h);
	o->d = dst;
	o->a = s[0];
	o->b = s[1];
	o->c = s[2];
	after(d, dst, t);
}

/* Two singles in one 64-bit register: one after the other. */
static void run_pair(struct decoder *d, const char *prefix, unsigned sources)
{
	const struct ptx_insn *i = d->i;
	enum handler_id h = by_type(prefix, T_F32);
	if (!h || i->nop != sources + 1) {
		uncover(d);
		return;
	}
	uint32_t s[3] = {NONE, NONE, NONE}, r[2];
	for (unsigned k = 0; k < sources; k++)
		s[k] = source(d, &i->op[k + 1], T_B64, 8);
	for (int half = 0; half < 2; half++) {
		uint32_t x[3] = {NONE, NONE, NONE};
		for (unsigned k = 0; k < sources; k++)
			emit3(d, half ? "hi_b32" : "lo_b32", x[k] = temp(d, 4), s[k], NONE, NONE);
		r[half] = temp(d, 4);
		emit_mode(d, mode_of(i->m, true));
		struct op *o = emit(d, h);
		o->d = r[half];
		o->a = x[0];
		o->b = x[1];
		o->c = x[2];
	}
	emit3(d, "pack_b32", target(d, &i->op[0], 8, false), r[0], r[1], NONE);
}

static bool plain_op(struct decoder *d)
{
	const struct ptx_mnem *m = d->i->m;
	unsigned sources = 0;
	for (unsigned k = 0; k < sizeof plain / sizeof *plain; k++)
		if (!strcmp(plain[k].name, m->opcode))
			sources = plain[k].sources;
	if (!sources)
		return false;
	char b[64];
	unsigned t = m->ntypes ? m->types[m->ntypes - 1] : T_B32;
	bool fused = op_is(d, "mad") && is_float(t);
	bool coarse = op_is(d, "div") && has(d, MOD_APPROX);
	size_t n = (size_t)snprintf(b, sizeof b, "%s", fused ? "fma" : coarse ? "div_approx" : m->opcode);
	if (op_is(d, "prmt"))
		t = T_B32;
	if (op_is(d, "slct") || op_is(d, "testp") || op_is(d, "selp"))
		t = m->types[0];
	for (unsigned k = 0; k < m->nmods; k++) {
		unsigned mod = m->mods[k];
		bool integer_sat = mod == MOD_SAT && !is_float(t);
		if (mod == MOD_RELU && (t == T_S32 || t == T_S16X2))
			continue; /* see after */
		if (in(naming, sizeof naming, mod) || integer_sat) {
			static const char *const spelling[MOD_COUNT] = {
#define M(e, s) [MOD_##e] = s,
#include "server/soft/ptx_mods.inc"
#undef M
			};
			n += (size_t)snprintf(b + n, sizeof b - n, "_%s", spelling[mod]);
			if (n >= sizeof b)
				return false;
		} else if (!in(calling, sizeof calling, mod) && mod != MOD_CC) {
			uncover(d);
			return true;
		}
	}
	if (has(d, MOD_FTZ) && t == T_F64)
		snprintf(b + n, sizeof b - n, "_ftz");
	enum handler_id h;
	if (op_is(d, "slct")) {
		char c[64];
		unsigned w = ptx_type_bytes(t) * 8;
		snprintf(c, sizeof c, "slct_b%u_%s", w, ptx_type_name(m->types[1]));
		h = handlers_find(c);
	} else if (op_is(d, "dp4a") || op_is(d, "dp2a")) {
		char c[128];
		snprintf(c, sizeof c, "%s_%s_%s", b, ptx_type_name(m->types[0]), ptx_type_name(m->types[1]));
		h = handlers_find(c);
	} else if (op_is(d, "selp") || op_is(d, "and") || op_is(d, "or") || op_is(d, "xor") ||
		   op_is(d, "not")) {
		char c[128];
		snprintf(c, sizeof c, t == T_PRED ? "%s_pred" : "%s_b%u", b, ptx_type_bytes(t) * 8);
		h = handlers_find(c);
	} else {
		h = by_type(b, t);
	}
	if (t == T_F32X2)
		run_pair(d, b, sources);
	else
		run(d, h, sources, t);
	return true;
}

/* add.cc, addc, sub.cc, subc, mad.cc, madc: the flag lives in a slot of its own. */
static bool carry(struct decoder *d)
{
	bool add = op_is(d, "addc"), sub = op_is(d, "subc"), mad = op_is(d, "madc");
	bool out = has(d, MOD_CC);
	if (!add && !sub && !mad && !(out && (op_is(d, "add") || op_is(d, "sub") || op_is(d, "mad"))))
		return false;
	const struct ptx_insn *i = d->i;
	bool in_flag = add || sub || mad;
	mad |= op_is(d, "mad");
	unsigned t = i->m->types[0], w = lane_bytes(t);
	if (i->nop != (mad ? 4u : 3u) || ptx_type_bytes(t) < 4) {
		uncover(d);
		return true;
	}
	if (d->cc == NONE)
		d->cc = slot_new(d, 4);
	uint32_t a = source(d, &i->op[1], t, w), b = source(d, &i->op[2], t, w);
	if (mad) {
		uint32_t p = temp(d, w);
		enum handler_id h = by_type(has(d, MOD_HI) ? "mul_hi" : "mul_lo", t);
		struct op *o = emit(d, h);
		o->d = p;
		o->a = a;
		o->b = b;
		a = p;
		b = source(d, &i->op[3], t, w);
	}
	uint32_t dst = target(d, &i->op[0], w, false);
	struct op *o = emit_name(d, "%s%s%s_b%u", sub || op_is(d, "sub") ? "sub" : "add", in_flag ? "c" : "",
		out ? "_cc" : "", w * 8);
	o->d = dst;
	o->a = a;
	o->b = b;
	o->e = d->cc;
	return true;
}

/* lop3.or.b32 d|p, a, b, c, table, q: p says whether d is not 0, or q. */
static void lop3_test(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	bool both = has(d, MOD_AND);
	if (i->op[5].kind != OP_INT || i->m->nmods != 1 || (!both && !has(d, MOD_OR)) ||
			i->m->types[0] != T_B32) {
		uncover(d);
		return;
	}
	uint32_t s[3], q = source(d, &i->op[6], T_PRED, 4), r = temp(d, 4), p = temp(d, 4);
	for (unsigned k = 0; k < 3; k++)
		s[k] = source(d, &i->op[k + 2], T_B32, 4);
	emit3(d, "lop3_b32", r, s[0], s[1], s[2])->y = (uint32_t)i->op[5].off & 255;
	emit3(d, "setp_ne_u32", p, r, constant(d, 0, 4), NONE);
	emit3(d, both ? "and_pred" : "or_pred", target(d, &i->op[1], 4, false), p, q, NONE);
	emit3(d, "mov_b32", target(d, &i->op[0], 4, false), r, NONE, NONE);
}

static bool four_operands(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	bool lop3 = op_is(d, "lop3"), bfi = op_is(d, "bfi");
	if (!lop3 && !bfi)
		return false;
	if (lop3 && i->nop == 7 && i->op[0].dual) {
		lop3_test(d);
		return true;
	}
	if (i->nop != 5 || i->op[0].dual || (lop3 && i->op[4].kind != OP_INT) || i->m->nmods) {
		uncover(d);
		return true;
	}
	unsigned t = i->m->types[0], w = lane_bytes(t);
	uint32_t s[4];
	for (unsigned k = 0; k < 3; k++)
		s[k] = source(d, &i->op[k + 1], t, bfi && k == 2 ? 4 : w);
	s[3] = lop3 ? NONE : source(d, &i->op[4], T_B32, 4);
	uint32_t dst = target(d, &i->op[0], w, false);
	struct op *o = emit3(d, lop3 ? "lop3_b32" : w == 8 ? "bfi_b64" : "bfi_b32", dst, s[0], s[1], s[2]);
	o->e = s[3];
	o->y = lop3 ? (uint32_t)i->op[4].off & 255 : 0;
	return true;
}

/* min and max of two or three, of absolute values, with the sign of the product. */
static bool extreme(struct decoder *d)
{
	static const uint8_t known[] = {MOD_FTZ, MOD_NAN2, MOD_XORSIGN, MOD_ABS};
	const struct ptx_insn *i = d->i;
	unsigned t = i->m->types[0], n = i->nop - 1u;
	bool sign = has(d, MOD_XORSIGN);
	if ((!op_is(d, "min") && !op_is(d, "max")) || (!sign && !has(d, MOD_ABS) && n != 3))
		return false;
	if (!only_mods(i->m, known, sizeof known) || (t != T_F32 && !is_half(t)) ||
			(n != 2 && (n != 3 || t != T_F32 || sign))) {
		uncover(d);
		return true;
	}
	const char *name = ptx_type_name(t);
	uint32_t s[3] = {NONE, NONE, NONE}, a[3];
	for (unsigned k = 0; k < n; k++) {
		a[k] = s[k] = flushed(d, source(d, &i->op[k + 1], t, 4), t);
		if (has(d, MOD_FTZ) && t == T_F32) {
			uint32_t f = temp(d, 4);
			emit3(d, "ftz_f32", f, a[k], NONE, NONE);
			a[k] = s[k] = f;
		}
		if (has(d, MOD_ABS)) {
			uint32_t x = temp(d, 4);
			emit_name(d, "abs_%s", name)->d = x, d->ops[d->nops - 1].a = s[k];
			a[k] = x;
		}
	}
	uint32_t dst = target(d, &i->op[0], 4, false), r = temp(d, 4);
	for (unsigned k = 1; k < n; k++) {
		struct op *o = emit_name(d, "%s%s_%s", i->m->opcode, has(d, MOD_NAN2) ? "_NaN" : "", name);
		o->d = r;
		o->a = k == 1 ? a[0] : r;
		o->b = a[k];
	}
	struct op *o = sign ? emit_name(d, "xorsign_%s", name) : emit_name(d, "mov_b32");
	o->d = dst;
	o->a = r;
	o->b = sign ? s[0] : NONE;
	o->c = sign ? s[1] : NONE;
	return true;
}

bool decode_arith(struct decoder *d)
{
	return carry(d) || four_operands(d) || extreme(d) || plain_op(d);
}
