/* SPDX-License-Identifier: Apache-2.0 */
/* The texture and surface object functions of the API. What kernels read lies in a table of its own, which
 * they may look into at any time: an object is destroyed only after the work of its context has ended.
 *
 * Thread rule: see state.h. */
#include "server/soft/texture.h"
#include <stdlib.h>
#include <string.h>
#include "server/soft/allocation.h"
#include "server/soft/array.h"
#include "server/soft/context.h"
#include "server/soft/device.h"
#include "server/soft/stream.h"

#define TEXTURE_FLAGS \
	(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | \
		CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)
#define TEXTURES_MOST 65536

struct texture_object {
	struct object object;
	struct texture view;
	struct object *array; /* a reference; NULL: linear memory */
	uint64_t handle; /* index and generation, as kernels know it */
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC window;
};

static struct texture_object *table[TEXTURES_MOST]; /* read by kernels without a lock */
static uint32_t generation, highest;

static struct texture_object *object_at(uint64_t handle)
{
	struct texture_object *t = handle && (handle & 0xffff) < TEXTURES_MOST
					   ? __atomic_load_n(&table[handle & 0xffff], __ATOMIC_ACQUIRE)
					   : NULL;
	return t && t->handle == handle ? t : NULL;
}

const struct texture *texture_at(uint64_t handle)
{
	const struct texture_object *t = object_at(handle);
	return t ? &t->view : NULL;
}

static void texture_finish(struct object *o)
{
	struct texture_object *t = (struct texture_object *)o;
	__atomic_store_n(&table[t->handle & 0xffff], NULL, __ATOMIC_RELEASE);
	object_unref(t->array);
	free(t);
}

static bool format_of(CUarray_format f, enum texture_format *out)
{
	static const struct {
		CUarray_format from;
		enum texture_format to;
	} map[] = {
		{CU_AD_FORMAT_UNSIGNED_INT8, TEXTURE_U8},
		{CU_AD_FORMAT_UNSIGNED_INT16, TEXTURE_U16},
		{CU_AD_FORMAT_UNSIGNED_INT32, TEXTURE_U32},
		{CU_AD_FORMAT_SIGNED_INT8, TEXTURE_S8},
		{CU_AD_FORMAT_SIGNED_INT16, TEXTURE_S16},
		{CU_AD_FORMAT_SIGNED_INT32, TEXTURE_S32},
		{CU_AD_FORMAT_HALF, TEXTURE_HALF},
		{CU_AD_FORMAT_FLOAT, TEXTURE_FLOAT},
	};
	for (size_t i = 0; i < sizeof map / sizeof *map; i++)
		if (map[i].from == f) {
			*out = map[i].to;
			return true;
		}
	return false;
}

static void level_read(struct texture_level *v, const struct array *a)
{
	*v = (struct texture_level){.base = a->base,
		.width = a->width,
		.height = a->height ? a->height : 1,
		.depth = a->depth ? a->depth : 1,
		.pitch = a->pitch,
		.slice = a->slice};
}

static CUresult mipmap_read(struct texture_object *t, void *handle, CUarray_format *format)
{
	struct array a;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	struct mipmap *m = object_find(handle, KIND_MIPMAP);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	t->array = object_ref(m);
	for (t->view.levels = 0; t->view.levels < TEXTURE_LEVELS && mipmap_level(m, t->view.levels, &a);
		t->view.levels++) {
		level_read(&t->view.level[t->view.levels], &a);
		*format = a.format;
		t->view.channels = a.channels;
		t->view.element = (unsigned)a.element;
	}
	return CUDA_SUCCESS;
}

