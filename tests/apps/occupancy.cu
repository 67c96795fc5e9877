// SPDX-License-Identifier: Apache-2.0
// Device properties, function attributes and the occupancy API: values that belong together agree with each
// other.
#include "app.h"

__global__ void __launch_bounds__(256) small(int *p)
{
	p[threadIdx.x] = threadIdx.x;
}

__global__ void with_shared(int *p)
{
	__shared__ int s[4096];

	s[threadIdx.x] = threadIdx.x;
	__syncthreads();
	p[threadIdx.x] = s[threadIdx.x ^ 1];
}

int main(void)
{
	cudaDeviceProp p;
	cudaFuncAttributes a, b;
	int v, blocks, grid, block, n, device = -1, runtime, driver;
	size_t free_now, total, dynamic;
	char bus[32];

	CK(cudaGetDeviceCount(&n));
	CK(cudaGetDevice(&device));
	CK(cudaGetDeviceProperties(&p, device));
	CK(cudaRuntimeGetVersion(&runtime));
	CK(cudaDriverGetVersion(&driver));
	if (n < 1 || device != 0 || driver < 12000 || runtime < 12000)
		fail("%d devices, current %d, driver %d, runtime %d", n, device, driver, runtime);
#define SAME(field, attribute) \
	do { \
		CK(cudaDeviceGetAttribute(&v, attribute, device)); \
		if (v != (int)p.field) \
			fail(#field " is %d, its attribute %d", (int)p.field, v); \
	} while (0)
	SAME(multiProcessorCount, cudaDevAttrMultiProcessorCount);
	SAME(maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock);
	SAME(maxThreadsDim[2], cudaDevAttrMaxBlockDimZ);
	SAME(maxGridSize[0], cudaDevAttrMaxGridDimX);
	SAME(sharedMemPerBlock, cudaDevAttrMaxSharedMemoryPerBlock);
	SAME(regsPerBlock, cudaDevAttrMaxRegistersPerBlock);
	SAME(warpSize, cudaDevAttrWarpSize);
	SAME(major, cudaDevAttrComputeCapabilityMajor);
	SAME(minor, cudaDevAttrComputeCapabilityMinor);
	SAME(totalConstMem, cudaDevAttrTotalConstantMemory);
	if (p.warpSize != 32 || p.maxThreadsPerBlock != 1024 || !p.name[0] || p.major * 10 + p.minor < 75)
		fail("warp %d, block %d, name '%s', compute capability %d.%d", p.warpSize,
				p.maxThreadsPerBlock, p.name, p.major, p.minor);
	CK(cudaMemGetInfo(&free_now, &total));
	if (total > p.totalGlobalMem || free_now > total || !free_now)
		fail("memory: %zu free of %zu, device has %zu", free_now, total, p.totalGlobalMem);
	CK(cudaDeviceGetPCIBusId(bus, sizeof(bus), device));

	CK(cudaFuncGetAttributes(&a, small));
	CK(cudaFuncGetAttributes(&b, with_shared));
	if (a.maxThreadsPerBlock != 256 || a.sharedSizeBytes || b.sharedSizeBytes != 16384 ||
			b.maxThreadsPerBlock < 256)
		fail("attributes: %d threads, %zu shared; %d threads, %zu shared", a.maxThreadsPerBlock,
				a.sharedSizeBytes,
		     b.maxThreadsPerBlock, b.sharedSizeBytes);
	if (a.ptxVersion < 75 || a.binaryVersion < 75)
		fail("ptx version %d, binary version %d", a.ptxVersion, a.binaryVersion);

	CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 128, 0));
	if (blocks < 1 || blocks * 128 > p.maxThreadsPerMultiProcessor)
		fail("%d blocks of 128 on a multiprocessor of %d threads", blocks,
				p.maxThreadsPerMultiProcessor);
	CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 64, 0));
	if (blocks < 1 || blocks * 16384ul > p.sharedMemPerMultiprocessor)
		fail("%d blocks with 16 KiB on a multiprocessor with %zu", blocks,
				p.sharedMemPerMultiprocessor);
	CK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, small, 0, 0));
	if (block < 32 || block > 256 || grid < p.multiProcessorCount)
		fail("suggested %d blocks of %d", grid, block);
	CK(cudaOccupancyAvailableDynamicSMemPerBlock(&dynamic, small, 1, 128));
	if (!dynamic || dynamic > p.sharedMemPerMultiprocessor)
		fail("%zu bytes of dynamic shared memory available", dynamic);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 0, 0), cudaErrorInvalidValue);
	cudaGetLastError();
	return pass();
}
