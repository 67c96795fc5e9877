/* SPDX-License-Identifier: Apache-2.0 */
/* The vector handlers: each runs one operation over the 32 lanes of a warp, in one form for a full and one
 * for a partial mask. Built once per instruction set (SIMD is sse2, avx2 or avx512); handlers_pick chooses at
 * load.
 *
 * Thread rule: a handler touches only the warp it is given. */
#include "server/soft/handlers.h"
#include <immintrin.h>
#include "server/soft/lane_float.h"
#include "server/soft/lane_half.h"
#include "server/soft/lane_int.h"
#include "server/soft/lane_small.h"
#include "server/soft/lane_to_int.h"
#include "server/soft/memory.h"

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)
#define INLINE static inline __attribute__((always_inline))

/* lane types: L what a slot holds, V what an expression sees, R and W between them */
#define LANE(T, L, V)                                                                                        \
	typedef L L_##T;                                                                                     \
	typedef V V_##T;
LANE(u8, uint32_t, uint8_t)
LANE(s8, uint32_t, int8_t) LANE(u16, uint32_t, uint16_t) LANE(s16, uint32_t, int16_t)
	LANE(u32, uint32_t, uint32_t) LANE(s32, int32_t, int32_t) LANE(u64, uint64_t, uint64_t)
		LANE(s64, int64_t, int64_t) LANE(f16, uint32_t, float) LANE(bf16, uint32_t, float)
			LANE(f32, float, float) LANE(n32, float, float) LANE(f64, double, double)
				LANE(p, int32_t, int32_t)
#define R_u8(x) ((uint8_t)(x))
#define R_s8(x) ((int8_t)(x))
#define R_u16(x) ((uint16_t)(x))
#define R_s16(x) ((int16_t)(x))
#define R_u32(x) (x)
#define R_s32(x) (x)
#define R_u64(x) (x)
#define R_s64(x) (x)
#define R_f16(x) h2f((x)&0xffff)
#define R_bf16(x) b2f((x)&0xffff)
#define R_f32(x) (x)
#define R_f64(x) (x)
#define R_p(x) (x)
#define W_u8(x) ((uint32_t)(uint8_t)(x))
#define W_s8(x) ((uint32_t)(int32_t)(int8_t)(x))
#define W_u16(x) ((uint32_t)(uint16_t)(x))
#define W_s16(x) ((uint32_t)(int32_t)(int16_t)(x))
#define W_u32(x) (x)
#define W_s32(x) (x)
#define W_u64(x) (x)
#define W_s64(x) (x)
#define W_f16(x) f2h(x)
#define W_bf16(x) f2b(x)
#define W_f32(x) (x)
#define W_f64(x) (x)
#define W_p(x) (x)
					INLINE float canonical(float x)
{
	return x != x ? bits_f32(0x7fffffff) : x;
}
#define W_n32(x) canonical(x)

#define MULW(a, b) ((a) * (uint64_t)(b))
#define MINI(x, y) ((x) < (y) ? (x) : (y))
#define MAXI(x, y) ((x) > (y) ? (x) : (y))
#define PAIR(OP, T)                                                                                          \
	((uint32_t)(uint16_t)OP((T)a, (T)b) | (uint32_t)(uint16_t)OP((T)(a >> 16), (T)(b >> 16)) << 16)
#define BYTE(T, v, i) ((int32_t)(T)((v) >> 8 * (i)))
#define DP4(TA, TB)                                                                                          \
	(uint32_t)(BYTE(TA, a, 0) * BYTE(TB, b, 0) + BYTE(TA, a, 1) * BYTE(TB, b, 1) +                       \
		   BYTE(TA, a, 2) * BYTE(TB, b, 2) + BYTE(TA, a, 3) * BYTE(TB, b, 3))
#define DP2(TA, TB, s)                                                                                       \
	(uint32_t)((int32_t)(TA)a * (int32_t)(TB)(b >> (s)) +                                                \
		   (int32_t)(TA)(a >> 16) * (int32_t)(TB)(b >> ((s) + 8)))
