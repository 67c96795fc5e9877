/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of cvt: integers with and without saturation, floats with every rounding, halves and pairs of
 * halves; cvta and isspacep.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include <stdio.h>
#include <string.h>

static bool integer(unsigned t)
{
	return t >= T_U8 && t <= T_S64;
}

static bool floating(unsigned t)
{
	return t == T_F16 || t == T_BF16 || t == T_F32 || t == T_F64;
}

static const char *integral(const struct ptx_mnem *m)
{
	return ptx_has(m, MOD_RNI)   ? "rni"
	       : ptx_has(m, MOD_RZI) ? "rzi"
	       : ptx_has(m, MOD_RMI) ? "rmi"
	       : ptx_has(m, MOD_RPI) ? "rpi"
				     : NULL;
}

static void one(struct decoder *d, uint32_t dst, uint32_t a, const char *fmt, const char *x, const char *y)
{
	char b[64];
	snprintf(b, sizeof b, fmt, x, y);
	emit3(d, b, dst, a, NONE, NONE);
}

/* Two floats become one pair: d = {a high, b low}. */
static void pair(struct decoder *d, unsigned to)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_RN, MOD_RZ, MOD_RELU, MOD_SATFINITE};
	if (i->nop != 3 || !only_mods(i->m, known, sizeof known)) {
		uncover(d);
		return;
	}
	uint32_t a = source(d, &i->op[1], T_F32, 4), b = source(d, &i->op[2], T_F32, 4),
		 dst = target(d, &i->op[0], 4, false);
	const char *name = ptx_type_name(to);
	emit_name(d, "cvt_%s%s_f32", has(d, MOD_RZ) ? "rz_" : "", name);
	struct op *o = &d->ops[d->nops - 1];
	o->d = dst;
	o->a = a;
	o->b = b;
	if (has(d, MOD_RELU))
		one(d, dst, dst, "relu_%s%s", name, "");
	if (has(d, MOD_SATFINITE))
		one(d, dst, dst, "finite_%s%s", name, "");
}

static void float_to_float(struct decoder *d, unsigned to, unsigned from, uint32_t dst, uint32_t a)
{
	const struct ptx_mnem *m = d->i->m;
	const char *whole = integral(m);
	const char *tn = ptx_type_name(to), *fn = ptx_type_name(from);
	uint32_t s = a;
	if (has(d, MOD_FTZ) && from == T_F32) {
		s = temp(d, 4);
		emit3(d, "ftz_f32", s, a, NONE, NONE);
	}
	if (whole) { /* to an integral value first: exact in every type from half to double */
		unsigned t = from == T_F64 ? T_F64 : T_F32;
		uint32_t r = temp(d, lane_bytes(t));
		if (from != t) {
			uint32_t f = temp(d, 4);
			one(d, f, s, "cvt_f32_%s%s", fn, "");
			s = f;
		}
		one(d, r, s, "%s_%s", whole, ptx_type_name(t));
		s = r;
		from = t;
		fn = ptx_type_name(from);
	}
	bool half = to == T_F16 || to == T_BF16;
	if (to == from) {
		emit3(d, to == T_F64 ? "mov_b64" : to == T_F32 ? "canon_f32" : "mov_b16", dst, s, NONE, NONE);
	} else if (half && (has(d, MOD_RZ) || has(d, MOD_RM) || has(d, MOD_RP))) {
		if (from == T_F64) {
			uint32_t f = temp(d, 4);
			emit3(d, "odd_f32_f64", f, s, NONE, NONE);
			s = f;
		} else if (from != T_F32) {
			uint32_t f = temp(d, 4);
			one(d, f, s, "cvt_f32_%s%s", fn, "");
			s = f;
		}
		emit_name(d, "cvt_%s_%s_f32", has(d, MOD_RZ) ? "rz" : has(d, MOD_RM) ? "rm" : "rp", tn);
		d->ops[d->nops - 1].d = dst, d->ops[d->nops - 1].a = s;
	} else {
		emit_mode(d, from == T_F64 && to == T_F32 ? mode_of(m, false) : 0);
		one(d, dst, s, "cvt_%s_%s", tn, fn);
	}
	if (has(d, MOD_SAT))
		one(d, dst, dst, "sat_%s%s", tn, "");
	if (has(d, MOD_RELU))
		one(d, dst, dst, "relu_%s%s", tn, "");
	if (has(d, MOD_SATFINITE))
		one(d, dst, dst, "finite_%s%s", tn, "");
	if (has(d, MOD_FTZ) && to == T_F32)
		emit3(d, "ftz_f32", dst, dst, NONE, NONE);
}

