/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar models of the floating-point instructions: single and double by the processor under its own rounding
 * modes, halves by quadruple precision and one rounding written out here; comparisons; approximate functions
 * against the C library.
 *
 * Thread rule: one thread (the rounding mode). */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/soft/engine/check_insn.h"
#include "tests/soft/engine/model_round.h"

static float f32(uint64_t v)
{
	uint32_t u = (uint32_t)v;
	float f;
	memcpy(&f, &u, 4);
	return f;
}
static uint64_t b32(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return f != f ? 0x7fffffff : u;
}
static double f64(uint64_t v)
{
	double d;
	memcpy(&d, &v, 8);
	return d;
}
static uint64_t b64(double d)
{
	uint64_t u;
	memcpy(&u, &d, 8);
	return u;
}
static float flush(float x)
{
	return fabsf(x) < 1.17549435e-38f ? copysignf(0, x) : x;
}

static void mode(const struct test *t)
{
	fesetround(holds(t, ".rz")   ? FE_TOWARDZERO
		   : holds(t, ".rm") ? FE_DOWNWARD
		   : holds(t, ".rp") ? FE_UPWARD
				     : FE_TONEAREST);
}

static uint64_t m_f32(const struct test *t, const uint64_t *in)
{
	volatile float a = f32(in[0]), b = f32(in[1]), c = f32(in[2]), r = 0;
	bool ftz = holds(t, ".ftz");
	if (ftz)
		a = flush(a), b = flush(b), c = flush(c);
	mode(t);
	if (starts(t, "add"))
		r = a + b;
	else if (starts(t, "sub"))
		r = a - b;
	else if (starts(t, "mul"))
		r = a * b;
	else if (starts(t, "div"))
		r = a / b;
	else if (starts(t, "fma") || starts(t, "mad"))
		r = fmaf(a, b, c);
	else if (starts(t, "sqrt"))
		r = sqrtf(a);
	else if (starts(t, "rcp"))
		r = 1 / a;
	else if (starts(t, "abs"))
		r = fabsf(a);
	else if (starts(t, "neg"))
		r = -a;
	else if (starts(t, "min") || starts(t, "max")) {
		bool less = a < b || (a == b && signbit(a) && !signbit(b));
		r = starts(t, "min") == less ? a : b;
		if (isnan(a) || isnan(b))
			r = holds(t, ".NaN") ? NAN : isnan(a) ? b : a;
	} else if (starts(t, "copysign"))
		r = copysignf(b, a);
	fesetround(FE_TONEAREST);
	if (ftz)
		r = flush(r);
	if (holds(t, ".sat"))
		r = isnan(r) || r <= 0 ? 0 : r > 1 ? 1 : r;
	if (starts(t, "abs") || starts(t, "neg") || starts(t, "copysign")) {
		uint32_t u;
		float v = r;
		memcpy(&u, &v, 4);
		return u;
	}
	return b32(r);
}

static uint64_t m_f64(const struct test *t, const uint64_t *in)
{
	volatile double a = f64(in[0]), b = f64(in[1]), c = f64(in[2]), r = 0;
	mode(t);
	if (starts(t, "add"))
		r = a + b;
	else if (starts(t, "sub"))
		r = a - b;
	else if (starts(t, "mul"))
		r = a * b;
	else if (starts(t, "div"))
		r = a / b;
	else if (starts(t, "fma") || starts(t, "mad"))
		r = fma(a, b, c);
	else if (starts(t, "sqrt"))
		r = sqrt(a);
	else if (starts(t, "rcp"))
		r = 1 / a;
	else if (starts(t, "abs"))
		r = fabs(a);
	else if (starts(t, "neg"))
		r = -a;
	else if (starts(t, "min") || starts(t, "max")) {
		bool less = a < b || (a == b && signbit(a) && !signbit(b));
		r = starts(t, "min") == less ? a : b;
		if (isnan(a) || isnan(b))
			r = isnan(a) ? b : a;
	} else if (starts(t, "copysign"))
		r = copysign(b, a);
	fesetround(FE_TONEAREST);
	return b64(r);
}

