/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the program and the GPU use in place: managed memory, and pinned memory once a program shows
 * that kernels may touch it. What the program wrote goes ahead of the work that may read it (mirror_send);
 * what kernels wrote comes when the program learns that work is done (mirror_fetch), before it learns it.
 * Both cost nothing while no range is in use like this.
 *
 * Thread rule: any thread; none of the functions may be called between call_begin and the end of a call. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "devshim/range.h"
#include "wire/cuda_types.h"

struct function;

extern _Atomic unsigned mirror_count; /* ranges in use */
/* Answers that told of news, and how many of them have been seen to. */
extern _Atomic unsigned mirror_told, mirror_seen;

static inline bool mirror_any(void)
{
	return __builtin_expect(atomic_load_explicit(&mirror_count, memory_order_relaxed) != 0, 0);
}

/* Kernels may touch pinned memory at p from now on. */
CUresult mirror_use(uint64_t p);
/* Managed memory that the server has allocated: maps the program's side and notes the range. `owner`: the
 * library that it is a variable of, or NULL for the current context's. */
CUresult mirror_managed(uint64_t base, size_t size, const void *owner);
/* Before the memory is freed: the range is as if it had never been in use. */
void mirror_drop(uint64_t base);
/* Before a context or library ends: its managed memory goes. */
void mirror_drop_owner(const void *owner);

CUresult mirror_send_changed(bool wait);
void mirror_fetch_changed(void);
/* Pinned memory that n bytes of parameters, `offset` bytes from their start, point to is in use from now
 * on. */
CUresult mirror_look_at(const uint8_t *p, size_t offset, size_t n);
CUresult mirror_look(const struct function *f, void **params, void **extra);

/* Ahead of work that may touch the memory. wait: the bytes are there when it returns. */
static inline CUresult mirror_send(bool wait)
{
	return mirror_any() ? mirror_send_changed(wait) : CUDA_SUCCESS;
}
/* After an answer that told of news, this thread's or another's. */
static inline void mirror_fetch(void)
{
	if (mirror_any() && atomic_load(&mirror_told) != atomic_load(&mirror_seen))
		mirror_fetch_changed();
}
/* When there was no answer to tell. */
static inline void mirror_fetch_unasked(void)
{
	if (mirror_any()) {
		atomic_fetch_add(&mirror_told, 1);
		mirror_fetch_changed();
	}
}
/* Ahead of a launch: pinned memory that its parameters point to is in use from now on. */
static inline CUresult mirror_launch(const struct function *f, void **params, void **extra)
{
	CUresult r = range_any_host() ? mirror_look(f, params, extra) : CUDA_SUCCESS;

	return r ? r : mirror_send(false);
}
