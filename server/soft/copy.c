/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: boxes and lines of bytes, checked and made into work; how pageable memory is treated.
 *
 * Thread rule: see state.h. */
#include "server/soft/copy.h"
#include <stdlib.h>
#include <string.h>
#include "server/soft/allocation.h"
#include "server/soft/array.h"

#define STAGED_MOST                                                                                          \
	(1u << 20) /* bytes of a pageable source that are copied aside; longer copies are waited for */

static bool in_range(uint64_t p)
{
	return p >= soft_mem_base && p < soft_mem_end;
}

/* One side of a copy, as far as known. */
struct side {
	CUmemorytype type;
	uint64_t p;
	CUarray array;
	size_t x, y, z, pitch, height;
};

/* First byte and steps of a box on one side. */
static CUresult place(const struct side *s, size_t width, size_t height, size_t depth, uint64_t *first,
	size_t *pitch, size_t *slice, bool *pageable)
{
	*pageable = false;
	if (s->type == CU_MEMORYTYPE_ARRAY) {
		const struct array *a = object_find(s->array, KIND_ARRAY);
		if (!a)
			return s->array ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
		size_t rows = a->height ? a->height : 1, slices = a->depth ? a->depth : 1;
		if (s->x > a->pitch || width > a->pitch - s->x || s->y > rows || height > rows - s->y ||
			s->z > slices || depth > slices - s->z)
			return CUDA_ERROR_INVALID_VALUE;
		*pitch = a->pitch;
		*slice = a->slice;
		*first = a->base + s->z * a->slice + s->y * a->pitch + s->x;
		return CUDA_SUCCESS;
	}
	if (s->type != CU_MEMORYTYPE_HOST && s->type != CU_MEMORYTYPE_DEVICE &&
		s->type != CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	size_t row, offset, span, y, z;
	if (__builtin_add_overflow(s->x, width, &row))
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = s->pitch ? s->pitch : row;
	if (*pitch < row)
		return CUDA_ERROR_INVALID_VALUE;
	size_t rows = s->height ? s->height : s->y + height;
	if (depth > 1 && rows < height)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(*pitch, rows, slice) || __builtin_mul_overflow(s->y, *pitch, &y) ||
		__builtin_mul_overflow(s->z, *slice, &z) || __builtin_add_overflow(y, z, &offset) ||
		__builtin_add_overflow(offset, s->x, &offset) ||
		__builtin_add_overflow(s->p, offset, first) ||
		!box_span(width, height, depth, *pitch, *slice, &span))
		return CUDA_ERROR_INVALID_VALUE;
	if (!width || !height || !depth)
		return CUDA_SUCCESS;
	if (!s->p)
		return CUDA_ERROR_INVALID_VALUE;
	bool known = allocation_covers(*first, span);
	*pageable = !known;
	bool device = s->type == CU_MEMORYTYPE_DEVICE || in_range(*first);
	return device && !known ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult copy_box(const CUDA_MEMCPY3D *p, struct work *w, struct copy_sides *sides)
{
	struct side src = {p->srcMemoryType,
		p->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->srcHost : p->srcDevice, p->srcArray,
		p->srcXInBytes, p->srcY, p->srcZ, p->srcPitch, p->srcHeight};
	struct side dst = {p->dstMemoryType,
		p->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->dstHost : p->dstDevice, p->dstArray,
		p->dstXInBytes, p->dstY, p->dstZ, p->dstPitch, p->dstHeight};
	struct work_copy k = {.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
	uint64_t from = 0, to = 0;
	CUresult r = place(
		&src, k.width, k.height, k.depth, &from, &k.src_pitch, &k.src_slice, &sides->src_pageable);
	if (!r)
		r = place(&dst, k.width, k.height, k.depth, &to, &k.dst_pitch, &k.dst_slice,
			&sides->dst_pageable);
	if (r)
		return r;
	if (!k.height || !k.depth)
		k.width = 0;
	k.src = (const char *)(uintptr_t)from;
	k.dst = (char *)(uintptr_t)to;
	*w = (struct work){.type = WORK_COPY, .copy = k};
	return CUDA_SUCCESS;
}

static CUresult line(uint64_t p, enum copy_kind kind, size_t n, bool *pageable)
{
	bool known = allocation_covers(p, n);
	*pageable = !known;
	if (!p || p + n < p)
		return CUDA_ERROR_INVALID_VALUE;
	return !known && (kind == COPY_DEVICE || in_range(p)) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult copy_linear(uint64_t dst, enum copy_kind dst_kind, uint64_t src, enum copy_kind src_kind, size_t n,
	struct work *w, struct copy_sides *sides)
{
	*sides = (struct copy_sides){0};
	*w = work_linear(dst, src, n);
	if (!n)
		return CUDA_SUCCESS;
	CUresult r = line(dst, dst_kind, n, &sides->dst_pageable);
	return r ? r : line(src, src_kind, n, &sides->src_pageable);
}

CUDA_MEMCPY3D copy_from_2d(const CUDA_MEMCPY2D *p)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = 1,
	};
}

/* The source may be overwritten by the program as soon as the call returns. */
static CUresult stage(struct work_copy *k)
{
	size_t n = k->width * k->height * k->depth;
	char *copy = malloc(n);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t z = 0; z < k->depth; z++)
		for (size_t y = 0; y < k->height; y++)
			memcpy(copy + (z * k->height + y) * k->width,
				k->src + z * k->src_slice + y * k->src_pitch, k->width);
	k->staged = copy;
	return CUDA_SUCCESS;
}

static bool of_the_host(const void *p)
{
	struct allocation a;
	return !allocation_find((uintptr_t)p, &a) || a.kind == ALLOCATION_PINNED ||
			a.kind == ALLOCATION_REGISTERED;
}

/* A copy between two places of the host's memory is synchronous, as CUDA says. */
CUresult copy_submit(struct stream *s, struct work *w, const struct copy_sides *sides, bool async)
{
	const struct work_copy *k = &w->copy;
	if (!k->width && !s->capture)
		return s->object.context->error;
	if (!async)
		return stream_submit_wait(s, w);
	if (s->capture)
		return stream_submit(s, w, NULL);
	if (sides->dst_pageable || (of_the_host(k->src) && of_the_host(k->dst)))
		return stream_submit_wait(s, w);
	if (sides->src_pageable) {
		if (stream_idle(s) || k->width * k->height * k->depth > STAGED_MOST)
			return stream_submit_wait(s, w);
		CUresult r = stage(&w->copy);
		if (r)
			return r;
	}
	return stream_submit(s, w, NULL);
}

bool copy_from_host(const struct work *w)
{
	struct allocation a;
	return !allocation_find((uintptr_t)w->copy.src, &a) || a.kind == ALLOCATION_PINNED ||
	       a.kind == ALLOCATION_REGISTERED || a.kind == ALLOCATION_MANAGED;
}
