// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation: use after cudaMallocAsync on the same stream, reuse after cudaFreeAsync,
// hand-over to another stream by an event, a pool of one's own with its attributes, and that synchronous
// cudaFree accepts such a pointer. Memory that a graph has allocated and not freed outlives the graph.
#include "app.h"

__global__ void fill(int *p, int n, int base)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = base + i;
}

__global__ void check(const int *p, int n, int base, int *bad)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n && p[i] != base + i)
		atomicAdd(bad, 1);
}

/* The graph and its executable are gone before anybody looks at the memory. */
static void outlives(cudaStream_t s, int n, bool async, int *bad)
{
	size_t bytes = n * sizeof(int);
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int *p, *other;

	CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	CK(cudaMallocAsync(&p, bytes, s));
	fill<<<(n + 255) / 256, 256, 0, s>>>(p, n, 12);
	CK(cudaStreamEndCapture(s, &graph));
	CK(cudaGraphInstantiate(&exec, graph, 0));
	CK(cudaGraphLaunch(exec, s));
	CK(cudaGraphExecDestroy(exec));
	CK(cudaGraphDestroy(graph));
	CK(cudaMallocAsync(&other, bytes, s));
	fill<<<(n + 255) / 256, 256, 0, s>>>(other, n, 77);
	check<<<(n + 255) / 256, 256, 0, s>>>(p, n, 12, bad);
	CK(cudaMemcpyAsync(other, p, bytes, cudaMemcpyDeviceToDevice, s));
	if (async)
		CK(cudaFreeAsync(p, s));
	else
		CK(cudaFree(p));
	check<<<(n + 255) / 256, 256, 0, s>>>(other, n, 12, bad);
	CK(cudaFreeAsync(other, s));
	CK(cudaStreamSynchronize(s));
}

int main(void)
{
	enum { N = 50000 };
	int pools = 0, *bad, h = 0, *p, *q, *keep[8];
	cudaStream_t s, t;
	cudaEvent_t e;
	cudaMemPool_t pool, def;
	cudaMemPoolProps props = {};
	uint64_t threshold = 1 << 24, got = 0;

	CK(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, 0));
	if (!pools)
		skip("no memory pools");
	CK(cudaStreamCreate(&s));
	CK(cudaStreamCreate(&t));
	CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	CK(cudaMalloc(&bad, sizeof(int)));
	CK(cudaMemset(bad, 0, sizeof(int)));
	for (int i = 0; i < 200; i++) {
		CK(cudaMallocAsync(&p, N * sizeof(int), s));
		fill<<<(N + 255) / 256, 256, 0, s>>>(p, N, i);
		check<<<(N + 255) / 256, 256, 0, s>>>(p, N, i, bad);
		CK(cudaFreeAsync(p, s));
	}
	CK(cudaMallocAsync(&p, N * sizeof(int), s));
	fill<<<(N + 255) / 256, 256, 0, s>>>(p, N, 3);
	CK(cudaEventRecord(e, s));
	CK(cudaStreamWaitEvent(t, e, 0));
	check<<<(N + 255) / 256, 256, 0, t>>>(p, N, 3, bad);
	CK(cudaFreeAsync(p, t));
	for (int i = 0; i < 8; i++) {
		CK(cudaMallocAsync(&keep[i], (i + 1) * 1000 * sizeof(int), s));
		fill<<<(i + 1) * 4, 256, 0, s>>>(keep[i], (i + 1) * 1000, i * 100000);
	}
	for (int i = 0; i < 8; i++) {
		check<<<(i + 1) * 4, 256, 0, s>>>(keep[i], (i + 1) * 1000, i * 100000, bad);
		for (int j = 0; j < i; j++)
			if (keep[i] == keep[j])
				fail("two live allocations at one address");
	}
	for (int i = 0; i < 8; i++)
		CK(i % 2 ? cudaFreeAsync(keep[i], s) : cudaFree(keep[i]));

	for (int i = 0; i < 8; i++)
		outlives(s, N, i % 2, bad);

	CK(cudaDeviceGetDefaultMemPool(&def, 0));
	CK(cudaMemPoolSetAttribute(def, cudaMemPoolAttrReleaseThreshold, &threshold));
	CK(cudaMemPoolGetAttribute(def, cudaMemPoolAttrReleaseThreshold, &got));
	if (got != threshold)
		fail("release threshold is %llu, expected %llu", (unsigned long long)got,
				(unsigned long long)threshold);
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CK(cudaMemPoolCreate(&pool, &props));
	CK(cudaMallocFromPoolAsync(&q, N * sizeof(int), pool, s));
	fill<<<(N + 255) / 256, 256, 0, s>>>(q, N, 8);
	check<<<(N + 255) / 256, 256, 0, s>>>(q, N, 8, bad);
	CK(cudaStreamSynchronize(s));
	CK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &got));
	if (got < N * sizeof(int))
		fail("pool uses %llu bytes, expected at least %zu", (unsigned long long)got, N * sizeof(int));
	CK(cudaFreeAsync(q, s));
	CK(cudaStreamSynchronize(s));
	CK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &got));
	if (got)
		fail("pool uses %llu bytes after all were freed", (unsigned long long)got);
	CK(cudaMemPoolTrimTo(pool, 0));
	CK(cudaMemPoolDestroy(pool));
	CK(cudaDeviceSynchronize());
	CK(cudaMemcpy(&h, bad, sizeof(h), cudaMemcpyDeviceToHost));
	if (h)
		fail("%d elements were wrong", h);
	CK(cudaStreamDestroy(s));
	CK(cudaStreamDestroy(t));
	CK(cudaEventDestroy(e));
	CK(cudaFree(bad));
	return pass();
}
