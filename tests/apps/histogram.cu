// SPDX-License-Identifier: Apache-2.0
// Histograms of bytes with atomics: in shared memory then global, straight to global memory, and one that
// counts into 64-bit cells; totals and every bin against the host.
#include "app.h"

__global__ void shared_bins(const unsigned char *p, int n, unsigned *bins)
{
	__shared__ unsigned local[256];

	local[threadIdx.x] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&local[p[i]], 1u);
	__syncthreads();
	atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__global__ void global_bins(const unsigned char *p, int n, unsigned *bins)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&bins[p[i]], 1u);
}

__global__ void wide_bins(const unsigned char *p, int n, unsigned long long *bins)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&bins[p[i]], 1ull << 32);
}

int main(void)
{
	enum { N = 1 << 20 };
	unsigned char *h = (unsigned char *)malloc(N), *d;
	unsigned want[256] = {0}, got[256], *bins;
	unsigned long long wide[256], *dwide;
	uint32_t seed = 5;

	for (int i = 0; i < N; i++) {
		h[i] = noise(&seed) >> (noise(&seed) & 7) & 255;
		want[h[i]]++;
	}
	CK(cudaMalloc(&d, N));
	CK(cudaMalloc(&bins, sizeof(got)));
	CK(cudaMalloc(&dwide, sizeof(wide)));
	CK(cudaMemcpy(d, h, N, cudaMemcpyHostToDevice));
	for (int way = 0; way < 2; way++) {
		CK(cudaMemset(bins, 0, sizeof(got)));
		if (way)
			global_bins<<<16, 256>>>(d, N, bins);
		else
			shared_bins<<<16, 256>>>(d, N, bins);
		CK(cudaGetLastError());
		CK(cudaMemcpy(got, bins, sizeof(got), cudaMemcpyDeviceToHost));
		same_bytes(way ? "global bins" : "shared bins", got, want, sizeof(want));
	}
	CK(cudaMemset(dwide, 0, sizeof(wide)));
	wide_bins<<<8, 128>>>(d, N, dwide);
	CK(cudaMemcpy(wide, dwide, sizeof(wide), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 256; i++)
		if (wide[i] != (unsigned long long)want[i] << 32)
			fail("wide bin %d is %#llx, expected %#llx", i, wide[i],
					(unsigned long long)want[i] << 32);
	CK(cudaFree(d));
	CK(cudaFree(bins));
	CK(cudaFree(dwide));
	free(h);
	return pass();
}
