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

/* a * b + c in 64 bits, then a part of it. */
static uint32_t multiply_add(const struct video_op *x, int64_t a, int64_t b, uint32_t c)
{
	bool sign = x->a_signed || x->b_signed || x->minus_product || x->minus_c;
	int64_t sum = a * b;
	uint32_t addend = x->minus_c && !x->plus_one && !x->minus_product ? ~c : c;
	sum = x->minus_product && !x->plus_one ? ~sum : sum;
	sum += (int32_t)addend;
	sum += x->plus_one || x->minus_product || x->minus_c;
	sum = sign ? sum >> x->shift : (int64_t)((uint64_t)sum >> x->shift);
	return (uint32_t)(x->saturate ? saturated(sum, 32, sign) : sum);
}

/* .sat of a scalar result. Its bounds are those that the GPU's assembler compares with, not PTX's: a sum
 * above 32 bits without a sign wraps, what is below a part's range becomes its largest number, and shifts go
 * by 34 bits. */
static int64_t bounded(const struct video_op *x, int64_t v)
{
	if (x->op == VIDEO_SHL || x->op == VIDEO_SHR)
		return (int64_t)saturated((int64_t)((uint64_t)v << 30) >> 30, 32, x->d_signed);
	int64_t most = (1ll << (x->bits - x->d_signed)) - 1;
	if (x->bits < 32)
		return v < 0 || v > most ? most : v;
	return x->d_signed ? (int64_t)saturated(v, 32, true) : v < 0 ? 0 : v;
}

/* What follows, which compares in 64 bits. */
static uint32_t second(const struct video_op *x, int64_t v, uint32_t c)
{
	bool sum = x->op == VIDEO_ADD || x->op == VIDEO_SUB,
	     shift = x->op == VIDEO_SHL || x->op == VIDEO_SHR;
	int64_t with = x->d_signed ? (int32_t)c : (int64_t)c, most = INT64_MIN;
	if (sum || (shift && x->saturate))
		v = (int32_t)v;
	/* without a sign: the same after both have moved by half of the range */
	int64_t p = x->d_signed ? v : v ^ most, q = x->d_signed ? with : with ^ most;
	uint32_t mask = x->bits == 32 ? ~0u : ((1u << x->bits) - 1) << x->mask * x->bits;
	switch (x->second) {
	case VIDEO_PLUS: return (uint32_t)v + c;
	case VIDEO_LEAST: return p < q ? (uint32_t)v : c;
	case VIDEO_MOST: return p > q ? (uint32_t)v : c;
	/* .h1 takes the upper half of the result, parts of eight bits its lowest */
	case VIDEO_MERGE: return (c & ~mask) | ((uint32_t)v << (x->bits == 8 ? x->mask * 8 : 0) & mask);
	default: return (uint32_t)v;
	}
}

static uint32_t scalar(const struct video_op *x, uint32_t a, uint32_t b, uint32_t c)
{
	bool mad = x->op == VIDEO_MAD; /* whose whole words are signed numbers */
	int64_t p = part(a, x->a_at[0], x->a_bits, x->a_signed || (mad && x->a_bits == 32)),
		q = part(b, x->b_at[0], x->b_bits, x->b_signed || (mad && x->b_bits == 32));
	if (mad)
		return multiply_add(x, p, q, c);
	int64_t v = (int64_t)compute(x, p, q);
	return second(x, x->saturate ? bounded(x, v) : v, c);
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
