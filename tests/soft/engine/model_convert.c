/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar models of cvt: every pair of types, rounding, saturation and flushing.
 *
 * Thread rule: one thread (the rounding mode). */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/soft/engine/check_insn.h"
#include "tests/soft/engine/model_round.h"

typedef __int128 wide;

static void parse(const struct test *t, char *to, char *from)
{
	const char *dot = strrchr(t->mnemonic, '.');
	snprintf(from, 8, "%s", dot + 1);
	const char *p = dot - 1;
	while (*p != '.')
		p--;
	snprintf(to, 8, "%.*s", (int)(dot - p - 1), p + 1);
}

static bool is_int(const char *t)
{
	return *t == 'u' || *t == 's';
}

static wide int_value(const char *ty, uint64_t v)
{
	unsigned b = type_bits(ty);
	if (b < 64)
		v &= (1ull << b) - 1;
	return *ty == 's' && v >> (b - 1) & 1 ? (wide)v - ((wide)1 << b) : (wide)v;
}

static void limits(const char *ty, wide *lo, wide *hi)
{
	unsigned b = type_bits(ty);
	*lo = *ty == 's' ? -((wide)1 << (b - 1)) : 0;
	*hi = *ty == 's' ? ((wide)1 << (b - 1)) - 1 : ((wide)1 << b) - 1;
}

static double float_value(const char *ty, uint64_t v)
{
	if (!strcmp(ty, "f32")) {
		uint32_t u = (uint32_t)v;
		float f;
		memcpy(&f, &u, 4);
		return f;
	}
	if (!strcmp(ty, "f64")) {
		double d;
		memcpy(&d, &v, 8);
		return d;
	}
	return (double)half_value(*ty == 'f', v & 0xffff);
}

static double flush(double x)
{
	return fabs(x) < 1.17549435e-38 ? copysign(0, x) : x;
}

static double whole(const struct test *t, double x)
{
	return holds(t, ".rni")   ? nearbyint(x)
	       : holds(t, ".rzi") ? trunc(x)
	       : holds(t, ".rmi") ? floor(x)
	       : holds(t, ".rpi") ? ceil(x)
				  : x;
}

static uint64_t to_float(const struct test *t, const char *ty, __float128 v, bool minus_zero)
{
	char how = holds(t, ".rz.") ? 'z' : holds(t, ".rm.") ? 'm' : holds(t, ".rp.") ? 'p' : 'n';
	if (!strcmp(ty, "f16") || !strcmp(ty, "bf16")) {
		uint64_t h = v == 0 ? (minus_zero ? 0x8000 : 0) : half_round(*ty == 'f', v, how);
		if (holds(t, ".sat"))
			h = (h & 0x7fff) > (*ty == 'f' ? 0x7c00u : 0x7f80u) || h & 0x8000 ? 0
			    : h > (*ty == 'f' ? 0x3c00u : 0x3f80u) ? (*ty == 'f' ? 0x3c00 : 0x3f80)
								   : h;
		return h;
	}
	fesetround(how == 'z'   ? FE_TOWARDZERO
		   : how == 'm' ? FE_DOWNWARD
		   : how == 'p' ? FE_UPWARD
				: FE_TONEAREST);
	uint64_t r = 0;
	if (!strcmp(ty, "f32")) {
		volatile float f = (float)v;
		if (v == 0)
			f = minus_zero ? -0.0f : 0.0f;
		fesetround(FE_TONEAREST);
		if (holds(t, ".ftz"))
			f = (float)flush(f);
		if (holds(t, ".sat"))
			f = isnan(f) || f <= 0 ? 0 : f > 1 ? 1 : f;
		float g = f;
		memcpy(&r, &g, 4);
		return isnan(g) ? 0x7fffffff : r;
	}
	volatile double d = (double)v;
	if (v == 0)
		d = minus_zero ? -0.0 : 0.0;
	fesetround(FE_TONEAREST);
	if (holds(t, ".sat"))
		d = isnan(d) || d <= 0 ? 0 : d > 1 ? 1 : d;
	double g = d;
	memcpy(&r, &g, 8);
	return r;
}

