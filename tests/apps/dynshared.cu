// SPDX-License-Identifier: Apache-2.0
// Dynamic shared memory: sizes chosen at launch, several arrays carved out of it, above 48 KiB after opting
// in, static and dynamic together, and the limits that the device reports.
#include "app.h"

extern __shared__ __align__(16) char pool[];

__global__ void reverse(const int *in, int *out, int n)
{
	int *a = (int *)pool;
	double *b = (double *)(pool + n * sizeof(int));
	__shared__ int total;

	if (!threadIdx.x)
		total = 0;
	for (int i = threadIdx.x; i < n; i += blockDim.x) {
		a[i] = in[i];
		b[i] = in[i] * 0.5;
	}
	__syncthreads();
	for (int i = threadIdx.x; i < n; i += blockDim.x) {
		out[i] = a[n - 1 - i] + (int)(b[i] * 2);
		atomicAdd(&total, 1);
	}
	__syncthreads();
	if (!threadIdx.x)
		out[n] = total;
}

static void run(int n)
{
	int *h = (int *)malloc((n + 1) * sizeof(int)), *in, *out;

	for (int i = 0; i < n; i++)
		h[i] = i * 2;
	CK(cudaMalloc(&in, n * sizeof(int)));
	CK(cudaMalloc(&out, (n + 1) * sizeof(int)));
	CK(cudaMemcpy(in, h, n * sizeof(int), cudaMemcpyHostToDevice));
	reverse<<<1, 128, n * (sizeof(int) + sizeof(double))>>>(in, out, n);
	CK(cudaGetLastError());
	CK(cudaMemcpy(h, out, (n + 1) * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		if (h[i] != (n - 1 - i) * 2 + i * 2)
			fail("n %d: out[%d] is %d, expected %d", n, i, h[i], (n - 1) * 2);
	if (h[n] != n)
		fail("n %d: counted %d", n, h[n]);
	CK(cudaFree(in));
	CK(cudaFree(out));
	free(h);
}

int main(void)
{
	int plain, optin, n;
	cudaFuncAttributes a;

	CK(cudaDeviceGetAttribute(&plain, cudaDevAttrMaxSharedMemoryPerBlock, 0));
	CK(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
	if (plain != 49152 || optin < plain)
		fail("shared memory limits %d and %d", plain, optin);
	run(2);
	run(1000);
	run(4094); /* a multiple of two keeps the doubles aligned; with the static word just below 48 KiB */
	reverse<<<1, 32, optin>>>(NULL, NULL, 0);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
	CK(cudaFuncGetAttributes(&a, reverse));
	if (a.maxDynamicSharedSizeBytes < 49000 || a.sharedSizeBytes < sizeof(int))
		fail("attributes: dynamic %d static %zu", a.maxDynamicSharedSizeBytes, a.sharedSizeBytes);
	n = (optin - 16 - (int)a.sharedSizeBytes) / 12 & ~1;
	CK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, n * 12));
	CK(cudaFuncGetAttributes(&a, reverse));
	if (a.maxDynamicSharedSizeBytes != n * 12)
		fail("after opting in: %d, expected %d", a.maxDynamicSharedSizeBytes, n * 12);
	run(n);
	return pass();
}
