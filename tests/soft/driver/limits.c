/* SPDX-License-Identifier: Apache-2.0 */
/* The device's limits that options set: its memory, which every way of taking some meets, and the time of a
 * launch.
 *
 * Thread rule: none. */
#include <time.h>
#include "tests/soft/driver/test.h"

#define MEMORY (64ull << 20)

static size_t free_bytes(void)
{
	size_t f, total;
	OK(cuMemGetInfo_v2(&f, &total));
	CHECK(total == MEMORY && f <= total);
	return f;
}

/* Refused, and nothing taken. */
static void memory(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUDA_ARRAY_DESCRIPTOR a = {
		.Width = 8192, .Height = 4096, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUmemGenericAllocationHandle h;
	CUarray array;
	CUdeviceptr p = 77, part[8];
	size_t all, pitch, before = free_bytes();
	CUdevice d;
	int v;
	OK(cuCtxGetDevice(&d));
	OK(cuDeviceTotalMem_v2(&all, d));
	CHECK(all == MEMORY);
	IS(cuMemAlloc_v2(&p, MEMORY + 1), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAlloc_v2(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAllocPitch_v2(&p, &pitch, 1 << 20, 128, 4), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAllocAsync(&p, 2 * MEMORY, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemCreate(&h, 2 * MEMORY, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuArrayCreate_v2(&array, &a), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(free_bytes() == before);
	for (int i = 0; i < 3; i++)
		OK(cuMemAlloc_v2(&part[i], 16 << 20));
	CHECK(before - free_bytes() == 48 << 20);
	IS(cuMemAlloc_v2(&p, 17 << 20), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree_v2(part[1])); /* a hole is as good */
	OK(cuMemAlloc_v2(&p, 17 << 20));
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(part[0]));
	OK(cuMemFree_v2(part[2]));
	CHECK(free_bytes() == before);
	/* What a stream frees is free for the stream at once, and for everybody once it is done. */
	OK(cuMemAllocAsync(&p, 40 << 20, NULL));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuMemAllocAsync(&p, 40 << 20, NULL));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuMemAlloc_v2(&p, 40 << 20));
	OK(cuMemFree_v2(p));
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, d));
	CHECK(v == 1);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A kernel that never ends is ended; the context is lost, the next one is not. */
static void launch_time(void)
{
	static const char ptx[] =
		PTX_HEAD ".visible .entry ever(.param .u64 p) { .reg .b32 %r; .reg .b64 %d;\n"
			 " ld.param.u64 %d,[p]; again: ld.volatile.u32 %r,[%d]; bra again; }\n";
	CUfunction f = function(ptx, "ever"), add;
	CUdeviceptr p;
	CUstream s;
	unsigned one = 1, v = 0;
	OK(cuMemAlloc_v2(&p, 4));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	double t = seconds();
	OK(cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, s, (void *[]){&p}, NULL));
	IS(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_TIMEOUT);
	t = seconds() - t;
	CHECK(t > 0.5 && t < 20);
	IS(cuMemAlloc_v2(&p, 4), CUDA_ERROR_LAUNCH_TIMEOUT);
	IS(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
	OK(cuDevicePrimaryCtxReset_v2(0));
	device_up();
	add = function(add_ptx, "add");
	OK(cuMemAlloc_v2(&p, 4));
	OK(cuMemsetD32_v2(p, 4, 1));
	OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p, &one}, NULL));
	OK(cuMemcpyDtoH_v2(&v, p, 4));
	CHECK(v == 5);
}

int main(void)
{
	setenv("SCUDAFS_SOFT_MEMORY", "64M", 1);
	setenv("SCUDAFS_SOFT_TIME_LIMIT", "1", 1);
	device_up();
	memory();
	launch_time();
	puts("PASS limits");
	return 0;
}
