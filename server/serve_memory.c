/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of memory pools; texture and surface objects and the mapping of arrays, whose descriptions hold
 * handles. Thread rule: as exec.h; no state. */
#include "server/exec.h"
#include "wire/limits.h"
#include "cuda.calls.h"

static bool is_switch(CUmemPool_attribute a)
{
	return a == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
	       a == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
	       a == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

/* [pool, attribute, value] */
CUresult serve_cuMemPoolSetAttribute(struct exec *x)
{
	CUmemoryPool pool = exec_handle(x, HANDLE_CUmemoryPool);
	CUmemPool_attribute a = (CUmemPool_attribute)get_i64(&x->in);
	cuuint64_t v = get_u64(&x->in);
	int on = v != 0;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	return drv.cuMemPoolSetAttribute(pool, a, is_switch(a) ? (void *)&on : (void *)&v);
}

CUresult serve_cuMemPoolGetAttribute(struct exec *x)
{
	CUmemoryPool pool = exec_handle(x, HANDLE_CUmemoryPool);
	CUmemPool_attribute a = (CUmemPool_attribute)get_i64(&x->in);
	cuuint64_t v = 0;
	int on = 0;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuMemPoolGetAttribute(pool, a, is_switch(a) ? (void *)&on : (void *)&v);

	if (!r)
		put_u64(&x->out, is_switch(a) ? (uint64_t)on : v);
	return r;
}

static void get_resource(struct exec *x, CUDA_RESOURCE_DESC *d)
{
	get_bytes(&x->in, d, sizeof *d);
	if (x->in.bad)
		return;
	if (d->resType == CU_RESOURCE_TYPE_ARRAY)
		d->res.array.hArray = exec_handle(x, HANDLE_CUarray);
	else if (d->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		d->res.mipmap.hMipmappedArray = exec_handle(x, HANDLE_CUmipmappedArray);
}

/* [resource, its handle, texture, view or not] */
CUresult serve_cuTexObjectCreate(struct exec *x)
{
	CUDA_RESOURCE_DESC resource = {0};
	CUDA_TEXTURE_DESC texture = {0};
	CUDA_RESOURCE_VIEW_DESC view = {0};
	CUtexObject object = 0;

	get_resource(x, &resource);
	get_bytes(&x->in, &texture, sizeof texture);
	bool has_view = get_bool(&x->in);

	if (has_view)
		get_bytes(&x->in, &view, sizeof view);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuTexObjectCreate(&object, &resource, &texture, has_view ? &view : NULL);

	if (!r)
		put_u64(&x->out, object);
	return r;
}

CUresult serve_cuSurfObjectCreate(struct exec *x)
{
	CUDA_RESOURCE_DESC resource = {0};
	CUsurfObject object = 0;

	get_resource(x, &resource);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuSurfObjectCreate(&object, &resource);

	if (!r)
		put_u64(&x->out, object);
	return r;
}

/* The struct's bytes without handles and what they name apart, as in the other direction. */
static void put_resource(struct exec *x, CUDA_RESOURCE_DESC *d)
{
	void *array = NULL;
	unsigned type = HANDLE_NONE;

	if (d->resType == CU_RESOURCE_TYPE_ARRAY) {
		type = HANDLE_CUarray;
		array = d->res.array.hArray;
		d->res.array.hArray = NULL;
	} else if (d->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
		type = HANDLE_CUmipmappedArray;
		array = d->res.mipmap.hMipmappedArray;
		d->res.mipmap.hMipmappedArray = NULL;
	}
	put_bytes(&x->out, d, sizeof *d);
	if (type != HANDLE_NONE)
		exec_put_handle(x, type, array);
}

static CUresult serve_resource(struct exec *x, CUresult (*get)(CUDA_RESOURCE_DESC *, unsigned long long))
{
	unsigned long long object = get_u64(&x->in);
	CUDA_RESOURCE_DESC d = {0};

	if (!get_end(&x->in))
		return SERVE_BAD;
	CUresult r = get(&d, object);

	if (!r)
		put_resource(x, &d);
	return r;
}

CUresult serve_cuTexObjectGetResourceDesc(struct exec *x)
{
	return serve_resource(x, drv.cuTexObjectGetResourceDesc);
}

CUresult serve_cuSurfObjectGetResourceDesc(struct exec *x)
{
	return serve_resource(x, drv.cuSurfObjectGetResourceDesc);
}

/* [an array of the struct's bytes and its array in turn, stream] */
CUresult serve_cuMemMapArrayAsync(struct exec *x)
{
	size_t n = get_array(&x->in, LIMIT_ARRAY);
	CUarrayMapInfo *maps = exec_alloc(x, (n + 1) * sizeof *maps);

	for (size_t i = 0; maps && i < n; i++) {
		CUarrayMapInfo *m = &maps[i];

		get_bytes(&x->in, m, sizeof *m);
		if (m->resourceType == CU_RESOURCE_TYPE_ARRAY)
			m->resource.array = exec_handle(x, HANDLE_CUarray);
		else
			m->resource.mipmap = exec_handle(x, HANDLE_CUmipmappedArray);
	}
	CUstream stream = exec_handle(x, HANDLE_CUstream);

	if (!maps || !get_end(&x->in))
		return SERVE_BAD;
	return x->bad_handle ? x->handle_code : drv.cuMemMapArrayAsync(maps, (unsigned)n, stream);
}
