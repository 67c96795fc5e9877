/* SPDX-License-Identifier: Apache-2.0 */
/* Types of matrix elements by a letter: their names, their numbers, and how these are written as bits.
 *
 * Thread rule: one thread. */
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Types by a letter: h f16, b bf16, t tf32, f f32, d f64, 4 e4m3, 5 e5m2, c s8, C u8, n s4, N u4, 1 b1, i
 * s32 */
struct kind {
	char letter;
	const char *name;
	unsigned bits;
};
static const struct kind kinds[] = {{'h', "f16", 16}, {'b', "bf16", 16}, {'t', "tf32", 32}, {'f', "f32", 32},
	{'d', "f64", 64}, {'4', "e4m3", 8}, {'5', "e5m2", 8}, {'c', "s8", 8}, {'C', "u8", 8}, {'n', "s4", 4},
	{'N', "u4", 4}, {'1', "b1", 1}, {'i', "s32", 32}};

static inline const struct kind *kind(char letter)
{
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].letter == letter)
			return &kinds[i];
	abort();
}

static inline uint64_t half(double v, unsigned mantissa, int bias)
{
	if (v == 0)
		return 0;
	int e;
	double f = frexp(fabs(v), &e) * 2 - 1; /* small whole numbers: nothing to round */
	uint64_t bits = (uint64_t)(e - 1 + bias) << mantissa | (uint64_t)(f * (double)(1u << mantissa));
	return bits | (v < 0 ? (mantissa == 10 || mantissa == 7 ? 0x8000ull : 0x80ull) : 0);
}

static inline uint64_t encode(char letter, double v)
{
	uint64_t r = 0;
	float f = (float)v;
	switch (letter) {
	case 'h': return half(v, 10, 15);
	case 'b': return half(v, 7, 127);
	case '4': return half(v, 3, 7);
	case '5': return half(v, 2, 15);
	case 't':
	case 'f': memcpy(&r, &f, 4); return r;
	case 'd': memcpy(&r, &v, 8); return r;
	default: return (uint64_t)(int64_t)v;
	}
}

static inline uint64_t noise(void)
{
	static uint64_t s = 88172645463325252ull;
	s ^= s << 13;
	s ^= s >> 7;
	return s ^= s << 17;
}

/* A number that the type has. */
static inline double value(char letter)
{
	int n = (int)(noise() >> 20 & 255);
	switch (letter) {
	case 'c': return n - 128;
	case 'C': return n;
	case 'n': return n % 16 - 8;
	case 'N': return n % 16;
	case '1': return n & 1;
	case 'i': return n * 100 - 5000;
	default: return n % 7 - 3;
	}
}
