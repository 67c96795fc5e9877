// SPDX-License-Identifier: Apache-2.0
// Kernels whose speed on the software device is compared with plain C (soft.c has the same computations).
#include <cstdint>

template <int TILE> __device__ void tiled(const float *a, const float *b, float *c, int n)
{
	__shared__ float ta[TILE][TILE], tb[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int t = 0; t < n; t += TILE) {
		ta[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
		tb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
		__syncthreads();
	}
	c[row * n + col] = sum;
}

extern "C" __global__ void matmul16(const float *a, const float *b, float *c, int n)
{
	tiled<16>(a, b, c, n);
}

extern "C" __global__ void matmul32(const float *a, const float *b, float *c, int n)
{
	tiled<32>(a, b, c, n);
}

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" __global__ void mandelbrot(const float *unused_a, const float *unused_b, float *out, int n)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, k = 0;
	float cx = -2.0f + 3.0f * x / n, cy = -1.5f + 3.0f * y / n, zx = 0, zy = 0;

	while (k < 256 && zx * zx + zy * zy < 4) {
		float t = zx * zx - zy * zy + cx;

		zy = 2 * zx * zy + cy;
		zx = t;
		k++;
	}
	out[y * n + x] = k;
}

// One block per row of n columns.
extern "C" __global__ void softmax(const float *a, const float *unused, float *out, int n)
{
	__shared__ float part[32];
	const float *row = a + blockIdx.x * n;
	float most = -INFINITY, sum = 0;

	for (int i = threadIdx.x; i < n; i += blockDim.x)
		most = fmaxf(most, row[i]);
	for (int d = 16; d; d /= 2)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = most;
	__syncthreads();
	for (int k = 0; k < blockDim.x / 32; k++)
		most = fmaxf(most, part[k]);
	__syncthreads();
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		sum += expf(row[i] - most);
	for (int d = 16; d; d /= 2)
		sum += __shfl_xor_sync(~0u, sum, d);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = sum;
	__syncthreads();
	sum = 0;
	for (int k = 0; k < blockDim.x / 32; k++)
		sum += part[k];
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		out[blockIdx.x * n + i] = expf(row[i] - most) / sum;
}
