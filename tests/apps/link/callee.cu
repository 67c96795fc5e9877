// SPDX-License-Identifier: Apache-2.0
// The other input: a function and a variable.
__device__ unsigned counter = 100;

__device__ unsigned twice(unsigned x)
{
	return x + x;
}
