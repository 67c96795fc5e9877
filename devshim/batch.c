/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies, prefetches and discards. A batch of copies is checked as a whole, then its copies run
 * like single ones, one after another; one whose source may be read out of order takes the bytes before the
 * call returns. Batches are for streams that have a name of their own.
 *
 * Thread rule: any thread. */
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/handle.h"
#include "devshim/managed.h"
#include "devshim/mirror.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

#define NONE ((size_t)-1) /* fails, but no operation in particular */

static CUresult enter(CUstream s)
{
	struct context *ctx;
	CUresult r = context_check(&ctx);

	if (!r && ((!s && !ptds_active()) || s == CU_STREAM_LEGACY))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && !work_of(s))
		r = handle_error(HANDLE_CUstream);
	return r;
}

static bool attributes_good(CUmemcpySrcAccessOrder o, unsigned flags)
{
	return !(flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) &&
	       o >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && o <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* Pinned memory is else read when the stream gets there. */
static CUresult run(struct copy *k, CUmemcpySrcAccessOrder order, CUstream s)
{
	if (order != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
		k->src.pinned = false;
	return copy_run(k, true, s);
}

/* ---- of runs of bytes */

/* A batch does not go into a graph (seen at a real driver); the capture goes on without it. */
static bool captured(CUstream s)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return work_capturing() && !cuStreamIsCapturing(s, &status) &&
	       status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Where the operations begin that an entry is for: 0, then rising. */
static bool starts_good(const size_t *start, size_t n, size_t count)
{
	if (!start || !n || n > count || start[0])
		return false;
	for (size_t i = 1; i < n; i++)
		if (start[i] <= start[i - 1] || start[i] >= count)
			return false;
	return true;
}

static CUresult linear(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	const CUmemcpyAttributes *attrs, const size_t *start, size_t nattrs, size_t *failed, CUstream s)
{
	CUresult r = enter(s);
	struct copy k;
	size_t a = 0, i;

	*failed = NONE;
	if (r)
		return r;
	if (!dsts || !srcs || !sizes || !attrs || !starts_good(start, nattrs, count))
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < nattrs; i++)
		if (!attributes_good(attrs[i].srcAccessOrder, attrs[i].flags))
			return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < count && !r; i++)
		r = copy_of_linear(&k, dsts[i], true, srcs[i], true, sizes[i]);
	if (!r && captured(s))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	for (*failed = i - 1, i = 0; i < count && !r; i++) {
		*failed = i;
		a += a + 1 < nattrs && start[a + 1] == i;
		r = copy_of_linear(&k, dsts[i], true, srcs[i], true, sizes[i]);
		if (!r)
			r = run(&k, attrs[a].srcAccessOrder, s);
	}
	return r;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
	size_t failed;

	return linear(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, &failed, hStream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
	size_t failed;
	CUresult r = linear(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, &failed, hStream);

	if (failIdx)
		*failIdx = r ? failed : NONE;
	return r;
}

/* ---- of boxes */

/* Bytes of an array's element: asked once, then kept with the handle. 0 when the format has none. */
static CUresult element_of(CUarray array, size_t *bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	size_t known = (uintptr_t)handle_data(HANDLE_CUarray, array);
	CUresult r = known ? CUDA_SUCCESS : cuArray3DGetDescriptor_v2(&d, array);

	*bytes = known;
	if (known || r)
		return r;
	switch (d.Format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: *bytes = d.NumChannels; break;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: *bytes = 2 * d.NumChannels; break;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: *bytes = 4 * d.NumChannels; break;
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT8X1: *bytes = 1; break;
	case CU_AD_FORMAT_UNORM_INT8X2:
	case CU_AD_FORMAT_SNORM_INT8X2:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X1: *bytes = 2; break;
	case CU_AD_FORMAT_UNORM_INT8X4:
	case CU_AD_FORMAT_SNORM_INT8X4:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT16X2:
	case CU_AD_FORMAT_UNORM_INT_101010_2: *bytes = 4; break;
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT16X4: *bytes = 8; break;
	default: return call_unsupported(CALL_cuMemcpy3DBatchAsync, "arrays of blocks or planes");
	}
	handle_set_data(HANDLE_CUarray, array, (void *)(uintptr_t)*bytes);
	return CUDA_SUCCESS;
}

static CUresult operand_element(const CUmemcpy3DOperand *o, size_t *bytes)
{
	*bytes = 0;
	if (o->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
		return CUDA_SUCCESS;
	if (o->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	return element_of(o->op.array.array, bytes);
}

/* A length is in elements: bytes between two pointers, else of the array, and of both when there are two. */
static CUresult box(const CUDA_MEMCPY3D_BATCH_OP *op, struct copy *k)
{
	const CUmemcpy3DOperand *from = &op->src, *to = &op->dst;
	CUDA_MEMCPY3D c = {.Height = op->extent.height, .Depth = op->extent.depth};
	size_t s, d, each;
	CUresult r = operand_element(from, &s);

	if (!r)
		r = operand_element(to, &d);
	if (r)
		return r;
	each = s ? s : d ? d : 1;
	if ((s && d && s != d) || !op->extent.width || !op->extent.height || !op->extent.depth ||
		!attributes_good(op->srcAccessOrder, op->flags) ||
		__builtin_mul_overflow(op->extent.width, each, &c.WidthInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (s) {
		c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		c.srcArray = from->op.array.array;
		c.srcY = from->op.array.offset.y;
		c.srcZ = from->op.array.offset.z;
	} else {
		c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
		c.srcDevice = from->op.ptr.ptr;
		c.srcHeight = from->op.ptr.layerHeight;
	}
	if (__builtin_mul_overflow(s ? from->op.array.offset.x : from->op.ptr.rowLength, each,
		    s ? &c.srcXInBytes : &c.srcPitch))
		return CUDA_ERROR_INVALID_VALUE;
	if (d) {
		c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		c.dstArray = to->op.array.array;
		c.dstY = to->op.array.offset.y;
		c.dstZ = to->op.array.offset.z;
	} else {
		c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
		c.dstDevice = to->op.ptr.ptr;
		c.dstHeight = to->op.ptr.layerHeight;
	}
	if (__builtin_mul_overflow(d ? to->op.array.offset.x : to->op.ptr.rowLength, each,
		    d ? &c.dstXInBytes : &c.dstPitch))
		return CUDA_ERROR_INVALID_VALUE;
	return copy_of_3d(&c, k);
}

static CUresult boxes(
	const CUDA_MEMCPY3D_BATCH_OP *op, size_t n, unsigned long long flags, size_t *failed, CUstream s)
{
	CUresult r = enter(s);
	struct copy k;
	size_t i;

	*failed = NONE;
	if (r)
		return r;
	if (!op || !n || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n && !r; i++)
		r = box(&op[i], &k);
	for (*failed = i - 1, i = 0; i < n && !r; i++) {
		*failed = i;
		r = box(&op[i], &k);
		if (!r)
			r = run(&k, op[i].srcAccessOrder, s);
	}
	return r;
}

CUresult cuMemcpy3DBatchAsync_v2(
	size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, CUstream hStream)
{
	size_t failed;

	return boxes(opList, numOps, flags, &failed, hStream);
}

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
	unsigned long long flags, CUstream hStream)
{
	size_t failed;
	CUresult r = boxes(opList, numOps, flags, &failed, hStream);

	if (failIdx)
		*failIdx = r ? failed : NONE;
	return r;
}

/* ---- of managed memory */

#define PIECE 250u /* operations of one record: its head is limited, and so are threads' stacks */

enum what { PREFETCH, DISCARD, BOTH };

static CUresult send(enum what what, CUdeviceptr *p, size_t *sizes, size_t n, CUmemLocation *l, CUstream s)
{
	size_t start[PIECE];

	for (size_t i = 0; i < n; i++)
		start[i] = i;
	switch (what) {
	case PREFETCH: return remote_cuMemPrefetchBatchAsync(p, sizes, n, l, start, n, 0, s);
	case DISCARD: return remote_cuMemDiscardBatchAsync(p, sizes, n, 0, s);
	default: return remote_cuMemDiscardAndPrefetchBatchAsync(p, sizes, n, l, start, n, 0, s);
	}
}

/* Each operation goes with its own location, so that a batch can be cut anywhere. */
static CUresult managed(enum what what, CUdeviceptr *p, size_t *sizes, size_t count,
	const CUmemLocation *locs, const size_t *start, size_t nlocs, unsigned long long flags, CUstream s)
{
	CUmemLocation l[PIECE];
	CUresult r = enter(s);
	bool any = false;
	size_t a = 0;

	if (r)
		return r;
	if (!p || !sizes || !count || flags ||
		(what != DISCARD && (!locs || !starts_good(start, nlocs, count))))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !r; i++)
		r = managed_check(p[i], sizes[i]);
	if (!r)
		r = mirror_send(false);
	for (size_t i = 0; i < count && !r;) {
		size_t n = count - i < PIECE ? count - i : PIECE;

		for (size_t j = 0; j < n && what != DISCARD; j++) {
			a += a + 1 < nlocs && start[a + 1] == i + j;
			l[j] = locs[a];
			location_to_server(&l[j]);
		}
		r = send(what, p + i, sizes + i, n, l, s);
		any |= !r;
		i += n;
	}
	if (any)
		work_posted(work_of(s), work_mark() + 1);
	return r;
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
	size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
	return managed(PREFETCH, dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs,
		flags, hStream);
}

CUresult cuMemDiscardBatchAsync(
	CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags, CUstream hStream)
{
	return managed(DISCARD, dptrs, sizes, count, NULL, NULL, 0, flags, hStream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
	CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs, size_t numPrefetchLocs,
	unsigned long long flags, CUstream hStream)
{
	return managed(BOTH, dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs,
		flags, hStream);
}
