// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: made by capture of one and of several streams, made node by node, with copies, memsets and
// host functions; replays on changing input, parameter updates of an instantiated graph, whole-graph update,
// cloning, and what is refused while a stream captures.
#include "app.h"

enum { N = 10000 };

__global__ void scale(int *p, int a, int b)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		p[i] = p[i] * a + b;
}

__global__ void combine(const int *x, const int *y, int *z)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		z[i] = x[i] * 7 + y[i];
}

enum { GRID = (N + 255) / 256, BLOCK = 256 };
static int *x, *y, *z, *pin, *result, called;
static cudaStream_t s, t;

static void count(void *p)
{
	++*(int *)p;
}

static void check(const char *what, const int *got, int (*want)(int, int), int arg)
{
	for (int i = 0; i < N; i++)
		if (got[i] != want(i, arg))
			fail("%s: element %d is %d, expected %d", what, i, got[i], want(i, arg));
}

static int forked(int i, int base)
{
	return ((base + i) * 2 + 1) * 7 + ((base + i) * 3 + 2);
}

/* Input from pinned memory, two branches on two streams, joined, result to pinned memory, a host function. */
static void captured(void)
{
	cudaGraph_t g;
	cudaGraphExec_t e;
	cudaEvent_t fork, join;
	cudaStreamCaptureStatus status;
	size_t nodes = 0;

	CK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	CK(cudaMemcpyAsync(x, pin, N * sizeof(int), cudaMemcpyHostToDevice, s));
	CK(cudaMemcpyAsync(y, x, N * sizeof(int), cudaMemcpyDeviceToDevice, s));
	CK(cudaEventRecord(fork, s));
	CK(cudaStreamWaitEvent(t, fork, 0));
	scale<<<GRID, BLOCK, 0, s>>>(x, 2, 1);
	scale<<<GRID, BLOCK, 0, t>>>(y, 3, 2);
	CK(cudaStreamIsCapturing(t, &status));
	if (status != cudaStreamCaptureStatusActive)
		fail("the joined stream is not capturing");
	CK(cudaEventRecord(join, t));
	CK(cudaStreamWaitEvent(s, join, 0));
	combine<<<GRID, BLOCK, 0, s>>>(x, y, z);
	CK(cudaMemcpyAsync(result, z, N * sizeof(int), cudaMemcpyDeviceToHost, s));
	CK(cudaLaunchHostFunc(s, count, &called));
	CK(cudaStreamEndCapture(s, &g));
	CK(cudaGraphGetNodes(g, NULL, &nodes));
	if (nodes != 7)
		fail("captured %zu nodes, expected 7", nodes);
	CK(cudaGraphInstantiate(&e, g, 0));
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < N; i++)
			pin[i] = round * 100 + i;
		CK(cudaGraphLaunch(e, s));
		CK(cudaStreamSynchronize(s));
		check("captured", result, forked, round * 100);
		if (called != round + 1)
			fail("host function ran %d times, expected %d", called, round + 1);
	}
	CK(cudaGraphExecDestroy(e));
	CK(cudaGraphDestroy(g));
	CK(cudaEventDestroy(fork));
	CK(cudaEventDestroy(join));
}

static int built(int, int v)
{
	return 5 * 4 + v;
}

static int cloned(int, int v)
{
	return 9 * 4 + v;
}

static int nothing(int, int)
{
	return 0;
}

