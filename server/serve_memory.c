/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of memory pools, and texture and surface objects, whose descriptions hold handles. Thread
 * rule: as exec.h; no state. */
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
