// SPDX-License-Identifier: Apache-2.0
// Reductions with warp shuffles: down, xor, up and indexed, a block's reduction through shared memory, and
// sums of 64-bit and double values, against the host.
#include "app.h"

template <typename T>
__device__ T warp_sum(T v)
{
	for (int d = 16; d; d >>= 1)
		v += __shfl_down_sync(~0u, v, d);
	return v;
}

template <typename T>
__global__ void block_sum(const T *in, T *out, int n)
{
	__shared__ T part[32];
	T v = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		v += in[i];
	v = warp_sum(v);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	if (threadIdx.x < 32) {
		v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
		v = warp_sum(v);
		if (!threadIdx.x)
			out[blockIdx.x] = v;
	}
}

__global__ void shuffles(const int *in, int *out)
{
	int lane = threadIdx.x, v = in[lane];

	out[lane] = __shfl_xor_sync(~0u, v, 5);
	out[32 + lane] = __shfl_up_sync(~0u, v, 3);
	out[64 + lane] = __shfl_sync(~0u, v, lane * 7 % 32);
	out[96 + lane] = __shfl_down_sync(~0u, v, 4, 8);
	out[128 + lane] = __shfl_sync(~0u, v, 2, 8);
	if (lane % 2)
		out[160 + lane] = __shfl_xor_sync(0xaaaaaaaau, v, 2);
	else
		out[160 + lane] = -__shfl_xor_sync(0x55555555u, v, 4);
}

template <typename T>
static void sums(const char *type, int n, double tolerance)
{
	enum { BLOCKS = 12 };
	T *h = (T *)malloc(n * sizeof(T)), part[BLOCKS], *d, *dp;
	uint32_t seed = 99;
	double want = 0, got = 0;

	for (int i = 0; i < n; i++) {
		h[i] = (T)(int)(noise(&seed) % 2001) - 1000;
		want += (double)h[i];
	}
	CK(cudaMalloc(&d, n * sizeof(T)));
	CK(cudaMalloc(&dp, sizeof(part)));
	CK(cudaMemcpy(d, h, n * sizeof(T), cudaMemcpyHostToDevice));
	block_sum<T><<<BLOCKS, 256>>>(d, dp, n);
	CK(cudaGetLastError());
	CK(cudaMemcpy(part, dp, sizeof(part), cudaMemcpyDeviceToHost));
	for (int i = 0; i < BLOCKS; i++)
		got += (double)part[i];
	close_to(type, 0, got, want, tolerance);
	printf("%s sum of %d: %.0f\n", type, n, want);
	CK(cudaFree(d));
	CK(cudaFree(dp));
	free(h);
}

int main(void)
{
	int in[32], out[192], *d;

	sums<int>("int", 1000003, 0);
	sums<long long>("long long", 300007, 0);
	sums<float>("float", 100003, 1e-4);
	sums<double>("double", 300007, 0);
	for (int i = 0; i < 32; i++)
		in[i] = 1000 + i * i;
	CK(cudaMalloc(&d, sizeof(in) + sizeof(out)));
	CK(cudaMemcpy(d, in, sizeof(in), cudaMemcpyHostToDevice));
	shuffles<<<1, 32>>>(d, d + 32);
	CK(cudaGetLastError());
	CK(cudaMemcpy(out, d + 32, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++) {
		int want[6] = {in[i ^ 5], in[i < 3 ? i : i - 3], in[i * 7 % 32], in[i % 8 < 4 ? i + 4 : i],
				in[i / 8 * 8 + 2],
			       i % 2 ? in[i ^ 2] : -in[i ^ 4]};

		for (int k = 0; k < 6; k++)
			if (out[k * 32 + i] != want[k])
				fail("shuffle %d lane %d is %d, expected %d", k, i, out[k * 32 + i], want[k]);
	}
	CK(cudaFree(d));
	return pass();
}
