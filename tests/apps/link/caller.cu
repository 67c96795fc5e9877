// SPDX-License-Identifier: Apache-2.0
// One of the two inputs of a link: a kernel that calls a function of the other. Compiled to every form that a
// linker takes.
extern __device__ unsigned twice(unsigned x);
extern __device__ unsigned counter;

extern "C" __global__ void call(unsigned *p, unsigned v)
{
	*p = twice(v) + counter;
}
