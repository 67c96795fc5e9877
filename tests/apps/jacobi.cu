// SPDX-License-Identifier: Apache-2.0
// Iterative solutions of a system of equations: Jacobi's by a graph of one step that is launched again and
// again with its parameters updated, by captures anew each time, and by plain launches, all with the same
// bits; and conjugate gradients within one cooperative kernel. Against the host.
#include "app.h"
#include <cooperative_groups.h>
#include <utility>
#include <vector>
namespace cg = cooperative_groups;

enum { N = 128, STEPS = 40, BLOCK = 64 };

__global__ void step(const float *a, const float *b, const float *x, float *y, float *change)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float s = b[i], v;

	for (int j = 0; j < N; j++)
		if (j != i)
			s -= a[i * N + j] * x[j];
	v = s / a[i * N + i];
	atomicMax((int *)change, __float_as_int(fabsf(v - x[i])));
	y[i] = v;
}

struct problem {
	float *a, *b, *x, *y, *change;
};

static void restart(problem &m)
{
	CK(cudaMemset(m.x, 0, N * 4));
	CK(cudaMemset(m.y, 0, N * 4));
}

static std::vector<float> solution(float *x)
{
	std::vector<float> v(N);

	CK(cudaDeviceSynchronize());
	CK(cudaMemcpy(v.data(), x, N * 4, cudaMemcpyDeviceToHost));
	return v;
}

static std::vector<float> plain(problem m, cudaStream_t s)
{
	restart(m);
	for (int k = 0; k < STEPS; k++, std::swap(m.x, m.y)) {
		CK(cudaMemsetAsync(m.change, 0, 4, s));
		step<<<N / BLOCK, BLOCK, 0, s>>>(m.a, m.b, m.x, m.y, m.change);
	}
	CK(cudaStreamSynchronize(s));
	return solution(m.x);
}

static std::vector<float> updated(problem m, cudaStream_t s)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t clear, node;
	cudaMemsetParams zero = {};
	cudaKernelNodeParams k = {};
	void *arguments[] = {&m.a, &m.b, &m.x, &m.y, &m.change};

	restart(m);
	CK(cudaGraphCreate(&graph, 0));
	zero.dst = m.change;
	zero.elementSize = 4;
	zero.width = 1;
	zero.height = 1;
	CK(cudaGraphAddMemsetNode(&clear, graph, NULL, 0, &zero));
	k.func = (void *)step;
	k.gridDim = dim3(N / BLOCK);
	k.blockDim = dim3(BLOCK);
	k.kernelParams = arguments;
	CK(cudaGraphAddKernelNode(&node, graph, &clear, 1, &k));
	CK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < STEPS; i++) {
		CK(cudaGraphExecKernelNodeSetParams(exec, node, &k));
		CK(cudaGraphLaunch(exec, s));
		std::swap(m.x, m.y);
	}
	CK(cudaStreamSynchronize(s));
	CK(cudaGraphExecDestroy(exec));
	CK(cudaGraphDestroy(graph));
	return solution(m.x);
}

static std::vector<float> captured(problem m, cudaStream_t s)
{
	cudaGraphExec_t exec = NULL;

	restart(m);
	for (int i = 0; i < STEPS; i++, std::swap(m.x, m.y)) {
		cudaGraph_t graph;
		cudaGraphExecUpdateResultInfo info;

		CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
		CK(cudaMemsetAsync(m.change, 0, 4, s));
		step<<<N / BLOCK, BLOCK, 0, s>>>(m.a, m.b, m.x, m.y, m.change);
		CK(cudaStreamEndCapture(s, &graph));
		if (!exec)
			CK(cudaGraphInstantiate(&exec, graph, 0));
		else
			CK(cudaGraphExecUpdate(exec, graph, &info));
		CK(cudaGraphDestroy(graph));
		CK(cudaGraphLaunch(exec, s));
	}
	CK(cudaStreamSynchronize(s));
	CK(cudaGraphExecDestroy(exec));
	return solution(m.x);
}

