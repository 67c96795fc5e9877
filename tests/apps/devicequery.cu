// SPDX-License-Identifier: Apache-2.0
// Asks everything about every device that a program can ask, by the runtime and by the driver, and holds the
// two against each other; copies in each direction with pinned and pageable memory, whose bytes must arrive
// and whose speed is told.
#include "app.h"
#include <cuda.h>

static void attributes(int device)
{
	cudaDeviceProp p;
	CUdevice d;
	char name[256];
	size_t total;
	int version, runtime, v;

	CK(cudaGetDeviceProperties(&p, device));
	CK(cudaDriverGetVersion(&version));
	CK(cudaRuntimeGetVersion(&runtime));
	if (cuDeviceGet(&d, device) || cuDeviceGetName(name, sizeof(name), d) || cuDeviceTotalMem(&total, d))
		fail("the driver does not know device %d", device);
	if (strcmp(name, p.name) || total != p.totalGlobalMem)
		fail("%s with %zu bytes, by the runtime %s with %zu", name, total, p.name, p.totalGlobalMem);
	printf("%s: capability %d.%d, %d multiprocessors, %zu bytes, driver %d, runtime %d\n", p.name,
		p.major, p.minor, p.multiProcessorCount, p.totalGlobalMem, version, runtime);

	const struct {
		CUdevice_attribute a;
		size_t want;
	} both[] = {
			{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (size_t)p.maxThreadsPerBlock},
			{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, (size_t)p.maxThreadsDim[2]},
			{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, (size_t)p.maxGridSize[0]},
			{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, p.sharedMemPerBlock},
			{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, p.sharedMemPerBlockOptin},
			{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, (size_t)p.regsPerBlock},
			{CU_DEVICE_ATTRIBUTE_WARP_SIZE, (size_t)p.warpSize},
			{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, (size_t)p.l2CacheSize},
			{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, p.totalConstMem},
			{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, (size_t)p.multiProcessorCount},
			{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, (size_t)p.maxTexture2D[0]},
			{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, (size_t)p.unifiedAddressing},
			{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, (size_t)p.managedMemory},
			{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, (size_t)p.cooperativeLaunch},
	};
	for (const auto &b : both) {
		if (cuDeviceGetAttribute(&v, b.a, d) || (size_t)v != b.want)
			fail("attribute %d is %d, the runtime has %zu", (int)b.a, v, b.want);
		printf("attribute %d: %d\n", (int)b.a, v);
	}
}

static void copies(void)
{
	enum { N = 8 << 20 };
	char *pinned, *back, *a, *b, *pageable = (char *)malloc(N);

	CK(cudaMallocHost(&pinned, N));
	CK(cudaMallocHost(&back, N));
	CK(cudaMalloc(&a, N));
	CK(cudaMalloc(&b, N));
	noise_fill(pinned, N, 3);
	memcpy(pageable, pinned, N);
	struct {
		const char *name;
		void *to;
		const void *from;
		cudaMemcpyKind kind;
	} ways[] = {{"pinned to the device", a, pinned, cudaMemcpyHostToDevice},
		{"device to device", b, a, cudaMemcpyDeviceToDevice},
		{"device to pinned", back, b, cudaMemcpyDeviceToHost},
		{"pageable to the device", b, pageable, cudaMemcpyHostToDevice},
		{"device to pageable", pageable, b, cudaMemcpyDeviceToHost}};
	for (auto &w : ways) {
		double start = seconds();

		CK(cudaMemcpy(w.to, w.from, N, w.kind));
		CK(cudaDeviceSynchronize());
		printf("~ %s: %.2f GB/s\n", w.name, N / 1e9 / (seconds() - start));
	}
	same_bytes("pinned", back, pinned, N);
	same_bytes("pageable", pageable, pinned, N);
	puts("copies");
	CK(cudaFree(a));
	CK(cudaFree(b));
	CK(cudaFreeHost(pinned));
	CK(cudaFreeHost(back));
	free(pageable);
}

int main(void)
{
	int count;

	CK(cudaGetDeviceCount(&count));
	for (int i = 0; i < count; i++)
		attributes(i);
	copies();
	return pass();
}