/* memset -> kernel -> copy to the host, then parameters changed in the executable and in a clone. */
static void explicitly(void)
{
	cudaGraph_t g, c;
	cudaGraphExec_t e, e2;
	cudaGraphNode_t set, kernel, copy, empty, host;
	cudaMemsetParams m = {};
	cudaKernelNodeParams k = {};
	cudaHostNodeParams h = {count, &called};
	cudaGraphExecUpdateResultInfo info;
	int a = 4, b = 100;
	void *args[] = {&z, &a, &b};

	CK(cudaGraphCreate(&g, 0));
	m.dst = z;
	m.elementSize = 4;
	m.value = 5;
	m.width = N;
	m.height = 1;
	CK(cudaGraphAddMemsetNode(&set, g, NULL, 0, &m));
	k.func = (void *)scale;
	k.gridDim = dim3(GRID);
	k.blockDim = dim3(BLOCK);
	k.kernelParams = args;
	CK(cudaGraphAddKernelNode(&kernel, g, &set, 1, &k));
	CK(cudaGraphAddEmptyNode(&empty, g, &kernel, 1));
	CK(cudaGraphAddMemcpyNode1D(&copy, g, &empty, 1, result, z, N * sizeof(int), cudaMemcpyDeviceToHost));
	CK(cudaGraphAddHostNode(&host, g, &copy, 1, &h));
	CK(cudaGraphInstantiate(&e, g, 0));
	called = 0;
	CK(cudaGraphLaunch(e, s));
	CK(cudaStreamSynchronize(s));
	check("explicit", result, built, 100);

	b = 200; /* the node took a copy of its parameters */
	CK(cudaGraphLaunch(e, s));
	CK(cudaStreamSynchronize(s));
	check("explicit, again", result, built, 100);
	CK(cudaGraphExecKernelNodeSetParams(e, kernel, &k));
	CK(cudaGraphLaunch(e, s));
	CK(cudaStreamSynchronize(s));
	check("explicit, new parameters", result, built, 200);

	CK(cudaGraphClone(&c, g));
	cudaGraphNode_t set2;
	CK(cudaGraphNodeFindInClone(&set2, set, c));
	m.value = 9;
	CK(cudaGraphMemsetNodeSetParams(set2, &m));
	CK(cudaGraphInstantiate(&e2, c, 0));
	CK(cudaGraphLaunch(e2, s));
	CK(cudaStreamSynchronize(s));
	check("clone", result, cloned, 100);
	CK(cudaGraphExecUpdate(e, c, &info));
	memset(result, 0, N * sizeof(int));
	CK(cudaGraphLaunch(e, s));
	CK(cudaStreamSynchronize(s));
	check("updated", result, cloned, 100);
	if (called != 5)
		fail("host node ran %d times, expected 5", called);
	CK(cudaGraphExecDestroy(e));
	CK(cudaGraphExecDestroy(e2));
	CK(cudaGraphDestroy(c));
	CK(cudaGraphDestroy(g));
}

/* Captured work does not run; blocking calls on a capturing stream are refused and break the capture. */
static void rules(void)
{
	cudaGraph_t g = NULL;

	CK(cudaMemset(z, 0, N * sizeof(int)));
	CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	scale<<<GRID, BLOCK, 0, s>>>(z, 1, 1);
	CK(cudaStreamEndCapture(s, &g));
	CK(cudaMemcpy(result, z, N * sizeof(int), cudaMemcpyDeviceToHost));
	check("captured but not launched", result, nothing, 0);
	CK(cudaGraphDestroy(g));

	CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	scale<<<GRID, BLOCK, 0, s>>>(z, 1, 1);
	EXPECT(cudaStreamSynchronize(s), cudaErrorStreamCaptureUnsupported);
	EXPECT(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureInvalidated);
	cudaGetLastError();
	EXPECT(cudaStreamQuery(s), cudaSuccess);
}

int main(void)
{
	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	CK(cudaMalloc(&x, N * sizeof(int)));
	CK(cudaMalloc(&y, N * sizeof(int)));
	CK(cudaMalloc(&z, N * sizeof(int)));
	CK(cudaMallocHost(&pin, N * sizeof(int)));
	CK(cudaMallocHost(&result, N * sizeof(int)));
	captured();
	explicitly();
	rules();
	CK(cudaFree(x));
	CK(cudaFree(y));
	CK(cudaFree(z));
	CK(cudaFreeHost(pin));
	CK(cudaFreeHost(result));
	CK(cudaStreamDestroy(s));
	CK(cudaStreamDestroy(t));
	return pass();
}
