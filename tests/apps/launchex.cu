// SPDX-License-Identifier: Apache-2.0
// cudaLaunchKernelEx and launch attributes: none, priority, cooperative, programmatic serialization where the
// device has it; cudaLaunchKernel with an array of arguments; launches from a kernel handle.
#include "app.h"

__global__ void put(int *p, int a, double b)
{
	p[blockIdx.x * blockDim.x + threadIdx.x] = a + (int)(b * 2);
}

int main(void)
{
	enum { N = 256 };
	int *d, h[N], a = 7, least, greatest, coop;
	double b = 1.5;
	cudaStream_t s;
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attrs[2] = {};
	cudaKernel_t kernel;

	CK(cudaStreamCreate(&s));
	CK(cudaMalloc(&d, sizeof(h)));
	CK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CK(cudaDeviceGetAttribute(&coop, cudaDevAttrCooperativeLaunch, 0));
	config.gridDim = dim3(N / 64);
	config.blockDim = dim3(64);
	config.stream = s;
	config.attrs = attrs;
	for (int way = 0; way < 5; way++) {
		void *args[] = {&d, &a, &b};

		CK(cudaMemsetAsync(d, 0, sizeof(h), s));
		a = way * 10;
		config.numAttrs = 0;
		if (way == 1) {
			attrs[0].id = cudaLaunchAttributePriority;
			attrs[0].val.priority = greatest;
			config.numAttrs = 1;
		} else if (way == 2) {
			attrs[0].id = cudaLaunchAttributeCooperative;
			attrs[0].val.cooperative = coop;
			attrs[1].id = cudaLaunchAttributePriority;
			attrs[1].val.priority = least;
			config.numAttrs = 2;
		}
		if (way < 3) {
			CK(cudaLaunchKernelEx(&config, put, d, a, b));
		} else if (way == 3) {
			CK(cudaLaunchKernel((const void *)put, config.gridDim, config.blockDim, args, 0, s));
		} else {
			CK(cudaGetKernel(&kernel, (const void *)put));
			CK(cudaLaunchKernel((const void *)kernel, config.gridDim, config.blockDim, args, 0,
					s));
		}
		CK(cudaMemcpyAsync(h, d, sizeof(h), cudaMemcpyDeviceToHost, s));
		CK(cudaStreamSynchronize(s));
		for (int i = 0; i < N; i++)
			if (h[i] != a + 3)
				fail("way %d: element %d is %d, expected %d", way, i, h[i], a + 3);
	}
	CK(cudaStreamDestroy(s));
	CK(cudaFree(d));
	return pass();
}
