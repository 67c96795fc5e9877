/* SPDX-License-Identifier: Apache-2.0 */
/* Half precision, bfloat16 and tf32: to and from singles with every rounding, and arithmetic that rounds
 * once. Branch-free where it counts, so that the loops of handlers.c become vector code.
 *
 * Thread rule: pure functions. */
#pragma once
#include <math.h>
#include "server/soft/lane_bits.h"

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

/* What has become too large is the largest number. */
static inline uint32_t finite_half(uint32_t h, uint32_t infinity)
{
	return (h & 0x7fff) == infinity ? h - 1 : h;
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
