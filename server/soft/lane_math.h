/* SPDX-License-Identifier: Apache-2.0 */
/* What one lane computes: half-precision conversions, approximate functions, integer oddities. Branch-free
 * where it counts, so that the loops of handlers.c become vector code. PTX says where a fused multiply-add
 * is, so nothing here may be contracted.
 *
 * Thread rule: pure functions. */
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float x)
{
	uint32_t u;
	memcpy(&u, &x, 4);
	return u;
}
static inline float bits_f32(uint32_t u)
{
	float x;
	memcpy(&x, &u, 4);
	return x;
}
static inline uint64_t f64_bits(double x)
{
	uint64_t u;
	memcpy(&u, &x, 8);
	return u;
}
static inline double bits_f64(uint64_t u)
{
	double x;
	memcpy(&x, &u, 8);
	return x;
}

/* ---- integers; results of division by zero are the hardware's ---- */
#define SMALL_DIV(T, C, ONES)                                                                                \
	static inline C div_##T(C a, C b)                                                                    \
	{                                                                                                    \
		C q = (C)((double)a / (double)(b ? b : 1));                                                  \
		return b ? q : (C)(ONES);                                                                    \
	}                                                                                                    \
	static inline C rem_##T(C a, C b)                                                                    \
	{                                                                                                    \
		return b ? (C)(a - div_##T(a, b) * b) : \
				(C)-1; \
	}
SMALL_DIV(u16, uint16_t, -1)
SMALL_DIV(s16, int16_t, -1)
SMALL_DIV(u32, uint32_t, -1)
static inline int32_t div_s32(int32_t a, int32_t b)
{
	int64_t q = (int64_t)((double)a / (double)(b ? b : 1));
	return b ? (int32_t)(uint32_t)q : -1;
}
static inline int32_t rem_s32(int32_t a, int32_t b)
{
	return b ? (int32_t)((uint32_t)a - (uint32_t)div_s32(a, b) * (uint32_t)b) : -1;
}
static inline uint64_t div_u64(uint64_t a, uint64_t b)
{
	return b ? a / b : ~0ull;
}
static inline uint64_t rem_u64(uint64_t a, uint64_t b)
{
	return b ? a % b : ~0ull;
}
static inline int64_t div_s64(int64_t a, int64_t b)
{
	return !b ? -1 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t rem_s64(int64_t a, int64_t b)
{
	return !b ? -1 : b == -1 ? 0 : a % b;
}
static inline uint16_t mulhi_u16(uint16_t a, uint16_t b)
{
	return (uint16_t)((uint32_t)a * b >> 16);
}
static inline int16_t mulhi_s16(int16_t a, int16_t b)
{
	return (int16_t)((int32_t)a * b >> 16);
}
static inline uint32_t mulhi_u32(uint32_t a, uint32_t b)
{
	return (uint32_t)((uint64_t)a * b >> 32);
}
static inline int32_t mulhi_s32(int32_t a, int32_t b)
{
	return (int32_t)((int64_t)a * b >> 32);
}
static inline uint64_t mulhi_u64(uint64_t a, uint64_t b)
{
	return (uint64_t)((unsigned __int128)a * b >> 64);
}
static inline int64_t mulhi_s64(int64_t a, int64_t b)
{
	return (int64_t)((__int128)a * b >> 64);
}
static inline int32_t sat_s32(int64_t x)
{
	return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}
static inline int32_t sext24(uint32_t a)
{
	return (int32_t)(a << 8) >> 8;
}
static inline uint32_t popc(uint64_t x)
{
	x -= x >> 1 & 0x5555555555555555;
	x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
	return (uint32_t)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56);
}
static inline uint32_t clz32(uint32_t x)
{
	return x ? (uint32_t)__builtin_clz(x) : 32;
}
static inline uint32_t clz64(uint64_t x)
{
	return x ? (uint32_t)__builtin_clzll(x) : 64;
}
static inline uint32_t brev32(uint32_t x)
{
	x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
	x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
	x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(x);
}
static inline uint64_t brev64(uint64_t x)
{
	return (uint64_t)brev32((uint32_t)x) << 32 | brev32((uint32_t)(x >> 32));
}
static inline uint32_t bfind_u32(uint32_t x)
{
	return x ? 31 - (uint32_t)__builtin_clz(x) : ~0u;
}
static inline uint32_t bfind_u64(uint64_t x)
{
	return x ? 63 - (uint32_t)__builtin_clzll(x) : ~0u;
}
static inline uint32_t bfind_s32(int32_t x)
{
	return bfind_u32((uint32_t)(x < 0 ? ~x : x));
}
static inline uint32_t bfind_s64(int64_t x)
{
	return bfind_u64((uint64_t)(x < 0 ? ~x : x));
}
/* Position and length count 8 bits where 32 are taken from, all of them where 64 are. */
static inline uint64_t bfe_u64(uint64_t a, uint32_t b, uint32_t c)
{
	uint64_t v = b < 64 ? a >> b : 0;
	return c == 0 ? 0 : c >= 64 ? v : v & ((1ull << c) - 1);
}
static inline uint32_t bfe_u32(uint32_t a, uint32_t b, uint32_t c)
{
	b &= 255, c &= 255;
	uint32_t v = b < 32 ? a >> b : 0;
	return c == 0 ? 0 : c >= 32 ? v : v & ((1u << c) - 1);
}
static inline int64_t bfe_sext(int64_t a, uint32_t b, uint32_t c, uint32_t bits)
{
	if (bits == 32)
		b &= 255, c &= 255;
	if (!c)
		return 0;
	uint64_t end = (uint64_t)b + c;
	uint32_t top = end < bits ? (uint32_t)end - 1 : bits - 1;
	uint64_t sign = 0 - ((uint64_t)a >> top & 1);
	uint64_t v = b < bits ? (uint64_t)a >> b : 0;
	uint32_t have = b < bits ? (end <= bits ? c : bits - b) : 0;
	if (have >= 64)
		return (int64_t)v;
	uint64_t low = (1ull << have) - 1;
	return (int64_t)((v & low) | (sign & ~low));
}
static inline int32_t bfe_s32(int32_t a, uint32_t b, uint32_t c)
{
	return (int32_t)bfe_sext((uint32_t)a, b, c, 32);
}
static inline int64_t bfe_s64(int64_t a, uint32_t b, uint32_t c)
{
	return bfe_sext(a, b, c, 64);
}
static inline uint64_t bfi(uint64_t a, uint64_t b, uint32_t c, uint32_t d, uint32_t bits)
{
	if (bits == 32)
		c &= 255, d &= 255;
	if (c >= bits || !d)
		return b;
	uint64_t mask = (d >= 64 ? ~0ull : (1ull << d) - 1) << c;
	return (b & ~mask) | (a << c & mask);
}
static inline uint32_t bmsk(uint32_t a, uint32_t b)
{
	if (a >= 32)
		return 0;
	return (b >= 32 ? ~0u : (1u << b) - 1) << a;
}
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t c)
{
	uint64_t v = (uint64_t)b << 32 | a;
	uint32_t r = 0;
	for (int i = 0; i < 4; i++) {
		uint32_t s = c >> 4 * i & 15;
		uint32_t x = (uint32_t)(v >> 8 * (s & 7)) & 255;
		x = s & 8 ? (0 - (x >> 7)) & 255 : x;
		r |= x << 8 * i;
	}
	return r;
}
static inline uint32_t prmt_mode(uint32_t a, uint32_t b, uint32_t c, int mode)
{
	static const uint16_t sel[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
		{0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
		{0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
	uint64_t v = (uint64_t)b << 32 | a;
	uint32_t r = 0, s = sel[mode][c & 3];
	for (int i = 0; i < 4; i++)
		r |= ((uint32_t)(v >> 8 * (s >> 4 * i & 7)) & 255) << 8 * i;
	return r;
}

/* ---- half precision ---- */
static inline float h2f(uint32_t h)
{
	uint32_t o = (h & 0x7fff) << 13, e = o & 0x0f800000;
	uint32_t normal = o + 0x38000000;
	uint32_t special = o + 0x70000000;
	uint32_t tiny = f32_bits(bits_f32(o + 0x38800000) - bits_f32(0x38800000));
	uint32_t r = e == 0x0f800000 ? special : e == 0 ? tiny : normal;
	return bits_f32(r | (h & 0x8000) << 16);
}
static inline uint32_t f2h(float x)
{
	uint32_t u = f32_bits(x), s = u >> 16 & 0x8000, a = u & 0x7fffffff;
	uint32_t tiny = f32_bits(bits_f32(a < 0x38800000 ? a : 0) + bits_f32(0x3f000000)) - 0x3f000000;
	uint32_t normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
	uint32_t r = a < 0x38800000 ? tiny : a >= 0x477ff000 ? 0x7c00 : normal;
	return a > 0x7f800000 ? 0x7fff : r | s;
}
/* Towards zero. */
static inline uint32_t f2h_rz(float x)
{
	uint32_t u = f32_bits(x), s = u >> 16 & 0x8000, a = u & 0x7fffffff, r;
	if (a > 0x7f800000)
		return 0x7fff;
	if (a >= 0x47800000)
		r = a == 0x7f800000 ? 0x7c00 : 0x7bff;
	else if (a >= 0x38800000)
		r = (a - 0x38000000) >> 13;
	else
		r = a < 0x33800000 ? 0 : ((a & 0x7fffff) | 0x800000) >> (126 - (a >> 23));
	return r | s;
}
/* Towards minus infinity (down) or plus infinity. */
static inline uint32_t f2h_dir(float x, int down)
{
	uint32_t h = f2h_rz(x);
	if (h2f(h) == x || h == 0x7fff)
		return h;
	return (h >> 15) == (uint32_t)down ? h + 1 : h;
}
/* Rounded so that a second rounding to at most 22 bits gives what one rounding would. */
static inline float round_odd(double d)
{
	float f = (float)d;
	uint32_t u = f32_bits(f);
	double back = f;
	u -= fabs(back) > fabs(d);
	u |= back != d && d == d;
	return bits_f32(u);
}
static inline uint32_t d2h(double d)
{
	return f2h(round_odd(d));
}
static inline float b2f(uint32_t h)
{
	return bits_f32(h << 16);
}
static inline uint32_t f2b(float x)
{
	uint32_t u = f32_bits(x);
	return (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
static inline uint32_t f2b_rz(float x)
{
	uint32_t u = f32_bits(x);
	return (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : u >> 16;
}
static inline uint32_t f2b_dir(float x, int down)
{
	uint32_t h = f2b_rz(x);
	if (b2f(h) == x || h == 0x7fff)
		return h;
	return (h >> 15) == (uint32_t)down ? h + 1 : h;
}
static inline uint32_t sat_f16(uint32_t h)
{
	return (h & 0x7fff) > 0x7c00 || h & 0x8000 ? 0 : h > 0x3c00 ? 0x3c00 : h;
}
/* a * b + c, exact product, the sum rounded to odd, which lets it be rounded once more to what is shorter. */
static inline double fma_odd(float a, float b, float c)
{
	double p = (double)a * b, d = c, s = p + d, v = s - p, e = (p - (s - v)) + (d - v);
	uint64_t u = f64_bits(s);
	int inexact = e != 0 && !(u & 1) && e == e && fabs(s) <= 0x1p1000;
	return bits_f64(inexact ? ((e > 0) == (s > 0) ? u + 1 : u - 1) : u);
}
static inline uint32_t fma_f16(float a, float b, float c)
{
	return d2h(fma_odd(a, b, c));
}
static inline uint32_t fma_bf16(float a, float b, float c)
{
	return f2b(round_odd(fma_odd(a, b, c)));
}
static inline uint32_t relu_f16(uint32_t h)
{
	return (h & 0x7fff) > 0x7c00 ? 0x7fff : h & 0x8000 ? 0 : h;
}
static inline uint32_t relu_bf16(uint32_t h)
{
	return (h & 0x7fff) > 0x7f80 ? 0x7fff : h & 0x8000 ? 0 : h;
}
static inline uint32_t int_to_f16_s(int64_t x)
{
	return x > 70000 ? 0x7c00 : x < -70000 ? 0xfc00 : f2h((float)x);
}
static inline uint32_t int_to_f16_u(uint64_t x)
{
	return x > 70000 ? 0x7c00 : f2h((float)x);
}
static inline float odd_of_s(int64_t x)
{
	uint64_t a = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
	uint64_t low = a & 0xffff;
	double d = (double)(a >> 16) * 65536; /* 48 bits: exact */
	double t = a >> 48 ? bits_f64(f64_bits(d) | (low != 0)) : d + (double)low;
	return round_odd(x < 0 ? -t : t);
}
static inline float odd_of_u(uint64_t a)
{
	double d = (double)(a >> 16) * 65536;
	return round_odd(a >> 48 ? bits_f64(f64_bits(d) | ((a & 0xffff) != 0)) : (double)a);
}
static inline uint32_t int_to_bf16_s(int64_t x)
{
	return f2b(odd_of_s(x));
}
static inline uint32_t int_to_bf16_u(uint64_t x)
{
	return f2b(odd_of_u(x));
}
/* A NaN is 0x7fffe000 where the GPU has an instruction, and keeps its upper bits with .rna, which is
 * additions there: one with none of these is infinite. */
static inline uint32_t even_tf32(float x)
{
	uint32_t u = f32_bits(x);
	return (u & 0x7f800000) == 0x7f800000 ? ((u & 0x7fffff) ? 0x7fffe000 : u)
					      : (u + 0xfff + (u >> 13 & 1)) & ~0x1fffu;
}
static inline uint32_t down_tf32(float x) /* towards zero */
{
	uint32_t u = f32_bits(x);
	return (u & 0x7fffffff) > 0x7f800000 ? 0x7fffe000 : u & ~0x1fffu;
}
static inline uint32_t finite_tf32(uint32_t u)
{
	return (u & 0x7fffffff) == 0x7f800000 ? u - 0x2000 : u;
}
static inline uint32_t finite_rna_tf32(uint32_t u) /* what is no number is not told apart */
{
	return (u & 0x7fffffff) >= 0x7f800000 ? u - 0x2000 : u;
}
static inline uint32_t relu_tf32(uint32_t u)
{
	return (u & 0x7fffffff) > 0x7f800000 ? u : u >> 31 ? 0 : u;
}
static inline uint32_t to_tf32(float x) /* nearest, ties away */
{
	uint32_t u = f32_bits(x);
	return ((u & 0x7f800000) == 0x7f800000 ? u : u + 0x1000) & ~0x1fffu;
}

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
/* What has become too large is the largest number. */
static inline uint32_t finite_half(uint32_t h, uint32_t infinity)
{
	return (h & 0x7fff) == infinity ? h - 1 : h;
}
static inline uint32_t clamped(int32_t x, int32_t lo, int32_t hi)
{
	return (uint32_t)((x < lo ? lo : x > hi ? hi : x) & (hi - lo));
}
/* The sign of a result that is no NaN: that of b times that of c. */
static inline uint32_t signed_half(uint32_t a, uint32_t b, uint32_t c, uint32_t infinity)
{
	return (a & 0x7fff) > infinity ? 0x7fff : (a & 0x7fff) | ((b ^ c) & 0x8000);
}

/* A NaN becomes the one NaN of the hardware, as in arithmetic. */
static inline uint32_t neg_half(uint32_t a, uint32_t infinity)
{
	return (a & 0x7fff) > infinity ? 0x7fff : a ^ 0x8000;
}

/* ---- single precision ---- */
static inline float ftz(float x)
{
	return bits_f32(f32_bits(x) & 0x7f800000 ? f32_bits(x) : f32_bits(x) & 0x80000000);
}
static inline float rint_f32(float a)
{
	float m = copysignf(0x1p23f, a), r = (a + m) - m;
	return fabsf(a) < 0x1p23f ? copysignf(r, a) : a;
}
static inline float trunc_f32(float a)
{
	float r = (float)(int32_t)(fabsf(a) < 0x1p23f ? a : 0);
	return fabsf(a) < 0x1p23f ? copysignf(r, a) : a;
}
static inline float floor_f32(float a)
{
	float r = trunc_f32(a);
	return r > a ? r - 1 : r;
}
static inline float ceil_f32(float a)
{
	float r = trunc_f32(a);
	return r < a ? copysignf(r + 1, a) : r;
}
static inline double rint_f64(double a)
{
	double m = copysign(0x1p52, a), r = (a + m) - m;
	return fabs(a) < 0x1p52 ? copysign(r, a) : a;
}
static inline double trunc_f64(double a)
{
	double r = (double)(int64_t)(fabs(a) < 0x1p52 ? a : 0);
	return fabs(a) < 0x1p52 ? copysign(r, a) : a;
}
static inline double floor_f64(double a)
{
	double r = trunc_f64(a);
	return r > a ? r - 1 : r;
}
static inline double ceil_f64(double a)
{
	double r = trunc_f64(a);
	return r < a ? copysign(r + 1, a) : r;
}
/* A NaN loses against a number; -0 is below +0. */
static inline float fmin_f32(float a, float b)
{
	float r = a < b ? a : b < a ? b : bits_f32(f32_bits(a) | f32_bits(b));
	return a != a ? b : b != b ? a : r;
}
static inline float fmax_f32(float a, float b)
{
	float r = a > b ? a : b > a ? b : bits_f32(f32_bits(a) & f32_bits(b));
	return a != a ? b : b != b ? a : r;
}
static inline double fmin_f64(double a, double b)
{
	double r = a < b ? a : b < a ? b : bits_f64(f64_bits(a) | f64_bits(b));
	return a != a ? b : b != b ? a : r;
}
static inline double fmax_f64(double a, double b)
{
	double r = a > b ? a : b > a ? b : bits_f64(f64_bits(a) & f64_bits(b));
	return a != a ? b : b != b ? a : r;
}
/* 2^x: x = n + f with f in [-1/2, 1/2], minimax polynomial of 2^f, scaled in two steps so that subnormals
 * come out. */
static inline float ex2(float x)
{
	float t = x < -160 ? -160 : x > 160 ? 160 : x;
	t = x != x ? 0 : t;
	float m = (t + 12582912.0f) - 12582912.0f, f = t - m;
	int32_t n = (int32_t)m, h = n >> 1;
	float p = 1.535336188319500e-4f;
	p = p * f + 1.339887440266574e-3f;
	p = p * f + 9.618437357674640e-3f;
	p = p * f + 5.550332471162809e-2f;
	p = p * f + 2.402264791363012e-1f;
	p = p * f + 6.931472028550421e-1f;
	p = p * f + 1.0f;
	float r = p * bits_f32((uint32_t)(h + 127) << 23) * bits_f32((uint32_t)(n - h + 127) << 23);
	return x != x ? x : r;
}
/* log2 by the series of atanh around 1, the mantissa in [sqrt(1/2), sqrt(2)). */
static inline float lg2(float x)
{
	float y = x < 0x1p-126f ? x * 0x1p24f : x;
	uint32_t u = f32_bits(y);
	int32_t e = (int32_t)(u - 0x3f3504f3) >> 23;
	float m = bits_f32(u - ((uint32_t)e << 23));
	float s = (m - 1) / (m + 1), z = s * s;
	float p = 0.3205989f;
	p = p * z + 0.4121985f;
	p = p * z + 0.5770780f;
	p = p * z + 0.9617967f;
	p = p * z + 2.8853900f;
	float r = (float)e - (x < 0x1p-126f ? 24.0f : 0.0f) + s * p;
	r = x == 0 ? -INFINITY : r;
	r = x == INFINITY ? x : r;
	return x < 0 || x != x ? NAN : r;
}
/* Sine and cosine as the hardware has them: the angle in turns, cut off to a single, so that large angles
 * lose their meaning in the same way; then a sine of quarter turns and a rest of at most an eighth. */
static inline float sin_quarter(float x, int32_t add)
{
	float t = (float)bits_f64(f64_bits((double)x * 0.15915493667125701904) & ~0x1fffffffull);
	t = fabsf(t) < 0x1p24f ? t - trunc_f32(t) : 0;
	float k = rint_f32(t * 4), f = (t - k * 0.25f) * 6.28318530717958647693f, z = f * f;
	int32_t q = (int32_t)k + add;
	float s = f + f * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
	float c = 1 - 0.5f * z +
		  z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
	float v = q & 1 ? c : s;
	v = q & 2 ? -v : v;
	return fabs(x) < INFINITY ? v : NAN;
}
static inline float sin_lane(float x)
{
	return fabsf(x) < 0x1p-16f ? x : sin_quarter(x, 0);
}
static inline float cos_lane(float x)
{
	return sin_quarter(x, 1) + 0.0f;
}
/* div.approx: by way of the reciprocal, which is 0 where it would be subnormal. */
static inline float div_approx(float a, float b)
{
	return fabsf(b) > 0x1p126f ? a * copysignf(0, b) : a / b;
}
/* rcp.approx.ftz.f64: the upper half of the result, its lower half zero. */
static inline double rcp_ftz(double a)
{
	double x = bits_f64(f64_bits(a) & ~0xffffffffull);
	x = fabs(x) < 0x1p-1022 ? copysign(0, x) : x;
	double r = 1 / x;
	r = fabs(r) < 0x1p-1022 ? copysign(0, r) : r;
	return bits_f64(f64_bits(r) & ~0xffffffffull);
}

static inline double rsqrt_ftz(double a)
{
	double x = bits_f64(f64_bits(a) & ~0xffffffffull);
	x = fabs(x) < 0x1p-1022 ? copysign(0, x) : x;
	return bits_f64(f64_bits(1 / __builtin_sqrt(x)) & ~0xffffffffull);
}

/* ---- to integers: clamped; a NaN gives 0, or the highest bit where one side has 64 bits ---- */
#define TO_INT(D, C, F, FT, LO, HI, LOF, HIF, NANV)                                                          \
	static inline C to_##D##_##F(FT a)                                                                   \
	{                                                                                                    \
		FT t = a >= LOF && a < HIF ? a : 0;                                                          \
		C r = (C)t;                                                                                  \
		r = a >= HIF ? (C)(HI) : r;                                                                  \
		r = a < LOF ? (C)(LO) : r;                                                                   \
		return a != a ? (C)(NANV) : r;                                                               \
	}
TO_INT(u8, uint32_t, f32, float, 0, 255, 0.0f, 256.0f, 0)
TO_INT(s8, int32_t, f32, float, -128, 127, -128.0f, 128.0f, 0)
TO_INT(u16, uint32_t, f32, float, 0, 65535, 0.0f, 65536.0f, 0)
TO_INT(s16, int32_t, f32, float, -32768, 32767, -32768.0f, 32768.0f, 0)
TO_INT(u32, uint32_t, f32, float, 0, UINT32_MAX, 0.0f, 0x1p32f, 0)
TO_INT(s32, int32_t, f32, float, INT32_MIN, INT32_MAX, -0x1p31f, 0x1p31f, 0)
TO_INT(u64, uint64_t, f32, float, 0, UINT64_MAX, 0.0f, 0x1p64f, 1ull << 63)
TO_INT(s64, int64_t, f32, float, INT64_MIN, INT64_MAX, -0x1p63f, 0x1p63f, INT64_MIN)
TO_INT(u8, uint32_t, f64, double, 0, 255, 0.0, 256.0, 1u << 7)
TO_INT(s8, int32_t, f64, double, -128, 127, -128.0, 128.0, INT8_MIN)
TO_INT(u16, uint32_t, f64, double, 0, 65535, 0.0, 65536.0, 1u << 15)
TO_INT(s16, int32_t, f64, double, -32768, 32767, -32768.0, 32768.0, INT16_MIN)
TO_INT(u32, uint32_t, f64, double, 0, UINT32_MAX, 0.0, 0x1p32, 1u << 31)
TO_INT(s32, int32_t, f64, double, INT32_MIN, INT32_MAX, -0x1p31, 0x1p31, INT32_MIN)
TO_INT(u64, uint64_t, f64, double, 0, UINT64_MAX, 0.0, 0x1p64, 1ull << 63)
TO_INT(s64, int64_t, f64, double, INT64_MIN, INT64_MAX, -0x1p63, 0x1p63, INT64_MIN)
#undef TO_INT
#define CLAMP(D, C, LO, HI)                                                                                  \
	static inline C clamp_##D##_s(int64_t a)                                                             \
	{                                                                                                    \
		return (C)(a < (int64_t)(LO) ? (int64_t)(LO) : a > (int64_t)(HI) ? (int64_t)(HI) : a);       \
	}                                                                                                    \
	static inline C clamp_##D##_u(uint64_t a)                                                            \
	{                                                                                                    \
		return (C)(a > (uint64_t)(HI) ? (uint64_t)(HI) : a);                                         \
	}
CLAMP(u8, uint32_t, 0, 255)
CLAMP(s8, int32_t, -128, 127)
CLAMP(u16, uint32_t, 0, 65535)
CLAMP(s16, int32_t, -32768, 32767)
CLAMP(u32, uint32_t, 0, UINT32_MAX)
CLAMP(s32, int32_t, INT32_MIN, INT32_MAX)
CLAMP(s64, int64_t, INT64_MIN, INT64_MAX)
#undef CLAMP
static inline uint64_t clamp_u64_s(int64_t a)
{
	return a < 0 ? 0 : (uint64_t)a;
}
static inline uint64_t clamp_u64_u(uint64_t a)
{
	return a;
}
