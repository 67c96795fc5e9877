/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of rows, slices and arrays: every call's own description is turned into one box with resolved
 * sides (copy.h), checked as far as the table knows, and run.
 *
 * Thread rule: any thread. */
#include <string.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/device.h"
#include "devshim/handle.h"
#include "devshim/range.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

struct given {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, lod, pitch, height;
};

/* Pitch and height as they count, and the side's memory. Of an array the driver knows the extent; of
 * device memory the table does. */
static CUresult resolve(
	struct copy_side *s, const struct given *g, size_t w, size_t h, size_t d, int max_pitch)
{
	struct range range;
	size_t right, below, rows, last;
	uint64_t p = g->type == CU_MEMORYTYPE_HOST ? (uintptr_t)g->host : g->device;

	*s = (struct copy_side){.type = g->type,
		.address = p,
		.array = g->array,
		.x = g->x,
		.y = g->y,
		.z = g->z,
		.lod = g->lod,
		.pitch = g->pitch,
		.height = g->height};
	if (g->type == CU_MEMORYTYPE_ARRAY) {
		s->address = s->pitch = s->height = 0;
		return g->array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	}
	s->array = NULL;
	s->lod = 0;
	if (g->type != CU_MEMORYTYPE_HOST && g->type != CU_MEMORYTYPE_DEVICE &&
		g->type != CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!p || __builtin_add_overflow(g->x, w, &right) || __builtin_add_overflow(g->y, h, &below))
		return CUDA_ERROR_INVALID_VALUE;
	s->pitch = s->pitch ? s->pitch : right;
	s->height = s->height ? s->height : below;
	if (s->pitch < right || (d > 1 && s->height < below) || s->pitch > (size_t)max_pitch)
		return CUDA_ERROR_INVALID_VALUE;
	/* Bytes from the address to behind the last one. */
	if (__builtin_add_overflow(g->z, d - 1, &rows) || __builtin_mul_overflow(rows, s->height, &rows) ||
		__builtin_add_overflow(rows, below - 1, &rows) ||
		__builtin_mul_overflow(rows, s->pitch, &last) || __builtin_add_overflow(last, right, &last))
		return CUDA_ERROR_INVALID_VALUE;
	bool found = range_find(p, &range);

