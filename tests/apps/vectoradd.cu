// SPDX-License-Identifier: Apache-2.0
// The first program that everybody runs: c = a + b, for a round size and for an odd one whose last block is
// not full.
#include "app.h"

__global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

static void run(int n)
{
	size_t bytes = n * sizeof(float);
	float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
	float *da, *db, *dc;
	uint32_t seed = n;

	for (int i = 0; i < n; i++) {
		a[i] = noise_float(&seed);
		b[i] = noise_float(&seed) * 100;
	}
	CK(cudaMalloc(&da, bytes));
	CK(cudaMalloc(&db, bytes));
	CK(cudaMalloc(&dc, bytes));
	CK(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
	CK(cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice));
	add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
	CK(cudaGetLastError());
	CK(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		if (c[i] != a[i] + b[i])
			fail("n %d: c[%d] is %g, expected %g", n, i, c[i], a[i] + b[i]);
	CK(cudaFree(da));
	CK(cudaFree(db));
	CK(cudaFree(dc));
	free(a);
	free(b);
	free(c);
	printf("%d elements\n", n);
}

int main(void)
{
	run(1 << 20);
	run(1000003);
	run(1);
	return pass();
}
