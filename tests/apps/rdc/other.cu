// SPDX-License-Identifier: Apache-2.0
// The other half of main.cu: a device function, a device variable and a kernel that are used from there.
__device__ int offset = 7;

__device__ int other(int v)
{
	return v * v;
}

__global__ void there(int *p)
{
	p[threadIdx.x] = threadIdx.x + offset;
}
