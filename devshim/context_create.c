/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that a program makes, those of its green contexts among them: how they begin and end.
 *
 * Thread rule: context.c. */
#include <errno.h>
#include "devshim/call.h"
#include "devshim/context_state.h"
#include "devshim/copy.h"
#include "devshim/device.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	struct thread *t = thread_self();
	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&context_lock);
	struct context *c = context_take_ended();
	r = c ? remote_cuCtxCreate_v2(&c->handle, flags, dev) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		c->device = dev;
		c->green = false;
		context_born(c, flags, 1);
		if (!handle_set_data(HANDLE_CUcontext, c->handle, c))
			r = process_die(-EPROTO, "cuCtxCreate");
	} else if (c) {
		context_give_ended(c);
	}
	pthread_mutex_unlock(&context_lock);
	if (!r)
		r = context_push(t, c);
	if (r)
		return r;
	*pctx = c->handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
		CUdevice dev)
{
	if (numParams > 0 || paramsArray)
		return call_unsupported(CALL_cuCtxCreate_v3, "contexts with a part of the device");
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	if (ctxCreateParams && (ctxCreateParams->numExecAffinityParams || ctxCreateParams->cigParams))
		return call_unsupported(CALL_cuCtxCreate_v4, "contexts with a part of the device");
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *c = context_find(ctx);
	if (!c || c->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (c->green)
		return remote_cuCtxDestroy_v2(ctx);
	copy_drain();
	pthread_mutex_lock(&context_lock);
	bool was = atomic_load(&c->alive) && c->handle == ctx;

	if (was)
		mirror_drop_owner(ctx);
	r = was ? remote_cuCtxDestroy_v2(ctx) : CUDA_ERROR_INVALID_CONTEXT;
	/* A context that is lost to an error goes all the same. */
	was = was && (!r || context_is_sticky(r));
	if (was)
		atomic_store(&c->alive, false);
	pthread_mutex_unlock(&context_lock);
	if (!was)
		return r;
	handle_drop(HANDLE_CUcontext, ctx);
	struct thread *t = thread_self();
	if (t && t->current == c)
		context_pop(t);
	context_died(c);
	pthread_mutex_lock(&context_lock);
	context_give_ended(c);
	pthread_mutex_unlock(&context_lock);
	return r;
}

/* The first version: not while it is on another thread's stack, or somebody has attached to it. */
CUresult cuCtxDestroy(CUcontext ctx)
{
	struct thread *t = process_check() ? NULL : thread_self();
	struct context *c = t ? context_find(ctx) : NULL;
	unsigned here = c && t->current == c;
	for (unsigned i = 0; c && i < t->depth; i++)
		here += t->stack[i] == c;
	if (c && (atomic_load(&c->stacked) > here || c->users > 1))
		return CUDA_ERROR_INVALID_CONTEXT;
	return cuCtxDestroy_v2(ctx);
}

struct context *context_of_green(CUcontext h, CUdevice device)
{
	struct context *c;

	pthread_mutex_lock(&context_lock);
	c = context_find(h);
	if (!c && (c = context_take_ended())) {
		c->handle = h;
		c->device = device;
		c->green = true;
		context_born(c, 0, 1);
		if (!handle_set_data(HANDLE_CUcontext, h, c)) {
			atomic_store(&c->alive, false);
			context_give_ended(c);
			c = NULL;
		}
	}
	pthread_mutex_unlock(&context_lock);
	return c;
}

void context_end_green(struct context *c)
{
	pthread_mutex_lock(&context_lock);
	bool was = atomic_exchange(&c->alive, false);

	pthread_mutex_unlock(&context_lock);
	if (!was)
		return;
	handle_drop(HANDLE_CUcontext, c->handle);
	context_died(c);
	pthread_mutex_lock(&context_lock);
	context_give_ended(c);
	pthread_mutex_unlock(&context_lock);
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct context *c;
	CUresult r = context_check_present(&c);
	if (r)
		return r;
	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context_lock);
	c->users++;
	pthread_mutex_unlock(&context_lock);
	*pctx = c->handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
	struct context *c;
	CUresult r = context_check_present(&c);
	if (r)
		return r;
	if (c->handle != ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&context_lock);
	bool last = c->users && --c->users == 0;
	pthread_mutex_unlock(&context_lock);
	if (!last)
		return CUDA_SUCCESS;
	if (!c->primary)
		return cuCtxDestroy_v2(ctx);
	pthread_mutex_lock(&context_lock);
	c->users++;
	pthread_mutex_unlock(&context_lock);
	return cuDevicePrimaryCtxRelease_v2(c->device);
}
