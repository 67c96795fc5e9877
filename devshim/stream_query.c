/* SPDX-License-Identifier: Apache-2.0 */
/* What a program asks of a stream: its priority, flags, number, context and device. The server is asked
 * once for a stream's priority and number, and of default and green streams for what only it knows.
 *
 * Thread rule: any thread; what is known of a stream is in work.h. */
#include <limits.h>
#include "devshim/handle.h"
#include "devshim/stream.h"
#include "wire/cuda.h"
#include "cuda.remote.h"

CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
	struct work *w;
	CUresult r = stream_find(hStream, &w);

	if (r)
		return r;
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	if (w->priority == INT_MIN) {
		int p = 0;

		r = remote_cuStreamGetPriority(hStream, &p);
		if (r)
			return r;
		w->priority = p;
	}
	*priority = w->priority;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	struct work *w;
	CUresult r = stream_find(hStream, &w);

	if (r)
		return r;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (w->stream == CU_STREAM_LEGACY || w->stream == CU_STREAM_PER_THREAD)
		return remote_cuStreamGetFlags(hStream, flags);
	*flags = w->flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	struct work *w;
	CUresult r = stream_find(hStream, &w);

	if (r)
		return r;
	if (!streamId)
		return CUDA_ERROR_INVALID_VALUE;
	/* A per-thread default stream has an id for each thread. */
	if (w->stream == CU_STREAM_PER_THREAD)
		return remote_cuStreamGetId(hStream, streamId);
	uint64_t id = atomic_load_explicit(&w->id, memory_order_relaxed);

	if (!id) {
		unsigned long long v = 0;

		r = remote_cuStreamGetId(hStream, &v);
		if (r)
			return r;
		atomic_store_explicit(&w->id, id = v, memory_order_relaxed);
	}
	*streamId = id;
	return CUDA_SUCCESS;
}

static struct context *context_of(CUstream h)
{
	return (uintptr_t)h <= 2 ? context_current() : context_find(handle_owner(HANDLE_CUstream, h));
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	struct work *w;
	CUresult r = stream_find(hStream, &w);
	struct context *c = r ? NULL : context_of(hStream);

	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!c)
		return handle_error(HANDLE_CUstream);
	if (c->green)
		return remote_cuStreamGetCtx(hStream, pctx);
	*pctx = c->handle;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	struct work *w;
	CUcontext ctx = NULL;
	CUresult r = stream_find(hStream, &w);
	struct context *c = r ? NULL : context_of(hStream);

	if (!r)
		r = c && c->green ? remote_cuStreamGetCtx_v2(hStream, pCtx, pGreenCtx)
				  : cuStreamGetCtx(hStream, &ctx);
	if (r || c->green)
		return r;
	if (pCtx)
		*pCtx = ctx;
	if (pGreenCtx)
		*pGreenCtx = NULL;
	return r;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	struct work *w;
	CUresult r = stream_find(hStream, &w);
	struct context *c = r ? NULL : context_of(hStream);

	if (r)
		return r;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!c)
		return handle_error(HANDLE_CUstream);
	*device = c->device;
	return CUDA_SUCCESS;
}
