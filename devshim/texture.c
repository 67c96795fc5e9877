/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects: what they are made of holds a handle, so it is encoded by hand. The objects
 * themselves are the server's numbers, which kernels get as parameters.
 *
 * Thread rule: any thread. */
#include "devshim/call.h"
#include "devshim/process.h"
#include "wire/cuda.h"
#include "cuda.calls.h"

/* The struct's bytes, and the handle in it apart from them. */
static CUresult put_resource(struct call *c, const CUDA_RESOURCE_DESC *d)
{
	bool ok = true;

	put_bytes(&c->out, d, sizeof *d);
	switch (d->resType) {
	case CU_RESOURCE_TYPE_ARRAY: ok = put_handle(c, HANDLE_CUarray, d->res.array.hArray); break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		ok = put_handle(c, HANDLE_CUmipmappedArray, d->res.mipmap.hMipmappedArray);
		break;
	default: break;
	}
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
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
