/* SPDX-License-Identifier: Apache-2.0 */
/* What the checked mode remembers of device memory: which bytes of it were ever written (one shadow byte
 * each), and which allocations were freed lately.
 *
 * Thread rule: any thread; shadow bytes are plain stores of 0 and 1, the list of freed ones has a lock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After soft_mem_init. False: the system gives no address space for it. */
bool shadow_open(void);
/* An allocation is gone: it is remembered, and its bytes count as unwritten. */
void shadow_forget(uint64_t base, size_t bytes);
/* The last freed allocation that held p. */
bool shadow_freed(uint64_t p, uint64_t *base, size_t *bytes);
void shadow_written(uint64_t p, size_t n);
/* n bytes were copied; with `known` those of the source have a shadow, too, and it is copied along. */
void shadow_copied(uint64_t to, uint64_t from, size_t n, bool known);
/* None of these n bytes was ever written. */
bool shadow_unwritten(uint64_t p, unsigned n);
