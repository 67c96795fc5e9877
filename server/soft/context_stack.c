/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of contexts that each thread has, its top being current.
 *
 * Thread rule: see state.h. */
#include "server/soft/context.h"

/* A place on a thread's stack is taken, or given back. */
static void count_place(uint64_t h, unsigned by)
{
	struct context *c = object_find((void *)(uintptr_t)h, KIND_CONTEXT);
	if (c)
		c->stacked += by;
}

void context_push(struct thread *t, uint64_t h)
{
	t->stack[t->depth++] = h;
	count_place(h, 1);
}

uint64_t context_pop(struct thread *t)
{
	uint64_t h = t->stack[--t->depth];
	count_place(h, -1u);
	return h;
}

void context_thread_ended(struct thread *t)
{
	while (t->depth)
		context_pop(t);
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUcontext)(uintptr_t)context_top();
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct thread *t = thread_self();
	if (!h) {
		if (t->depth)
			context_pop(t);
		return CUDA_SUCCESS;
	}
	if (!object_find(h, KIND_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (t->depth)
		context_pop(t);
	context_push(t, (uintptr_t)h);
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_find(h, KIND_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	struct thread *t = thread_self();
	if (t->depth == THREAD_STACK)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context_push(t, (uintptr_t)h);
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct thread *t = thread_self();
	if (!t->depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	uint64_t h = context_pop(t);
	if (out)
		*out = (CUcontext)(uintptr_t)h;
	return CUDA_SUCCESS;
}

/* The first version is of a time when a context was one thread's at a time. */
static CUresult floating(CUcontext h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct context *c = object_find(h, KIND_CONTEXT);
	return c && c->stacked ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext h)
{
	CUresult r = floating(h);
	return r ? r : cuCtxPushCurrent_v2(h);
}
/* The first version leaves a context that somebody has attached to. */
CUresult cuCtxPopCurrent(CUcontext *out)
{
	CUcontext now;
	CUresult r = cuCtxGetCurrent(&now);
	if (r)
		return r;
	{
		guarded g = enter();
		const struct context *c = object_find(now, KIND_CONTEXT);
		if (c && !c->primary && c->retains > 1) {
			if (out)
				*out = now;
			return CUDA_SUCCESS;
		}
	}
	return cuCtxPopCurrent_v2(out);
}
