// SPDX-License-Identifier: Apache-2.0
// Groups of threads below and above the warp: one atomic for all lanes that are there, partitions by a
// predicate and by a label, a segmented scan by shuffles, a reduction in one pass whose last block finishes
// (fences and a ticket), and warp-wide reductions of cooperative groups. Against the host.
#include "app.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <vector>
namespace cg = cooperative_groups;

enum { N = 1 << 14, BLOCK = 256 };

__global__ void filter(const int *in, int *out, int *count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (in[i] % 3 == 0) {
		cg::coalesced_group g = cg::coalesced_threads();
		int at = 0;

		if (g.thread_rank() == 0)
			at = atomicAdd(count, g.size());
		at = g.shfl(at, 0) + g.thread_rank();
		out[at] = in[i];
	}
}

__global__ void partitions(const int *in, int *sums, int *labels)
{
	cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
	int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
	cg::coalesced_group odd = cg::binary_partition(warp, v & 1);
	int sum = cg::reduce(odd, v, cg::plus<int>());

	if (odd.thread_rank() == 0)
		atomicAdd(&sums[v & 1], sum);
	cg::coalesced_group same = cg::labeled_partition(warp, v % 5);
	sum = cg::reduce(same, 1, cg::plus<int>());
	if (same.thread_rank() == 0)
		atomicAdd(&labels[v % 5], sum);
}

__global__ void segmented(const int *value, const int *head, int *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, v = value[i];
	unsigned heads = __ballot_sync(~0u, head[i] || !lane), mine = heads & (2u << lane) - 1;
	int first = 31 - __clz(mine);

	for (int k = 1; k < 32; k *= 2) {
		int w = __shfl_up_sync(~0u, v, k);

		if (lane - k >= first)
			v += w;
	}
	out[i] = v;
}

__device__ unsigned ticket;

__global__ void single_pass(const int *in, long long *part, long long *out)
{
	__shared__ long long sums[BLOCK / 32];
	__shared__ bool last;
	cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
	long long v =
		cg::reduce(warp, (long long)in[blockIdx.x * BLOCK + threadIdx.x], cg::plus<long long>());

	if (warp.thread_rank() == 0)
		sums[threadIdx.x / 32] = v;
	__syncthreads();
	if (!threadIdx.x) {
		v = 0;
		for (long long s : sums)
			v += s;
		part[blockIdx.x] = v;
		__threadfence();
		last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (last && !threadIdx.x) {
		v = 0;
		for (unsigned b = 0; b < gridDim.x; b++)
			v += ((volatile long long *)part)[b];
		*out = v;
	}
}

__global__ void scans(const int *in, int *inclusive, int *exclusive, int *largest)
{
	cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::this_thread_block());
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	inclusive[i] = cg::inclusive_scan(tile, in[i]);
	exclusive[i] = cg::exclusive_scan(tile, in[i]);
	largest[i] = cg::reduce(tile, in[i], cg::greater<int>());
}

int main(void)
{
	std::vector<int> in(N), head(N), out(N), more(N), third(N);
	int *d, *h, *o, *p, *q, counts[7] = {}, want[7] = {}, kept;
	long long *part, *total, sum = 0, got;
	uint32_t seed = 16;

	for (int i = 0; i < N; i++) {
		in[i] = (int)(noise(&seed) % 1000);
		head[i] = noise(&seed) % 7 == 0;
		sum += in[i];
	}
	CK(cudaMalloc(&d, N * 4));
	CK(cudaMalloc(&h, N * 4));
	CK(cudaMalloc(&o, N * 4));
	CK(cudaMalloc(&p, N * 4));
	CK(cudaMalloc(&q, N * 4));
	CK(cudaMalloc(&part, N / BLOCK * 8));
	CK(cudaMalloc(&total, 8));
	CK(cudaMemcpy(d, in.data(), N * 4, cudaMemcpyHostToDevice));
	CK(cudaMemcpy(h, head.data(), N * 4, cudaMemcpyHostToDevice));

	CK(cudaMemset(p, 0, 4));
	filter<<<N / BLOCK, BLOCK>>>(d, o, p);
	CK(cudaMemcpy(&kept, p, 4, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(out.data(), o, N * 4, cudaMemcpyDeviceToHost));
	std::vector<int> times(1000);
	for (int v : in)
		times[v] += v % 3 == 0;
	for (int i = 0; i < kept; i++)
		times[out[i]]--;
	for (int t : times)
		if (t)
			fail("a filtered value is missing or doubled");
	printf("%d kept by aggregated atomics\n", kept);

	CK(cudaMemset(p, 0, sizeof(counts)));
	partitions<<<N / BLOCK, BLOCK>>>(d, p, p + 2);
	CK(cudaMemcpy(counts, p, sizeof(counts), cudaMemcpyDeviceToHost));
	for (int v : in) {
		want[v & 1] += v;
		want[2 + v % 5]++;
	}
	same_bytes("partitions", counts, want, sizeof(want));
	puts("partitions");

	segmented<<<N / BLOCK, BLOCK>>>(d, h, o);
	CK(cudaMemcpy(out.data(), o, N * 4, cudaMemcpyDeviceToHost));
	for (int i = 0, v = 0; i < N; i++) {
		v = head[i] || i % 32 == 0 ? in[i] : v + in[i];
		if (out[i] != v)
			fail("segmented scan, %d is %d, expected %d", i, out[i], v);
	}
	puts("segmented scan");
	for (int k = 0; k < 3; k++) {
		single_pass<<<N / BLOCK, BLOCK>>>(d, part, total);
		CK(cudaMemcpy(&got, total, 8, cudaMemcpyDeviceToHost));
		if (got != sum)
			fail("the last block made %lld, expected %lld", got, sum);
	}
	puts("one pass");
	scans<<<N / BLOCK, BLOCK>>>(d, o, p, q);
	CK(cudaGetLastError());
	CK(cudaMemcpy(out.data(), o, N * 4, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(more.data(), p, N * 4, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(third.data(), q, N * 4, cudaMemcpyDeviceToHost));
	for (int i = 0, v = 0, m; i < N; i++) {
		if (i % 16 == 0)
			v = 0;
		m = 0;
		for (int k = i / 16 * 16; k < i / 16 * 16 + 16; k++)
			m = m > in[k] ? m : in[k];
		if (more[i] != v || out[i] != v + in[i] || third[i] != m)
			fail("tile scan, %d: %d %d %d", i, out[i], more[i], third[i]);
		v += in[i];
	}
	puts("scans of tiles");
	for (void *x : {(void *)d, (void *)h, (void *)o, (void *)p, (void *)q, (void *)part, (void *)total})
		CK(cudaFree(x));
	return pass();
}
