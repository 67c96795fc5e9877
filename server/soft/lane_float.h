/* SPDX-License-Identifier: Apache-2.0 */
/* Singles and doubles: rounding to integral values, extremes, the approximate functions. Branch-free where it
 * counts, so that the loops of handlers.c become vector code. PTX says where a fused multiply-add is, so
 * nothing here may be contracted.
 *
 * Thread rule: pure functions. */
#pragma once
#include <math.h>
#include "server/soft/lane_bits.h"

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