/* The hardware takes an angle in turns, in single precision: what a large one means is lost. */
static double angle(float x)
{
	fesetround(FE_TOWARDZERO);
	volatile float turns = x * 0.15915494f;
	fesetround(FE_TONEAREST);
	return fmod(turns, 1) * 6.283185307179586;
}

static uint64_t m_approx(const struct test *t, const uint64_t *in)
{
	if (holds(t, ".f64")) {
		double x = f64(in[0] & ~0xffffffffull), r;
		x = fabs(x) < 2.2250738585072014e-308 ? copysign(0, x) : x;
		r = starts(t, "rcp") ? 1 / x : 1 / sqrt(x);
		r = fabs(r) < 2.2250738585072014e-308 ? copysign(0, r) : r;
		return b64(r);
	}
	float a = f32(in[0]), b = f32(in[1]);
	if (holds(t, ".ftz"))
		a = flush(a), b = flush(b);
	double x = a, r = 0;
	if (starts(t, "rcp"))
		r = 1 / x;
	else if (starts(t, "rsqrt"))
		r = 1 / sqrt(x);
	else if (starts(t, "sqrt"))
		r = sqrt(x);
	else if (starts(t, "sin"))
		r = fabs(x) < 1e-6 ? x : sin(angle(a));
	else if (starts(t, "cos"))
		r = cos(angle(a));
	else if (starts(t, "ex2"))
		r = exp2(x);
	else if (starts(t, "lg2"))
		r = log2(x);
	else if (starts(t, "tanh"))
		r = tanh(x);
	else if (starts(t, "div")) /* by way of a reciprocal, which is never subnormal */
		r = holds(t, ".approx") && fabsf(b) > 0x1p126f ? x * copysignf(0, b) : x / b;
	float f = (float)r;
	if (holds(t, ".ftz"))
		f = flush(f);
	return b32(f);
}

/* A sum of which a part is far below the other still shows on which side of it the exact result lies. */
static __float128 sum_sticky(__float128 a, __float128 b)
{
	__float128 s = a + b, big = a * a > b * b ? a : b, small = a * a > b * b ? b : a;
	if (s == big && small != 0 && small == small)
		s = (small > 0) == (big > 0) ? s * (1 + (__float128)0x1p-100)
					     : s * (1 - (__float128)0x1p-100);
	return s;
}

/* One half of a pair, or a half alone. */
static uint64_t half(const struct test *t, uint64_t x, uint64_t y, uint64_t z)
{
	bool f16 = !holds(t, "bf16");
	__float128 a = half_value(f16, x), b = half_value(f16, y), c = half_value(f16, z), r = 0;
	if (holds(t, ".ftz")) {
		a = half_flush(f16, x), b = half_flush(f16, y), c = half_flush(f16, z);
		x = (x & (f16 ? 0x7c00 : 0x7f80)) ? x : x & 0x8000;
		y = (y & (f16 ? 0x7c00 : 0x7f80)) ? y : y & 0x8000;
	}
	if (starts(t, "neg"))
		return a != a ? 0x7fff : x ^ 0x8000;
	if (starts(t, "abs"))
		return x & 0x7fff;
	if (starts(t, "min") || starts(t, "max")) {
		bool less = a < b || (a == b && (x & 0x8000) && !(y & 0x8000));
		uint64_t pick = starts(t, "min") == less ? x : y;
		if (a != a || b != b)
			pick = holds(t, ".NaN") ? 0x7fff : a != a ? (b != b ? 0x7fff : y) : x;
		return pick;
	}
	if (starts(t, "add"))
		r = a + b;
	else if (starts(t, "sub"))
		r = a - b;
	else if (starts(t, "mul"))
		r = a * b;
	else if (starts(t, "fma"))
		r = sum_sticky(a * b, c);
	else if (starts(t, "ex2"))
		r = exp2((double)a);
	else if (starts(t, "tanh"))
		r = tanh((double)a);
	uint64_t zero = 0;
	if (r == 0 && !starts(t, "ex2")) { /* the sign of a zero by the processor */
		double p = starts(t, "fma")   ? (double)a * (double)b
			   : starts(t, "mul") ? (double)a * (double)b
					      : (double)a;
		double s = starts(t, "fma")   ? p + (double)c
			   : starts(t, "mul") ? p
			   : starts(t, "sub") ? p - (double)b
			   : starts(t, "add") ? p + (double)b
					      : p;
		zero = signbit(s) ? 0x8000 : 0;
	}
	uint64_t h = r == 0 ? zero : half_round(f16, r, 'n');
	if (holds(t, ".ftz") && !(h & (f16 ? 0x7c00 : 0x7f80)))
		h &= 0x8000;
	bool nan = (h & 0x7fff) > (f16 ? 0x7c00u : 0x7f80u);
	if (holds(t, ".sat"))
		h = nan || h & 0x8000 ? 0 : h > (f16 ? 0x3c00u : 0x3f80u) ? (f16 ? 0x3c00 : 0x3f80) : h;
	if (holds(t, ".relu"))
		h = nan ? 0x7fff : h & 0x8000 ? 0 : h;
	return h;
}

