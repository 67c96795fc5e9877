/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface references: variables of a module that the program binds to memory. What is bound is an
 * object like any other (texture.c), made anew when the reference changes; its handle stands in the variable,
 * where kernels find it. How it is read, and questions, are in reference_mode.c.
 *
 * Thread rule: see state.h. */
#include "server/soft/reference.h"
#include <stdlib.h>
#include "server/soft/array.h"
#include "server/soft/context.h"
#include "server/soft/engine.h"
#include "server/soft/module.h"
#include "server/soft/texture.h"

#define ALIGN 512u /* of linear memory, as cuDeviceGetAttribute tells it */

static struct reference *all;

static void reference_finish(struct object *o)
{
	struct reference *r = (struct reference *)o;
	for (struct reference **p = &all; *p; p = &(*p)->next)
		if (*p == r) {
			*p = r->next;
			break;
		}
	free(r);
}

static struct reference *make(struct context *c, const struct module *m, uint64_t *cell, bool surface)
{
	struct reference *r = calloc(1, sizeof *r);
	if (!r || !object_open(&r->object, KIND_REFERENCE, c, reference_finish)) {
		free(r);
		return NULL;
	}
	r->module = m;
	r->cell = cell;
	r->surface = surface;
	r->format = CU_AD_FORMAT_FLOAT;
	r->channels = 1;
	for (int i = 0; i < 3; i++)
		r->texture.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
	r->next = all;
	all = r;
	return r;
}

static void unbind(struct reference *r)
{
	if (r->cell)
		__atomic_store_n(r->cell, 0, __ATOMIC_RELEASE);
	if (r->bound)
		texture_destroy(r->bound);
	r->bound = 0;
}

void references_drop(const struct module *m)
{
	struct reference *next;
	for (struct reference *r = all; r; r = next) {
		next = r->next;
		if (r->module != m)
			continue;
		r->cell = NULL; /* the variable goes, too */
		unbind(r);
		object_close(&r->object);
	}
}

CUresult reference_bind(struct reference *r)
{
	CUtexObject object = 0;
	if (!r->has)
		return CUDA_SUCCESS;
	CUresult e = texture_create(
		r->object.context, &object, &r->resource, r->surface ? NULL : &r->texture, NULL);
	if (e)
		return e;
	unbind(r);
	r->bound = object;
	if (r->cell)
		__atomic_store_n(r->cell, object, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

struct guard reference_enter(const void *h, bool surface, struct reference **r)
{
	struct guard g = enter_healthy();
	if (g.error)
		return g;
	*r = object_find(h, KIND_REFERENCE);
	if (!*r || (*r)->surface != surface) {
		guard_leave(&g);
		g = (struct guard){.error = CUDA_ERROR_INVALID_HANDLE};
	}
	return g;
}

/* ---- finding and making */

static CUresult find(void **out, CUmodule h, const char *name, bool surface)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct module *m = object_find(h, KIND_MODULE);
	uint64_t *cell;
	if (!out || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!m->code || !engine_reference_find(m->code, name, surface, &cell))
		return CUDA_ERROR_NOT_FOUND;
	struct reference *r = all;
	while (r && r->cell != cell)
		r = r->next;
	if (!r)
		r = make(m->object.context, m, cell, surface);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(r);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetTexRef(CUtexref *out, CUmodule m, const char *name)
{
	return find((void **)out, m, name, false);
}
CUresult cuModuleGetSurfRef(CUsurfref *out, CUmodule m, const char *name)
{
	return find((void **)out, m, name, true);
}

CUresult cuTexRefCreate(CUtexref *out)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	struct reference *r = make(g.context, NULL, NULL, false);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(r);
	return CUDA_SUCCESS;
}

CUresult cuTexRefDestroy(CUtexref h)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (r->module)
		return CUDA_ERROR_INVALID_VALUE;
	unbind(r);
	object_close(&r->object);
	return CUDA_SUCCESS;
}

/* ---- what it is bound to */

static CUresult array_bind(struct reference *r, CUarray h, bool override)
{
	const struct array *a = object_find(h, KIND_ARRAY);
	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	struct reference before = *r;
	r->resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = h};
	r->has = true;
	if (override) {
		r->format = a->format;
		r->channels = (int)a->channels;
	}
	CUresult e = reference_bind(r);
	if (e) {
		before.next = r->next;
		*r = before;
	}
	return e;
}

CUresult cuTexRefSetArray(CUtexref h, CUarray array, unsigned flags)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (flags & ~(unsigned)CU_TRSA_OVERRIDE_FORMAT)
		return CUDA_ERROR_INVALID_VALUE;
	return array_bind(r, array, flags & CU_TRSA_OVERRIDE_FORMAT);
}

CUresult cuSurfRefSetArray(CUsurfref h, CUarray array, unsigned flags)
{
	struct reference *r;
	guarded g = reference_enter(h, true, &r);
	if (g.error)
		return g.error;
	const struct array *a = object_find(array, KIND_ARRAY);
	if (flags || (a && !(a->flags & CUDA_ARRAY3D_SURFACE_LDST)))
		return CUDA_ERROR_INVALID_VALUE;
	return array_bind(r, array, true);
}

static CUresult memory_bind(struct reference *r, const CUDA_RESOURCE_DESC *resource)
{
	CUDA_RESOURCE_DESC before = r->resource;
	bool had = r->has;
	r->resource = *resource;
	r->has = true;
	CUresult e = reference_bind(r);
	if (e) {
		r->resource = before;
		r->has = had;
	}
	return e;
}

CUresult cuTexRefSetMipmappedArray(CUtexref h, CUmipmappedArray array, unsigned flags)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (flags != CU_TRSA_OVERRIDE_FORMAT)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_RESOURCE_DESC d = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
			.res.mipmap.hMipmappedArray = array};
	return object_find(array, KIND_MIPMAP) ? memory_bind(r, &d) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref h, CUdeviceptr p, size_t bytes)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	size_t over = p % ALIGN;
	if (over && !offset)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_RESOURCE_DESC d = {.resType = CU_RESOURCE_TYPE_LINEAR,
		.res.linear = {.devPtr = p - over,
			.format = r->format,
			.numChannels = (unsigned)r->channels,
			.sizeInBytes = bytes + over}};
	CUresult e = memory_bind(r, &d);
	if (!e && offset)
		*offset = over;
	return e;
}

CUresult cuTexRefSetAddress2D_v3(CUtexref h, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr p, size_t pitch)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (!desc || p % ALIGN || pitch % 32)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_RESOURCE_DESC d = {.resType = CU_RESOURCE_TYPE_PITCH2D,
		.res.pitch2D = {.devPtr = p,
			.format = desc->Format,
			.numChannels = desc->NumChannels,
			.width = desc->Width,
			.height = desc->Height,
			.pitchInBytes = pitch}};
	return memory_bind(r, &d);
}
CUresult cuTexRefSetAddress2D_v2(CUtexref h, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr p, size_t pitch)
{
	return cuTexRefSetAddress2D_v3(h, desc, p, pitch);
}
