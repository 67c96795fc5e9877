/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of eight, six and four bits, to and from singles.
 *
 * Thread rule: pure functions. */
#pragma once
#include <math.h>
#include "server/soft/lane_bits.h"

/* Eight bits: sign, exponent with `bias`, `mant` bits; what is too large becomes `most`, a NaN 0x7f. */
static inline uint32_t f2q(float x, int mant, int bias, uint32_t most)
{
	uint32_t u = f32_bits(x), s = u >> 24 & 0x80, a = u & 0x7fffffff;
	if (a > 0x7f800000)
		return 0x7f;
	float f = bits_f32(a), unit = bits_f32((uint32_t)(127 + bias - 1 + mant) << 23);
	uint32_t drop = 23 - (uint32_t)mant;
	uint32_t tiny = (uint32_t)((f * unit + 0x1p23f) - 0x1p23f);
	uint32_t normal =
		((a + (1u << (drop - 1)) - 1 + (a >> drop & 1)) >> drop) - ((uint32_t)(127 - bias) << mant);
	uint32_t r = a < (uint32_t)(128 - bias) << 23 ? tiny : normal;
	return s | (a >= 0x7f800000 || r > most ? most : r);
}
static inline float q2f(uint32_t q, int mant, int bias, int has_inf)
{
	uint32_t m = q & ((1u << mant) - 1), e = q >> mant & ((1u << (7 - mant)) - 1),
		 top = (1u << (7 - mant)) - 1;
	float tiny = (float)m * bits_f32((uint32_t)(127 + 1 - bias - mant) << 23);
	float v = e ? bits_f32((e + 127 - (uint32_t)bias) << 23 | m << (23 - mant)) : tiny;
	if (e == top && has_inf)
		v = m ? NAN : INFINITY;
	if (!has_inf && (q & 0x7f) == 0x7f)
		v = NAN;
	return q & 0x80 ? -v : v;
}
static inline uint32_t f2e4m3(float x)
{
	return f2q(x, 3, 7, 0x7e);
}
static inline uint32_t f2e5m2(float x)
{
	return f2q(x, 2, 15, 0x7b);
}
static inline float e4m32f(uint32_t q)
{
	return q2f(q, 3, 7, 0);
}
static inline float e5m22f(uint32_t q)
{
	return q2f(q, 2, 15, 1);
}

/* Four and six bits: no infinity and no NaN, which becomes the largest number. */
static inline uint32_t f2mini(float x, int mant, int bias, uint32_t most, int sign)
{
	uint32_t r = f2q(x, mant, bias, most);
	return x != x ? most : (r & 0x7f) | r >> 7 << sign;
}
static inline float mini2f(uint32_t q, int mant, int bias, int sign)
{
	return q2f((q & ((1u << sign) - 1)) | (q >> sign & 1) << 7, mant, bias, 0);
}
static inline uint32_t f2e2m3(float x)
{
	return f2mini(x, 3, 1, 0x1f, 5);
}
static inline uint32_t f2e3m2(float x)
{
	return f2mini(x, 2, 3, 0x1f, 5);
}
static inline uint32_t f2e2m1(float x)
{
	return f2mini(x, 1, 1, 7, 3);
}
static inline float e2m32f(uint32_t q)
{
	return mini2f(q, 3, 1, 5);
}
static inline float e3m22f(uint32_t q)
{
	return mini2f(q, 2, 3, 5);
}
static inline float e2m12f(uint32_t q)
{
	return mini2f(q, 1, 1, 3);
}
/* The exponent of |x| alone, rounded down or up. */
static inline uint32_t f2ue8m0(float x, int up, int finite)
{
	uint32_t a = f32_bits(x) & 0x7fffffff, e = a >> 23;
	if (a > 0x7f800000)
		return 0xff;
	e += up && a > 0x00400000 && a < 0x7f800000 && (a & 0x7fffff);
	return finite && e == 0xff ? 0xfe : e;
}
static inline uint32_t ue8m02b(uint32_t e)
{
	return e == 0xff ? 0x7fff : e == 0 ? 0x40 : e << 7;
}
