/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of contexts that each thread has, and the calls that change it.
 *
 * Thread rule: a stack is its thread's; how many stacks a context is on may be looked at by any. */
#include "devshim/context_state.h"
#include <stdlib.h>
#include "wire/cuda.h"

CUresult context_push(struct thread *t, struct context *c)
{
	if (t->current) {
		if (t->depth == t->room) {
			unsigned room = t->room ? 2 * t->room : 8;
			void *p = realloc(t->stack, room * sizeof *t->stack);
			if (!p)
				return CUDA_ERROR_OUT_OF_MEMORY;
			t->stack = p;
			t->room = room;
		}
		t->stack[t->depth++] = t->current;
	}
	t->current = c;
	atomic_fetch_add(&c->stacked, 1);
	return CUDA_SUCCESS;
}

void context_pop(struct thread *t)
{
	atomic_fetch_sub(&t->current->stacked, 1);
	t->current = t->depth ? t->stack[--t->depth] : NULL;
}

void context_thread_ends(struct thread *t)
{
	while (t->current)
		context_pop(t);
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *c = context_current();
	*pctx = c ? c->handle : NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	struct thread *t = thread_self();
	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (t->current && t->current->handle == ctx)
		return CUDA_SUCCESS;
	if (!ctx) {
		if (t->current)
			context_pop(t);
		return CUDA_SUCCESS;
	}
	struct context *c = context_find(ctx);
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (t->current)
		atomic_fetch_sub(&t->current->stacked, 1);
	atomic_fetch_add(&c->stacked, 1);
	t->current = c;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *c = context_find(ctx);
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct thread *t = thread_self();
	return t ? context_push(t, c) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The first version is of a time when a context was one thread's at a time. */
CUresult cuCtxPushCurrent(CUcontext ctx)
{
	struct context *c = process_check() ? NULL : context_find(ctx);
	return c && atomic_load(&c->stacked) ? CUDA_ERROR_INVALID_CONTEXT : cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	struct thread *t = thread_self();
	if (!t || !t->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (pctx)
		*pctx = t->current->handle;
	context_pop(t);
	return CUDA_SUCCESS;
}

/* The first version leaves a context that somebody has attached to. */
CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	struct context *c = process_check() ? NULL : context_current();
	if (!c || c->primary || c->users < 2)
		return cuCtxPopCurrent_v2(pctx);
	if (pctx)
		*pctx = c->handle;
	return CUDA_SUCCESS;
}
