// SPDX-License-Identifier: Apache-2.0
// CUB: block-wide reduce and scan, warp reduce, and the device-wide reduce, scan, radix sort and select that
// look back at other blocks while those still run.
#include "app.h"
#include <algorithm>
#include <vector>
#include <cub/cub.cuh>

enum { BLOCK = 128, ITEMS = 4 };
static const int N = 40001;

__global__ void block_reduce(const int *in, int *sums, int n)
{
	typedef cub::BlockReduce<int, BLOCK> Reduce;
	__shared__ typename Reduce::TempStorage temp;
	int v = 0;

	for (int i = 0; i < ITEMS; i++) {
		int at = (blockIdx.x * BLOCK + threadIdx.x) * ITEMS + i;
		v += at < n ? in[at] : 0;
	}
	v = Reduce(temp).Sum(v);
	if (!threadIdx.x)
		sums[blockIdx.x] = v;
}

__global__ void block_scan(const int *in, int *out)
{
	typedef cub::BlockScan<int, BLOCK> Scan;
	__shared__ typename Scan::TempStorage temp;
	int v = in[threadIdx.x];

	Scan(temp).ExclusiveSum(v, v);
	out[threadIdx.x] = v;
}

struct positive {
	__host__ __device__ bool operator()(int v) const
	{
		return v > 0;
	}
};

int main(void)
{
	const int blocks = (N + BLOCK * ITEMS - 1) / (BLOCK * ITEMS);
	std::vector<int> h(N), got(N), want(N), sums(blocks);
	int *in, *out, *d_sums, total = 0, count;
	void *temp = NULL;
	size_t bytes = 0, need;
	uint32_t seed = 3;

	for (int i = 0; i < N; i++) {
		h[i] = (int)(noise(&seed) % 20001) - 10000;
		total += h[i];
	}
	CK(cudaMalloc(&in, N * sizeof(int)));
	CK(cudaMalloc(&out, N * sizeof(int)));
	CK(cudaMalloc(&d_sums, blocks * sizeof(int)));
	CK(cudaMemcpy(in, h.data(), N * sizeof(int), cudaMemcpyHostToDevice));
	block_reduce<<<blocks, BLOCK>>>(in, d_sums, N);
	CK(cudaMemcpy(sums.data(), d_sums, blocks * sizeof(int), cudaMemcpyDeviceToHost));
	for (int b = 0; b < blocks; b++) {
		int s = 0;

		for (int i = b * BLOCK * ITEMS; i < N && i < (b + 1) * BLOCK * ITEMS; i++)
			s += h[i];
		if (sums[b] != s)
			fail("sum of block %d is %d, expected %d", b, sums[b], s);
	}
	block_scan<<<1, BLOCK>>>(in, out);
	CK(cudaMemcpy(got.data(), out, BLOCK * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0, s = 0; i < BLOCK; s += h[i++])
		if (got[i] != s)
			fail("block scan at %d is %d, expected %d", i, got[i], s);

	CK(cub::DeviceReduce::Sum(NULL, need, in, d_sums, N));
	bytes = need;
	CK(cub::DeviceScan::InclusiveSum(NULL, need, in, out, N));
	bytes = std::max(bytes, need);
	CK(cub::DeviceRadixSort::SortKeys(NULL, need, in, out, N));
	bytes = std::max(bytes, need);
	CK(cub::DeviceSelect::If(NULL, need, in, out, d_sums, N, positive()));
	bytes = std::max(bytes, need);
	CK(cudaMalloc(&temp, bytes));

	need = bytes;
	CK(cub::DeviceReduce::Sum(temp, need, in, d_sums, N));
	CK(cudaMemcpy(&count, d_sums, sizeof(int), cudaMemcpyDeviceToHost));
	if (count != total)
		fail("device sum is %d, expected %d", count, total);
	need = bytes;
	CK(cub::DeviceScan::InclusiveSum(temp, need, in, out, N));
	CK(cudaMemcpy(got.data(), out, N * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0, s = 0; i < N; i++)
		if (got[i] != (s += h[i]))
			fail("device scan at %d is %d, expected %d", i, got[i], s);
	need = bytes;
	CK(cub::DeviceRadixSort::SortKeys(temp, need, in, out, N));
	CK(cudaMemcpy(got.data(), out, N * sizeof(int), cudaMemcpyDeviceToHost));
	want = h;
	std::sort(want.begin(), want.end());
	if (got != want)
		fail("radix sort differs at %ld", (long)(std::mismatch(got.begin(), got.end(),
				want.begin()).first - got.begin()));
	need = bytes;
	CK(cub::DeviceSelect::If(temp, need, in, out, d_sums, N, positive()));
	CK(cudaMemcpy(&count, d_sums, sizeof(int), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(got.data(), out, N * sizeof(int), cudaMemcpyDeviceToHost));
	got.resize(count);
	want.clear();
	std::copy_if(h.begin(), h.end(), std::back_inserter(want), positive());
	if (got != want)
		fail("select kept %d elements, expected %zu", count, want.size());
	CK(cudaFree(in));
	CK(cudaFree(out));
	CK(cudaFree(d_sums));
	CK(cudaFree(temp));
	return pass();
}
