/* SPDX-License-Identifier: Apache-2.0 */
/* Floats as bits and back.
 *
 * Thread rule: pure functions. */
#pragma once
#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float x)
{
	uint32_t u;
	memcpy(&u, &x, 4);
	return u;
}
static inline float bits_f32(uint32_t u)
{
	float x;
	memcpy(&x, &u, 4);
	return x;
}
static inline uint64_t f64_bits(double x)
{
	uint64_t u;
	memcpy(&u, &x, 8);
	return u;
}
static inline double bits_f64(uint64_t u)
{
	double x;
	memcpy(&x, &u, 8);
	return x;
}
