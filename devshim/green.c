/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: the server's, with what the shim must know of each: its device, its context, whose
 * streams are noted as streams of that.
 *
 * Thread rule: any thread; a green context is destroyed by one thread, when no other uses it. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/event.h"
#include "devshim/handle.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

struct green {
	CUdevice device;
	struct context *_Atomic context; /* NULL: not asked for */
};

/* The device's primary context is retained as long as the green one lives: by the driver, and here. */
CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	struct green *g = calloc(1, sizeof *g);
	CUcontext primary;
	CUresult r = g ? remote_cuGreenCtxCreate(phCtx, desc, dev, flags) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r) {
		g->device = dev;
		/* Work of one context is not told from that of another any more. */
		work_share();
		r = cuDevicePrimaryCtxRetain(&primary, dev);
		if (r) {
			remote_cuGreenCtxDestroy(*phCtx);
		} else if (!handle_set_data(HANDLE_CUgreenCtx, *phCtx, g)) {
			cuDevicePrimaryCtxRelease_v2(dev);
			r = process_die(-EPROTO, "cuGreenCtxCreate");
		}
	}
	if (r)
		free(g);
	return r;
}

static CUresult context_of(CUgreenCtx h, struct context **out)
{
	struct green *g = handle_data(HANDLE_CUgreenCtx, h);
	CUcontext made = NULL;
	struct call c;
	CUresult r = call_begin(&c, CALL_cuCtxFromGreenCtx);

	if (r)
		return r;
	if (!g || !put_handle(&c, HANDLE_CUgreenCtx, h))
		return handle_error(HANDLE_CUgreenCtx);
	*out = atomic_load(&g->context);
	if (*out)
		return CUDA_SUCCESS;
	r = call_wait(&c);
	if (!r)
		made = get_handle(&c, HANDLE_CUcontext);
	r = call_end(&c, r);
	if (r)
		return r;
	*out = context_of_green(made, g->device);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_store(&g->context, *out);
	return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
	struct context *c;
	CUresult r = process_check();

	if (r)
		return r;
	if (!pContext)
		return CUDA_ERROR_INVALID_VALUE;
	r = context_of(hCtx, &c);
	if (!r)
		*pContext = c->handle;
	return r;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	struct green *g = handle_data(HANDLE_CUgreenCtx, hCtx);
	CUresult r;

	copy_drain();
	r = remote_cuGreenCtxDestroy(hCtx);
	if (r || !g)
		return r;
	if (g->context)
		context_end_green(g->context);
	cuDevicePrimaryCtxRelease_v2(g->device);
	free(g);
	return r;
}

/* A stream is noted with the context that is current: the green one's, for a moment. */
CUresult cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	struct thread *t = thread_self();
	struct context *c, *before;
	CUresult r = t ? context_of(greenCtx, &c) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r)
		return r;
	before = t->current;
	t->current = c;
	r = remote_cuGreenCtxStreamCreate(phStream, greenCtx, flags, priority);
	if (!r && !work_create(*phStream, flags, INT_MIN)) {
		remote_cuStreamDestroy_v2(*phStream);
		handle_drop(HANDLE_CUstream, *phStream);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	t->current = before;
	return r;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	CUresult r = remote_cuGreenCtxRecordEvent(hCtx, hEvent);

	if (!r)
		event_recorded_elsewhere(hEvent);
	return r;
}
