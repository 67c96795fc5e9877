/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: creating, destroying, and waiting for all that is in one or in all of a context. A wait for a
 * stream that has nothing to do is answered here.
 *
 * Thread rule: any thread; what is known of a stream is in work.h. */
#include "devshim/stream.h"
#include <limits.h>
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

#define FLAGS_KNOWN CU_STREAM_NON_BLOCKING

static CUresult noted(CUstream *s, CUresult r, unsigned flags, int priority)
{
	if (r)
		return r;
	if (work_create(*s, flags, priority))
		return r;
	handle_drop(HANDLE_CUstream, *s);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	CUresult r = process_check();

	if (r)
		return r;
	if (Flags & ~FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	return noted(phStream, remote_cuStreamCreate(phStream, Flags), Flags, INT_MIN);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	int least, greatest;
	CUresult r = cuCtxGetStreamPriorityRange(&least, &greatest);

	if (r)
		return r;
	if (flags & ~FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	/* The driver clamps, and tells the clamped value. */
	priority = priority > least ? least : priority < greatest ? greatest : priority;
	return noted(phStream, remote_cuStreamCreateWithPriority(phStream, flags, priority), flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
	struct call c;
	CUresult r;

	/* Even before cuInit. */
	if (!hStream)
		return CUDA_ERROR_INVALID_HANDLE;
	/* The driver's own answer to a default stream; and a stream in a capture may refuse to die. */
	if ((uintptr_t)hStream <= 2 || work_capturing()) {
		r = remote_cuStreamDestroy_v2(hStream);
	} else {
		r = call_begin(&c, CALL_cuStreamDestroy_v2);
		if (r)
			return r;
		if (!put_handle(&c, HANDLE_CUstream, hStream))
			return handle_error(HANDLE_CUstream);
		r = call_post(&c);
	}
	if (!r)
		handle_drop(HANDLE_CUstream, hStream);
	return r;
}

CUresult cuStreamQuery(CUstream hStream)
{
	struct work *w;
	CUresult r = stream_find(hStream, &w);
	uint64_t mark = work_mark();

	if (r || !work_is_busy(w))
		return r;
	r = remote_cuStreamQuery(hStream);
	if (!r)
		work_done(w, mark);
	return r;
}

static CUresult post_synchronize(CUstream hStream)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuStreamSynchronize);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUstream, hStream))
		return handle_error(HANDLE_CUstream);
	return call_post(&c);
}

/* A framework that moves a model to its device waits behind the copy of each of its hundreds of tensors. */
CUresult cuStreamSynchronize(CUstream hStream)
{
	struct work *w;
	CUresult r = stream_find(hStream, &w);
	uint64_t mark = work_mark();

	if (r || !work_is_busy(w))
		return r;
	if (!work_is_foreign(hStream) && work_only_copied(w)) {
		r = post_synchronize(hStream);
		if (!r)
			work_done(w, mark);
		return r;
	}
	r = mirror_send(false);
	if (!r)
		r = remote_cuStreamSynchronize(hStream);
	if (!r)
		work_done(w, mark);
	return r;
}

CUresult cuCtxSynchronize(void)
{
	struct context *c;
	CUresult r = context_check(&c);
	uint64_t mark = work_mark();

	if (r || !work_context_busy(c))
		return r;
	r = mirror_send(false);
	if (!r)
		r = remote_cuCtxSynchronize();
	if (!r)
		work_context_done(c, mark);
	return r;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	struct context *c = ctx ? context_find(ctx) : context_current();
	uint64_t mark = work_mark();
	CUresult r = process_check();

	if (r)
		return r;
	if (c && c == context_current())
		return cuCtxSynchronize();
	r = remote_cuCtxSynchronize_v2(ctx);
	if (!r && c)
		work_context_done(c, mark);
	return r;
}
