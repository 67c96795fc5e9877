// SPDX-License-Identifier: Apache-2.0
// Memory that CPU and GPU write in turn, exact results: a hundred random programs over managed allocations, a
// managed variable, mapped pinned memory, pinned memory that is only passed to kernels, and registered
// memory. Each step is a write by the CPU, by a kernel, by a memset, a copy, a host function, a graph of
// those, a chain of them that nobody waits for, or a move of managed memory; kernels of several streams run
// while the CPU writes other bytes of the same pages. A model on the host does the same, and every buffer
// must agree with it after each synchronisation. Arguments: SEED PROGRAMS.
#include "app.h"
#include <sys/mman.h>
#include <vector>

enum { KINDS = 5, STREAMS = 3, STEPS = 60, MOST = 9000 };

__managed__ unsigned variable[1500];

__global__ void affine(unsigned *p, unsigned from, unsigned n, unsigned stride, unsigned a, unsigned b)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[from + i * stride] = p[from + i * stride] * a + b + i;
}

struct buffer {
	unsigned *p; /* as the CPU names it, and kernels too */
	unsigned n;
	std::vector<unsigned> model;
};

static uint32_t seed;
static buffer buffers[KINDS];
static buffer plain; /* device memory */
static cudaStream_t streams[STREAMS];
static const char *doing = "start";

static unsigned up_to(unsigned n)
{
	return noise(&seed) % n;
}

static void agree(void)
{
	CK(cudaDeviceSynchronize());
	for (int k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < buffers[k].n; i++)
			if (buffers[k].p[i] != buffers[k].model[i])
				fail("after %s: kind %d, element %u of %u is %u, expected %u", doing, k, i,
					buffers[k].n, buffers[k].p[i], buffers[k].model[i]);
}

static void launch(buffer &b, cudaStream_t s, unsigned from, unsigned n, unsigned stride)
{
	unsigned a = up_to(7) + 1, c = up_to(1000);

	if (!n)
		return;
	affine<<<(n + 127) / 128, 128, 0, s>>>(b.p, from, n, stride, a, c);
	CK(cudaGetLastError());
	for (unsigned i = 0; i < n; i++)
		b.model[from + i * stride] = b.model[from + i * stride] * a + c + i;
}

static void poke(buffer &b, unsigned from, unsigned stride)
{
	for (unsigned i = 0, times = up_to(40) + 1; i < times; i++) {
		unsigned at = from + up_to((b.n - from + stride - 1) / stride) * stride;

		b.p[at] = b.model[at] = noise(&seed);
	}
}

/* A kernel has the even elements while the CPU writes odd ones. */
static void together(buffer &b)
{
	launch(b, streams[up_to(STREAMS)], 0, b.n / 2, 2);
	poke(b, 1, 2);
	launch(b, NULL, 0, b.n / 2, 2);
}

struct change {
	buffer *b;
	unsigned at, value;
};

static void CUDART_CB host_function(void *arg)
{
	change *c = (change *)arg;

	c->b->p[c->at] += c->value;
}

/* The host function finds what the kernel wrote, and the next kernel what it wrote. */
static void in_turn(buffer &b)
{
	static change changes[STEPS];
	static unsigned next;
	change *c = &changes[next++ % STEPS];
	cudaStream_t s = streams[up_to(STREAMS)];

	*c = {&b, up_to(b.n), noise(&seed)};
	launch(b, s, 0, b.n, 1);
	CK(cudaLaunchHostFunc(s, host_function, c));
	b.model[c->at] += c->value;
	launch(b, s, 0, b.n, 1);
	CK(cudaStreamSynchronize(s));
}

static void copy(buffer &to, buffer &from)
{
	unsigned most = to.n < from.n ? to.n : from.n, n = up_to(most) + 1;
	unsigned a = up_to(to.n - n + 1), b = up_to(from.n - n + 1);
	bool async = up_to(2);

	if (async)
		CK(cudaMemcpyAsync(to.p + a, from.p + b, n * 4, cudaMemcpyDefault, streams[0]));
	else
		CK(cudaMemcpy(to.p + a, from.p + b, n * 4, cudaMemcpyDefault));
	std::vector<unsigned> bytes(from.model.begin() + b, from.model.begin() + b + n);
	std::copy(bytes.begin(), bytes.end(), to.model.begin() + a);
	if (async)
		CK(cudaStreamSynchronize(streams[0]));
}

static void through_heap(buffer &b)
{
	std::vector<unsigned> heap(b.n);

	CK(cudaMemcpy(heap.data(), b.p, b.n * 4, cudaMemcpyDefault));
	if (heap != b.model)
		fail("a copy to the heap differs");
	for (unsigned &v : heap)
		v ^= 0x5a5a;
	CK(cudaMemcpy(b.p, heap.data(), b.n * 4, cudaMemcpyDefault));
	b.model = heap;
}

