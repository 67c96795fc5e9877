/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that PTX may call without a body: printf, assert, the device heap. Kinds of block barriers.
 *
 * Thread rule: each call belongs to the worker that runs the warp; what is shared has its own lock. */
#pragma once
#include "server/soft/exec.h"

enum { BAR_SYNC, BAR_ARRIVE, BAR_POPC, BAR_AND, BAR_OR };
enum builtin {
	BUILTIN_NONE,
	BUILTIN_PRINTF,
	BUILTIN_ASSERT,
	BUILTIN_MALLOC,
	BUILTIN_FREE,
	BUILTIN_NANO,
	BUILTIN_CONDITION
};

/* BUILTIN_NONE when the name is not one. */
int builtin_find(const char *name);
/* Runs it for the active lanes of w; arguments and results are words. Returns 0 or a CUresult. */
int builtin_call(struct warp *w, const struct call_info *ci);

/* printf.c */
struct printf_buffer *printf_open(void); /* at launch, so that output keeps the launch order */
void printf_close(struct printf_buffer *b); /* when the launch has ended */
/* One call by one thread. `args` is what the kernel passed: a device address of packed values, or 0. Returns
 * what printf returns. */
int printf_lane(struct printf_buffer *b, uint64_t format, uint64_t args);

uint64_t heap_alloc(uint64_t bytes);
bool heap_free(uint64_t p);