#define PAIR_F16(e)                                                                                          \
	({                                                                                                   \
		float x = h2f(a & 0xffff), y = h2f(b & 0xffff);                                              \
		uint32_t lo = f2h(e);                                                                        \
		x = h2f(a >> 16), y = h2f(b >> 16);                                                          \
		lo | f2h(e) << 16;                                                                           \
	})
#define PAIR_BF16(e)                                                                                         \
	({                                                                                                   \
		float x = b2f(a & 0xffff), y = b2f(b & 0xffff);                                              \
		uint32_t lo = f2b(e);                                                                        \
		x = b2f(a >> 16), y = b2f(b >> 16);                                                          \
		lo | f2b(e) << 16;                                                                           \
	})

#define SLOT(T, s) ((L_##T *)__builtin_assume_aligned(w->r + (s), 64))
#define EACH _Pragma("GCC ivdep") for (int l = 0; l < LANES; l++)

/* The pointers are taken before the loop: the compiler cannot know that no slot overlaps the operation. */
#define LOOP(name, D, POINT, READ, expr)                                                                     \
	static const struct op *f_##name(struct warp *w, const struct op *o)                                 \
	{                                                                                                    \
		L_##D *d = SLOT(D, o->d);                                                                    \
		POINT                                                                                        \
		EACH                                                                                         \
		{                                                                                            \
			READ d[l] = W_##D((V_##D)(expr));                                                    \
		}                                                                                            \
		return o + 1;                                                                                \
	}                                                                                                    \
	static const struct op *p_##name(struct warp *w, const struct op *o)                                 \
	{                                                                                                    \
		L_##D *d = SLOT(D, o->d);                                                                    \
		const int32_t *m = __builtin_assume_aligned(w->lm, 64);                                      \
		POINT                                                                                        \
		EACH                                                                                         \
		{                                                                                            \
			READ L_##D r_ = W_##D((V_##D)(expr));                                                \
			d[l] = m[l] ? r_ : d[l];                                                             \
		}                                                                                            \
		return o + 1;                                                                                \
	}
#define AT(T, v) const L_##T *v##_ = SLOT(T, o->v);
#define GET(T, v) V_##T v = (V_##T)R_##T(v##_[l]);
#define U1(name, D, A, expr) LOOP(name, D, AT(A, a), GET(A, a), expr)
#define B2(name, D, A, B, expr) LOOP(name, D, AT(A, a) AT(B, b), GET(A, a) GET(B, b), expr)
#define T3(name, D, A, B, C, expr)                                                                           \
	LOOP(name, D, AT(A, a) AT(B, b) AT(C, c), GET(A, a) GET(B, b) GET(C, c), expr)
#define RAW(name)
#ifndef __FMA__
#define FMA(name, ...)
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-value"
#include "server/soft/handlers.inc"
#pragma GCC diagnostic pop
#undef U1
#undef B2
#undef T3
#undef RAW

/* A handler in both forms from one body that is told whether the mask is full. */
#define BOTH(name, call)                                                                                     \
	static const struct op *f_##name(struct warp *w, const struct op *o)                                 \
	{                                                                                                    \
		const bool full = true;                                                                      \
		(void)full;                                                                                  \
		return call;                                                                                 \
	}                                                                                                    \
	static const struct op *p_##name(struct warp *w, const struct op *o)                                 \
	{                                                                                                    \
		const bool full = false;                                                                     \
		(void)full;                                                                                  \
		return call;                                                                                 \
	}
#define ON(l) (full || w->lm[l])

#ifndef __FMA__
/* Products of floats are exact as doubles, so a sum that is rounded to a double rounds to the right float
 * unless it lies in the middle between two floats, or below the normal ones, where the middles are elsewhere.
 * Those take the slow way, by a sum that is rounded to odd. A call of the C library's for each lane would
 * take several times as long. */