__device__ double total(cg::grid_group grid, double v, double *sums)
{
	for (int k = 16; k; k /= 2)
		v += __shfl_down_sync(~0u, v, k);
	if (grid.thread_rank() == 0)
		*sums = 0;
	grid.sync();
	if (threadIdx.x % 32 == 0)
		atomicAdd(sums, v);
	grid.sync();
	v = *sums;
	grid.sync();
	return v;
}

__global__ void gradients(const float *a, const float *b, double *x, double *p, double *sums, int *steps)
{
	cg::grid_group grid = cg::this_grid();
	int i = (int)grid.thread_rank();
	double r = b[i], rho, xi = 0;

	p[i] = r;
	rho = total(grid, r * r, sums);
	for (int k = 0; k < 2 * N && rho > 1e-18; k++) {
		double q = 0, alpha, next;

		for (int j = 0; j < N; j++)
			q += (double)a[i * N + j] * p[j];
		alpha = rho / total(grid, p[i] * q, sums);
		xi += alpha * p[i];
		r -= alpha * q;
		next = total(grid, r * r, sums);
		p[i] = r + next / rho * p[i];
		rho = next;
		if (!i)
			*steps = k + 1;
		grid.sync();
	}
	x[i] = xi;
}

int main(void)
{
	std::vector<float> a(N * N), b(N);
	uint32_t seed = 5;
	problem m;
	cudaStream_t s;

	for (int i = 0; i < N; i++) {
		for (int j = 0; j < i; j++)
			a[i * N + j] = a[j * N + i] = (noise_float(&seed) - 0.5f) / 8;
		a[i * N + i] = 4;
		b[i] = noise_float(&seed);
	}
	CK(cudaMalloc(&m.a, N * N * 4));
	CK(cudaMalloc(&m.b, N * 4));
	CK(cudaMalloc(&m.x, N * 4));
	CK(cudaMalloc(&m.y, N * 4));
	CK(cudaMalloc(&m.change, 4));
	CK(cudaMemcpy(m.a, a.data(), N * N * 4, cudaMemcpyHostToDevice));
	CK(cudaMemcpy(m.b, b.data(), N * 4, cudaMemcpyHostToDevice));
	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	std::vector<float> x = plain(m, s), y = updated(m, s), z = captured(m, s);
	same_bytes("a graph that is updated", y.data(), x.data(), N * 4);
	same_bytes("graphs by capture", z.data(), x.data(), N * 4);
	for (int i = 0; i < N; i++) {
		double sum = 0;

		for (int j = 0; j < N; j++)
			sum += (double)a[i * N + j] * x[j];
		close_to("Jacobi", i, sum, b[i], 1e-4);
	}
	puts("Jacobi by launches, an updated graph and captures");

	double *dx, *p, *sums, host[N];
	int *steps, count;
	CK(cudaMalloc(&dx, N * 8));
	CK(cudaMalloc(&p, N * 8));
	CK(cudaMalloc(&sums, 8));
	CK(cudaMalloc(&steps, 4));
	void *arguments[] = {&m.a, &m.b, &dx, &p, &sums, &steps};
	CK(cudaLaunchCooperativeKernel((void *)gradients, dim3(N / BLOCK), dim3(BLOCK), arguments, 0, 0));
	CK(cudaMemcpy(host, dx, sizeof(host), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(&count, steps, 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double sum = 0;

		for (int j = 0; j < N; j++)
			sum += (double)a[i * N + j] * host[j];
		close_to("conjugate gradients", i, sum, b[i], 1e-7);
	}
	puts("conjugate gradients in one kernel");
	printf("~ %d steps\n", count);
	for (void *q : {(void *)m.a, (void *)m.b, (void *)m.x, (void *)m.y, (void *)m.change, (void *)dx,
		     (void *)p, (void *)sums, (void *)steps})
		CK(cudaFree(q));
	CK(cudaStreamDestroy(s));
	return pass();
}