/* The memory that a resource stands for. */
static CUresult resource_read(struct texture_object *t, const CUDA_RESOURCE_DESC *r)
{
	struct texture *x = &t->view;
	struct texture_level *v = &x->level[0];
	CUarray_format format = 0;
	CUresult e;
	v->depth = 1;
	x->levels = 1;
	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY: {
		if (!r->res.array.hArray)
			return CUDA_ERROR_INVALID_VALUE;
		const struct array *a = object_find(r->res.array.hArray, KIND_ARRAY);
		if (!a)
			return CUDA_ERROR_INVALID_HANDLE;
		t->array = object_ref((void *)a);
		level_read(v, a);
		x->channels = a->channels;
		x->element = (unsigned)a->element;
		format = a->format;
		break;
	}
	case CU_RESOURCE_TYPE_LINEAR:
		v->base = r->res.linear.devPtr;
		x->channels = r->res.linear.numChannels;
		format = r->res.linear.format;
		x->element = (unsigned)array_element(format, x->channels);
		v->width = x->element ? r->res.linear.sizeInBytes / x->element : 0;
		v->height = 1;
		v->pitch = v->slice = r->res.linear.sizeInBytes;
		x->buffer = true;
		break;
	case CU_RESOURCE_TYPE_PITCH2D:
		v->base = r->res.pitch2D.devPtr;
		x->channels = r->res.pitch2D.numChannels;
		format = r->res.pitch2D.format;
		x->element = (unsigned)array_element(format, x->channels);
		v->width = r->res.pitch2D.width;
		v->height = r->res.pitch2D.height;
		v->pitch = r->res.pitch2D.pitchInBytes;
		if (!x->element || v->width > v->pitch / x->element ||
			__builtin_mul_overflow(v->pitch, v->height, &v->slice))
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		e = mipmap_read(t, r->res.mipmap.hMipmappedArray, &format);
		if (e)
			return e;
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	if (!x->element || !v->width || !v->height || !format_of(format, &x->format))
		return CUDA_ERROR_INVALID_VALUE;
	size_t span;
	if (!t->array && (!box_span(v->width * x->element, v->height, 1, v->pitch, 0, &span) ||
				 !allocation_covers(v->base, span)))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* A window on the resource: another format of as many bytes, some of its levels and layers. */
static CUresult window_read(struct texture *x, const CUDA_RESOURCE_VIEW_DESC *w, bool array)
{
	static const enum texture_format formats[] = {TEXTURE_U8, TEXTURE_S8, TEXTURE_U16, TEXTURE_S16,
		TEXTURE_U32, TEXTURE_S32, TEXTURE_HALF, TEXTURE_FLOAT};
	static const uint8_t channels[] = {1, 2, 4}, bytes[] = {1, 1, 2, 2, 4, 4, 2, 4};
	if (!w->format)
		return CUDA_SUCCESS;
	unsigned k = (unsigned)w->format - 1;
	if (!array || k > CU_RES_VIEW_FORMAT_UNSIGNED_BC7 - 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (k >= 24) /* compressed blocks */
		return CUDA_ERROR_NOT_SUPPORTED;
	bool layers = w->lastLayer || w->firstLayer;
	if ((unsigned)channels[k % 3] * bytes[k / 3] != x->element || w->width != x->level[0].width ||
		(w->height ? w->height : 1) != x->level[0].height ||
		(w->depth && w->depth != x->level[0].depth) ||
		w->firstMipmapLevel > w->lastMipmapLevel || w->lastMipmapLevel >= x->levels ||
		w->firstLayer > w->lastLayer || (layers && w->lastLayer >= x->level[0].depth))
		return CUDA_ERROR_INVALID_VALUE;
	x->format = formats[k / 3];
	x->channels = channels[k % 3];
	x->levels = w->lastMipmapLevel - w->firstMipmapLevel + 1;
	for (unsigned i = 0; i < x->levels; i++) {
		struct texture_level *v = &x->level[i];
		*v = x->level[i + w->firstMipmapLevel];
		if (layers) {
			v->base += w->firstLayer * v->slice;
			v->depth = w->lastLayer - w->firstLayer + 1;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult description_read(struct texture *x, const CUDA_TEXTURE_DESC *d)
{
	for (int i = 0; i < 3; i++) {
		if ((unsigned)d->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
		x->mode[i] = (enum texture_mode)d->addressMode[i];
	}
	if (d->flags & ~(unsigned)TEXTURE_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)d->filterMode > CU_TR_FILTER_MODE_LINEAR ||
		(unsigned)d->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
		return CUDA_ERROR_INVALID_VALUE;
	x->filter = d->filterMode == CU_TR_FILTER_MODE_LINEAR;
	x->blend = d->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
	x->bias = d->mipmapLevelBias;
	x->least = d->minMipmapLevelClamp;
	x->most = d->maxMipmapLevelClamp;
	x->normalized = d->flags & CU_TRSF_NORMALIZED_COORDINATES;
	x->integers = d->flags & CU_TRSF_READ_AS_INTEGER;
	x->seamless = d->flags & CU_TRSF_SEAMLESS_CUBEMAP;
	x->srgb = d->flags & CU_TRSF_SRGB;
	memcpy(x->border, d->borderColor, sizeof x->border);
	return CUDA_SUCCESS;
}

static bool bordered(const CUDA_TEXTURE_DESC *d)
{
	for (int i = 0; i < 3; i++)
		if (d->addressMode[i] == CU_TR_ADDRESS_MODE_BORDER)
			return true;
	return false;
}

CUresult texture_create(struct context *c, CUtexObject *out, const CUDA_RESOURCE_DESC *r,
	const CUDA_TEXTURE_DESC *d, const CUDA_RESOURCE_VIEW_DESC *w)
{
	uint32_t at = 1;
	while (at < highest && table[at])
		at++;
	struct texture_object *t = at < TEXTURES_MOST ? calloc(1, sizeof *t) : NULL;
	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult e = resource_read(t, r);
	if (!e && w)
		e = window_read(&t->view, w, t->array);
	if (!e && d)
		e = description_read(&t->view, d);
	if (!e && !object_open(&t->object, d ? KIND_TEXTURE : KIND_SURFACE, c, texture_finish))
		e = CUDA_ERROR_OUT_OF_MEMORY;
	if (e) {
		object_unref(t->array);
		free(t);
		return e;
	}
	t->view.surface = !d;
	t->resource = *r;
	if (d)
		t->texture = *d;
	/* As a driver tells it again: what no coordinate leads to is not kept. */
	if (d && !bordered(d))
		memset(t->texture.borderColor, 0, sizeof t->texture.borderColor);
	if (w)
		t->window = *w;
	if (at >= highest)
		highest = at + 1;
	t->handle = (uint64_t)++generation << 16 | at;
	__atomic_store_n(&table[at], t, __ATOMIC_RELEASE);
	*out = t->handle;
	return CUDA_SUCCESS;
}

static CUresult create(CUtexObject *out, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d,
	const CUDA_RESOURCE_VIEW_DESC *w)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	return out && r ? texture_create(g.context, out, r, d, w) : CUDA_ERROR_INVALID_VALUE;
}

void texture_destroy(uint64_t handle)
{
	struct texture_object *t = object_at(handle);
	if (!t)
		return;
	object_ref(t);
	context_drain(t->object.context);
	if (t->object.handle)
		object_close(&t->object);
	object_unref(t);
}

static CUresult destroy(uint64_t handle, enum kind kind)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct texture_object *t = object_at(handle);
	if (!handle)
		return CUDA_SUCCESS;
	if (!t || t->object.kind != kind)
		return CUDA_ERROR_INVALID_VALUE;
	texture_destroy(handle);
	return CUDA_SUCCESS;
}

/* Memory that an object reads begins and goes on where the device's attributes say. (A reference takes any
 * address.) */
static bool aligned(const CUDA_RESOURCE_DESC *r)
{
	if (r->resType == CU_RESOURCE_TYPE_LINEAR)
		return r->res.linear.devPtr % TEXTURE_ALIGNMENT == 0;
	if (r->resType == CU_RESOURCE_TYPE_PITCH2D)
		return r->res.pitch2D.devPtr % TEXTURE_ALIGNMENT == 0 &&
		       r->res.pitch2D.pitchInBytes % TEXTURE_PITCH_ALIGNMENT == 0;
	return true;
}

CUresult cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d,
	const CUDA_RESOURCE_VIEW_DESC *w)
{
	return d && r && !r->flags && aligned(r) ? create(out, r, d, w) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuTexObjectDestroy(CUtexObject h)
{
	return destroy(h, KIND_TEXTURE);
}
CUresult cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *r)
{
	return r && r->resType == CU_RESOURCE_TYPE_ARRAY ? create(out, r, NULL, NULL)
							 : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuSurfObjectDestroy(CUsurfObject h)
{
	return destroy(h, KIND_SURFACE);
}

static struct guard enter_texture(uint64_t handle, enum kind kind, const void *out, struct texture_object **t)
{
	struct guard g = enter_healthy();
	if (g.error)
		return g;
	*t = object_at(handle);
	if (!*t || !out || (*t)->object.kind != kind) {
		guard_leave(&g);
		g = (struct guard){.error = CUDA_ERROR_INVALID_VALUE};
	}
	return g;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject h)
{
	struct texture_object *t;
	guarded g = enter_texture(h, KIND_TEXTURE, out, &t);
	if (!g.error)
		*out = t->resource;
	return g.error;
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject h)
{
	struct texture_object *t;
	guarded g = enter_texture(h, KIND_SURFACE, out, &t);
	if (!g.error)
		*out = t->resource;
	return g.error;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject h)
{
	struct texture_object *t;
	guarded g = enter_texture(h, KIND_TEXTURE, out, &t);
	if (!g.error)
		*out = t->texture;
	return g.error;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *out, CUtexObject h)
{
	struct texture_object *t;
	guarded g = enter_texture(h, KIND_TEXTURE, out, &t);
	if (!g.error)
		*out = t->window;
	return g.error;
}
