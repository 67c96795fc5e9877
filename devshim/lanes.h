/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads at one large copy. A request to the mount moves at most a MiB and costs its thread a copy,
 * perhaps page faults, and a wake-up: one thread alone is slower than the network.
 *
 * Thread rule: any thread; if the lanes are taken by another one, the caller works alone. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define LANES_LEAST ((size_t)2 << 20) /* bytes from which it is worth waking threads */

/* Calls piece(arg, i) for each i below n, in this order, on the calling thread and on others. Returns when
 * all are over: 0, or the first error, after which no further ones are begun. */
int lanes_run(int (*piece)(void *arg, uint64_t i), void *arg, uint64_t n);