static uint64_t m_cvt(const struct test *t, const uint64_t *in)
{
	char to[8], from[8];
	parse(t, to, from);
	wide lo = 0, hi = 0;
	if (is_int(to))
		limits(to, &lo, &hi);
	if (is_int(from)) {
		wide v = int_value(from, in[0]);
		if (!is_int(to))
			return to_float(t, to, (__float128)v, false);
		if (holds(t, ".sat"))
			v = v < lo ? lo : v > hi ? hi : v;
		uint64_t r = (uint64_t)int_value(to, (uint64_t)v);
		return r; /* extended to the register */
	}
	double x = float_value(from, in[0]);
	if (holds(t, ".ftz") && !strcmp(from, "f32"))
		x = flush(x);
	x = whole(t, x);
	if (!is_int(to))
		return to_float(t, to, x, signbit(x));
	if (isnan(x))
		return strcmp(from, "f64") && type_bits(to) < 64 ? 0
		       : *to == 's'                              ? (uint64_t)lo
								 : 1ull << (type_bits(to) - 1);
	__float128 q = x;
	wide v = q < (__float128)lo ? lo : q > (__float128)hi ? hi : (wide)q;
	return (uint64_t)v;
}

static uint64_t m_pair(const struct test *t, const uint64_t *in)
{
	bool f16 = !holds(t, "bf16");
	uint64_t r = 0;
	for (int k = 0; k < 2; k++) {
		double x = float_value("f32", in[1 - k]);
		uint64_t h =
			x == 0 ? (signbit(x) ? 0x8000 : 0) : half_round(f16, x, holds(t, ".rz") ? 'z' : 'n');
		if (holds(t, ".relu"))
			h = (h & 0x7fff) > (f16 ? 0x7c00u : 0x7f80u) ? h : h & 0x8000 ? 0 : h;
		r |= h << 16 * k;
	}
	return r;
}

/* Eight-bit floats by search: the nearest of all values, ties to the even code. */
static double quarter_value(bool e4m3, unsigned q)
{
	int mant = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
	unsigned e = q >> mant & (e4m3 ? 15 : 31), m = q & ((1u << mant) - 1);
	if (e4m3 ? (q & 0x7f) == 0x7f : e == 31)
		return m && !(e4m3 && m != 7) ? NAN : q & 0x80 ? -INFINITY : INFINITY;
	double v = e ? ldexp(1 + (double)m / (1 << mant), (int)e - bias) : ldexp(m, 1 - bias - mant);
	return q & 0x80 ? -v : v;
}

static unsigned quarter_round(bool e4m3, double x)
{
	if (isnan(x))
		return 0x7f;
	unsigned most = e4m3 ? 0x7e : 0x7b, best = 0;
	if (fabs(x) > quarter_value(e4m3, most))
		return most | (signbit(x) ? 0x80 : 0);
	for (unsigned q = 1; q <= most; q++) {
		double old = fabs(fabs(x) - quarter_value(e4m3, best)),
		       now = fabs(fabs(x) - quarter_value(e4m3, q));
		if (now < old || (now == old && !(q & 1)))
			best = q;
	}
	return best | (signbit(x) ? 0x80 : 0);
}

static uint64_t m_quarter(const struct test *t, const uint64_t *in)
{
	bool e4m3 = holds(t, "e4m3"), relu = holds(t, ".relu");
	uint64_t r = 0;
	for (int k = 0; k < 2; k++) {
		if (starts(t, "cvt.rn.f16x2") || starts(t, "cvt.rn.relu.f16x2")) {
			uint64_t h = half_round(true, quarter_value(e4m3, in[0] >> 8 * k & 255), 'n');
			if (!(in[0] >> 8 * k & 0x7f))
				h = (in[0] >> 8 * k & 0x80) << 8;
			if (relu && h >> 15 && (h & 0x7fff) <= 0x7c00)
				h = 0;
			r |= h << 16 * k;
			continue;
		}
		double x = holds(t, ".f32") ? float_value("f32", in[1 - k])
					    : (double)half_value(true, in[0] >> 16 * k & 0xffff);
		if (holds(t, ".f16x2") && !(in[0] >> 16 * k & 0x7fff))
			x = in[0] >> 16 * k & 0x8000 ? -0.0 : 0.0;
		if (relu && (x < 0 || x == 0))
			x = 0;
		r |= (uint64_t)quarter_round(e4m3, x) << 8 * k;
	}
	return r;
}

static const char *reg(const char *ty)
{
	return type_bits(ty) == 8 ? "u16" : ty;
}

static void one(const char *mods, const char *to, const char *from)
{
	char name[96], types[48];
	snprintf(name, sizeof name, "cvt%s.%s.%s", mods, to, from);
	snprintf(types, sizeof types, "%s:%s", type_bits(to) == 8 ? (*to == 's' ? "s16" : "u16") : to,
		reg(from));
	define(name, types, m_cvt, 0);
}

