/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and description of arrays and mipmapped arrays.
 *
 * Thread rule: see state.h. */
#include "server/soft/array.h"
#include <stdlib.h>
#include "server/soft/allocation.h"
#include "server/soft/capture.h"
#include "server/soft/context.h"
#include "server/soft/stream.h"

#define DIMENSION_MOST 131072u
#define LEVELS_MOST 18

struct mipmap {
	struct object object;
	uint64_t base;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned levels;
	struct array *level[LEVELS_MOST]; /* handed out so far */
};

size_t array_element(CUarray_format format, unsigned channels)
{
	if (channels != 1 && channels != 2 && channels != 4)
		return 0;
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: return channels;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: return 2 * channels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: return 4 * channels;
	default: return 0;
	}
}

static void array_finish(struct object *o)
{
	struct array *a = (struct array *)o;
	if (a->owned)
		allocation_remove(a->base);
	free(a);
}

static CUresult shape(struct array *a, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	const unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
			       CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;
	a->element = array_element(d->Format, d->NumChannels);
	if (!a->element || !d->Width || d->Flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->Width > DIMENSION_MOST || d->Height > DIMENSION_MOST || d->Depth > DIMENSION_MOST)
		return CUDA_ERROR_INVALID_VALUE;
	bool layered = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	if ((d->Depth && !d->Height && !layered) ||
		(d->Flags & CUDA_ARRAY3D_CUBEMAP && (d->Width != d->Height || d->Depth % 6)))
		return CUDA_ERROR_INVALID_VALUE;
	a->width = d->Width;
	a->height = d->Height;
	a->depth = d->Depth;
	a->format = d->Format;
	a->channels = d->NumChannels;
	a->flags = d->Flags;
	a->pitch = a->width * a->element;
	a->slice = a->pitch * (a->height ? a->height : 1);
	return CUDA_SUCCESS;
}

static size_t bytes_of(const struct array *a)
{
	return a->slice * (a->depth ? a->depth : 1);
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!out || !d)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = capture_unsafe();
	if (r)
		return r;
	struct array *a = calloc(1, sizeof *a);
	if (!a)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = shape(a, d);
	if (!r) {
		struct allocation m = {
			.kind = ALLOCATION_ARRAY, .device = g.context->device, .owner = g.context};
		a->base = allocation_create(&m, bytes_of(a), 512);
		a->owned = true;
		if (!a->base)
			r = CUDA_ERROR_OUT_OF_MEMORY;
		else if (!object_open(&a->object, KIND_ARRAY, g.context, array_finish)) {
			allocation_remove(a->base);
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (r) {
		free(a);
		return r;
	}
	*out = HANDLE(a);
	return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR d3 = {
		.Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
	return cuArray3DCreate_v2(out, &d3);
}

CUresult cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR d3 = {.Width = d->Width,
		.Height = d->Height,
		.Depth = d->Depth,
		.Format = d->Format,
		.NumChannels = d->NumChannels,
		.Flags = d->Flags};
	return cuArray3DCreate_v2(out, &d3);
}

CUresult cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR d3 = {
		.Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
	return cuArray3DCreate_v2(out, &d3);
}

CUresult cuArrayDestroy(CUarray h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct array *a = object_find(h, KIND_ARRAY);
	if (!a || !a->owned)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult r = capture_unsafe();
	if (r)
		return r;
	object_ref(a);
	context_drain(a->object.context);
	if (a->object.handle)
		object_close(&a->object);
	object_unref(a);
	return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	const struct array *a = object_find(h, KIND_ARRAY);
	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	*d = (CUDA_ARRAY3D_DESCRIPTOR){a->width, a->height, a->depth, a->format, a->channels, a->flags};
	return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *d, CUarray h)
{
	CUDA_ARRAY3D_DESCRIPTOR d3;
	CUresult r = d ? cuArray3DGetDescriptor_v2(&d3, h) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*d = (CUDA_ARRAY_DESCRIPTOR){d3.Width, d3.Height, d3.Format, d3.NumChannels};
	return r;
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *d, CUarray h)
{
	CUDA_ARRAY3D_DESCRIPTOR d3;
	CUresult r = d ? cuArray3DGetDescriptor_v2(&d3, h) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*d = (CUDA_ARRAY3D_DESCRIPTOR_v1){(unsigned)d3.Width, (unsigned)d3.Height, (unsigned)d3.Depth,
			d3.Format, d3.NumChannels, d3.Flags};
	return r;
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *d, CUarray h)
{
	CUDA_ARRAY3D_DESCRIPTOR d3;
	CUresult r = d ? cuArray3DGetDescriptor_v2(&d3, h) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*d = (CUDA_ARRAY_DESCRIPTOR_v1){
			(unsigned)d3.Width, (unsigned)d3.Height, d3.Format, d3.NumChannels};
	return r;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray h, CUdevice device)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	const struct array *a = object_find(h, KIND_ARRAY);
	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = bytes_of(a), .alignment = 512};
	return CUDA_SUCCESS;
}

