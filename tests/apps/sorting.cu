// SPDX-License-Identifier: Apache-2.0
// Sorting by networks and by merging: a bitonic network whose small steps stay in shared memory, an odd-even
// merge network, and merge sort that finds each element's place by binary search; keys with values. Against
// the standard library.
#include "app.h"
#include <algorithm>
#include <vector>

enum { N = 1 << 13, BLOCK = 256 };

__device__ static void exchange(unsigned &ka, unsigned &va, unsigned &kb, unsigned &vb, bool up)
{
	if ((ka > kb) == up) {
		unsigned k = ka, v = va;

		ka = kb, va = vb;
		kb = k, vb = v;
	}
}

__global__ void bitonic_shared(unsigned *key, unsigned *value, unsigned size, unsigned stride)
{
	__shared__ unsigned k[2 * BLOCK], v[2 * BLOCK];
	unsigned base = blockIdx.x * 2 * BLOCK, t = threadIdx.x;

	for (unsigned i = t; i < 2 * BLOCK; i += BLOCK)
		k[i] = key[base + i], v[i] = value[base + i];
	for (; size; size = size < 2 * BLOCK && stride == 0 ? size * 2 : 0) {
		for (unsigned s = stride ? stride : size / 2; s; s /= 2) {
			unsigned at = 2 * t - (t & (s - 1));

			__syncthreads();
			exchange(k[at], v[at], k[at + s], v[at + s], !((base + at) & size));
		}
		__syncthreads();
	}
	for (unsigned i = t; i < 2 * BLOCK; i += BLOCK)
		key[base + i] = k[i], value[base + i] = v[i];
}

__global__ void bitonic_global(unsigned *key, unsigned *value, unsigned size, unsigned stride)
{
	unsigned t = blockIdx.x * blockDim.x + threadIdx.x, at = 2 * t - (t & (stride - 1));

	exchange(key[at], value[at], key[at + stride], value[at + stride], !(at & size));
}

__global__ void odd_even(unsigned *key, unsigned *value, unsigned size, unsigned stride)
{
	unsigned t = blockIdx.x * blockDim.x + threadIdx.x, at = 2 * t - (t & (stride - 1));

	if (stride < size / 2) {
		unsigned offset = t & (size / 2 - 1);

		if (offset < stride)
			return;
		exchange(key[at - stride], value[at - stride], key[at], value[at], true);
	} else {
		exchange(key[at], value[at], key[at + stride], value[at + stride], true);
	}
}

__global__ void merge(
	const unsigned *key, const unsigned *value, unsigned *key2, unsigned *value2, unsigned run)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, pair = i / (2 * run) * 2 * run, mine = i - pair;
	bool right = mine >= run;
	const unsigned *other = key + pair + (right ? 0 : run);
	unsigned low = 0, high = run, k = key[i];

	/* Equal ones of the left come first: the sort is stable. */
	while (low < high) {
		unsigned m = (low + high) / 2;

		if (right ? other[m] <= k : other[m] < k)
			low = m + 1;
		else
			high = m;
	}
	unsigned to = pair + low + (right ? mine - run : mine);
	key2[to] = k;
	value2[to] = value[i];
}

static void check(const char *name, const std::vector<unsigned> &keys, const unsigned *key,
	const unsigned *value, bool stable)
{
	std::vector<unsigned> k(N), v(N), order(N);

	CK(cudaGetLastError());
	CK(cudaMemcpy(k.data(), key, N * 4, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(v.data(), value, N * 4, cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < N; i++)
		order[i] = i;
	std::stable_sort(
		order.begin(), order.end(), [&](unsigned a, unsigned b) { return keys[a] < keys[b]; });
	for (unsigned i = 0; i < N; i++) {
		if (k[i] != keys[order[i]] || keys[v[i]] != k[i])
			fail("%s: place %u has key %u of value %u", name, i, k[i], v[i]);
		if (stable && v[i] != order[i])
			fail("%s: place %u has value %u, expected %u", name, i, v[i], order[i]);
	}
	std::sort(v.begin(), v.end());
	for (unsigned i = 0; i < N; i++)
		if (v[i] != i)
			fail("%s: value %u is missing", name, i);
	puts(name);
}

int main(void)
{
	std::vector<unsigned> keys(N), values(N);
	unsigned *d[4];
	uint32_t seed = 6;

	for (unsigned i = 0; i < N; i++) {
		keys[i] = noise(&seed) % 5000;
		values[i] = i;
	}
	for (unsigned *&p : d)
		CK(cudaMalloc(&p, N * 4));
	auto restart = [&] {
		CK(cudaMemcpy(d[0], keys.data(), N * 4, cudaMemcpyHostToDevice));
		CK(cudaMemcpy(d[1], values.data(), N * 4, cudaMemcpyHostToDevice));
	};
	restart();
	bitonic_shared<<<N / 2 / BLOCK, BLOCK>>>(d[0], d[1], 2, 0);
	for (unsigned size = 4 * BLOCK; size <= N; size *= 2) {
		for (unsigned stride = size / 2; stride > BLOCK; stride /= 2)
			bitonic_global<<<N / 2 / BLOCK, BLOCK>>>(d[0], d[1], size, stride);
		bitonic_shared<<<N / 2 / BLOCK, BLOCK>>>(d[0], d[1], size, BLOCK);
	}
	check("bitonic network", keys, d[0], d[1], false);
	restart();
	for (unsigned size = 2; size <= N; size *= 2)
		for (unsigned stride = size / 2; stride; stride /= 2)
			odd_even<<<N / 2 / BLOCK, BLOCK>>>(d[0], d[1], size, stride);
	check("odd-even merge network", keys, d[0], d[1], false);
	restart();
	int from = 0;
	for (unsigned run = 1; run < N; run *= 2, from ^= 2)
		merge<<<N / BLOCK, BLOCK>>>(d[from], d[from + 1], d[from ^ 2], d[(from ^ 2) + 1], run);
	check("merge sort", keys, d[from], d[from + 1], true);
	for (unsigned *p : d)
		CK(cudaFree(p));
	return pass();
}
