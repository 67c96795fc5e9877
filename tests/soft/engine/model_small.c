/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar models of conversions to and from what has fewer bits than a half: four and six bits, exponents
 * alone, TF32, halves without infinity, packed integers. The nearest number is searched among all that the
 * format has.
 *
 * Thread rule: pure functions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/soft/engine/check_insn.h"
#include "tests/soft/engine/model_round.h"

static double single(uint64_t v)
{
	float f;
	uint32_t u = (uint32_t)v;
	memcpy(&f, &u, 4);
	return f;
}

struct format {
	unsigned bits, mantissa;
	int bias;
};

static struct format format_of(const struct test *t)
{
	return holds(t, "e2m3")   ? (struct format){6, 3, 1}
	       : holds(t, "e3m2") ? (struct format){6, 2, 3}
				  : (struct format){4, 1, 1};
}

static double value(struct format f, unsigned code)
{
	unsigned m = code & ((1u << f.mantissa) - 1), e = (code & ((1u << (f.bits - 1)) - 1)) >> f.mantissa;
	double v = e ? ldexp((double)(m | 1u << f.mantissa), (int)e - f.bias - (int)f.mantissa)
		     : ldexp((double)m, 1 - f.bias - (int)f.mantissa);
	return code >> (f.bits - 1) & 1 ? -v : v;
}

static unsigned nearest(struct format f, double x)
{
	unsigned most = (1u << (f.bits - 1)) - 1, best = 0;
	if (isnan(x))
		return most;
	if (fabs(x) > value(f, most))
		x = copysign(value(f, most), x);
	for (unsigned c = 1; c <= most; c++) {
		double old = fabs(fabs(x) - value(f, best)), now = fabs(fabs(x) - value(f, c));
		if (now < old || (now == old && c % 2 == 0))
			best = c;
	}
	return best | (signbit(x) ? most + 1 : 0);
}

static uint64_t m_mini(const struct test *t, const uint64_t *in)
{
	struct format f = format_of(t);
	unsigned step = f.bits == 4 ? 4 : 8;
	bool relu = holds(t, ".relu") || strstr(t->before, ".relu");
	uint64_t r = 0;
	for (unsigned k = 0; k < 2; k++) {
		if (strstr(t->type[1], "f32")) {
			double x = single(in[1 - k]);
			if (relu && !(x > 0))
				x = isnan(x) ? x : 0;
			r |= (uint64_t)nearest(f, x) << k * step;
			continue;
		}
		unsigned code = in[0] >> k * step & ((1u << f.bits) - 1);
		double v = value(f, code);
		uint64_t h = half_round(true, v, 'n');
		if (v == 0)
			h = code ? 0x8000 : 0;
		r |= (relu && h >> 15 ? 0 : h) << 16 * k;
	}
	return r;
}

static uint64_t exponent(const struct test *t, double x)
{
	bool finite = holds(t, ".satfinite");
	if (isnan(x))
		return 255;
	if (isinf(x))
		return finite ? 254 : 255;
	x = fabs(x);
	for (int e = 0; e < 255;
		e++) { /* the first power of two that is not below, or the last that is not above */
		double p = ldexp(1, e - 127);
		if (holds(t, ".rp") ? p >= x : p * 2 > x)
			return (uint64_t)e;
	}
	return finite ? 254 : 255;
}

static uint64_t m_exponents(const struct test *t, const uint64_t *in)
{
	uint64_t r = 0;
	for (unsigned k = 0; k < 2; k++) {
		if (holds(t, "bf16x2.ue8m0x2")) {
			unsigned e = in[0] >> 8 * k & 255;
			r |= (e == 255 ? 0x7fff : half_round(false, ldexp(1, (int)e - 127), 'n')) << 16 * k;
			continue;
		}
		double x = t->type[1][0] == 'f' ? single(in[1 - k])
						: (double)half_value(false, in[0] >> 16 * k & 0xffff);
		r |= exponent(t, x) << 8 * k;
	}
	return r;
}

static uint64_t m_tf32(const struct test *t, const uint64_t *in)
{
	uint64_t u = in[0] & 0x7fffffff, sign = in[0] & 0x80000000;
	if (u > 0x7f800000 && holds(t, ".rna")) /* cut off; .satfinite takes one more, as of an infinity */
		return sign | (u / 8192 - holds(t, ".satfinite")) * 8192;
	if (u > 0x7f800000)
		return 0x7fffe000;
	if (holds(t, ".relu") && sign)
		return 0;
	uint64_t low = u % 8192, base = u - low;
	if (holds(t, ".rna")      ? low >= 4096
		: holds(t, ".rn") ? low > 4096 || (low == 4096 && base / 8192 % 2)
				  : false)
		base += 8192;
	if (u == 0x7f800000)
		base = u;
	return sign | (holds(t, ".satfinite") && base >= 0x7f800000 ? 0x7f7fe000 : base);
}

static uint64_t m_finite(const struct test *t, const uint64_t *in)
{
	bool f16 = !strncmp(t->type[0], "f16", 3), two = t->n == 3;
	uint64_t r = 0, inf = f16 ? 0x7c00 : 0x7f80;
	for (unsigned k = 0; k < (two ? 2u : 1u); k++) {
		double x = single(in[two ? 1 - k : 0]);
		uint64_t h =
			x == 0 ? (signbit(x) ? 0x8000 : 0) : half_round(f16, x, holds(t, ".rz") ? 'z' : 'n');
		if (holds(t, ".relu") && h >> 15 && (h & 0x7fff) <= inf)
			h = 0;
		r |= ((h & 0x7fff) == inf ? h - 1 : h) << 16 * k;
	}
	return r;
}

