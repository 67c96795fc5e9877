/* SPDX-License-Identifier: Apache-2.0 */
/* The fence around a session's address space: see fence.c. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define FENCE_LOW  0x700000000000ull
#define FENCE_HIGH 0x7ffff0000000ull

/* Before the driver is loaded. Returns the number of holes filled, or -errno. */
int fence_build(void);

/* Memory at addresses of a program, in place of a part of the fence: readable, writable, zero. False when the
 * range is not wholly the fence's. */
bool fence_open(uint64_t from, uint64_t to);
/* Makes it fence again. */
void fence_close(uint64_t from, uint64_t to);
