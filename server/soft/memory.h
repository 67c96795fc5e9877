/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of the software device: one reserved address range (PROT_NONE), committed per allocation,
 * guard pages between. A device pointer is the host address in it, so host and device share managed and
 * pinned memory. All functions are thread-safe. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The range, allocations below its middle; constant after soft_mem_init. */
extern uint64_t soft_mem_base, soft_mem_middle, soft_mem_end;

/* Reserves the range and sets the limit in bytes of what may be allocated. Returns 0 or -errno. Repeated
 * calls are harmless. */
int soft_mem_init(size_t limit);
/* Zero-filled memory, 256-byte aligned (or `align`, a power of two up to 2 MiB). 0 when the limit is reached.
 */
uint64_t soft_alloc(size_t bytes, size_t align);
/* Returns false when p is no start of a live allocation. */
bool soft_free(uint64_t p);
/* The live allocation that holds p. */
bool soft_find(uint64_t p, uint64_t *base, size_t *bytes);
/* The slow answer for addresses outside the range, where only registered host memory may be touched: 0, or
 * the code of the fault (700, 716) for accesses of `bytes` bytes at n addresses. */
int soft_reach(const uint64_t *at, unsigned n, unsigned bytes);
/* Another number after each change of the table. */
uint64_t soft_generation(void);
