/* SPDX-License-Identifier: Apache-2.0 */
/* The copy functions of the API.
 *
 * Thread rule: see state.h. */
#include "server/soft/array.h"
#include "server/soft/copy.h"

/* n bytes, at once or in a stream. */
static CUresult linear(uint64_t dst, enum copy_kind dst_kind, uint64_t src, enum copy_kind src_kind, size_t n,
	CUstream stream, bool async)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	CUresult r = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &r);
	if (!s)
		return r;
	struct work w;
	struct copy_sides sides;
	r = copy_linear(dst, dst_kind, src, src_kind, n, &w, &sides);
	return r ? r : copy_submit(s, &w, &sides, async);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return linear(dst, COPY_UNIFIED, src, COPY_UNIFIED, n, NULL, false);
}
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	return linear(dst, COPY_UNIFIED, src, COPY_UNIFIED, n, s, true);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n)
{
	return linear(dst, COPY_DEVICE, (uintptr_t)src, COPY_HOST, n, NULL, false);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream s)
{
	return linear(dst, COPY_DEVICE, (uintptr_t)src, COPY_HOST, n, s, true);
}
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n)
{
	return linear((uintptr_t)dst, COPY_HOST, src, COPY_DEVICE, n, NULL, false);
}
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream s)
{
	return linear((uintptr_t)dst, COPY_HOST, src, COPY_DEVICE, n, s, true);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return linear(dst, COPY_DEVICE, src, COPY_DEVICE, n, NULL, false);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	return linear(dst, COPY_DEVICE, src, COPY_DEVICE, n, s, true);
}

/* A blocking copy between contexts waits for what both have queued. */
static CUresult peers_wait(struct context *to, struct context *from, bool async)
{
	if (!to || !from)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (async)
		return CUDA_SUCCESS;
	object_ref(from);
	context_drain(to);
	context_drain(from);
	object_unref(from);
	return CUDA_SUCCESS;
}

static struct context *peer_named(CUcontext h, struct context *current)
{
	return h ? object_find(h, KIND_CONTEXT) : current;
}

static CUresult peer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t n,
	CUstream stream, bool async)
{
	{
		guarded g = enter_healthy();
		if (g.error)
			return g.error;
		CUresult r = peers_wait(peer_named(dst_context, g.context),
				peer_named(src_context, g.context), async);
		if (r)
			return r;
	}
	return linear(dst, COPY_DEVICE, src, COPY_DEVICE, n, stream, async);
}
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n)
{
	return peer(dst, dc, src, sc, n, NULL, false);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n, CUstream s)
{
	return peer(dst, dc, src, sc, n, s, true);
}

/* ---- boxes */

static CUresult box(const CUDA_MEMCPY3D *p, CUstream stream, bool async)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	CUresult r = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &r);
	if (!s)
		return r;
	struct work w;
	struct copy_sides sides;
	r = copy_box(p, &w, &sides);
	return r ? r : copy_submit(s, &w, &sides, async);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *p)
{
	return p ? box(p, NULL, false) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *p, CUstream s)
{
	return p ? box(p, s, true) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult flat(const CUDA_MEMCPY2D *p, CUstream stream, bool async)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D p3 = copy_from_2d(p);
	return box(&p3, stream, async);
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *p)
{
	return flat(p, NULL, false);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *p)
{
	return flat(p, NULL, false);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream s)
{
	return flat(p, s, true);
}

/* An array's own context counts; one that is none is the copy's to tell. */
static struct context *peer_of(CUmemorytype type, CUarray h, CUcontext given, struct context *current)
{
	if (type != CU_MEMORYTYPE_ARRAY)
		return peer_named(given, current);
	struct array *a = object_find(h, KIND_ARRAY);
	return a && a->object.context ? a->object.context : current;
}

static CUresult peer_box(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool async)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	{
		guarded g = enter_healthy();
		if (g.error)
			return g.error;
		CUresult r = peers_wait(peer_of(p->dstMemoryType, p->dstArray, p->dstContext, g.context),
			peer_of(p->srcMemoryType, p->srcArray, p->srcContext, g.context), async);
		if (r)
			return r;
	}
	CUDA_MEMCPY3D p3 = {
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcZ = p->srcZ,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstZ = p->dstZ,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.dstHeight = p->dstHeight,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = p->Depth,
	};
	return box(&p3, stream, async);
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *p)
{
	return peer_box(p, NULL, false);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream s)
{
	return peer_box(p, s, true);
}

/* ---- one-dimensional arrays: offsets in bytes from the array's first */

static CUDA_MEMCPY3D row(size_t n)
{
	return (CUDA_MEMCPY3D){.WidthInBytes = n, .Height = 1, .Depth = 1};
}
static void src_array(CUDA_MEMCPY3D *p, CUarray a, size_t offset)
{
	p->srcMemoryType = CU_MEMORYTYPE_ARRAY;
	p->srcArray = a;
	p->srcXInBytes = offset;
}
static void dst_array(CUDA_MEMCPY3D *p, CUarray a, size_t offset)
{
	p->dstMemoryType = CU_MEMORYTYPE_ARRAY;
	p->dstArray = a;
	p->dstXInBytes = offset;
}
static void src_plain(CUDA_MEMCPY3D *p, CUmemorytype t, uint64_t a)
{
	p->srcMemoryType = t;
	p->srcHost = (const void *)(uintptr_t)a;
	p->srcDevice = a;
}
static void dst_plain(CUDA_MEMCPY3D *p, CUmemorytype t, uint64_t a)
{
	p->dstMemoryType = t;
	p->dstHost = (void *)(uintptr_t)a;
	p->dstDevice = a;
}

CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY3D p = row(n);
	dst_array(&p, dst, offset);
	src_plain(&p, CU_MEMORYTYPE_DEVICE, src);
	return box(&p, NULL, false);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t n)
{
	CUDA_MEMCPY3D p = row(n);
	src_array(&p, src, offset);
	dst_plain(&p, CU_MEMORYTYPE_DEVICE, dst);
	return box(&p, NULL, false);
}

static CUresult host_to_array(CUarray dst, size_t offset, const void *src, size_t n, CUstream s, bool async)
{
	CUDA_MEMCPY3D p = row(n);
	dst_array(&p, dst, offset);
	src_plain(&p, CU_MEMORYTYPE_HOST, (uintptr_t)src);
	return box(&p, s, async);
}
CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void *src, size_t n)
{
	return host_to_array(dst, offset, src, n, NULL, false);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void *src, size_t n, CUstream s)
{
	return host_to_array(dst, offset, src, n, s, true);
}

static CUresult array_to_host(void *dst, CUarray src, size_t offset, size_t n, CUstream s, bool async)
{
	CUDA_MEMCPY3D p = row(n);
	src_array(&p, src, offset);
	dst_plain(&p, CU_MEMORYTYPE_HOST, (uintptr_t)dst);
	return box(&p, s, async);
}
CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t n)
{
	return array_to_host(dst, src, offset, n, NULL, false);
}
CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t offset, size_t n, CUstream s)
{
	return array_to_host(dst, src, offset, n, s, true);
}

CUresult cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t n)
{
	CUDA_MEMCPY3D p = row(n);
	src_array(&p, src, src_offset);
	dst_array(&p, dst, dst_offset);
	return box(&p, NULL, false);
}

/* ---- batches */
