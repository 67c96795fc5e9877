// SPDX-License-Identifier: Apache-2.0
// Prefix sums written three ways: in one block by doubling, over blocks by three kernels, and in one pass
// where each block looks back at its predecessors while they still run (volatile flags and fences).
#include "app.h"

enum { BLOCK = 256 };

__device__ int block_scan(int v)
{
	__shared__ int s[2][BLOCK];
	int in = 0, t = threadIdx.x;

	__syncthreads();
	s[0][t] = v;
	for (int d = 1; d < BLOCK; d *= 2, in ^= 1) {
		__syncthreads();
		s[in ^ 1][t] = s[in][t] + (t >= d ? s[in][t - d] : 0);
	}
	__syncthreads();
	return s[in][t];
}

__global__ void local(const int *in, int *out, int *sums, int n)
{
	int i = blockIdx.x * BLOCK + threadIdx.x, v = block_scan(i < n ? in[i] : 0);

	if (i < n)
		out[i] = v;
	if (threadIdx.x == BLOCK - 1 && sums)
		sums[blockIdx.x] = v;
}

__global__ void add(int *out, const int *sums, int n)
{
	int i = blockIdx.x * BLOCK + threadIdx.x;

	if (blockIdx.x && i < n)
		out[i] += sums[blockIdx.x - 1];
}

__global__ void one_pass(const int *in, int *out, volatile int *prefix, volatile int *ready, unsigned *ticket,
		int n)
{
	__shared__ int block, before;
	int v, i;

	if (!threadIdx.x)
		block = (int)atomicAdd(ticket, 1u);
	__syncthreads();
	i = block * BLOCK + threadIdx.x;
	v = block_scan(i < n ? in[i] : 0);
	if (threadIdx.x == BLOCK - 1) {
		before = 0;
		if (block) {
			while (!ready[block - 1])
				;
			__threadfence();
			before = prefix[block - 1];
		}
		prefix[block] = before + v;
		__threadfence();
		ready[block] = 1;
	}
	__syncthreads();
	if (i < n)
		out[i] = v + before;
}

int main(void)
{
	enum { N = 60000, BLOCKS = (N + BLOCK - 1) / BLOCK };
	static int h[N], got[N], want[N];
	int *in, *out, *sums, *prefix, *ready;
	unsigned *ticket;
	uint32_t seed = 4;

	for (int i = 0; i < N; i++) {
		h[i] = (int)(noise(&seed) % 1000) - 300;
		want[i] = h[i] + (i ? want[i - 1] : 0);
	}
	CK(cudaMalloc(&in, sizeof(h)));
	CK(cudaMalloc(&out, sizeof(h)));
	CK(cudaMalloc(&sums, BLOCK * sizeof(int)));
	CK(cudaMalloc(&prefix, BLOCKS * sizeof(int)));
	CK(cudaMalloc(&ready, BLOCKS * sizeof(int)));
	CK(cudaMalloc(&ticket, sizeof(*ticket)));
	CK(cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice));
	CK(cudaMemset(sums, 0, BLOCK * sizeof(int)));
	local<<<BLOCKS, BLOCK>>>(in, out, sums, N);
	local<<<1, BLOCK>>>(sums, sums, NULL, BLOCKS);
	add<<<BLOCKS, BLOCK>>>(out, sums, N);
	CK(cudaGetLastError());
	CK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	same_bytes("three kernels", got, want, sizeof(want));
	CK(cudaMemset(out, 0, sizeof(h)));
	CK(cudaMemset(ready, 0, BLOCKS * sizeof(int)));
	CK(cudaMemset(ticket, 0, sizeof(*ticket)));
	one_pass<<<BLOCKS, BLOCK>>>(in, out, prefix, ready, ticket, N);
	CK(cudaGetLastError());
	CK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	same_bytes("one pass", got, want, sizeof(want));
	CK(cudaFree(in));
	CK(cudaFree(out));
	CK(cudaFree(sums));
	CK(cudaFree(prefix));
	CK(cudaFree(ready));
	CK(cudaFree(ticket));
	return pass();
}