static void set(buffer &b)
{
	unsigned n = up_to(b.n) + 1, at = up_to(b.n - n + 1), v = up_to(256);

	CK(cudaMemset(b.p + at, v, n * 4));
	std::fill(b.model.begin() + at, b.model.begin() + at + n, v * 0x01010101u);
	CK(cudaDeviceSynchronize());
}

static void graph(buffer &b)
{
	cudaGraph_t g;
	cudaGraphExec_t e;
	unsigned a = up_to(5) + 1, c = up_to(100);

	CK(cudaStreamBeginCapture(streams[1], cudaStreamCaptureModeGlobal));
	affine<<<(b.n + 127) / 128, 128, 0, streams[1]>>>(b.p, 0, b.n, 1, a, c);
	CK(cudaStreamEndCapture(streams[1], &g));
	CK(cudaGraphInstantiate(&e, g, 0));
	for (int round = 0; round < 3; round++) {
		b.p[round] = b.model[round] = noise(&seed);
		CK(cudaGraphLaunch(e, streams[1]));
		CK(cudaStreamSynchronize(streams[1]));
		for (unsigned i = 0; i < b.n; i++)
			b.model[i] = b.model[i] * a + c + i;
	}
	CK(cudaGraphExecDestroy(e));
	CK(cudaGraphDestroy(g));
}

/* Kernel, host function, copy, memset and kernel in one stream, and nobody waits between them. */
static void chain(buffer &b, buffer &o)
{
	static change changes[STEPS];
	static unsigned next;
	cudaStream_t s = streams[up_to(STREAMS)];
	unsigned most = b.n < o.n ? b.n : o.n, n = up_to(most) + 1, at = up_to(b.n), v = up_to(256);

	for (int round = 0; round < 3; round++) {
		change *c = &changes[next++ % STEPS];

		launch(b, s, 0, b.n, 1);
		*c = {&b, up_to(b.n), noise(&seed)};
		CK(cudaLaunchHostFunc(s, host_function, c));
		b.model[c->at] += c->value;
		CK(cudaMemcpyAsync(o.p, b.p, n * 4, cudaMemcpyDefault, s));
		std::copy(b.model.begin(), b.model.begin() + n, o.model.begin());
		CK(cudaMemsetAsync(b.p + at, v, 4, s));
		b.model[at] = v * 0x01010101u;
		launch(o, s, 0, o.n, 1);
	}
}

/* What a query says is done is there. */
static void queried(buffer &b)
{
	cudaStream_t s = streams[up_to(STREAMS)];
	cudaError_t e;

	CK(cudaDeviceSynchronize());
	launch(b, s, 0, b.n, 1);
	while ((e = cudaStreamQuery(s)) == cudaErrorNotReady)
		sleep_ms(1);
	CK(e);
	for (unsigned i = 0; i < b.n; i++)
		if (b.p[i] != b.model[i])
			fail("after a query: element %u is %u, expected %u", i, b.p[i], b.model[i]);
}

/* Managed memory is moved, and advice given about it, between writes of both sides. */
static void moved(buffer &b)
{
	cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0};
	size_t bytes = b.n * 4;

	poke(b, 0, 1);
	CK(cudaMemAdvise(
		b.p, bytes, up_to(2) ? cudaMemAdviseSetReadMostly : cudaMemAdviseUnsetReadMostly, device));
	CK(cudaMemPrefetchAsync(b.p, bytes, device, 0, streams[0]));
	launch(b, streams[0], 0, b.n, 1);
	CK(cudaMemPrefetchAsync(b.p, bytes, cpu, 0, streams[0]));
	CK(cudaStreamSynchronize(streams[0]));
	poke(b, 0, 1);
	launch(b, streams[1], 0, b.n, 1);
}

/* A graph of a kernel, a host function and a kernel, which the CPU writes in between. */
static void graph_with_host(buffer &b)
{
	static change c;
	cudaGraph_t g;
	cudaGraphExec_t e;
	unsigned a = up_to(5) + 1, d = up_to(100);

	c = {&b, up_to(b.n), noise(&seed)};
	CK(cudaStreamBeginCapture(streams[1], cudaStreamCaptureModeRelaxed));
	for (int half = 0; half < 2; half++) {
		affine<<<(b.n + 127) / 128, 128, 0, streams[1]>>>(b.p, 0, b.n, 1, a, d);
		if (!half)
			CK(cudaLaunchHostFunc(streams[1], host_function, &c));
	}
	CK(cudaStreamEndCapture(streams[1], &g));
	CK(cudaGraphInstantiate(&e, g, 0));
	for (int round = 0; round < 3; round++) {
		b.p[round] = b.model[round] = noise(&seed);
		CK(cudaGraphLaunch(e, streams[2]));
		CK(cudaStreamSynchronize(streams[2]));
		for (int half = 0; half < 2; half++) {
			for (unsigned i = 0; i < b.n; i++)
				b.model[i] = b.model[i] * a + d + i;
			if (!half)
				b.model[c.at] += c.value;
		}
	}
	CK(cudaGraphExecDestroy(e));
	CK(cudaGraphDestroy(g));
}

