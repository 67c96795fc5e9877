/* SPDX-License-Identifier: Apache-2.0 */
/* Floats and integers to integers of another size: clamped; a NaN gives 0, or the highest bit where one side
 * has 64 bits.
 *
 * Thread rule: pure functions. */
#pragma once
#include <stdint.h>

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
