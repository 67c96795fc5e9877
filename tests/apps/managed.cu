// SPDX-License-Identifier: Apache-2.0
// Memory that both sides use: managed variables and allocations, mapped pinned memory, registered memory
// that kernels reach, and what the driver says of such pointers.
#include "app.h"

enum { N = 20000 };

__managed__ int shared_value = 5;
__managed__ int shared_array[N];

__global__ void bump(int *p, int n, int by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += by;
}

__global__ void use_variables(void)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		shared_array[i] = shared_array[i] * 2 + shared_value;
}

static void check(const char *what, const int *p, int scale, int base)
{
	for (int i = 0; i < N; i++)
		if (p[i] != i * scale + base)
			fail("%s: element %d is %d, expected %d", what, i, p[i], i * scale + base);
}

int main(void)
{
	int managed, mapped, *m, *h, *hd, *r, *back = (int *)malloc(N * sizeof(int));
	const int grid = (N + 255) / 256;
	cudaPointerAttributes a;
	cudaError_t e;

	CK(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
	CK(cudaDeviceGetAttribute(&mapped, cudaDevAttrCanMapHostMemory, 0));
	if (!managed || !mapped)
		skip("managed memory %d, mapped memory %d", managed, mapped);

	/* Through a mount this memory would have to move between machines by itself: that is a known limit.
	 */
	e = cudaMallocManaged(&m, N * sizeof(int));
	if (e == cudaErrorNotSupported)
		skip("no managed memory");
	CK(e);
	for (int i = 0; i < N; i++)
		m[i] = i;
	for (int round = 1; round < 5; round++) {
		bump<<<grid, 256>>>(m, N, 10);
		CK(cudaDeviceSynchronize());
		check("managed", m, 1, round * 20 - 10);
		for (int i = 0; i < N; i++)
			m[i] += 10;
	}
	CK(cudaMemcpy(back, m, N * sizeof(int), cudaMemcpyDefault));
	check("copied from managed", back, 1, 80);
	CK(cudaPointerGetAttributes(&a, m));
	if (a.type != cudaMemoryTypeManaged)
		fail("managed memory has type %d", a.type);

	for (int i = 0; i < N; i++)
		shared_array[i] = i;
	shared_value = 9;
	use_variables<<<grid, 256>>>();
	CK(cudaDeviceSynchronize());
	check("managed variable", shared_array, 2, 9);

	CK(cudaHostAlloc(&h, N * sizeof(int), cudaHostAllocMapped));
	CK(cudaHostGetDevicePointer(&hd, h, 0));
	for (int i = 0; i < N; i++)
		h[i] = i;
	bump<<<grid, 256>>>(hd, N, 3);
	CK(cudaDeviceSynchronize());
	check("mapped", h, 1, 3);
	bump<<<grid, 256>>>(hd, N, 4);
	CK(cudaStreamSynchronize(0));
	check("mapped, again", h, 1, 7);
	CK(cudaPointerGetAttributes(&a, h));
	if (a.type != cudaMemoryTypeHost || a.hostPointer != h)
		fail("mapped memory has type %d", a.type);

	r = (int *)aligned_alloc(4096, 128 << 10);
	for (int i = 0; i < N; i++)
		r[i] = i;
	CK(cudaHostRegister(r, 128 << 10, cudaHostRegisterMapped));
	CK(cudaHostGetDevicePointer(&hd, r, 0));
	bump<<<grid, 256>>>(hd, N, 1);
	CK(cudaDeviceSynchronize());
	check("registered", r, 1, 1);
	CK(cudaHostUnregister(r));

	CK(cudaFree(m));
	CK(cudaFreeHost(h));
	free(r);
	free(back);
	return pass();
}