static void step(void)
{
	static const char *const what[] = {"a CPU write", "a kernel", "both at once", "a host function",
		"a copy", "a copy from the device", "a copy through the heap", "a memset", "a graph",
		"a chain", "a query", "a prefetch", "a graph with a host function", "an event"};
	buffer &b = buffers[up_to(KINDS)], &o = buffers[up_to(KINDS)];
	unsigned which = up_to(14);
	cudaEvent_t e;

	doing = what[which];
	switch (which) {
	case 0: poke(b, 0, 1); break;
	case 1: launch(b, streams[up_to(STREAMS)], 0, b.n, 1); break;
	case 2: together(b); break;
	case 3: in_turn(b); break;
	case 4:
		if (b.p != o.p)
			copy(b, o);
		break;
	case 5:
		copy(plain, b);
		launch(plain, streams[2], 0, plain.n, 1);
		CK(cudaDeviceSynchronize());
		copy(b, plain);
		break;
	case 6: through_heap(b); break;
	case 7: set(b); break;
	case 8: graph(b); break;
	case 9:
		if (b.p != o.p)
			chain(b, o);
		break;
	case 10: queried(b); break;
	case 11: moved(buffers[up_to(2)]); break;
	case 12: graph_with_host(b); break;
	default:
		launch(b, streams[0], 0, b.n, 1);
		CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
		CK(cudaEventRecord(e, streams[0]));
		CK(cudaEventSynchronize(e));
		for (unsigned i = 0; i < b.n; i++)
			if (b.p[i] != b.model[i])
				fail("after an event: element %u is %u, expected %u", i, b.p[i], b.model[i]);
		CK(cudaEventDestroy(e));
	}
	agree();
}

static void fill(buffer &b, unsigned *p, unsigned n)
{
	b.p = p;
	b.n = n;
	b.model.resize(n);
	for (unsigned i = 0; i < n; i++)
		p[i] = b.model[i] = noise(&seed);
}

static void program(void)
{
	unsigned n[KINDS], *managed, *mapped, *pinned, *same;
	size_t pages;
	void *registered;

	for (unsigned &v : n)
		v = up_to(MOST) + 16;
	CK(cudaMallocManaged(&managed, n[0] * 4));
	CK(cudaHostAlloc(&mapped, n[2] * 4, cudaHostAllocMapped));
	CK(cudaHostGetDevicePointer(&same, mapped, 0));
	if (same != mapped)
		fail("the device names mapped memory otherwise");
	CK(cudaMallocHost(&pinned, n[3] * 4));
	pages = (n[4] * 4 + 4095) / 4096 * 4096;
	/* Not from the heap: under a sanitizer that lies at one address in every process. */
	registered = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (registered == MAP_FAILED)
		fail("mmap");
	CK(cudaHostRegister(registered, pages, cudaHostRegisterMapped));
	CK(cudaHostGetDevicePointer(&same, registered, 0));
	fill(buffers[0], managed, n[0]);
	fill(buffers[1], variable, sizeof variable / sizeof *variable);
	fill(buffers[2], mapped, n[2]);
	fill(buffers[3], pinned, n[3]);
	fill(buffers[4], (unsigned *)registered, n[4]);
	plain.n = MOST;
	plain.model.assign(MOST, 0);
	CK(cudaMalloc(&plain.p, MOST * 4));
	CK(cudaMemset(plain.p, 0, MOST * 4));
	for (int i = 0; i < STEPS; i++)
		step();
	CK(cudaHostUnregister(registered));
	munmap(registered, pages);
	CK(cudaFreeHost(pinned));
	CK(cudaFreeHost(mapped));
	CK(cudaFree(managed));
	CK(cudaFree(plain.p));
}

int main(int argc, char **argv)
{
	unsigned first = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	unsigned programs = argc > 2 ? strtoul(argv[2], NULL, 0) : 100;
	int managed, concurrent, mapped;

	CK(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
	CK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	CK(cudaDeviceGetAttribute(&mapped, cudaDevAttrCanMapHostMemory, 0));
	if (!managed || !concurrent || !mapped)
		skip("managed memory %d, beside kernels %d, mapped memory %d", managed, concurrent, mapped);
	for (cudaStream_t &s : streams)
		CK(cudaStreamCreate(&s));
	for (unsigned i = 0; i < programs; i++) {
		seed = (first + i) * 2654435761u + 1;
		program();
	}
	for (cudaStream_t s : streams)
		CK(cudaStreamDestroy(s));
	return pass();
}
