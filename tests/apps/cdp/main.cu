// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels: a recursive quicksort whose partitions are launched by the device, a tail
// launch that sees what its parent's children wrote, and children in fire-and-forget streams. Linked with the
// device's runtime, which is machine code made by the driver of a real GPU.
#include "../app.h"
#include <algorithm>
#include <vector>

__global__ void quicksort(int *x, int low, int high, int depth)
{
	if (high - low < 24 || depth > 16) {
		for (int i = low + 1; i <= high; i++) {
			int v = x[i], j = i;

			for (; j > low && x[j - 1] > v; j--)
				x[j] = x[j - 1];
			x[j] = v;
		}
		return;
	}
	int pivot = x[(low + high) / 2], l = low, r = high;
	while (l <= r) {
		while (x[l] < pivot)
			l++;
		while (x[r] > pivot)
			r--;
		if (l <= r) {
			int t = x[l];
			x[l++] = x[r];
			x[r--] = t;
		}
	}
	if (low < r)
		quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(x, low, r, depth + 1);
	if (l < high)
		quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(x, l, high, depth + 1);
}

__global__ void fill(int *x, int v)
{
	x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

__global__ void sum(const int *x, int n, int *out)
{
	int s = 0;

	for (int i = 0; i < n; i++)
		s += x[i];
	*out = s;
}

__global__ void parent(int *x, int n, int *out)
{
	fill<<<n / 64, 64>>>(x, 7);
	sum<<<1, 1, 0, cudaStreamTailLaunch>>>(x, n, out);
}

int main(void)
{
	enum { N = 3000 };
	std::vector<int> v(N), want;
	int *x, *out, total;
	uint32_t seed = 4;
	cudaDeviceProp p;

	CK(cudaGetDeviceProperties(&p, 0));
	if (strstr(p.name, "software"))
		skip("the software device has no launches by kernels");
	for (int &i : v)
		i = (int)(noise(&seed) % 100000);
	want = v;
	std::sort(want.begin(), want.end());
	CK(cudaMalloc(&x, N * 4));
	CK(cudaMalloc(&out, 4));
	CK(cudaMemcpy(x, v.data(), N * 4, cudaMemcpyHostToDevice));
	quicksort<<<1, 1>>>(x, 0, N - 1, 0);
	CK(cudaGetLastError());
	CK(cudaDeviceSynchronize());
	CK(cudaMemcpy(v.data(), x, N * 4, cudaMemcpyDeviceToHost));
	same_bytes("quicksort", v.data(), want.data(), N * 4);
	puts("quicksort");
	parent<<<1, 1>>>(x, 2048, out);
	CK(cudaMemcpy(&total, out, 4, cudaMemcpyDeviceToHost));
	if (total != 2048 * 7)
		fail("the tail launch saw %d, expected %d", total, 2048 * 7);
	puts("children before a tail launch");
	CK(cudaFree(x));
	CK(cudaFree(out));
	return pass();
}
