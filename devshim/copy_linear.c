/* SPDX-License-Identifier: Apache-2.0 */
/* The copy calls of one run of bytes: what their addresses are, whether the ranges hold, and a box of one row
 * for copy.c.
 *
 * Thread rule: any thread. */
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/mirror.h"
#include "devshim/range.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

/* What an address is. Returns false when the table shows that the copy would leave its range. */
static bool linear_side(struct copy_side *s, uint64_t p, size_t n, bool host)
{
	struct range r;

	*s = (struct copy_side){.address = p, .pitch = n, .height = 1};
	if (!range_find(p, &r)) {
		s->type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return true;
	}
	s->type = range_is_here(&r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	s->mirrored = r.mirrored;
	if (!range_has(&r, p, n))
		/* Behind pinned memory there may be more of the program's, behind a mapping another. */
		return range_is_here(&r) ? host : !range_is_whole(&r);
	s->pinned = range_is_here(&r);
	s->known = !s->pinned;
	return true;
}

CUresult copy_of_linear(struct copy *k, uint64_t dst, bool dst_host, uint64_t src, bool src_host, size_t n)
{
	*k = (struct copy){.w = n, .h = 1, .d = 1, .linear = true};
	return dst && src && n && n <= LIMIT_BULK && linear_side(&k->dst, dst, n, dst_host) &&
			       linear_side(&k->src, src, n, src_host)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_linear(
	uint64_t dst, bool dst_host, uint64_t src, bool src_host, size_t n, bool async, CUstream stream)
{
	struct context *ctx;
	struct copy k;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	if (async && !work_of(stream))
		return handle_error(HANDLE_CUstream);
	if (!n)
		return CUDA_SUCCESS;
	r = copy_of_linear(&k, dst, dst_host, src, src_host, n);
	return r ? r : copy_run(&k, async, stream);
}

#define ADDRESS(p) ((uint64_t)(uintptr_t)(p))

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n)
{
	return copy_linear(dst, false, ADDRESS(src), true, n, false, NULL);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream s)
{
	return copy_linear(dst, false, ADDRESS(src), true, n, true, s);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n)
{
	return copy_linear(ADDRESS(dst), true, src, false, n, false, NULL);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream s)
{
	return copy_linear(ADDRESS(dst), true, src, false, n, true, s);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return copy_linear(dst, false, src, false, n, false, NULL);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	return copy_linear(dst, false, src, false, n, true, s);
}

/* Unified: an address that no table holds is the program's. */
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return copy_linear(dst, true, src, true, n, false, NULL);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	return copy_linear(dst, true, src, true, n, true, s);
}

/* ---- between contexts */

/* A blocking one waits for what both contexts have queued, and they wait for it: the driver does that. */
static CUresult peer(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n, bool async,
	CUstream s)
{
	struct context *ctx = NULL;
	struct copy k;
	CUresult r = context_check(&ctx);
	/* None means the current one. */
	struct context *to = dctx ? context_find(dctx) : ctx, *from = sctx ? context_find(sctx) : ctx;

	if (!r && (!to || !from))
		r = CUDA_ERROR_INVALID_CONTEXT;
	if (!r && async && !work_of(s))
		r = handle_error(HANDLE_CUstream);
	if (r || !n)
		return r;
	r = copy_of_linear(&k, dst, false, src, false, n);
	if (!r && ((to == ctx && from == ctx) || copy_is_host(&k)))
		return copy_run(&k, async, s);
	if (!r && (k.src.mirrored || k.dst.mirrored))
		r = mirror_send(false);
	if (!r)
		r = async ? remote_cuMemcpyPeerAsync(dst, to->handle, src, from->handle, n, s) :
			    remote_cuMemcpyPeer(dst, to->handle, src, from->handle, n);
	if (r)
		return r;
	struct work *w[] = {
		work_of(async ? s : NULL), async ? NULL : work_legacy(to), async ? NULL : work_legacy(from)};

	for (int i = 0; i < 3; i++)
		if (w[i])
			work_posted(w[i], work_mark() + 1);
	return CUDA_SUCCESS;
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n)
{
	return peer(dst, dctx, src, sctx, n, false, NULL);
}

CUresult cuMemcpyPeerAsync(
	CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n, CUstream s)
{
	return peer(dst, dctx, src, sctx, n, true, s);
}
