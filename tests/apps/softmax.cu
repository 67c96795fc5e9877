// SPDX-License-Identifier: Apache-2.0
// Softmax over rows: maximum, sum of exponentials and division by block reductions, one block a row, rows
// longer and shorter than the block; and a layer normalisation beside it. Against double on the host.
#include "app.h"

enum { BLOCK = 128 };

template <typename F>
__device__ float block_reduce(float v, float start, F f)
{
	__shared__ float part[32];

	for (int d = 16; d; d >>= 1)
		v = f(v, __shfl_xor_sync(~0u, v, d));
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	v = threadIdx.x % 32 < BLOCK / 32 ? part[threadIdx.x % 32] : start;
	for (int d = 16; d; d >>= 1)
		v = f(v, __shfl_xor_sync(~0u, v, d));
	return v;
}

__device__ float larger(float a, float b)
{
	return fmaxf(a, b);
}

__device__ float sum(float a, float b)
{
	return a + b;
}

__global__ void softmax(const float *in, float *out, int cols)
{
	float m = -INFINITY, s = 0;

	in += (size_t)blockIdx.x * cols;
	out += (size_t)blockIdx.x * cols;
	for (int i = threadIdx.x; i < cols; i += BLOCK)
		m = fmaxf(m, in[i]);
	m = block_reduce(m, -INFINITY, larger);
	for (int i = threadIdx.x; i < cols; i += BLOCK)
		s += __expf(in[i] - m);
	s = block_reduce(s, 0, sum);
	for (int i = threadIdx.x; i < cols; i += BLOCK)
		out[i] = expf(in[i] - m) / s;
}

__global__ void normalise(const float *in, float *out, int cols)
{
	float s = 0, q = 0;

	in += (size_t)blockIdx.x * cols;
	out += (size_t)blockIdx.x * cols;
	for (int i = threadIdx.x; i < cols; i += BLOCK)
		s += in[i];
	s = block_reduce(s, 0, sum) / cols;
	for (int i = threadIdx.x; i < cols; i += BLOCK)
		q += (in[i] - s) * (in[i] - s);
	q = rsqrtf(block_reduce(q, 0, sum) / cols + 1e-5f);
	for (int i = threadIdx.x; i < cols; i += BLOCK)
		out[i] = (in[i] - s) * q;
}

static void run(int rows, int cols)
{
	size_t n = (size_t)rows * cols;
	float *in = (float *)malloc(n * 4), *out = (float *)malloc(n * 4), *norm = (float *)malloc(n * 4),
			*di, *od;
	uint32_t seed = cols;

	for (size_t i = 0; i < n; i++)
		in[i] = noise_float(&seed) * 20 - 10;
	CK(cudaMalloc(&di, n * 4));
	CK(cudaMalloc(&od, n * 4));
	CK(cudaMemcpy(di, in, n * 4, cudaMemcpyHostToDevice));
	softmax<<<rows, BLOCK>>>(di, od, cols);
	CK(cudaMemcpy(out, od, n * 4, cudaMemcpyDeviceToHost));
	normalise<<<rows, BLOCK>>>(di, od, cols);
	CK(cudaMemcpy(norm, od, n * 4, cudaMemcpyDeviceToHost));
	for (int r = 0; r < rows; r++) {
		const float *x = in + (size_t)r * cols;
		double m = -1e30, s = 0, mean = 0, var = 0;

		for (int i = 0; i < cols; i++) {
			m = fmax(m, x[i]);
			mean += x[i] / (double)cols;
		}
		for (int i = 0; i < cols; i++) {
			s += exp(x[i] - m);
			var += (x[i] - mean) * (x[i] - mean) / cols;
		}
		for (int i = 0; i < cols; i++) {
			close_to("softmax", r * cols + i, out[(size_t)r * cols + i], exp(x[i] - m) / s, 1e-5);
			close_to("layer norm", r * cols + i, norm[(size_t)r * cols + i],
					(x[i] - mean) / sqrt(var + 1e-5), 1e-4);
		}
	}
	CK(cudaFree(di));
	CK(cudaFree(od));
	free(in);
	free(out);
	free(norm);
}

int main(void)
{
	run(64, 1024);
	run(10, 77);
	run(3, 5001);
	return pass();
}
