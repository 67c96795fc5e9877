/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock, in the units that the daemon uses. */
#pragma once
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_us(void)
{
	return clock_ns() / 1000;
}

static inline uint64_t clock_ms(void)
{
	return clock_us() / 1000;
}

/* Milliseconds from `then` to `now`, 0 when another thread has put `then` after it. */
static inline uint64_t clock_since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}
