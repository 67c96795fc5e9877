/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding written out: a quadruple-precision value becomes a half (f16 or bf16) in any direction.
 *
 * Thread rule: pure functions. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

static inline __float128 half_value(bool f16, uint64_t h)
{
	int mant = f16 ? 10 : 7, bias = f16 ? 15 : 127;
	uint64_t top = f16 ? 31 : 255, e = h >> mant & top, m = h & ((1u << mant) - 1);
	__float128 v;
	if (e == top)
		v = m ? (__float128)__builtin_nan("") : (__float128)__builtin_inf();
	else if (e)
		v = (__float128)__builtin_ldexp(1.0 + (double)m / (1 << mant), (int)e - bias);
	else
		v = (__float128)__builtin_ldexp((double)m, 1 - bias - mant);
	return h & 0x8000 ? -v : v;
}

static inline __float128 half_flush(bool f16, uint64_t h)
{
	return h & (f16 ? 0x7c00u : 0x7f80u) ? half_value(f16, h) : half_value(f16, h & 0x8000);
}

/* how: n nearest even, z zero, m down, p up */
static inline uint64_t half_round(bool f16, __float128 v, char how)
{
	int mant = f16 ? 10 : 7, bias = f16 ? 15 : 127;
	uint64_t inf = f16 ? 0x7c00 : 0x7f80, sign = 0;
	if (v != v)
		return 0x7fff;
	if (v < 0 || (v == 0 && __builtin_signbit((double)v)))
		sign = 0x8000, v = -v;
	if (v > (__float128)1e300)
		return sign |
		       (__builtin_isinf((double)v) || how == 'n' || (how == 'm' && sign) ||
		       (how == 'p' && !sign)
				       ? inf
				       : inf - 1);
	/* the candidate below: find the exponent by doubling and halving, exactly */
	int e = 1 - bias;
	__float128 unit = __builtin_ldexp(1.0, 1 - bias - mant);
	while (v >= unit * (__float128)(2u << mant)) {
		unit *= 2;
		e++;
	}
	__float128 q = v / unit;
	uint64_t n = (uint64_t)q;
	__float128 rest = q - (__float128)n;
	bool up = how == 'n'   ? rest > (__float128)0.5 || (rest == (__float128)0.5 && n & 1)
		  : how == 'z' ? false
		  : how == 'm' ? sign && rest > 0
			       : !sign && rest > 0;
	n += up;
	/* n has mant + 1 bits, or fewer for a subnormal; a carry moves into the exponent by itself */
	uint64_t h = n < (1ull << mant) ? n : ((uint64_t)(e + bias - 1) << mant) + n;
	if (h >= inf)
		h = how == 'n' || (how == 'm' && sign) || (how == 'p' && !sign) ? inf : inf - 1;
	return h | sign;
}
