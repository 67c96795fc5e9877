/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: copies of bytes and of boxes, prefetches and discards, many in one call. A batch is checked as a
 * whole before any of it is queued.
 *
 * Thread rule: see state.h. */
#include <stdint.h>
#include "server/soft/allocation.h"
#include "server/soft/array.h"
#include "server/soft/capture.h"
#include "server/soft/copy.h"

#define BATCH_MOST (1u << 20)

/* In, with a stream that has a name of its own: batches are not for the legacy stream. */
static struct guard enter_batch(CUstream h, struct stream **s)
{
	struct guard g = enter_healthy();
	if (g.error)
		return g;
	bool named = h && h != CU_STREAM_LEGACY;
	*s = named ? stream_named(g.context, h, &g.error) : NULL;
	if (!named)
		g.error = CUDA_ERROR_INVALID_VALUE;
	if (g.error) {
		guard_leave(&g);
		g.held = false;
	}
	return g;
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

static bool attributes_good(CUmemcpySrcAccessOrder o, unsigned flags)
{
	return !(flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) &&
	       o >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && o <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* A source that must be read during the call is staged as pageable memory is. */
static CUresult submit(struct stream *s, struct work *w, struct copy_sides *sides,
		CUmemcpySrcAccessOrder order)
{
	if (order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && copy_from_host(w))
		sides->src_pageable = true;
	return copy_submit(s, w, sides, true);
}

#define NONE SIZE_MAX /* fails, but no operation in particular */

static CUresult linear(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	const CUmemcpyAttributes *attrs, const size_t *starts, size_t nattrs, size_t *failed, CUstream stream)
{
	struct stream *s;
	*failed = NONE;
	guarded g = enter_batch(stream, &s);
	if (g.error)
		return g.error;
	if (!dsts || !srcs || !sizes || count > BATCH_MOST || !attrs || !starts_good(starts, nattrs, count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < nattrs; i++)
		if (!attributes_good(attrs[i].srcAccessOrder, attrs[i].flags))
			return CUDA_ERROR_INVALID_VALUE;
	struct work w;
	struct copy_sides sides;
	CUresult r = CUDA_SUCCESS;
	for (size_t i = 0; i < count && !r; i++) {
		*failed = i;
		r = sizes[i] ? copy_linear(dsts[i], COPY_UNIFIED, srcs[i], COPY_UNIFIED, sizes[i], &w, &sides)
			     : CUDA_ERROR_INVALID_VALUE;
	}
	/* A batch does not go into a graph, and spoils none. */
	if (!r && s->capture) {
		*failed = NONE;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	for (size_t i = 0, a = 0; i < count && !r; i++) {
		*failed = i;
		a += a + 1 < nattrs && starts[a + 1] == i;
		copy_linear(dsts[i], COPY_UNIFIED, srcs[i], COPY_UNIFIED, sizes[i], &w, &sides);
		r = submit(s, &w, &sides, attrs[a].srcAccessOrder);
	}
	return r;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	CUmemcpyAttributes *attrs, size_t *starts, size_t nattrs, CUstream stream)
{
	size_t failed;
	return linear(dsts, srcs, sizes, count, attrs, starts, nattrs, &failed, stream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	CUmemcpyAttributes *attrs, size_t *starts, size_t nattrs, size_t *bad, CUstream stream)
{
	size_t failed;
	CUresult r = linear(dsts, srcs, sizes, count, attrs, starts, nattrs, &failed, stream);
	if (bad)
		*bad = r ? failed : NONE;
	return r;
}

static size_t element_of(const CUmemcpy3DOperand *o)
{
	const struct array *a =
		o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? object_find(o->op.array.array, KIND_ARRAY) : NULL;
	return a ? a->element : 1;
}

/* Lengths are in elements of the array that takes part, else in bytes. */
static CUresult box(const CUDA_MEMCPY3D_BATCH_OP *op, struct work *w, struct copy_sides *sides)
{
	const CUmemcpy3DOperand *from = &op->src, *to = &op->dst;
	size_t es = element_of(from), ed = element_of(to), each = es > 1 ? es : ed, width;
	if ((from->type == CU_MEMCPY_OPERAND_TYPE_ARRAY && to->type == CU_MEMCPY_OPERAND_TYPE_ARRAY &&
			es != ed) ||
		!op->extent.width || !op->extent.height || !op->extent.depth ||
		__builtin_mul_overflow(op->extent.width, each, &width) ||
		!attributes_good(op->srcAccessOrder, op->flags))
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D p = {.WidthInBytes = width, .Height = op->extent.height, .Depth = op->extent.depth};
	if (from->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		p.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		p.srcArray = from->op.array.array;
		p.srcY = from->op.array.offset.y;
		p.srcZ = from->op.array.offset.z;
		if (__builtin_mul_overflow(from->op.array.offset.x, es, &p.srcXInBytes))
			return CUDA_ERROR_INVALID_VALUE;
	} else if (from->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
		p.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
		p.srcDevice = from->op.ptr.ptr;
		p.srcHeight = from->op.ptr.layerHeight;
		if (__builtin_mul_overflow(from->op.ptr.rowLength, each, &p.srcPitch))
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (to->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		p.dstArray = to->op.array.array;
		p.dstY = to->op.array.offset.y;
		p.dstZ = to->op.array.offset.z;
		if (__builtin_mul_overflow(to->op.array.offset.x, ed, &p.dstXInBytes))
			return CUDA_ERROR_INVALID_VALUE;
	} else if (to->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
		p.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
		p.dstDevice = to->op.ptr.ptr;
		p.dstHeight = to->op.ptr.layerHeight;
		if (__builtin_mul_overflow(to->op.ptr.rowLength, each, &p.dstPitch))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return copy_box(&p, w, sides);
}

static CUresult boxes(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed, unsigned long long flags,
		CUstream stream)
{
	struct stream *s;
	*failed = NONE;
	guarded g = enter_batch(stream, &s);
	if (g.error)
		return g.error;
	if (!n || n > BATCH_MOST || !ops || flags)
		return CUDA_ERROR_INVALID_VALUE;
	struct work w;
	struct copy_sides sides;
	CUresult r = CUDA_SUCCESS;
	for (size_t i = 0; i < n && !r; i++) {
		*failed = i;
		r = box(&ops[i], &w, &sides);
	}
	for (size_t i = 0; i < n && !r; i++) {
		*failed = i;
		if (!(r = box(&ops[i], &w, &sides)))
			r = submit(s, &w, &sides, ops[i].srcAccessOrder);
	}
	return r;
}

CUresult cuMemcpy3DBatchAsync_v2(
	size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream)
{
	size_t failed;
	return boxes(n, ops, &failed, flags, stream);
}

CUresult cuMemcpy3DBatchAsync(
	size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *bad, unsigned long long flags, CUstream stream)
{
	size_t failed;
	CUresult r = boxes(n, ops, &failed, flags, stream);
	if (bad)
		*bad = r ? failed : NONE;
	return r;
}

/* ---- managed memory: prefetches have nothing to do, and what is discarded may as well stay */

static CUresult managed(CUdeviceptr *p, size_t *sizes, size_t n, unsigned long long flags, CUstream stream)
{
	struct stream *s;
	guarded g = enter_batch(stream, &s);
	if (g.error)
		return g.error;
	if (!p || !sizes || !n || n > BATCH_MOST || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		struct allocation a;
		if (!sizes[i] || !allocation_find(p[i], &a) || a.kind != ALLOCATION_MANAGED ||
			sizes[i] > a.bytes - (p[i] - a.base))
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (s->capture)
		return capture_spoil(s);
	struct work w = {.type = WORK_EMPTY};
	return stream_submit(s, &w, NULL);
}

static bool places(const CUmemLocation *l, const size_t *starts, size_t n, size_t count)
{
	return l && starts_good(starts, n, count);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *p, size_t *sizes, size_t n, CUmemLocation *l, size_t *starts,
	size_t nl, unsigned long long flags, CUstream stream)
{
	return places(l, starts, nl, n) ? managed(p, sizes, n, flags, stream) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemDiscardBatchAsync(
	CUdeviceptr *p, size_t *sizes, size_t n, unsigned long long flags, CUstream stream)
{
	return managed(p, sizes, n, flags, stream);
}
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *p, size_t *sizes, size_t n, CUmemLocation *l,
	size_t *starts, size_t nl, unsigned long long flags, CUstream stream)
{
	return places(l, starts, nl, n) ? managed(p, sizes, n, flags, stream) : CUDA_ERROR_INVALID_VALUE;
}
