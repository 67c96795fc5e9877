/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing memory and events between processes of one mount by the old handles of 64 bytes, which the server
 * gives out as tickets of its own.
 *
 * Thread rule: any thread. */
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/event.h"
#include "devshim/handle.h"
#include "devshim/range.h"
#include "devshim/share.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (!r && !pHandle)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = call_begin(&c, CALL_cuIpcGetMemHandle);
	if (r)
		return r;
	work_seen_outside();
	put_u64(&c.out, dptr);
	r = call_wait(&c);
	if (!r)
		get_bytes(&c.in, pHandle, sizeof *pHandle);
	return call_end(&c, r);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct range range = {.kind = RANGE_IPC, .opens = 1};
	struct context *ctx;
	struct call c;
	CUdeviceptr p = 0;
	CUresult r = context_check(&ctx);

	if (!r && !pdptr)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = call_begin(&c, CALL_cuIpcOpenMemHandle_v2);
	if (r)
		return r;
	work_seen_outside();
	put_bytes(&c.out, &handle, sizeof handle);
	put_u64(&c.out, Flags);
	r = call_wait(&c);
	if (!r)
		p = share_get_memory(&c, &range);
	r = call_end(&c, r);
	if (r)
		return r;
	if (!range_open(range.base)) {
		range_reserve(range.base, range.size);
		if (!range_add(&range)) {
			remote_cuIpcCloseMemHandle(p);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	*pdptr = p;
	return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	copy_drain();
	CUresult r = remote_cuIpcCloseMemHandle(dptr);

	if (!r && !range_close(dptr))
		range_take(dptr, RANGE_IPC, NULL);
	return r;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuIpcGetEventHandle);

	if (r)
		return r;
	if (!pHandle)
		return CUDA_ERROR_INVALID_VALUE;
	if (!put_handle(&c, HANDLE_CUevent, event))
		return handle_error(HANDLE_CUevent);
	r = call_wait(&c);
	if (!r)
		get_bytes(&c.in, pHandle, sizeof *pHandle);
	return call_end(&c, r);
}

CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	CUevent e = NULL;
	struct call c;
	CUresult r = call_begin(&c, CALL_cuIpcOpenEventHandle);

	if (r)
		return r;
	if (!phEvent)
		return CUDA_ERROR_INVALID_VALUE;
	put_bytes(&c.out, &handle, sizeof handle);
	r = call_wait(&c);
	if (!r)
		e = get_handle(&c, HANDLE_CUevent);
	r = call_end(&c, r);
	if (r)
		return r;
	if (!event_adopt(e)) {
		cuEventDestroy_v2(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*phEvent = e;
	return CUDA_SUCCESS;
}
