/* SPDX-License-Identifier: Apache-2.0 */
/* Address space that the program reserves itself (cuMemAddressReserve). All functions are thread-safe. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Address space without memory; 0 when none is left. `wish` may be 0. */
uint64_t range_reserve(size_t bytes, size_t align, uint64_t wish);
/* Puts memory (a descriptor's pages) at an address of a reserved range, or takes it away (fd -1). 0 or
 * -errno. */
int range_map(uint64_t p, size_t bytes, int fd, uint64_t offset);
bool range_release(uint64_t p, size_t bytes);
bool range_reserved(uint64_t p, size_t bytes);
