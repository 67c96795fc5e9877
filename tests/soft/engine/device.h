/* SPDX-License-Identifier: Apache-2.0 */
/* What the instruction tests run on: the engine (device_soft.c), or whatever libcuda.so.1 is found
 * (device_cuda.c), so that the same cases are seen on a real GPU.
 *
 * Thread rule: one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `simd`: the build of the engine's handlers, or NULL. Returns false, and says why, when there is no device.
 */
bool device_open(const char *simd);
/* Memory at one address for tests and kernels; NULL when there is none. */
void *device_alloc(size_t bytes);
/* PTX in pieces: a head (.version, .target), and kernels k0, k1, ... that are text + start[k] up to
 * text + start[k + 1]. A kernel that the device refuses spoils no other. Returns how many were taken. */
unsigned device_load(const char *head, const char *text, const size_t *start, unsigned kernels);
/* Why kernel k cannot be launched; NULL: it can. */
const char *device_refusal(unsigned k);
/* Runs kernel k to its end; false with *why set (valid until the next call). */
bool device_launch(
	unsigned k, unsigned grid, unsigned block, const void *params, size_t bytes, const char **why);
void device_close(void);