static void float_to_integer(struct decoder *d, unsigned to, unsigned from, uint32_t dst, uint32_t a)
{
	const char *whole = integral(d->i->m);
	unsigned t = from == T_F64 ? T_F64 : T_F32;
	uint32_t s = a;
	if (from != t) {
		s = temp(d, 4);
		one(d, s, a, "cvt_f32_%s%s", ptx_type_name(from), "");
	}
	if (has(d, MOD_FTZ) && t == T_F32) {
		uint32_t f = temp(d, 4);
		emit3(d, "ftz_f32", f, s, NONE, NONE);
		s = f;
	}
	if (whole && strcmp(whole, "rzi")) { /* the conversion itself truncates */
		uint32_t r = temp(d, lane_bytes(t));
		one(d, r, s, "%s_%s", whole, ptx_type_name(t));
		s = r;
	}
	one(d, dst, s, "cvt_%s_%s", ptx_type_name(to), ptx_type_name(t));
}

static bool eight_bits(unsigned t)
{
	return t == T_E4M3X2 || t == T_E5M2X2;
}

/* Pairs of eight-bit floats from two singles or a pair of halves, and back to a pair of halves. */
static void quarter(struct decoder *d, unsigned to, unsigned from)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_RN, MOD_SATFINITE, MOD_RELU};
	bool two = eight_bits(to) && from == T_F32, relu = has(d, MOD_RELU);
	bool ok = two || (eight_bits(to) && from == T_F16X2) || (to == T_F16X2 && eight_bits(from));
	if (!ok || i->nop != (two ? 3 : 2) || !only_mods(i->m, known, sizeof known) ||
		(eight_bits(to) && !has(d, MOD_SATFINITE))) {
		uncover(d);
		return;
	}
	uint32_t s[2] = {NONE, NONE};
	for (unsigned k = 0; k < (two ? 2u : 1u); k++) {
		s[k] = source(d, &i->op[k + 1], two ? T_F32 : T_B32, 4);
		if (relu && eight_bits(to)) {
			uint32_t r = temp(d, 4);
			emit3(d, two ? "relu_f32" : "relu_f16x2", r, s[k], NONE, NONE);
			s[k] = r;
		}
	}
	uint32_t dst = target(d, &i->op[0], 4, false);
	struct op *o = emit_name(d, "cvt_%s_%s", ptx_type_name(to), ptx_type_name(from));
	o->d = dst;
	o->a = s[0];
	o->b = s[1];
	if (relu && to == T_F16X2)
		emit3(d, "relu_f16x2", dst, dst, NONE, NONE);
}

/* Pairs of four- and six-bit floats from two singles, and back to a pair of halves. */
static void mini(struct decoder *d, unsigned to, unsigned from)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_RN, MOD_SATFINITE, MOD_RELU};
	bool narrow = from == T_F32, relu = has(d, MOD_RELU);
	if ((!narrow && to != T_F16X2) || i->nop != (narrow ? 3 : 2) ||
			!only_mods(i->m, known, sizeof known) ||
		narrow != has(d, MOD_SATFINITE)) {
		uncover(d);
		return;
	}
	uint32_t s[2] = {NONE, NONE};
	for (unsigned k = 0; k < (narrow ? 2u : 1u); k++) {
		s[k] = source(d, &i->op[k + 1], narrow ? T_F32 : T_B32, 4);
		if (narrow && relu) {
			uint32_t r = temp(d, 4);
			emit3(d, "relu_f32", r, s[k], NONE, NONE);
			s[k] = r;
		}
	}
	uint32_t dst = target(d, &i->op[0], 4, false);
	struct op *o = emit_name(d, "cvt_%s_%s", ptx_type_name(to), ptx_type_name(from));
	o->d = dst;
	o->a = s[0];
	o->b = s[1];
	if (relu && !narrow)
		emit3(d, "relu_f16x2", dst, dst, NONE, NONE);
}

