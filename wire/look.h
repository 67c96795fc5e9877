/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for something for a while ahead of sleeping: a wake-up costs as much as half of a round trip. That
 * needs a processor for oneself. A thread that did not run for a millisecond between two looks at the clock
 * has none: others want it, or a container has used up its share (cpu.max), and each look takes from whom it
 * looks for. Then no thread of the process looks for a second.
 *
 *     struct look l = look_begin(ns);
 *     while (!there())
 *             if (look_on(&l))
 *                     look_relax();
 *             else
 *                     return sleep();
 *
 * Thread rule: any thread; a look is its thread's. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct look { uint64_t end, last; };

/* Looks for ns nanoseconds from now on; not at all when they are 0, or nobody looks. */
struct look look_begin(uint64_t ns);
/* It came, and more is awaited: that is looked for ns nanoseconds. */
void look_again(struct look *l, uint64_t ns);
/* Something else was done since the last look. */
void look_resume(struct look *l);
/* Reads the clock. False: it is time to sleep. */
bool look_on(struct look *l);
/* A pause between two looks at memory. */
static inline void look_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}
