// SPDX-License-Identifier: Apache-2.0
// What the runtime answers to wrong use, as on a real GPU: launch shapes, frees, handles, sizes, devices,
// symbols; that such an error does not spoil what follows; then, each in a child, errors of kernels that
// stick.
#include "app.h"

__global__ void store(int *p, int v)
{
	*p = v;
}

__global__ void __launch_bounds__(64) narrow(int *p)
{
	*p = threadIdx.x;
}


/* A launch of this shape is refused. Runtimes of 13.0 say invalid value, older ones invalid configuration. */
#define REFUSED(grid, block, shared) \
	do { \
		cudaError_t r_; \
		store<<<(grid), (block), (shared)>>>(d, 1); \
		r_ = cudaGetLastError(); \
		if (r_ != cudaErrorInvalidValue && r_ != cudaErrorInvalidConfiguration) \
			fail("launch " #grid ", " #block ", " #shared " -> %s", cudaGetErrorName(r_)); \
		EXPECT(cudaGetLastError(), cudaSuccess); \
	} while (0)

static void still_works(int *d, int v)
{
	int h = 0;

	store<<<1, 1>>>(d, v);
	CK(cudaGetLastError());
	CK(cudaMemcpy(&h, d, sizeof(h), cudaMemcpyDeviceToHost));
	if (h != v)
		fail("after an error a kernel wrote %d, expected %d", h, v);
}

static int refused(void *)
{
	int *d, *freed, x, n;
	void *p = NULL, *host = malloc(64);
	cudaStream_t s;
	cudaEvent_t a, b;
	float ms;
	cudaDeviceProp prop;

	CK(cudaMalloc(&d, 64));
	REFUSED(0, 1, 0);
	REFUSED(1, 0, 0);
	REFUSED(1, 2048, 0);
	REFUSED(dim3(1, 70000), 1, 0);
	REFUSED(1, dim3(1, 1, 65), 0);
	REFUSED(1, dim3(64, 32), 0);
	REFUSED(1, 32, 1 << 20);
	narrow<<<1, 128>>>(d);
	if (cudaGetLastError() == cudaSuccess) /* which error differs between driver versions */
		fail("128 threads were launched where the kernel's bound is 64");
	narrow<<<1, 64>>>(d);
	CK(cudaGetLastError());
	still_works(d, 1);

	EXPECT(cudaMalloc(&p, (size_t)1 << 50), cudaErrorMemoryAllocation);
	EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
	EXPECT(cudaMallocHost(&p, (size_t)1 << 60), cudaErrorMemoryAllocation);
	EXPECT(cudaFree(host), cudaErrorInvalidValue);
	EXPECT(cudaFree((char *)d + 16), cudaErrorInvalidValue);
	EXPECT(cudaFree(NULL), cudaSuccess);
	EXPECT(cudaFreeHost(host), cudaErrorInvalidValue);
	EXPECT(cudaFreeHost(NULL), cudaSuccess);
	CK(cudaMalloc(&freed, 5 << 20));
	CK(cudaFree(freed));
	EXPECT(cudaFree(freed), cudaErrorInvalidValue);
	EXPECT(cudaMemset(freed, 0, 64), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(freed, host, 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(host, freed, 64, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(host, NULL, 64, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(d, host, 64, (cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
	cudaGetLastError();
	still_works(d, 2);

	CK(cudaGetDeviceCount(&n));
	EXPECT(cudaSetDevice(n), cudaErrorInvalidDevice);
	EXPECT(cudaGetDeviceProperties(&prop, n), cudaErrorInvalidDevice);
	EXPECT(cudaDeviceGetAttribute(&x, (cudaDeviceAttr)9999, 0), cudaErrorInvalidValue);
	EXPECT(cudaEventSynchronize(NULL), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventRecord(NULL, 0), cudaErrorInvalidResourceHandle);
	CK(cudaEventCreate(&a));
	CK(cudaEventCreateWithFlags(&b, cudaEventDisableTiming));
	EXPECT(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
	CK(cudaEventRecord(b, 0));
	CK(cudaEventRecord(a, 0));
	CK(cudaDeviceSynchronize());
	EXPECT(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventCreateWithFlags(&a, 0x100), cudaErrorInvalidValue);
	EXPECT(cudaStreamCreateWithFlags(&s, 0x100), cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(store, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24),
			cudaErrorInvalidValue);
	EXPECT(cudaHostRegister(NULL, 64, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);
	cudaGetLastError();
	still_works(d, 3);
	return 0;
}

/* A kernel that writes where nothing is: reported by the next synchronize, then by everything. */
static int illegal(void *)
{
	int *d, h;

	CK(cudaMalloc(&d, 64));
	store<<<1, 1>>>((int *)16, 1);
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	EXPECT(cudaMemcpy(&h, d, sizeof(h), cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
	EXPECT(cudaMalloc(&d, 64), cudaErrorIllegalAddress);
	store<<<1, 1>>>(d, 1);
	EXPECT(cudaGetLastError(), cudaErrorIllegalAddress);
	return 0;
}

static int freed_pointer(void *)
{
	int *p;

	CK(cudaMalloc(&p, 64 << 20));
	CK(cudaFree(p));
	store<<<1, 1>>>(p + (1 << 20), 1);
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	return 0;
}

static int misaligned(void *)
{
	char *p;

	CK(cudaMalloc(&p, 64));
	store<<<1, 1>>>((int *)(p + 1), 1);
	EXPECT(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
	return 0;
}

int main(void)
{
	/* One process each: a context that failed stays failed. The order is the order of the output. */
	fork_check("refused calls", refused, NULL, 100);
	fork_check("illegal address", illegal, NULL, 60);
	fork_check("freed pointer", freed_pointer, NULL, 60);
	fork_check("misaligned address", misaligned, NULL, 60);
	return pass();
}