/* Exponents alone from two singles or a pair of bfloat16, and back. */
static void exponents(struct decoder *d, unsigned to, unsigned from)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_RN, MOD_RZ, MOD_RP, MOD_SATFINITE};
	bool back = from == T_UE8M0X2, up = has(d, MOD_RP), two = from == T_F32;
	if ((back ? to != T_BF16X2 || !has(d, MOD_RN) || has(d, MOD_SATFINITE) :
			(from != T_F32 && from != T_BF16X2) || up == has(d, MOD_RZ)) ||
		i->nop != (two ? 3 : 2) || !only_mods(i->m, known, sizeof known)) {
		uncover(d);
		return;
	}
	uint32_t a = source(d, &i->op[1], two ? T_F32 : T_B32, 4),
			b = two ? source(d, &i->op[2], T_F32, 4) : NONE,
		 dst = target(d, &i->op[0], 4, false);
	const char *finite = has(d, MOD_SATFINITE) ? "finite_" : "";
	struct op *o = back ? emit_name(d, "cvt_bf16x2_ue8m0x2") :
			emit_name(d, "cvt_%s_%sue8m0x2_%s", up ? "rp" : "rz", finite, ptx_type_name(from));
	o->d = dst;
	o->a = a;
	o->b = b;
}

static void tf32(struct decoder *d)
{
	static const uint8_t known[] = {MOD_RN, MOD_RZ, MOD_RNA, MOD_RELU, MOD_SATFINITE};
	const struct ptx_insn *i = d->i;
	if (i->nop != 2 || !only_mods(i->m, known, sizeof known) ||
			has(d, MOD_RN) + has(d, MOD_RZ) + has(d, MOD_RNA) != 1) {
		uncover(d);
		return;
	}
	uint32_t s = source(d, &i->op[1], T_F32, 4), dst = target(d, &i->op[0], 4, false);
	emit3(d, has(d, MOD_RNA) ? "cvt_tf32_f32" : has(d, MOD_RN) ? "cvt_rn_tf32_f32" : "cvt_rz_tf32_f32",
			dst, s, NONE, NONE);
	if (has(d, MOD_RELU))
		emit3(d, "relu_tf32", dst, dst, NONE, NONE);
	if (has(d, MOD_SATFINITE))
		emit3(d, has(d, MOD_RNA) ? "finite_rna_tf32" : "finite_tf32", dst, dst, NONE, NONE);
}

/* cvt.pack.sat: two integers, clamped, side by side, above them the third operand. */
static void pack_saturated(struct decoder *d)
{
	static const uint8_t known[] = {MOD_PACK, MOD_SAT};
	const struct ptx_insn *i = d->i;
	unsigned to = i->m->types[0];
	bool two = to == T_S16 || to == T_U16;
	if (i->m->ntypes != (two ? 2 : 3) || i->m->types[1] != T_S32 || (!two && i->m->types[2] != T_B32) ||
			i->nop != (two ? 3 : 4) ||
		!has(d, MOD_SAT) || !only_mods(i->m, known, sizeof known)) {
		uncover(d);
		return;
	}
	uint32_t a = source(d, &i->op[1], T_S32, 4), b = source(d, &i->op[2], T_S32, 4),
			c = two ? NONE : source(d, &i->op[3], T_B32, 4),
		 dst = target(d, &i->op[0], 4, false);
	struct op *o = emit_name(d, "cvt_pack_%s", ptx_type_name(to));
	o->d = dst;
	o->a = a;
	o->b = b;
	o->c = c;
}

static bool mini_type(unsigned t)
{
	return t == T_E2M3X2 || t == T_E3M2X2 || t == T_E2M1X2;
}

