// SPDX-License-Identifier: Apache-2.0
// Separate compilation: a kernel here calls device functions and uses a device variable of the other file,
// which the device linker joins at build time, or the driver when it loads their PTX.
#include "../app.h"

extern __device__ int offset;
__device__ int other(int v);
__global__ void there(int *p);

__global__ void here(int *p)
{
	p[threadIdx.x] = other(threadIdx.x) + offset;
}

int main(void)
{
	int h[64], *d, v = 50;
	cudaError_t r;

	CK(cudaMalloc(&d, sizeof(h)));
	here<<<1, 64>>>(d);
	r = cudaGetLastError();
	if (r == cudaErrorNoKernelImageForDevice)
		skip("this device runs PTX only, and here is none that is whole");
	CK(r);
	CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		if (h[i] != i * i + 7)
			fail("element %d is %d, expected %d", i, h[i], i * i + 7);
	CK(cudaMemcpyToSymbol(offset, &v, sizeof(v)));
	there<<<1, 64>>>(d);
	CK(cudaGetLastError());
	CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		if (h[i] != i + 50)
			fail("other file: element %d is %d, expected %d", i, h[i], i + 50);
	CK(cudaFree(d));
	return pass();
}
