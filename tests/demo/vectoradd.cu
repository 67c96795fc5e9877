/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's program: adds two vectors of a million floats on the GPU and checks every sum. It is ordinary
 * CUDA and knows nothing of scudafs. One thread. */
#include <cstdio>
#include <cstdlib>

__global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

static void check(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s (%d)\n", what, cudaGetErrorString(e), (int)e);
	exit(1);
}
#define CHECK(call) check(call, #call)

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
	const size_t bytes = (size_t)n * sizeof(float);
	float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
	float *da, *db, *dc;
	cudaDeviceProp prop;

	if (n <= 0 || !a || !b || !c) {
		fprintf(stderr, "usage: vectoradd [number of elements]\n");
		return 2;
	}
	for (int i = 0; i < n; i++) {
		a[i] = (float)(i % 1000);
		b[i] = 0.5f * (float)(i % 777);
	}
	CHECK(cudaGetDeviceProperties(&prop, 0));
	CHECK(cudaMalloc(&da, bytes));
	CHECK(cudaMalloc(&db, bytes));
	CHECK(cudaMalloc(&dc, bytes));
	CHECK(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice));
	add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
	int wrong = 0;
	for (int i = 0; i < n; i++)
		if (c[i] != a[i] + b[i] && !wrong++)
			fprintf(stderr, "element %d is %g, not %g\n", i, c[i], a[i] + b[i]);
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dc));
	printf("vectorAdd: %d sums on \"%s\": %s\n", n, prop.name, wrong ? "WRONG" : "all right");
	return wrong ? 1 : 0;
}
