/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's driver tells: messages of its log. Thread rule: any thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* A message has come: its level, then its text. By the upcall thread. */
void logs_take(const uint8_t *p, size_t n);
/* Runs the program's callbacks for the messages that have come; by a thread of the program's that has an
 * answer. */
void logs_run_waiting(void);
extern _Atomic unsigned logs_waiting;
static inline void logs_run(void)
{
	if (__builtin_expect(__atomic_load_n(&logs_waiting, __ATOMIC_ACQUIRE) != 0, 0))
		logs_run_waiting();
}
