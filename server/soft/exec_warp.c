/* SPDX-License-Identifier: Apache-2.0 */
/* What the lanes of a warp do together: votes, matches, reductions, masks. Lanes that are named but not here
 * do not count.
 *
 * Thread rule: a handler touches only the warp it is given. */
#include "server/soft/exec_warp.h"
#include "server/soft/exec.h"
#include "server/soft/lane_bits.h"
#include "server/soft/lane_float.h"

static uint32_t members(const struct warp *w, const struct op *o)
{
	return o->b == UINT32_MAX ? w->mask : REG(w, uint32_t, o->b)[__builtin_ctz(w->mask)] & w->mask;
}

const struct op *x_vote(struct warp *w, const struct op *o)
{
	const int32_t *p = REG(w, int32_t, o->a);
	uint32_t m = members(w, o), yes = 0;
	for (uint32_t l = 0; l < LANES; l++)
		yes |= (uint32_t)(p[l] & 1) << l;
	yes &= m;
	uint32_t r = o->x == VOTE_BALLOT ? yes
					 : 0 - (uint32_t)(o->x == VOTE_ALL   ? yes == m
							  : o->x == VOTE_ANY ? yes != 0
									     : yes == m || !yes);
	uint32_t *d = REG(w, uint32_t, o->d);
	FOR_LANES(w, l)
	d[l] = r;
	return o + 1;
}

const struct op *x_match(struct warp *w, const struct op *o)
{
	uint32_t m = members(w, o), r[LANES];
	uint64_t v[LANES];
	for (uint32_t l = 0; l < LANES; l++)
		v[l] = o->y == 8 ? REG(w, uint64_t, o->a)[l] : REG(w, uint32_t, o->a)[l];
	FOR_LANES(w, l)
	{
		uint32_t same = 0;
		for (uint32_t k = 0; k < LANES; k++)
			same |= (uint32_t)(v[k] == v[l]) << k;
		same &= m;
		r[l] = o->x ? (same == m ? m : 0) : same;
	}
	FOR_LANES(w, l)
	{
		REG(w, uint32_t, o->d)[l] = r[l];
		if (o->e != UINT32_MAX)
			REG(w, int32_t, o->e)[l] = -(int32_t)(r[l] != 0);
	}
	return o + 1;
}

static uint32_t combine(uint32_t op, uint32_t t, uint32_t a, uint32_t b)
{
	if ((t & 255) == T_F32) {
		float x = bits_f32(a), y = bits_f32(b);
		if (t & REDUX_ABS)
			x = __builtin_fabsf(x), y = __builtin_fabsf(y);
		if ((t & REDUX_NAN) && (x != x || y != y))
			return 0x7fffffff;
		return f32_bits(op == REDUX_MIN ? fmin_f32(x, y) : fmax_f32(x, y));
	}
	bool sign = (t & 255) == T_S32;
	switch (op) {
	case REDUX_ADD: return a + b;
	case REDUX_MIN: return sign ? ((int32_t)a < (int32_t)b ? a : b) : a < b ? a : b;
	case REDUX_MAX: return sign ? ((int32_t)a > (int32_t)b ? a : b) : a > b ? a : b;
	case REDUX_AND: return a & b;
	case REDUX_OR: return a | b;
	default: return a ^ b;
	}
}

const struct op *x_redux(struct warp *w, const struct op *o)
{
	uint32_t m = members(w, o), *a = REG(w, uint32_t, o->a), r = 0;
	if (m) {
		r = a[__builtin_ctz(m)];
		if ((o->y & 255) == T_F32)
			r = combine(o->x, o->y, r, r);
	}
	for (uint32_t k = m & (m - 1); k; k &= k - 1)
		r = combine(o->x, o->y, r, a[__builtin_ctz(k)]);
	FOR_LANES(w, l)
	REG(w, uint32_t, o->d)[l] = r;
	return o + 1;
}

const struct op *x_activemask(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	REG(w, uint32_t, o->d)[l] = w->mask;
	return o + 1;
}

const struct op *x_elect(struct warp *w, const struct op *o)
{
	uint32_t m = members(w, o), leader = m ? (uint32_t)__builtin_ctz(m) : 0;
	FOR_LANES(w, l)
	{
		REG(w, uint32_t, o->d)[l] = leader;
		REG(w, int32_t, o->e)[l] = -(int32_t)(l == leader);
	}
	return o + 1;
}

/* The |c|-th set bit of a from position b on, upwards or downwards. */
const struct op *x_fns(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	{
		uint32_t a = REG(w, uint32_t, o->a)[l], b = REG(w, uint32_t, o->b)[l], r = ~0u;
		int32_t n = REG(w, int32_t, o->c)[l];
		int step = n < 0 ? -1 : 1, left = n < 0 ? -n : n;
		if (n == 0)
			r = b < 32 && (a >> b & 1) ? b : ~0u;
		for (int p = (int)(b & 31); n && b < 32 && left && p >= 0 && p < 32; p += step)
			if (a >> p & 1 && !--left)
				r = (uint32_t)p;
		REG(w, uint32_t, o->d)[l] = r;
	}
	return o + 1;
}
