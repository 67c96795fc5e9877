// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory that the threads need not wait for: a pipeline of two stages, barriers
// with arrival and waiting apart, a matrix product staged by memcpy_async, and atomics of every scope. In
// code for a device with such copies they are its instructions, else plain ones.
#include "app.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <vector>
namespace cg = cooperative_groups;

/* A shared barrier is made by init(), not by its constructor. */
#pragma nv_diag_suppress static_var_with_dynamic_init

enum { TILE = 256, TILES = 8, BLOCKS = 6, SIDE = 64 };

__global__ void pipelined(const float *in, float *out)
{
	__shared__ float stage[2][TILE];
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
	cg::thread_block block = cg::this_thread_block();
	auto pipeline = cuda::make_pipeline(block, &state);
	const float *mine = in + blockIdx.x * TILES * TILE;
	float sum = 0;

	for (int fetched = 0, used = 0; used < TILES; used++) {
		for (; fetched < TILES && fetched < used + 2; fetched++) {
			pipeline.producer_acquire();
			cuda::memcpy_async(
				block, stage[fetched % 2], mine + fetched * TILE, sizeof(stage[0]), pipeline);
			pipeline.producer_commit();
		}
		pipeline.consumer_wait();
		sum += stage[used % 2][TILE - 1 - threadIdx.x] * (used + 1);
		pipeline.consumer_release();
	}
	out[blockIdx.x * TILE + threadIdx.x] = sum;
}

__global__ void barriers(const int *in, int *out)
{
	__shared__ cuda::barrier<cuda::thread_scope_block> b;
	__shared__ int x[TILE];
	cg::thread_block block = cg::this_thread_block();

	if (!threadIdx.x)
		init(&b, blockDim.x);
	block.sync();
	for (int round = 0; round < 4; round++) {
		x[threadIdx.x] = in[threadIdx.x] + round;
		auto token = b.arrive();
		int own =
			threadIdx.x * round; /* what needs nobody else is done between arriving and waiting */
		b.wait(std::move(token));
		int v = x[(threadIdx.x + 1) % TILE] + own;
		b.arrive_and_wait();
		out[round * TILE + threadIdx.x] = v;
	}
}

__global__ void product(const float *a, const float *b, float *c)
{
	__shared__ float ta[16][16], tb[16][16];
	cg::thread_block block = cg::this_thread_block();
	int x = threadIdx.x, y = threadIdx.y;
	float s = 0;

	for (int k = 0; k < SIDE; k += 16) {
		for (int row = 0; row < 16; row++) {
			cg::memcpy_async(
				block, ta[row], a + (blockIdx.y * 16 + row) * SIDE + k, sizeof(ta[0]));
			cg::memcpy_async(
				block, tb[row], b + (k + row) * SIDE + blockIdx.x * 16, sizeof(tb[0]));
		}
		cg::wait(block);
		for (int i = 0; i < 16; i++)
			s += ta[y][i] * tb[i][x];
		block.sync();
	}
	c[(blockIdx.y * 16 + y) * SIDE + blockIdx.x * 16 + x] = s;
}

__global__ void scopes(unsigned *counters, float *largest)
{
	__shared__ unsigned inside;
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (!threadIdx.x)
		inside = 0;
	__syncthreads();
	cuda::atomic_ref<unsigned, cuda::thread_scope_block>(inside).fetch_add(1, cuda::memory_order_relaxed);
	cuda::atomic_ref<unsigned, cuda::thread_scope_device>(counters[0])
		.fetch_add(i % 5, cuda::memory_order_relaxed);
	cuda::atomic_ref<unsigned, cuda::thread_scope_system>(counters[1])
		.fetch_max(i, cuda::memory_order_relaxed);
	atomicAdd_system(&counters[2], 2u);
	atomicXor_system(&counters[3], i);
	atomicCAS_system(&counters[4], 0u, 99u);
	__syncthreads();
	if (!threadIdx.x)
		cuda::atomic_ref<unsigned, cuda::thread_scope_device>(counters[5])
			.fetch_add(inside, cuda::memory_order_acq_rel);
	cuda::atomic_ref<float, cuda::thread_scope_device>(*largest).fetch_add(
		0.5f, cuda::memory_order_relaxed);
}

int main(void)
{
	float *a, *b, *c, *f;
	int *in, *out;
	unsigned *counters;
	uint32_t seed = 17;

	CK(cudaMallocManaged(&a, BLOCKS * TILES * TILE * 4));
	CK(cudaMallocManaged(&b, SIDE * SIDE * 4));
	CK(cudaMallocManaged(&c, SIDE * SIDE * 4));
	CK(cudaMallocManaged(&f, BLOCKS * TILE * 4));
	CK(cudaMallocManaged(&in, TILE * 4));
	CK(cudaMallocManaged(&out, 4 * TILE * 4));
	CK(cudaMallocManaged(&counters, 6 * 4));
	for (int i = 0; i < BLOCKS * TILES * TILE; i++)
		a[i] = (float)(noise(&seed) % 64);
	for (int i = 0; i < SIDE * SIDE; i++)
		b[i] = (float)(noise(&seed) % 16);
	for (int i = 0; i < TILE; i++)
		in[i] = (int)(noise(&seed) % 1000);
	pipelined<<<BLOCKS, TILE>>>(a, f);
	CK(cudaDeviceSynchronize());
	for (int k = 0; k < BLOCKS; k++)
		for (int i = 0; i < TILE; i++) {
			float want = 0;

			for (int t = 0; t < TILES; t++)
				want += a[(k * TILES + t) * TILE + TILE - 1 - i] * (float)(t + 1);
			if (f[k * TILE + i] != want)
				fail("pipeline, block %d, thread %d: %g, expected %g", k, i, f[k * TILE + i],
					want);
		}
	puts("pipeline");
	barriers<<<1, TILE>>>(in, out);
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < 4 * TILE; i++)
		if (out[i] != in[(i + 1) % TILE] + i / TILE + i % TILE * (i / TILE))
			fail("barrier, %d: %d", i, out[i]);
	puts("barriers");
	product<<<dim3(SIDE / 16, SIDE / 16), dim3(16, 16)>>>(a, b, c);
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < SIDE * SIDE; i++) {
		float want = 0;

		for (int k = 0; k < SIDE; k++)
			want += a[i / SIDE * SIDE + k] * b[k * SIDE + i % SIDE];
		if (c[i] != want)
			fail("product, %d: %g, expected %g", i, c[i], want);
	}
	puts("product");

	memset(counters, 0, 24);
	counters[0] = 1000; /* the CPU's part, before and after the GPU's */
	*f = 1;
	scopes<<<BLOCKS, TILE>>>(counters, f);
	CK(cudaDeviceSynchronize());
	unsigned want[6] = {1000, BLOCKS * TILE - 1, 2 * BLOCKS * TILE, 0, 99, BLOCKS * TILE};
	for (unsigned i = 0; i < BLOCKS * TILE; i++) {
		want[0] += i % 5;
		want[3] ^= i;
	}
	same_bytes("scopes", counters, want, sizeof(want));
	if (*f != 1 + BLOCKS * TILE / 2.0f)
		fail("sum of floats is %g", *f);
	__atomic_fetch_add(&counters[0], 1, __ATOMIC_SEQ_CST);
	if (counters[0] != want[0] + 1)
		fail("the CPU's own addition");
	puts("atomics of every scope");
	for (void *p :
		{(void *)a, (void *)b, (void *)c, (void *)f, (void *)in, (void *)out, (void *)counters})
		CK(cudaFree(p));
	return pass();
}
