/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory: its allocation, and the hints about where it is used. Hints concern the server's side and
 * go to the server's driver.
 *
 * Thread rule: any thread. */
#include "devshim/managed.h"
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/device.h"
#include "devshim/mirror.h"
#include "devshim/range.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct context *ctx;
	struct call c;
	CUdeviceptr p = 0;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	if (!dptr || !bytesize || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	if (bytesize > LIMIT_MIRROR) {
		log_warning("managed memory: %zu bytes are more than the %llu that a program may have",
			bytesize, LIMIT_MIRROR);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = call_begin(&c, CALL_cuMemAllocManaged);
	if (r)
		return r;
	put_u64(&c.out, bytesize);
	put_u64(&c.out, flags);
	r = call_wait(&c);
	if (!r)
		p = get_u64(&c.in);
	r = call_end(&c, r);
	if (r)
		return r;
	r = mirror_managed(p, bytesize, NULL);
	if (r)
		remote_cuMemFree_v2(p);
	else
		*dptr = p;
	return r;
}

CUresult managed_check(CUdeviceptr p, size_t n)
{
	struct range range;
	CUresult r = process_check();

	if (r)
		return r;
	return range_find(p, &range) && range.kind == RANGE_MANAGED && n && range_has(&range, p, n)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync_v2(
	CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream)
{
	CUresult r = managed_check(devPtr, count);

	if (!r)
		r = mirror_send(false);
	if (!r)
		r = remote_cuMemPrefetchAsync_v2(devPtr, count, location, flags, hStream);
	if (!r)
		work_posted(work_of(hStream), work_mark() + 1);
	return r;
}

/* The first versions name a device, and the CPU as -1. */
static CUmemLocation location_of(CUdevice device)
{
	return (CUmemLocation){
		.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
		.id = device == CU_DEVICE_CPU ? 0 : device};
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	return cuMemPrefetchAsync_v2(devPtr, count, location_of(dstDevice), 0, hStream);
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	CUresult r = managed_check(devPtr, count);

	return r ? r : remote_cuMemAdvise_v2(devPtr, count, advice, location);
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	bool placed = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
		      advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
		      advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY; /* the others do not look at the device */
	CUresult r = managed_check(devPtr, count);

	if (!r && placed && device != CU_DEVICE_CPU && !device_get(device))
		r = CUDA_ERROR_INVALID_DEVICE;
	return r ? r : cuMemAdvise_v2(devPtr, count, advice, location_of(device));
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	CUresult r = managed_check(dptr, length ? length : 1);

	if (!r)
		r = remote_cuStreamAttachMemAsync(hStream, dptr, length, flags);
	if (!r)
		work_posted(work_of(hStream), work_mark() + 1);
	return r;
}

CUresult cuMemRangeGetAttribute(
	void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count)
{
	CUresult r = managed_check(devPtr, count);

	if (!r && dataSize > LIMIT_DEVICES * sizeof(int))
		r = CUDA_ERROR_INVALID_VALUE;
	return r ? r : remote_cuMemRangeGetAttribute(data, dataSize, attribute, devPtr, count);
}

CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
	size_t numAttributes, CUdeviceptr devPtr, size_t count)
{
	CUresult r = managed_check(devPtr, count);

	if (!r && (!data || !dataSizes || !attributes || !numAttributes))
		r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numAttributes && !r; i++)
		r = cuMemRangeGetAttribute(data[i], dataSizes[i], attributes[i], devPtr, count);
	return r;
}
