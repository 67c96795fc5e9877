/* SPDX-License-Identifier: Apache-2.0 */
/* Video arithmetic: on one part of each operand, or on pairs and fours of lanes inside of 32 bits.
 *
 * Thread rule: a handler touches only its warp. */
#include "server/soft/exec_video.h"
#include "server/soft/exec.h"

/* Part `at` of v, which has parts of that many bits. */
static int64_t part(uint64_t v, unsigned at, unsigned bits, bool sign)
{
	uint64_t x = v >> at * bits & ((1ull << bits) - 1);
	return sign ? (int64_t)(x << (64 - bits)) >> (64 - bits) : (int64_t)x;
}

static bool holds(unsigned compare, int64_t a, int64_t b)
{
	switch (compare) {
	case VIDEO_EQ: return a == b;
	case VIDEO_NE: return a != b;
	case VIDEO_LT: return a < b;
	case VIDEO_LE: return a <= b;
	case VIDEO_GT: return a > b;
	default: return a >= b;
	}
}

typedef __int128 wide; /* a shift to the left needs 65 bits */

static wide saturated(wide v, unsigned bits, bool sign)
{
	int64_t lo = sign ? -(1ll << (bits - 1)) : 0, hi = sign ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;
	return v < lo ? lo : v > hi ? hi : v;
}

static wide compute(const struct video_op *x, int64_t a, int64_t b)
{
	int64_t n = x->wrap ? b & 31 : b > 32 ? 32 : b;
	switch (x->op) {
	case VIDEO_ADD: return a + b;
	case VIDEO_SUB: return a - b;
	case VIDEO_AVRG: return (a + b + (a + b >= 0)) >> 1;
	case VIDEO_ABSDIFF: return a > b ? a - b : b - a;
	case VIDEO_MIN: return a < b ? a : b;
	case VIDEO_MAX: return a > b ? a : b;
	case VIDEO_SHL: return (wide)a * (1ll << n);
	case VIDEO_SHR: return a >> n;
	default: return holds(x->compare, a, b);
	}
}

/* a * b + c, exact, then a part of it. */
static int64_t multiply_add(const struct video_op *x, int64_t a, int64_t b, uint32_t c)
{
	bool sign = x->a_signed || x->b_signed || x->minus_product || x->minus_c;
	wide sum = (wide)a * b;
	uint32_t addend = x->minus_c && !x->plus_one && !x->minus_product ? ~c : c;
	sum = x->minus_product && !x->plus_one ? ~sum : sum;
	sum += sign ? (int32_t)addend : (int64_t)addend;
	sum += x->plus_one || x->minus_product || x->minus_c;
	sum >>= x->shift;
	if (!x->saturate)
		return (int64_t)sum;
	wide lo = sign ? INT32_MIN : 0, hi = sign ? INT32_MAX : (int64_t)UINT32_MAX;
	return (int64_t)(sum < lo ? lo : sum > hi ? hi : sum);
}

static uint32_t second(const struct video_op *x, uint32_t v, uint32_t c)
{
	bool less = x->d_signed ? (int32_t)v < (int32_t)c : v < c;
	uint32_t mask = x->bits == 32 ? ~0u : ((1u << x->bits) - 1) << x->mask * x->bits;
	switch (x->second) {
	case VIDEO_PLUS: return v + c;
	case VIDEO_LEAST: return less ? v : c;
	case VIDEO_MOST: return less ? c : v;
	case VIDEO_MERGE: return (c & ~mask) | (v << x->mask * x->bits & mask);
	default: return v;
	}
}

static uint32_t scalar(const struct video_op *x, uint32_t a, uint32_t b, uint32_t c)
{
	int64_t p = part(a, x->a_at[0], x->a_bits, x->a_signed),
		q = part(b, x->b_at[0], x->b_bits, x->b_signed);
	wide v = x->op == VIDEO_MAD ? multiply_add(x, p, q, c) : compute(x, p, q);
	if (x->op == VIDEO_MAD)
		return (uint32_t)v;
	if (x->saturate)
		v = saturated(v, x->bits, x->d_signed);
	return second(x, (uint32_t)v, c);
}

static uint32_t packed(const struct video_op *x, uint32_t a, uint32_t b, uint32_t c)
{
	uint64_t both = a | (uint64_t)b << 32;
	uint32_t r = x->second == VIDEO_PLUS ? c : 0, lane = (1u << x->bits) - 1;
	for (unsigned i = 0; i < x->lanes; i++) {
		wide v = compute(x, part(both, x->a_at[i], x->bits, x->a_signed),
			part(both, x->b_at[i], x->bits, x->b_signed));
		if (x->saturate)
			v = saturated(v, x->bits, x->d_signed);
		bool written = x->mask >> i & 1;
		if (x->second == VIDEO_PLUS)
			r += written ? (uint32_t)v : 0;
		else
			r |= ((written ? (uint32_t)v : c >> i * x->bits) & lane) << i * x->bits;
	}
	return r;
}

/* d = a op b, then with c */
const struct op *x_video(struct warp *w, const struct op *o)
{
	const struct video_op *x = o->p;
	FOR_LANES(w, l)
	{
		uint32_t a = REG(w, uint32_t, o->a)[l], b = REG(w, uint32_t, o->b)[l],
			 c = o->c == UINT32_MAX ? 0 : REG(w, uint32_t, o->c)[l];
		REG(w, uint32_t, o->d)[l] = x->lanes == 1 ? scalar(x, a, b, c) : packed(x, a, b, c);
	}
	return o + 1;
}
