/* SPDX-License-Identifier: Apache-2.0 */
/* A pause between two looks at memory (wire/look.h). Thread rule: any thread. */
#pragma once
#include <stdatomic.h>

static inline void spin_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}
