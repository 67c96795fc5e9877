// SPDX-License-Identifier: Apache-2.0
// Graphs that kernels launch: fire and forget, as a tail, and a graph that launches itself again until its
// work is done. Linked with the device's runtime, which is machine code made by the driver of a real GPU.
#include "../app.h"

__global__ void add(int *x, int v)
{
	atomicAdd(x, v);
}

__global__ void start(cudaGraphExec_t g, int *x, int tail)
{
	*x += 100;
	if (tail)
		cudaGraphLaunch(g, cudaStreamGraphTailLaunch);
	else
		cudaGraphLaunch(g, cudaStreamGraphFireAndForget);
}

__global__ void again(int *rounds, int *x)
{
	*x += 1;
	if (--*rounds > 0)
		cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

static cudaGraphExec_t captured(cudaStream_t s, unsigned flags, void (*work)(cudaStream_t, void *), void *arg)
{
	cudaGraph_t g;
	cudaGraphExec_t x;

	CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	work(s, arg);
	CK(cudaStreamEndCapture(s, &g));
	CK(cudaGraphInstantiate(&x, g, flags));
	CK(cudaGraphDestroy(g));
	return x;
}

struct work {
	int *x, *rounds;
	cudaGraphExec_t g;
	int tail;
};

static void do_add(cudaStream_t s, void *arg)
{
	struct work *w = (struct work *)arg;

	add<<<4, 32, 0, s>>>(w->x, 1);
}

static void do_start(cudaStream_t s, void *arg)
{
	struct work *w = (struct work *)arg;

	start<<<1, 1, 0, s>>>(w->g, w->x, w->tail);
}

static void do_again(cudaStream_t s, void *arg)
{
	struct work *w = (struct work *)arg;

	again<<<1, 1, 0, s>>>(w->rounds, w->x);
}

static void expect(const char *what, const int *x, int want)
{
	int v;

	CK(cudaMemcpy(&v, x, 4, cudaMemcpyDeviceToHost));
	if (v != want)
		fail("%s: %d, expected %d", what, v, want);
	puts(what);
}

int main(void)
{
	struct work w = {};
	cudaStream_t s;
	cudaGraphExec_t child, parent, self;
	cudaDeviceProp p;
	int rounds = 25;

	CK(cudaGetDeviceProperties(&p, 0));
	if (strstr(p.name, "software"))
		skip("the software device has no launches by kernels");
	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaMalloc(&w.x, 4));
	CK(cudaMalloc(&w.rounds, 4));
	CK(cudaMemset(w.x, 0, 4));
	child = captured(s, cudaGraphInstantiateFlagDeviceLaunch, do_add, &w);
	CK(cudaGraphUpload(child, s));
	CK(cudaGraphLaunch(child, s));
	CK(cudaStreamSynchronize(s));
	expect("launched by the host", w.x, 128);
	for (w.tail = 0; w.tail < 2; w.tail++) {
		w.g = child;
		parent = captured(s, 0, do_start, &w);
		CK(cudaMemset(w.x, 0, 4));
		CK(cudaGraphLaunch(parent, s));
		CK(cudaStreamSynchronize(s));
		expect(w.tail ? "launched as a tail" : "fired and forgotten", w.x, 228);
		CK(cudaGraphExecDestroy(parent));
	}
	CK(cudaMemcpy(w.rounds, &rounds, 4, cudaMemcpyHostToDevice));
	CK(cudaMemset(w.x, 0, 4));
	self = captured(s, cudaGraphInstantiateFlagDeviceLaunch, do_again, &w);
	CK(cudaGraphUpload(self, s));
	CK(cudaGraphLaunch(self, s));
	CK(cudaStreamSynchronize(s));
	expect("launched by itself", w.x, 25);
	CK(cudaGraphExecDestroy(self));
	CK(cudaGraphExecDestroy(child));
	CK(cudaFree(w.x));
	CK(cudaFree(w.rounds));
	return pass();
}
