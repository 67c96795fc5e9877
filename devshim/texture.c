/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects, and memory behind sparse arrays: their descriptions hold handles, so they are
 * encoded by hand. The objects themselves are the server's numbers, which kernels get as parameters.
 *
 * Thread rule: any thread. */
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"

/* The struct's bytes, and the handle in it apart from them. */
static CUresult put_resource(struct call *c, const CUDA_RESOURCE_DESC *d)
{
	const void *h = NULL;
	bool ok = true;

	put_bytes(&c->out, d, sizeof *d);
	switch (d->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		h = d->res.array.hArray;
		ok = put_handle(c, HANDLE_CUarray, h);
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		h = d->res.mipmap.hMipmappedArray;
		ok = put_handle(c, HANDLE_CUmipmappedArray, h);
		break;
	default: break;
	}
	return ok ? CUDA_SUCCESS : h ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

static CUresult made(struct call *c, uint64_t *object)
{
	CUresult r = call_wait(c);

	if (!r)
		*object = get_u64(&c->in);
	return call_end(c, r);
}

CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
	const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	struct call c;
	uint64_t object = 0;
	CUresult r = call_begin(&c, CALL_cuTexObjectCreate);

	if (r)
		return r;
	if (!pTexObject || !pResDesc || !pTexDesc)
		return CUDA_ERROR_INVALID_VALUE;
	r = put_resource(&c, pResDesc);
	if (r)
		return r;
	put_bytes(&c.out, pTexDesc, sizeof *pTexDesc);
	put_bool(&c.out, pResViewDesc);
	if (pResViewDesc)
		put_bytes(&c.out, pResViewDesc, sizeof *pResViewDesc);
	r = made(&c, &object);
	if (!r)
		*pTexObject = object;
	return r;
}

CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	struct call c;
	uint64_t object = 0;
	CUresult r = call_begin(&c, CALL_cuSurfObjectCreate);

	if (r)
		return r;
	if (!pSurfObject || !pResDesc)
		return CUDA_ERROR_INVALID_VALUE;
	r = put_resource(&c, pResDesc);
	if (r)
		return r;
	r = made(&c, &object);
	if (!r)
		*pSurfObject = object;
	return r;
}

/* ---- what an object is made of */

static CUresult ask(unsigned id, CUDA_RESOURCE_DESC *d, unsigned long long object)
{
	CUDA_RESOURCE_DESC got = {0};
	struct call c;
	CUresult r = call_begin(&c, id);

	if (r)
		return r;
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	put_u64(&c.out, object);
	r = call_wait(&c);
	if (!r) {
		get_bytes(&c.in, &got, sizeof got);
		if (got.resType == CU_RESOURCE_TYPE_ARRAY)
			got.res.array.hArray = get_handle(&c, HANDLE_CUarray);
		else if (got.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
			got.res.mipmap.hMipmappedArray = get_handle(&c, HANDLE_CUmipmappedArray);
	}
	r = call_end(&c, r);
	if (!r)
		*d = got;
	return r;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	return ask(CALL_cuTexObjectGetResourceDesc, pResDesc, texObject);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	return ask(CALL_cuSurfObjectGetResourceDesc, pResDesc, surfObject);
}

/* ---- memory behind sparse arrays */

CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (!r && ((!mapInfoList && count) || count > LIMIT_ARRAY))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = call_begin(&c, CALL_cuMemMapArrayAsync);
	if (r)
		return r;
	put_array(&c.out, count);
	for (unsigned i = 0; i < count; i++) {
		const CUarrayMapInfo *m = &mapInfoList[i];
		bool array = m->resourceType == CU_RESOURCE_TYPE_ARRAY;

		put_bytes(&c.out, m, sizeof *m);
		if (!put_handle(&c, array ? HANDLE_CUarray : HANDLE_CUmipmappedArray,
			    array ? (void *)m->resource.array : (void *)m->resource.mipmap))
			return CUDA_ERROR_INVALID_HANDLE;
	}
	if (!put_handle(&c, HANDLE_CUstream, hStream))
		return handle_error(HANDLE_CUstream);
	r = call_wait(&c);
	r = call_end(&c, r);
	if (!r)
		work_posted(work_of(hStream), c.seq);
	return r;
}
