/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock, in the units that the daemon uses. */
#pragma once
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline uint64_t clock_ms(void)
{
	return clock_us() / 1000;
}