/* From one kind of half to the other. */
static uint64_t m_halves(const struct test *t, const uint64_t *in)
{
	bool to16 = t->type[0][0] == 'f';
	__float128 v = half_value(!to16, in[0] & 0xffff);
	if (!(in[0] & 0x7fff))
		return in[0] & 0x8000;
	return half_round(to16, v,
		holds(t, ".rz")   ? 'z'
		: holds(t, ".rm") ? 'm'
		: holds(t, ".rp") ? 'p'
				  : 'n');
}

static uint64_t m_packed(const struct test *t, const uint64_t *in)
{
	const char *to = strstr(t->mnemonic, "sat.") + 4;
	unsigned bits = (unsigned)atoi(to + 1);
	int64_t lo = *to == 's' ? -(1ll << (bits - 1)) : 0, hi = lo + (1ll << bits) - 1;
	uint64_t r = bits < 16 ? in[2] << 2 * bits : 0;
	for (unsigned k = 0; k < 2; k++) {
		int64_t v = (int32_t)in[k];
		v = v < lo ? lo : v > hi ? hi : v;
		r |= ((uint64_t)v & ((1ull << bits) - 1)) << (k ? 0 : bits);
	}
	return r;
}

void define_small(void)
{
	static const char *const small[] = {"e2m3x2", "e3m2x2"}, *const relu[] = {"", ".relu"},
				 *const finite[] = {"", ".satfinite"},
				 *const rounds[] = {".rn", ".rz", ".rna"},
				 *const ints[] = {"s16", "u16", "s8", "u8", "s4", "u4", "s2", "u2"};
	char name[96], before[160];
	for (unsigned k = 0; k < 4; k++) {
		snprintf(name, sizeof name, "cvt.rn.satfinite%s.%s.f32", relu[k & 1], small[k / 2]);
		define(name, "u16:f32,f32", m_mini, 0);
		snprintf(name, sizeof name, "cvt.rn%s.f16x2.%s", relu[k & 1], small[k / 2]);
		define(name, "f16x2:u16", m_mini, 0);
	}
	for (unsigned k = 0; k < 2; k++) { /* a register of eight bits holds two of four */
		snprintf(before, sizeof before,
			"e2m1_to%s: .reg .b8 %%c<2>; cvt.rn.satfinite%s.e2m1x2.f32 %%c0,%%r9,%%r10; mov.b16 "
			"%%h7,{%%c0,0};",
			k ? "_relu" : "", relu[k]);
		define_before(before, "mov.b16", "u16:!f32,!f32,#%h7", m_mini);
		snprintf(before, sizeof before,
			"e2m1_from%s: .reg .b8 %%c<2>; mov.b16 {%%c0,_},%%h1; cvt.rn%s.f16x2.e2m1x2 "
			"%%r15,%%c0;",
			k ? "_relu" : "", relu[k]);
		define_before(before, "mov.b32", "f16x2:!u16,#%r15", m_mini);
	}
	for (unsigned k = 0; k < 4; k++) {
		snprintf(name, sizeof name, "cvt.%s%s.ue8m0x2.f32", k & 1 ? "rp" : "rz", finite[k / 2]);
		define(name, "u16:f32,f32", m_exponents, 0);
		snprintf(name, sizeof name, "cvt.%s%s.ue8m0x2.bf16x2", k & 1 ? "rp" : "rz", finite[k / 2]);
		define(name, "u16:bf16x2", m_exponents, 0);
	}
	define("cvt.rn.bf16x2.ue8m0x2", "bf16x2:u16", m_exponents, 0);
	for (unsigned k = 0; k < 12; k++) {
		const char *r = rounds[k / 4];
		snprintf(name, sizeof name, "cvt%s%s%s.tf32.f32", r, finite[k >> 1 & 1], relu[k & 1]);
		if (!(k & 1) || strcmp(r, ".rna"))
			define(name, "u32:f32", m_tf32, 0);
	}
	for (unsigned k = 0; k < 8; k++) {
		const char *type = k & 1 ? "bf16" : "f16", *r = rounds[k >> 1 & 1];
		snprintf(name, sizeof name, "cvt%s.satfinite.%s.f32", r, type);
		snprintf(before, sizeof before, "%s:f32", type);
		if (k < 4)
			define(name, before, m_finite, 0);
		snprintf(name, sizeof name, "cvt%s%s.satfinite.%sx2.f32", r, k & 4 ? ".relu" : "", type);
		snprintf(before, sizeof before, "%sx2:f32,f32", type);
		define(name, before, m_finite, 0);
	}
	for (unsigned k = 0; k < 8; k++) {
		static const char *const r[] = {".rn", ".rz", ".rm", ".rp"};
		const char *to = k & 1 ? "f16" : "bf16", *from = k & 1 ? "bf16" : "f16";
		snprintf(name, sizeof name, "cvt%s.%s.%s", r[k / 2], to, from);
		snprintf(before, sizeof before, "%s:%s", to, from);
		define(name, before, m_halves, 0);
		snprintf(name, sizeof name, "cvt.pack.sat.%s.s32%s", ints[k], k < 2 ? "" : ".b32");
		define(name, k < 2 ? "u32:s32,s32" : "u32:s32,s32,u32", m_packed, 0);
	}
}