/* Saturation is allowed where values can be out of range. */
static bool narrows(const char *to, const char *from)
{
	wide lo, hi, from_lo, from_hi;
	limits(to, &lo, &hi);
	limits(from, &from_lo, &from_hi);
	return from_lo < lo || from_hi > hi;
}

void define_convert(void)
{
	static const char *const ints[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"},
				 *const floats[] = {"f16", "f32", "f64", "bf16"};
	static const char *const whole_mods[] = {".rni", ".rzi", ".rmi", ".rpi"}, *const rounds[] = {".rn",
											  ".rz", ".rm",
											  ".rp"};
	for (int a = 0; a < 8; a++)
		for (int b = 0; b < 8; b++) {
			if (a != b)
				one("", ints[a], ints[b]);
			if (narrows(ints[a], ints[b]))
				one(".sat", ints[a], ints[b]);
		}
	for (int a = 0; a < 8; a++)
		for (int b = 0; b < 4; b++)
			for (int k = 0; k < 4; k++) {
				if (b == 3 && type_bits(ints[a]) == 8)
					continue; /* PTX has none */
				one(whole_mods[k], ints[a], floats[b]);
				if (b == 1 && k < 2)
					one(k ? ".rzi.ftz" : ".rni.ftz", ints[a], floats[b]);
				if (k == 0 || b == 1 || b == 2)
					one(rounds[k], floats[b], ints[a]);
			}
	for (int k = 0; k < 4; k++) {
		one(whole_mods[k], "f32", "f32");
		one(whole_mods[k], "f64", "f64");
		one(whole_mods[k], "f16", "f16");
		one(rounds[k], "f32", "f64");
	}
	one(".rni.ftz", "f32", "f32");
	one(".rzi.sat", "f32", "f32");
	one(".sat", "f32", "f32");
	one(".ftz", "f32", "f32");
	one("", "f64", "f32");
	one(".ftz", "f64", "f32");
	one(".rn.ftz", "f32", "f64");
	one(".rn.sat", "f32", "f64");
	one("", "f32", "f16");
	one(".ftz", "f32", "f16");
	one("", "f64", "f16");
	one("", "f32", "bf16");
	one(".rn", "f16", "f32");
	one(".rz", "f16", "f32");
	one(".rn.sat", "f16", "f32");
	one(".rn", "f16", "f64");
	one(".rn", "bf16", "f32");
	one(".rz", "bf16", "f32");
	one(".rn", "bf16", "f64");
	one(".rm", "bf16", "f32");
	one(".rp", "bf16", "f32");
	for (int k = 1; k < 4; k++)
		for (int a = 2; a < 8; a++) {
			one(rounds[k], "f16", ints[a]);
			one(rounds[k], "bf16", ints[a]);
		}
	for (int k = 1; k < 4; k++) {
		one(rounds[k], "f16", "f64");
		one(rounds[k], "bf16", "f64");
	}
	define("cvt.rn.f16x2.f32", "f16x2:f32,f32", m_pair, 0);
	define("cvt.rz.f16x2.f32", "f16x2:f32,f32", m_pair, 0);
	define("cvt.rn.bf16x2.f32", "bf16x2:f32,f32", m_pair, 0);
	define("cvt.rz.bf16x2.f32", "bf16x2:f32,f32", m_pair, 0);
	define("cvt.rn.relu.f16x2.f32", "f16x2:f32,f32", m_pair, 0);
	define("cvt.rn.relu.bf16x2.f32", "bf16x2:f32,f32", m_pair, 0);
	static const char *const quarters[] = {"e4m3x2", "e5m2x2"};
	for (int k = 0; k < 4; k++) {
		char name[64];
		const char *relu = k & 1 ? ".relu" : "", *q = quarters[k / 2];
		snprintf(name, sizeof name, "cvt.rn.satfinite%s.%s.f32", relu, q);
		define(name, "u16:f32,f32", m_quarter, 0);
		snprintf(name, sizeof name, "cvt.rn.satfinite%s.%s.f16x2", relu, q);
		define(name, "u16:f16x2", m_quarter, 0);
		snprintf(name, sizeof name, "cvt.rn%s.f16x2.%s", relu, q);
		define(name, "f16x2:u16", m_quarter, 0);
	}
}