static void convert(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	const struct ptx_mnem *m = i->m;
	static const uint8_t known[] = {MOD_RN, MOD_RZ, MOD_RM, MOD_RP, MOD_RNI, MOD_RZI, MOD_RMI, MOD_RPI,
		MOD_FTZ, MOD_SAT, MOD_RELU, MOD_RNA, MOD_SATFINITE};
	unsigned to = m->types[0], from = m->types[1];
	if (has(d, MOD_PACK)) {
		pack_saturated(d);
		return;
	}
	if (m->ntypes != 2 || !only_mods(m, known, sizeof known)) {
		uncover(d);
		return;
	}
	if ((to == T_F16X2 || to == T_BF16X2) && from == T_F32) {
		pair(d, to);
		return;
	}
	if (eight_bits(to) || eight_bits(from)) {
		quarter(d, to, from);
		return;
	}
	if (mini_type(to) || mini_type(from)) {
		mini(d, to, from);
		return;
	}
	if (to == T_UE8M0X2 || from == T_UE8M0X2) {
		exponents(d, to, from);
		return;
	}
	if (i->nop != 2) {
		uncover(d);
		return;
	}
	if (to == T_TF32 && from == T_F32) {
		tf32(d);
		return;
	}
	bool half = to == T_F16 || to == T_BF16;
	if (has(d, MOD_RNA) || ((has(d, MOD_SATFINITE) || has(d, MOD_RELU)) && (!half || !floating(from))) ||
			!(integer(to) || floating(to)) ||
		!(integer(from) || floating(from))) {
		uncover(d);
		return;
	}
	/* A 64-bit operation on wider or narrower registers is what source and target are for; they need the
	 * lanes of the types. */
	uint32_t a = source(d, &i->op[1], from, lane_bytes(from));
	uint32_t dst = target(d, &i->op[0], lane_bytes(to), *ptx_type_name(to) == 's');
	if (integer(to) && integer(from)) {
		one(d, dst, a, has(d, MOD_SAT) ? "cvt_sat_%s_%s" : "cvt_%s_%s", ptx_type_name(to),
			ptx_type_name(from));
	} else if (integer(to)) {
		float_to_integer(d, to, from, dst, a);
	} else if (integer(from) && (to == T_F16 || to == T_BF16) && mode_of(m, false)) {
		bool sign = *ptx_type_name(from) == 's';
		uint32_t wide = temp(d, 8), odd = temp(d, 4);
		one(d, wide, a, from == T_U64 || from == T_S64 ? "mov_b64" : "cvt_%s64_%s", sign ? "s" : "u",
			ptx_type_name(from));
		emit3(d, sign ? "odd_f32_s64" : "odd_f32_u64", odd, wide, NONE, NONE);
		one(d, dst, odd, "cvt_%s_%s_f32",
			has(d, MOD_RZ)   ? "rz"
			: has(d, MOD_RM) ? "rm"
					 : "rp",
			ptx_type_name(to));
		if (has(d, MOD_SAT))
			one(d, dst, dst, "sat_%s%s", ptx_type_name(to), "");
	} else if (integer(from)) {
		emit_mode(d, mode_of(m, false));
		one(d, dst, a, "cvt_%s_%s", ptx_type_name(to), ptx_type_name(from));
		if (has(d, MOD_SAT))
			one(d, dst, dst, "sat_%s%s", ptx_type_name(to), "");
	} else {
		float_to_float(d, to, from, dst, a);
	}
}

/* Global, constant, local and parameter addresses are generic ones already; shared ones are offsets. */
static void address(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_TO};
	if (i->nop != 2 || i->m->nspaces != 1 || !only_mods(i->m, known, 1)) {
		uncover(d);
		return;
	}
	unsigned w = lane_bytes(i->m->types[0]);
	bool cluster = i->m->space[0] == SP_CLUSTER, to = has(d, MOD_TO);
	if (cluster && w != 8) {
		uncover(d);
		return;
	}
	uint32_t a = source(d, &i->op[1], i->m->types[0], cluster && !to ? 4 : w),
			dst = target(d, &i->op[0], w, false);
	if (cluster) {
		struct op *o = emit_x(d, to ? x_cluster_window : x_cluster_address);
		o->d = dst;
		o->a = a;
		o->x = true;
		return;
	}
	if (i->m->space[0] != SP_SHARED || w != 8) {
		emit3(d, w == 8 ? "mov_b64" : "mov_b32", dst, a, NONE, NONE);
		return;
	}
	uint32_t base = sreg(d, SR_SHARED_BASE);
	emit3(d, has(d, MOD_TO) ? "sub_b64" : "add_b64", dst, a, base, NONE);
}

bool decode_convert(struct decoder *d)
{
	if (op_is(d, "cvt")) {
		convert(d);
		return true;
	}
	if (op_is(d, "cvta")) {
		address(d);
		return true;
	}
	if (op_is(d, "isspacep")) {
		const struct ptx_insn *i = d->i;
		if (i->nop != 2 || i->m->nspaces != 1 || i->m->nmods) {
			uncover(d);
			return true;
		}
		uint32_t a = source(d, &i->op[1], T_U64, 8), dst = target(d, &i->op[0], 4, false);
		struct op *o = emit_x(d, x_isspacep);
		o->d = dst;
		o->a = a;
		o->x = i->m->space[0];
		return true;
	}
	return false;
}