/* from memory, which the compiler would load first, and which is cheaper */
INLINE __m128d two(const float *p)
{
	__m128d r;
	__asm__("cvtps2pd %1, %0" : "=x"(r) : "m"(*(const float(*)[2])p));
	return r;
}
INLINE __m128 fma4(const float *a, const float *b, const float *c, __m128i *unsure)
{
	__m128d lo = _mm_add_pd(_mm_mul_pd(two(a), two(b)), two(c)),
		hi = _mm_add_pd(_mm_mul_pd(two(a + 2), two(b + 2)), two(c + 2));
	__m128i low = _mm_castps_si128(_mm_shuffle_ps(_mm_castpd_ps(lo), _mm_castpd_ps(hi), 0x88)),
		high = _mm_castps_si128(_mm_shuffle_ps(_mm_castpd_ps(lo), _mm_castpd_ps(hi), 0xdd));
	low = _mm_and_si128(low, _mm_set1_epi32(0x1fffffff));
	high = _mm_and_si128(high, _mm_set1_epi32(0x7fffffff));
	__m128i middle = _mm_cmpeq_epi32(low, _mm_set1_epi32(0x10000000)),
		small = _mm_and_si128(_mm_cmpgt_epi32(_mm_set1_epi32(0x38100000), high), /* 2^-126 */
			_mm_cmpgt_epi32(high, _mm_setzero_si128()));
	*unsure = _mm_or_si128(*unsure, _mm_or_si128(middle, small));
	return _mm_movelh_ps(_mm_cvtpd_ps(lo), _mm_cvtpd_ps(hi));
}
INLINE const struct op *fma_lanes(struct warp *w, const struct op *o, bool full)
{
	const float *a = SLOT(f32, o->a), *b = SLOT(f32, o->b), *c = SLOT(f32, o->c);
	float *d = SLOT(f32, o->d);
	_Alignas(64) float r[LANES];
	__m128i unsure = _mm_setzero_si128();
	for (int l = 0; l < LANES; l += 4)
		_mm_store_ps(r + l, fma4(a + l, b + l, c + l, &unsure));
	if (__builtin_expect(_mm_movemask_epi8(unsure), 0))
		for (int l = 0; l < LANES; l++)
			r[l] = (float)fma_odd(a[l], b[l], c[l]);
	EACH d[l] = ON(l) ? canonical(r[l]) : d[l];
	return o + 1;
}
BOTH(fma_f32, fma_lanes(w, o, full))
#endif

/* ---- masks ---- */
INLINE uint32_t mask_bits(const int32_t *p)
{
#if defined __AVX512DQ__
	return (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(p)) |
	       (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(p + 16)) << 16;
#elif defined __AVX2__
	uint32_t m = 0;
	for (int i = 0; i < 4; i++)
		m |= (uint32_t)_mm256_movemask_ps(_mm256_load_ps((const float *)p + 8 * i)) << 8 * i;
	return m;
#else
	uint32_t m = 0;
	for (int i = 0; i < 8; i++)
		m |= (uint32_t)_mm_movemask_ps(_mm_load_ps((const float *)p + 4 * i)) << 4 * i;
	return m;
#endif
}

/* Runs the wrapped operation with the mask narrowed by the predicate in a. */
INLINE const struct op *narrow(struct warp *w, const struct op *o, bool full, bool negated)
{
	const int32_t *p = SLOT(p, o->a);
	uint32_t bits = negated ? ~mask_bits(p) : mask_bits(p);
	uint32_t old = w->mask;
	if (!full)
		bits &= old;
	if (!bits)
		return o + o->x;
	if (full && bits == ~0u)
		return o[1].fn(w, o + 1);
	const int32_t *lm = w->lm;
	int32_t *t = w->pred_mask;
	EACH t[l] = (negated ? ~p[l] : p[l]) & lm[l];
	w->lm = t;
	w->mask = bits;
	const struct op *n = o[1].pfn(w, o + 1);
	w->lm = lm;
	w->mask = old;
	return n;
}
BOTH(predicated, narrow(w, o, full, false))
BOTH(predicated_not, narrow(w, o, full, true))

