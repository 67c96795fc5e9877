/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at memory for a while before sleeping: a wake-up costs as much as half of a round trip. Thread
 * rule: any thread. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static inline void spin_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

static inline uint64_t spin_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