static uint64_t m_half(const struct test *t, const uint64_t *in)
{
	uint64_t r = half(t, in[0] & 0xffff, in[1] & 0xffff, in[2] & 0xffff);
	if (holds(t, "16x2"))
		r |= half(t, in[0] >> 16, in[1] >> 16, in[2] >> 16) << 16;
	return r;
}

static bool compare(const char *c, double a, double b)
{
	bool nan = a != a || b != b;
	if (!strncmp(c, "num", 3))
		return !nan;
	if (!strncmp(c, "nan", 3))
		return nan;
	bool r = !strncmp(c, "eq", 2)   ? a == b
		 : !strncmp(c, "ne", 2) ? a != b
		 : !strncmp(c, "lt", 2) ? a < b
		 : !strncmp(c, "le", 2) ? a <= b
		 : !strncmp(c, "gt", 2) ? a > b
					: a >= b;
	return nan ? c[2] == 'u' : r;
}

static uint64_t m_setp(const struct test *t, const uint64_t *in)
{
	double a, b;
	if (!strcmp(t->type[1], "f32")) {
		a = f32(in[0]), b = f32(in[1]);
		if (holds(t, ".ftz"))
			a = flush((float)a), b = flush((float)b);
	} else if (!strcmp(t->type[1], "f64")) {
		a = f64(in[0]), b = f64(in[1]);
	} else {
		a = (double)half_value(*t->type[1] == 'f', in[0]),
		b = (double)half_value(*t->type[1] == 'f', in[1]);
	}
	bool r = compare(strchr(t->mnemonic, '.') + 1, a, b), p = in[2] & 1;
	if (holds(t, ".and."))
		r = r && p;
	else if (holds(t, ".or."))
		r = r || p;
	if (starts(t, "set."))
		return r ? holds(t, ".f32.") ? 0x3f800000 : ~0ull : 0;
	return r;
}

static uint64_t m_testp(const struct test *t, const uint64_t *in)
{
	bool wide = holds(t, ".f64");
	int k = wide ? fpclassify(f64(in[0])) : fpclassify(f32(in[0]));
	return holds(t, "notanumber")  ? k == FP_NAN
	       : holds(t, "infinite")  ? k == FP_INFINITE
	       : holds(t, "finite")    ? k != FP_NAN && k != FP_INFINITE
	       : holds(t, "subnormal") ? k == FP_SUBNORMAL
	       : holds(t, "normal")    ? k == FP_NORMAL || k == FP_ZERO /* as an H200 says */
				       : k != FP_NAN;
}

static void each(const char *fmt, const char *list, const char *types, model *m, double ulps)
{
	char copy[256], name[96];
	snprintf(copy, sizeof copy, "%s", list);
	for (char *s, *w = strtok_r(copy, " ", &s); w; w = strtok_r(NULL, " ", &s)) {
		const char *word = strcmp(w, "-") ? w : "";
		char *q = name;
		for (const char *p = fmt; *p; p++)
			if (*p == '*')
				q += sprintf(q, "%s", word);
			else
				*q++ = *p;
		*q = 0;
		define(name, types, m, ulps);
	}
}