/* Runs the wrapped operation under another rounding mode or with subnormals flushed: x is what to add to
 * MXCSR. */
INLINE const struct op *moded(struct warp *w, const struct op *o, bool full)
{
	unsigned old = _mm_getcsr();
	_mm_setcsr((old & ~0xe040u) | o->y);
	const struct op *n = full ? o[1].fn(w, o + 1) : o[1].pfn(w, o + 1);
	_mm_setcsr(old);
	return n;
}
BOTH(moded, moded(w, o, full))

/* ---- branches ---- */
INLINE const struct op *jump(struct warp *w, const struct op *o, const struct op *to)
{
	if (__builtin_expect(to <= o && --w->budget < 0, 0)) {
		w->to = to;
		return warp_stop(w, o, EV_YIELD);
	}
	return to;
}
BOTH(bra, jump(w, o, o->to))
INLINE const struct op *branch(struct warp *w, const struct op *o, bool full, bool negated)
{
	uint32_t bits = mask_bits(SLOT(p, o->a));
	bits = negated ? ~bits : bits;
	uint32_t all = full ? ~0u : w->mask;
	bits &= all;
	if (!bits)
		return o + 1;
	if (bits == all)
		return jump(w, o, o->to);
	w->targets = bits;
	w->to = o->to;
	return warp_stop(w, o, EV_SPLIT);
}
BOTH(bra_if, branch(w, o, full, false))
BOTH(bra_ifnot, branch(w, o, full, true))