	if (!found) {
		s->type = g->type == CU_MEMORYTYPE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return CUDA_SUCCESS;
	}
	s->type = range_is_here(&range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	s->mirrored = range.mirrored;
	s->pinned = range_is_here(&range) && last <= range.size - (p - range.base);
	if (s->type == CU_MEMORYTYPE_HOST)
		return CUDA_SUCCESS;
	s->known = range_has(&range, p, last);
	return s->known || !range_is_whole(&range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult box(const struct given *src, const struct given *dst, size_t w, size_t h, size_t d,
	bool async, CUstream stream)
{
	struct context *ctx;
	struct copy k = {.w = w, .h = h, .d = d};
	size_t total;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	if (async && !work_of(stream))
		return handle_error(HANDLE_CUstream);
	if (!w || !h || !d)
		return CUDA_SUCCESS;
	if (__builtin_mul_overflow(w, h, &total) || __builtin_mul_overflow(total, d, &total) ||
		total > LIMIT_BULK)
		return CUDA_ERROR_INVALID_VALUE;
	int pitch = device_attribute(ctx->device, CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff);

	r = resolve(&k.src, src, w, h, d, pitch);
	if (!r)
		r = resolve(&k.dst, dst, w, h, d, pitch);
	return r ? r : copy_run(&k, async, stream);
}

static CUresult box_2d(const CUDA_MEMCPY2D *c, bool async, CUstream stream)
{
	CUresult r = process_check();

	if (r)
		return r;
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	struct given src = {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY,
		0, 0, c->srcPitch, 0};
	struct given dst = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY,
		0, 0, c->dstPitch, 0};

	return box(&src, &dst, c->WidthInBytes, c->Height, 1, async, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	return box_2d(pCopy, false, NULL);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	return box_2d(pCopy, false, NULL);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return box_2d(pCopy, true, hStream);
}

CUresult copy_of_3d(const CUDA_MEMCPY3D *c, struct copy *k)
{
	struct given src = {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY,
		c->srcZ, c->srcLOD, c->srcPitch, c->srcHeight};
	struct given dst = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY,
		c->dstZ, c->dstLOD, c->dstPitch, c->dstHeight};
	size_t total;
	CUresult r;

	*k = (struct copy){.w = c->WidthInBytes, .h = c->Height, .d = c->Depth};
	if (!k->w || !k->h || !k->d || __builtin_mul_overflow(k->w, k->h, &total) ||
		__builtin_mul_overflow(total, k->d, &total) || total > LIMIT_BULK)
		return CUDA_ERROR_INVALID_VALUE;
	r = resolve(&k->src, &src, k->w, k->h, k->d, 0x7fffffff);
	return r ? r : resolve(&k->dst, &dst, k->w, k->h, k->d, 0x7fffffff);
}

static CUresult box_3d(const CUDA_MEMCPY3D *c, bool async, CUstream stream)
{
	CUresult r = process_check();

	if (r)
		return r;
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	struct given src = {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY,
		c->srcZ, c->srcLOD, c->srcPitch, c->srcHeight};
	struct given dst = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY,
		c->dstZ, c->dstLOD, c->dstPitch, c->dstHeight};

	return box(&src, &dst, c->WidthInBytes, c->Height, c->Depth, async, stream);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	return box_3d(pCopy, false, NULL);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return box_3d(pCopy, true, hStream);
}

/* A blocking copy waits for what the contexts of both sides have queued; that of the current one it waits for
 * anyway. An array has a context of its own: the one given with it is not looked at. */
static CUresult peer_wait(CUmemorytype type, CUarray array, CUcontext h, bool async)
{
	if (type == CU_MEMORYTYPE_ARRAY)
		h = handle_owner(HANDLE_CUarray, array);
	/* None means the current one. */
	struct context *c = h || type == CU_MEMORYTYPE_ARRAY ? context_find(h) : context_current();

	if (!c && type == CU_MEMORYTYPE_ARRAY)
		return CUDA_SUCCESS;    /* the copy says what is wrong with the array */
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	bool waited = async || c == context_current() || !work_context_busy(c);
	return waited ? CUDA_SUCCESS : cuCtxSynchronize_v2(c->handle);
}

static CUresult box_peer(const CUDA_MEMCPY3D_PEER *c, bool async, CUstream stream)
{
	struct context *ctx;
	CUresult r = context_check(&ctx);

	if (!r && !c)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = peer_wait(c->srcMemoryType, c->srcArray, c->srcContext, async);
	if (!r)
		r = peer_wait(c->dstMemoryType, c->dstArray, c->dstContext, async);
	if (r)
		return r;
	struct given src = {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY,
		c->srcZ, c->srcLOD, c->srcPitch, c->srcHeight};
	struct given dst = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY,
		c->dstZ, c->dstLOD, c->dstPitch, c->dstHeight};

	return box(&src, &dst, c->WidthInBytes, c->Height, c->Depth, async, stream);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return box_peer(pCopy, false, NULL);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	return box_peer(pCopy, true, hStream);
}

/* ---- one-dimensional arrays: an offset is a column */

static struct given of_array(CUarray a, size_t offset)
{
	return (struct given){.type = CU_MEMORYTYPE_ARRAY, .array = a, .x = offset};
}
static struct given of_device(CUdeviceptr p)
{
	return (struct given){.type = CU_MEMORYTYPE_DEVICE, .device = p};
}
static struct given of_host(const void *p)
{
	return (struct given){.type = CU_MEMORYTYPE_HOST, .host = p};
}

static CUresult row(struct given src, struct given dst, size_t n, bool async, CUstream stream)
{
	return box(&src, &dst, n, 1, 1, async, stream);
}

CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t n)
{
	return row(of_device(src), of_array(dst, offset), n, false, NULL);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t n)
{
	return row(of_array(src, offset), of_device(dst), n, false, NULL);
}

CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void *src, size_t n)
{
	return row(of_host(src), of_array(dst, offset), n, false, NULL);
}

CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t n)
{
	return row(of_array(src, offset), of_host(dst), n, false, NULL);
}

CUresult cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t n)
{
	return row(of_array(src, src_offset), of_array(dst, dst_offset), n, false, NULL);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void *src, size_t n, CUstream s)
{
	return row(of_host(src), of_array(dst, offset), n, true, s);
}

CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t offset, size_t n, CUstream s)
{
	return row(of_array(src, offset), of_host(dst), n, true, s);
}
