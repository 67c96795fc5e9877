/* SPDX-License-Identifier: Apache-2.0 */
/* Integers as one lane of the hardware computes them; a division by zero gives what it gives there.
 *
 * Thread rule: pure functions. */
#pragma once
#include <stdint.h>

#define SMALL_DIV(T, C, ONES)                                                                                \
	static inline C div_##T(C a, C b)                                                                    \
	{                                                                                                    \
		C q = (C)((double)a / (double)(b ? b : 1));                                                  \
		return b ? q : (C)(ONES);                                                                    \
	}                                                                                                    \
	static inline C rem_##T(C a, C b)                                                                    \
	{                                                                                                    \
		return b ? (C)(a - div_##T(a, b) * b) : (C)-1;                                               \
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

static inline uint32_t clamped(int32_t x, int32_t lo, int32_t hi)
{
	return (uint32_t)((x < lo ? lo : x > hi ? hi : x) & (hi - lo));
}
