// SPDX-License-Identifier: Apache-2.0
// Cooperative groups: grid synchronize over as many blocks as can be resident, tiles of a warp, coalesced
// groups, and that a grid too large for cooperation is refused.
#include "app.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

/* Each round every block reads what its neighbour wrote in the last one. */
__global__ void ring(int *a, int *b, int rounds)
{
	cg::grid_group grid = cg::this_grid();
	int n = gridDim.x * blockDim.x, i = (int)grid.thread_rank();

	for (int r = 0; r < rounds; r++) {
		b[i] = a[(i + blockDim.x) % n] + 1;
		grid.sync();
		int *t = a;
		a = b;
		b = t;
	}
}

__global__ void groups(int *out)
{
	cg::thread_block block = cg::this_thread_block();
	cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
	int v = (int)block.thread_rank(), sum = cg::reduce(tile, v, cg::plus<int>());

	out[v] = sum * 10 + (int)tile.meta_group_rank();
	if (v % 3 == 0) {
		cg::coalesced_group some = cg::coalesced_threads();
		out[64 + v] = (int)(some.size() * 100 + some.thread_rank());
	}
	block.sync();
}

int main(void)
{
	enum { BLOCK = 64, ROUNDS = 20 };
	int cooperative, multiprocessors, per, blocks, n, rounds = ROUNDS, *a, *b, *h, out[128];
	cudaStream_t s;

	CK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
	if (!cooperative)
		skip("no cooperative launch");
	CK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
	CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, ring, BLOCK, 0));
	blocks = multiprocessors * per;
	void *too_large[] = {&a, &b, &rounds};
	if (blocks > 64)
		blocks = 64;
	n = blocks * BLOCK;
	h = (int *)calloc(n, sizeof(int));
	CK(cudaStreamCreate(&s));
	CK(cudaMalloc(&a, n * sizeof(int)));
	CK(cudaMalloc(&b, n * sizeof(int)));
	for (int i = 0; i < n; i++)
		h[i] = i;
	CK(cudaMemcpyAsync(a, h, n * sizeof(int), cudaMemcpyHostToDevice, s));
	void *args[] = {&a, &b, &rounds};
	CK(cudaLaunchCooperativeKernel((void *)ring, dim3(blocks), dim3(BLOCK), args, 0, s));
	CK(cudaMemcpyAsync(h, a, n * sizeof(int), cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	for (int i = 0; i < n; i++) {
		int want = (i + ROUNDS * BLOCK) % n + ROUNDS;

		if (h[i] != want)
			fail("%d blocks: element %d is %d, expected %d", blocks, i, h[i], want);
	}
	EXPECT(cudaLaunchCooperativeKernel((void *)ring, dim3(multiprocessors * per + 1), dim3(BLOCK),
			too_large, 0, s),
	       cudaErrorCooperativeLaunchTooLarge);
	cudaGetLastError();
	CK(cudaFree(a));
	CK(cudaMalloc(&a, sizeof(out)));
	CK(cudaMemset(a, 0, sizeof(out)));
	groups<<<1, 64>>>(a);
	CK(cudaMemcpy(out, a, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++) {
		int first = i / 8 * 8, want = (first * 8 + 28) * 10 + i / 8, lane = i % 32,
				warp = i / 32 * 32, size = 0, rank = 0;

		for (int j = warp; j < warp + 32; j++) {
			size += j % 3 == 0;
			rank += j % 3 == 0 && j < i;
		}
		if (out[i] != want)
			fail("tile sum of thread %d is %d, expected %d", i, out[i], want);
		if (i % 3 == 0 && out[64 + i] != size * 100 + rank)
			fail("coalesced group of lane %d: %d, expected %d", lane, out[64 + i],
					size * 100 + rank);
	}
	CK(cudaFree(a));
	CK(cudaFree(b));
	CK(cudaStreamDestroy(s));
	free(h);
	return pass();
}
