// SPDX-License-Identifier: Apache-2.0
// A radix sort of our own, 4 bits a pass: per-block counts, a scan of the counts, a stable scatter with ranks
// by ballots. Keys with values, many equal keys among them, against a stable sort on the host.
#include "app.h"
#include <algorithm>
#include <vector>

enum { BLOCK = 128, BITS = 4, BINS = 1 << BITS };

__global__ void count(const unsigned *keys, unsigned *counts, int n, int shift)
{
	__shared__ unsigned c[BINS];
	int i = blockIdx.x * BLOCK + threadIdx.x;

	if (threadIdx.x < BINS)
		c[threadIdx.x] = 0;
	__syncthreads();
	if (i < n)
		atomicAdd(&c[keys[i] >> shift & (BINS - 1)], 1u);
	__syncthreads();
	if (threadIdx.x < BINS)
		counts[threadIdx.x * gridDim.x + blockIdx.x] = c[threadIdx.x];
}

__global__ void offsets(unsigned *counts, int n)
{
	unsigned sum = 0;

	for (int base = 0; base < n; base += 32) {
		int i = base + threadIdx.x;
		unsigned v = i < n ? counts[i] : 0, s = v;

		for (int d = 1; d < 32; d *= 2) {
			unsigned t = __shfl_up_sync(~0u, s, d);

			if ((int)threadIdx.x >= d)
				s += t;
		}
		if (i < n)
			counts[i] = sum + s - v;
		sum += __shfl_sync(~0u, s, 31);
	}
}

__global__ void scatter(const unsigned *keys, const unsigned *values, unsigned *out_keys,
		unsigned *out_values,
			const unsigned *start, int n, int shift)
{
	__shared__ unsigned warps[BLOCK / 32][BINS];
	int i = blockIdx.x * BLOCK + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	unsigned key = i < n ? keys[i] : 0, bin = i < n ? key >> shift & (BINS - 1) : BINS, rank = 0;

	for (unsigned b = 0; b < BINS; b++) {
		unsigned mask = __ballot_sync(~0u, bin == b);

		if (bin == b)
			rank = __popc(mask & ((1u << lane) - 1));
		if (lane == 0)
			warps[warp][b] = __popc(mask);
	}
	__syncthreads();
	if (i < n) {
		for (int w = 0; w < warp; w++)
			rank += warps[w][bin];
		unsigned to = start[bin * gridDim.x + blockIdx.x] + rank;
		out_keys[to] = key;
		out_values[to] = values[i];
	}
}

int main(void)
{
	const int n = 30011, blocks = (n + BLOCK - 1) / BLOCK;
	std::vector<unsigned> keys(n), values(n), order(n), k(n), v(n);
	unsigned *d[4], *counts;
	uint32_t seed = 6;

	for (int i = 0; i < n; i++) {
		keys[i] = noise(&seed) & (i % 3 ? 0xffffffffu : 0xf00f0000u);
		values[i] = order[i] = i;
	}
	for (int i = 0; i < 4; i++)
		CK(cudaMalloc(&d[i], n * sizeof(unsigned)));
	CK(cudaMalloc(&counts, blocks * BINS * sizeof(unsigned)));
	CK(cudaMemcpy(d[0], keys.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(d[1], values.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
	for (int shift = 0; shift < 32; shift += BITS) {
		count<<<blocks, BLOCK>>>(d[0], counts, n, shift);
		offsets<<<1, 32>>>(counts, blocks * BINS);
		scatter<<<blocks, BLOCK>>>(d[0], d[1], d[2], d[3], counts, n, shift);
		std::swap(d[0], d[2]);
		std::swap(d[1], d[3]);
	}
	CK(cudaGetLastError());
	CK(cudaMemcpy(k.data(), d[0], n * sizeof(unsigned), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(v.data(), d[1], n * sizeof(unsigned), cudaMemcpyDeviceToHost));
	std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return keys[a] < keys[b];
			});
	for (int i = 0; i < n; i++)
		if (k[i] != keys[order[i]] || v[i] != order[i])
			fail("place %d has key %#x value %u, expected %#x and %u", i, k[i], v[i],
					keys[order[i]], order[i]);
	for (int i = 0; i < 4; i++)
		CK(cudaFree(d[i]));
	CK(cudaFree(counts));
	return pass();
}