/* ---- mipmaps */

static void level_desc(const struct mipmap *m, unsigned level, CUDA_ARRAY3D_DESCRIPTOR *d)
{
	*d = m->desc;
	bool layered = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	d->Width = d->Width >> level ? d->Width >> level : 1;
	d->Height = !d->Height ? 0 : d->Height >> level ? d->Height >> level : 1;
	if (!layered)
		d->Depth = !d->Depth ? 0 : d->Depth >> level ? d->Depth >> level : 1;
}

static size_t level_bytes(const struct mipmap *m, unsigned level)
{
	struct array a;
	CUDA_ARRAY3D_DESCRIPTOR d;
	level_desc(m, level, &d);
	return shape(&a, &d) ? 0 : (bytes_of(&a) + 511) / 512 * 512;
}

bool mipmap_level(const struct mipmap *m, unsigned level, struct array *a)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	*a = (struct array){.base = m->base};
	if (level >= m->levels)
		return false;
	level_desc(m, level, &d);
	for (unsigned i = 0; i < level; i++)
		a->base += level_bytes(m, i);
	return !shape(a, &d);
}

static void mipmap_finish(struct object *o)
{
	struct mipmap *m = (struct mipmap *)o;
	for (unsigned i = 0; i < m->levels; i++)
		if (m->level[i])
			object_close(&m->level[i]->object);
	allocation_remove(m->base);
	free(m);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct array probe;
	if (!out || !d || shape(&probe, d) || !levels)
		return CUDA_ERROR_INVALID_VALUE;
	size_t longest = d->Width > d->Height ? d->Width : d->Height;
	if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && d->Depth > longest)
		longest = d->Depth;
	unsigned most = 1;
	while (longest >> most)
		most++;
	struct mipmap *m = calloc(1, sizeof *m);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->desc = *d;
	m->levels = levels < most ? levels : most;
	size_t n = 0;
	for (unsigned i = 0; i < m->levels; i++)
		n += level_bytes(m, i);
	struct allocation a = {.kind = ALLOCATION_ARRAY, .device = g.context->device, .owner = g.context};
	m->base = allocation_create(&a, n, 512);
	if (!m->base || !object_open(&m->object, KIND_MIPMAP, g.context, mipmap_finish)) {
		if (m->base)
			allocation_remove(m->base);
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = HANDLE(m);
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray h, unsigned level)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct mipmap *m = object_find(h, KIND_MIPMAP);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || level >= m->levels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!m->level[level]) {
		struct array *a = calloc(1, sizeof *a);
		if (!a || !mipmap_level(m, level, a) ||
			!object_open(&a->object, KIND_ARRAY, m->object.context, array_finish)) {
			free(a);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		m->level[level] = a;
	}
	*out = HANDLE(m->level[level]);
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct mipmap *m = object_find(h, KIND_MIPMAP);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	object_ref(m);
	context_drain(m->object.context);
	if (m->object.handle)
		object_close(&m->object);
	object_unref(m);
	return CUDA_SUCCESS;
}
