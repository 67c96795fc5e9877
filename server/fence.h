/* SPDX-License-Identifier: Apache-2.0 */
/* The fence around a session's address space: see fence.c. */
#pragma once

#define FENCE_LOW  0x700000000000ull
#define FENCE_HIGH 0x7ffff0000000ull

/* Before the driver is loaded. Returns the number of holes filled, or -errno. */
int fence_build(void);