void define_float(void)
{
	static const char *const op2[] = {"add", "sub", "mul"};
	const char *rounds = "- .rn .rz .rm .rp .ftz .rn.ftz .rz.ftz .sat .ftz.sat .rn.sat .rm.ftz.sat";
	char f[64];
	for (int k = 0; k < 3; k++) {
		snprintf(f, sizeof f, "%s*.f32", op2[k]);
		each(f, rounds, "f32:f32,f32", m_f32, 0);
		snprintf(f, sizeof f, "%s*.f64", op2[k]);
		each(f, "- .rn .rz .rm .rp", "f64:f64,f64", m_f64, 0);
		snprintf(f, sizeof f, "%s*.f16", op2[k]);
		each(f, "- .rn .ftz .sat .rn.ftz.sat", "f16:f16,f16", m_half, 0);
		snprintf(f, sizeof f, "%s*.f16x2", op2[k]);
		each(f, "- .rn", "f16x2:f16x2,f16x2", m_half, 0);
		snprintf(f, sizeof f, "%s*.bf16", op2[k]);
		each(f, "- .rn", "bf16:bf16,bf16", m_half, 0);
		snprintf(f, sizeof f, "%s*.bf16x2", op2[k]);
		each(f, "- .rn", "bf16x2:bf16x2,bf16x2", m_half, 0);
	}
	each("div*.f32", ".rn .rz .rm .rp .rn.ftz .rp.ftz", "f32:f32,f32", m_f32, 0);
	each("div*.f64", ".rn .rz .rm .rp", "f64:f64,f64", m_f64, 0);
	each("fma*.f32", ".rn .rz .rm .rp .rn.ftz .rz.ftz .rn.sat .rn.ftz.sat", "f32:f32,f32,f32", m_f32, 0);
	each("mad*.f32", ".rn .rz .rn.ftz.sat", "f32:f32,f32,f32", m_f32, 0);
	each("fma*.f64", ".rn .rz .rm .rp", "f64:f64,f64,f64", m_f64, 0);
	each("mad*.f64", ".rn", "f64:f64,f64,f64", m_f64, 0);
	each("fma.rn*.f16", "- .ftz .sat .ftz.sat .relu", "f16:f16,f16,f16", m_half, 0);
	each("fma.rn*.f16x2", "- .relu", "f16x2:f16x2,f16x2,f16x2", m_half, 0);
	each("fma.rn*.bf16", "- .relu", "bf16:bf16,bf16,bf16", m_half, 0);
	each("fma.rn*.bf16x2", "- .relu", "bf16x2:bf16x2,bf16x2,bf16x2", m_half, 0);
	static const char *const op1[] = {"sqrt", "rcp"};
	for (int k = 0; k < 2; k++) {
		snprintf(f, sizeof f, "%s*.f32", op1[k]);
		each(f, ".rn .rz .rm .rp .rn.ftz", "f32:f32", m_f32, 0);
		snprintf(f, sizeof f, "%s*.f64", op1[k]);
		each(f, ".rn .rz .rm .rp", "f64:f64", m_f64, 0);
	}
	each("abs*.f32", "- .ftz", "f32:f32", m_f32, 0);
	each("neg*.f32", "- .ftz", "f32:f32", m_f32, 0);
	each("*.f64", "abs neg", "f64:f64", m_f64, 0);
	each("*.f16", "abs neg", "f16:f16", m_half, 0);
	each("*.f16x2", "abs neg", "f16x2:f16x2", m_half, 0);
	each("*.bf16", "abs neg", "bf16:bf16", m_half, 0);
	each("*.bf16x2", "abs neg", "bf16x2:bf16x2", m_half, 0);
	static const char *const mm[] = {"min", "max"};
	for (int k = 0; k < 2; k++) {
		snprintf(f, sizeof f, "%s*.f32", mm[k]);
		each(f, "- .ftz .NaN .ftz.NaN", "f32:f32,f32", m_f32, 0);
		snprintf(f, sizeof f, "%s*.f64", mm[k]);
		each(f, "-", "f64:f64,f64", m_f64, 0);
		snprintf(f, sizeof f, "%s*.f16", mm[k]);
		each(f, "- .NaN .ftz", "f16:f16,f16", m_half, 0);
		snprintf(f, sizeof f, "%s*.f16x2", mm[k]);
		each(f, "- .NaN", "f16x2:f16x2,f16x2", m_half, 0);
		snprintf(f, sizeof f, "%s*.bf16", mm[k]);
		each(f, "- .NaN", "bf16:bf16,bf16", m_half, 0);
		snprintf(f, sizeof f, "%s*.bf16x2", mm[k]);
		each(f, "- .NaN", "bf16x2:bf16x2,bf16x2", m_half, 0);
	}
	define("copysign.f32", "f32:f32,f32", m_f32, 0);
	define("copysign.f64", "f64:f64,f64", m_f64, 0);
	/* As far as PTX lets them be off; for sines the error of the angle in turns is in the model. */
	static const char *const approx[] = {"approx.f32", "approx.ftz.f32"};
	for (int k = 0; k < 2; k++) {
		snprintf(f, sizeof f, "*.%s", approx[k]);
		each(f, "rcp sqrt", "f32:f32", m_approx, 1);
		each(f, "rsqrt ex2", "f32:f32", m_approx, 2);
		snprintf(f, sizeof f, "lg2.%s", approx[k]);
		define_near(f, "f32:f32", m_approx, 4, 0x1p-22);
		snprintf(f, sizeof f, "sin.%s", approx[k]);
		define_near(f, "f32:f32", m_approx, 1, 0x1p-20);
		snprintf(f, sizeof f, "cos.%s", approx[k]);
		define_near(f, "f32:f32", m_approx, 1, 0x1p-20);
	}
	define("tanh.approx.f32", "f32:f32", m_approx, 0x1p13);
	each("div.*.f32", "approx full approx.ftz full.ftz", "f32:f32,f32", m_approx, 2);
	each("*.approx.ftz.f64", "rcp rsqrt", "f64:f64", m_approx, 0x1p33);
	define("ex2.approx.f16", "f16:f16", m_half, 1);
	define("ex2.approx.f16x2", "f16x2:f16x2", m_half, 1);
	define("ex2.approx.ftz.bf16", "bf16:bf16", m_half, 1);
	define("ex2.approx.ftz.bf16x2", "bf16x2:bf16x2", m_half, 1);
	each("tanh.approx.*", "f16", "f16:f16", m_half, 1);
	define("tanh.approx.f16x2", "f16x2:f16x2", m_half, 1);
	define("tanh.approx.bf16", "bf16:bf16", m_half, 1);
	const char *cmps = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan";
	each("setp.*.f32", cmps, "pred:f32,f32", m_setp, 0);
	each("setp.*.ftz.f32", cmps, "pred:f32,f32", m_setp, 0);
	each("setp.*.f64", cmps, "pred:f64,f64", m_setp, 0);
	each("setp.*.f16", cmps, "pred:f16,f16", m_setp, 0);
	each("setp.*.bf16", cmps, "pred:bf16,bf16", m_setp, 0);
	each("setp.*.and.f32", "lt geu", "pred:f32,f32,pred", m_setp, 0);
	each("setp.*.or.f64", "lt neu", "pred:f64,f64,pred", m_setp, 0);
	each("set.*.u32.f32", "lt geu nan", "u32:f32,f32", m_setp, 0);
	each("set.*.f32.f32", "lt geu", "u32:f32,f32", m_setp, 0);
	each("set.*.s32.f64", "lt neu", "u32:f64,f64", m_setp, 0);
	each("testp.*.f32", "finite infinite number notanumber normal subnormal", "pred:f32", m_testp, 0);
	each("testp.*.f64", "finite infinite number notanumber normal subnormal", "pred:f64", m_testp, 0);
}
