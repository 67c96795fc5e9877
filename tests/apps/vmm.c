/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reserve addresses, create memory, map it in pieces and once more elsewhere,
 * set access, grow a range behind what is there, unmap; what expandable allocators are made of. */
#include <cuda.h>
#include "app.h"

int main(void)
{
	CUdevice dev;
	CUcontext ctx;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
			.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h[3], again;
	CUmemAllocationProp got;
	CUdeviceptr base, twice;
	unsigned long long flags;
	size_t piece = 0, words;
	unsigned *host;
	int supported = 0;

	DRV(cuInit(0));
	DRV(cuDeviceGet(&dev, 0));
	DRV(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, dev));
	if (!supported)
		skip("no virtual memory management");
	DRV(cuDevicePrimaryCtxRetain(&ctx, dev));
	DRV(cuCtxSetCurrent(ctx));
	DRV(cuMemGetAllocationGranularity(&piece, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	if (!piece || piece & (piece - 1))
		fail("granularity is %zu", piece);
	if (piece < 64 << 10)
		piece = 64 << 10;
	words = piece / 4;
	DRV(cuMemAddressReserve(&base, 8 * piece, 0, 0, 0));
	for (int i = 0; i < 3; i++) {
		DRV(cuMemCreate(&h[i], piece, &prop, 0));
		DRV(cuMemMap(base + i * piece, piece, 0, h[i], 0));
	}
	DRV(cuMemSetAccess(base, 3 * piece, &access, 1));
	DRV(cuMemGetAccess(&flags, &access.location, base + piece));
	if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		fail("access is %llu", flags);
	host = malloc(3 * piece);
	for (size_t i = 0; i < 3 * words; i++)
		host[i] = (unsigned)i * 2654435761u;
	DRV(cuMemcpyHtoD(base, host, 3 * piece));
	memset(host, 0, 3 * piece);
	DRV(cuMemcpyDtoH(host, base, 3 * piece));
	for (size_t i = 0; i < 3 * words; i++)
		if (host[i] != (unsigned)i * 2654435761u)
			fail("word %zu over three mappings is %#x", i, host[i]);
	/* The second piece once more, elsewhere: the same bytes. */
	DRV(cuMemAddressReserve(&twice, piece, 0, 0, 0));
	DRV(cuMemMap(twice, piece, 0, h[1], 0));
	DRV(cuMemSetAccess(twice, piece, &access, 1));
	DRV(cuMemsetD32(twice, 7, words));
	DRV(cuMemcpyDtoH(host, base + piece, piece));
	for (size_t i = 0; i < words; i++)
		if (host[i] != 7)
			fail("word %zu seen through the other mapping is %u", i, host[i]);
	DRV(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)twice));
	DRV(cuMemGetAllocationPropertiesFromHandle(&got, again));
	if (got.location.type != CU_MEM_LOCATION_TYPE_DEVICE || got.location.id != dev)
		fail("location of the memory is %d:%d", got.location.type, got.location.id);
	DRV(cuMemRelease(again));
	DRV(cuMemUnmap(twice, piece));
	DRV(cuMemAddressFree(twice, piece));
	DRV(cuMemUnmap(base, 3 * piece));
	DRV_EXPECT(cuMemcpyDtoH(host, base, 4), CUDA_ERROR_INVALID_VALUE);
	for (int i = 0; i < 3; i++)
		DRV(cuMemRelease(h[i]));
	DRV(cuMemAddressFree(base, 8 * piece));
	free(host);
	DRV(cuDevicePrimaryCtxRelease(dev));
	return pass();
}