/* ---- four operands, carries ---- */
INLINE const struct op *lop3(struct warp *w, const struct op *o, bool full)
{
	uint32_t *d = SLOT(u32, o->d);
	const uint32_t *a = SLOT(u32, o->a), *b = SLOT(u32, o->b), *c = SLOT(u32, o->c);
	uint32_t k = o->y, t[8];
	for (int i = 0; i < 8; i++)
		t[i] = 0 - (k >> i & 1);
	EACH
	{
		uint32_t x = a[l], y = b[l], z = c[l];
		uint32_t lo = (z & ((y & t[3]) | (~y & t[1]))) | (~z & ((y & t[2]) | (~y & t[0])));
		uint32_t hi = (z & ((y & t[7]) | (~y & t[5]))) | (~z & ((y & t[6]) | (~y & t[4])));
		uint32_t r = (x & hi) | (~x & lo);
		d[l] = ON(l) ? r : d[l];
	}
	return o + 1;
}
BOTH(lop3_b32, lop3(w, o, full))
#define BFI(n)                                                                                               \
	INLINE const struct op *insert##n(struct warp *w, const struct op *o, bool full)                     \
	{                                                                                                    \
		uint##n##_t *d = SLOT(u##n, o->d);                                                           \
		const uint##n##_t *a = SLOT(u##n, o->a), *b = SLOT(u##n, o->b);                              \
		const uint32_t *c = SLOT(u32, o->c), *e = SLOT(u32, o->e);                                   \
		EACH d[l] = ON(l) ? (uint##n##_t)bfi(a[l], b[l], c[l], e[l], n) : d[l];                      \
		return o + 1;                                                                                \
	}                                                                                                    \
	BOTH(bfi_b##n, insert##n(w, o, full))
BFI(32)
BFI(64)
/* carry in and out of slot e; a subtraction's flag is its borrow */
#define CARRY(n)                                                                                             \
	INLINE const struct op *carry##n(                                                                    \
		struct warp *w, const struct op *o, bool full, bool sub, bool in, bool out)                  \
	{                                                                                                    \
		uint##n##_t *d = SLOT(u##n, o->d);                                                           \
		const uint##n##_t *a = SLOT(u##n, o->a), *b = SLOT(u##n, o->b);                              \
		uint32_t *cc = SLOT(u32, o->e);                                                              \
		EACH                                                                                         \
		{                                                                                            \
			uint##n##_t x = a[l], y = b[l], k = in ? cc[l] : 0;                                  \
			uint##n##_t r = sub ? x - y - k : x + y + k;                                         \
			uint32_t f = sub ? (x < y || (x == y && k)) : (r < x || (r == x && k));              \
			if (out)                                                                             \
				cc[l] = ON(l) ? f : cc[l];                                                   \
			d[l] = ON(l) ? r : d[l];                                                             \
		}                                                                                            \
		return o + 1;                                                                                \
	}                                                                                                    \
	BOTH(add_cc_b##n, carry##n(w, o, full, false, false, true))                                          \
	BOTH(addc_b##n, carry##n(w, o, full, false, true, false))                                            \
		BOTH(addc_cc_b##n, carry##n(w, o, full, false, true, true))                                  \
			BOTH(sub_cc_b##n, carry##n(w, o, full, true, false, true))                           \
				BOTH(subc_b##n, carry##n(w, o, full, true, true, false))                     \
					BOTH(subc_cc_b##n, carry##n(w, o, full, true, true, true))
CARRY(32)
CARRY(64)

#include "server/soft/handlers_mem.inc"

/* ---- shuffles: a value, b lane or delta, c clamp and segment mask, e slot of the predicate or UINT32_MAX
 * ---- */
enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
INLINE const struct op *shuffle(struct warp *w, const struct op *o, bool full, int mode)
{
	uint32_t *d = SLOT(u32, o->d);
	const uint32_t *a = SLOT(u32, o->a), *b = SLOT(u32, o->b), *c = SLOT(u32, o->c);
	_Alignas(64) uint32_t v[LANES], r[LANES], from[LANES];
	_Alignas(64) int32_t ok[LANES];
	EACH v[l] = ON(l) ? a[l] : 0;
	for (uint32_t l = 0; l < LANES; l++) {
		uint32_t seg = c[l] >> 8 & 31, clamp = c[l] & 31, k = b[l] & 31;
		uint32_t low = l & seg, most = low | (clamp & ~seg), j, in;
		if (mode == SHFL_UP)
			j = l - k;
		else if (mode == SHFL_DOWN)
			j = l + k;
		else if (mode == SHFL_BFLY)
			j = l ^ k;
		else
			j = low | (k & ~seg);
		in = mode == SHFL_UP ? (int32_t)j >= (int32_t)most : j <= most;
		ok[l] = -(int32_t)in;
		from[l] = in ? j & 31 : l;
	}
#if defined __AVX512F__
	__m512i lo = _mm512_load_si512(v), hi = _mm512_load_si512(v + 16);
	_mm512_store_si512(r, _mm512_permutex2var_epi32(lo, _mm512_load_si512(from), hi));
	_mm512_store_si512(r + 16, _mm512_permutex2var_epi32(lo, _mm512_load_si512(from + 16), hi));
#else
	for (int l = 0; l < LANES; l++)
		r[l] = v[from[l]];
#endif
	EACH d[l] = ON(l) ? r[l] : d[l];
	if (o->e != UINT32_MAX) {
		int32_t *p = SLOT(p, o->e);
		EACH p[l] = ON(l) ? ok[l] : p[l];
	}
	return o + 1;
}
BOTH(shfl_up, shuffle(w, o, full, SHFL_UP))
BOTH(shfl_down, shuffle(w, o, full, SHFL_DOWN))
BOTH(shfl_bfly, shuffle(w, o, full, SHFL_BFLY))
BOTH(shfl_idx, shuffle(w, o, full, SHFL_IDX))

#define U1(name, ...) [H_##name] = {f_##name, p_##name},
#define B2 U1
#define T3 U1
#define RAW U1
const struct handler_pair GLUE(handlers_, SIMD)[H_COUNT] = {
#include "server/soft/handlers.inc"
};
