// SPDX-License-Identifier: Apache-2.0
// Random work, exact results: kernels, copies of every kind, memsets, host functions, graphs and
// reallocations over several streams, issued by several host threads in turn, with only those waits between
// streams that correctness needs. A model on the host does the same in the order of issue; device buffers
// and pinned memory must agree with it wherever the program has a right to look. Arguments: SEED COUNT.
//
// Every buffer remembers the stream that used it last; a stream that takes it over waits for that one by an
// event, so the order of issue is the order of effects.
#include "app.h"
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

enum { STREAMS = 4, BUFFERS = 6, PINNED = 4, THREADS = 3, WORDS = 20000 };

__global__ void affine(unsigned *p, unsigned n, unsigned a, unsigned b)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * a + b + i;
}

__global__ void combine(const unsigned *x, const unsigned *y, unsigned *z, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		z[i] = x[i] ^ (y[i] * 3 + z[i]);
}

struct object {
	unsigned *p;
	std::vector<unsigned> model;
	int stream; /* that used it last, -1: none that could still run */
};

struct change {
	unsigned *p, n, key;
};

static object buffers[BUFFERS], pinned[PINNED];
static cudaStream_t streams[STREAMS];
static cudaEvent_t events[STREAMS];
static uint32_t seed;
static unsigned scratch[WORDS];
static const char *doing = "start";

static unsigned up_to(unsigned n)
{
	return noise(&seed) % n;
}

/* What `s` needs before it may use the object. */
static void claim(object &o, int s)
{
	if (o.stream >= 0 && o.stream != s) {
		CK(cudaEventRecord(events[o.stream], streams[o.stream]));
		CK(cudaStreamWaitEvent(streams[s], events[o.stream], 0));
	}
	o.stream = s;
}

/* The host may look at the object: its last stream is done, found out in one of the ways there are. */
static void finish(object &o)
{
	cudaError_t r;

	if (o.stream < 0)
		return;
	switch (up_to(4)) {
	case 0: CK(cudaStreamSynchronize(streams[o.stream])); break;
	case 1:
		CK(cudaEventRecord(events[o.stream], streams[o.stream]));
		CK(cudaEventSynchronize(events[o.stream]));
		break;
	case 2:
		CK(cudaEventRecord(events[o.stream], streams[o.stream]));
		while ((r = cudaEventQuery(events[o.stream])) == cudaErrorNotReady)
			;
		CK(r);
		break;
	default:
		while ((r = cudaStreamQuery(streams[o.stream])) == cudaErrorNotReady)
			;
		CK(r);
	}
	cudaGetLastError();
	o.stream = -1;
}

static void same(const char *what, const unsigned *got, const unsigned *want, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (got[i] != want[i])
			fail("%s: word %u of %u is %#x, expected %#x (after %s)", what, i, n, got[i], want[i],
					doing);
}

static void mix(void *arg)
{
	change *c = (change *)arg;

	for (unsigned i = 0; i < c->n; i++)
		c->p[i] = (c->p[i] ^ c->key) + i;
	delete c;
}

static void do_affine(int s)
{
	object &o = buffers[up_to(BUFFERS)];
	unsigned at = up_to(WORDS), n = up_to(WORDS - at) + 1, a = noise(&seed) | 1, b = noise(&seed);

	claim(o, s);
	affine<<<(n + 127) / 128, 128, 0, streams[s]>>>(o.p + at, n, a, b);
	CK(cudaGetLastError());
	for (unsigned i = 0; i < n; i++)
		o.model[at + i] = o.model[at + i] * a + b + i;
}

static void do_combine(int s)
{
	object &x = buffers[up_to(BUFFERS)], &y = buffers[up_to(BUFFERS)], &z = buffers[up_to(BUFFERS)];

	if (&x == &z || &y == &z)
		return;
	claim(x, s);
	claim(y, s);
	claim(z, s);
	combine<<<(WORDS + 255) / 256, 256, 0, streams[s]>>>(x.p, y.p, z.p, WORDS);
	CK(cudaGetLastError());
	for (unsigned i = 0; i < WORDS; i++)
		z.model[i] = x.model[i] ^ (y.model[i] * 3 + z.model[i]);
}

static void do_memset(int s)
{
	object &o = buffers[up_to(BUFFERS)];
	unsigned at = up_to(WORDS), n = up_to(WORDS - at) + 1, v = up_to(256);

	claim(o, s);
	CK(cudaMemsetAsync(o.p + at, (int)v, n * 4, streams[s]));
	for (unsigned i = 0; i < n; i++)
		o.model[at + i] = v * 0x01010101u;
}

static void do_copy(int s)
{
	object &d = buffers[up_to(BUFFERS)], &h = pinned[up_to(PINNED)], &e = buffers[up_to(BUFFERS)];
	unsigned n = up_to(10) ? up_to(WORDS) + 1 : up_to(8) + 1, from = up_to(WORDS - n + 1),
			to = up_to(WORDS - n + 1);

	claim(d, s);
	switch (up_to(5)) {
	case 0:
		claim(h, s);
		CK(cudaMemcpyAsync(d.p + to, h.p + from, n * 4, cudaMemcpyHostToDevice, streams[s]));
		memcpy(&d.model[to], &h.model[from], n * 4);
		break;
	case 1:
		claim(h, s);
		CK(cudaMemcpyAsync(h.p + to, d.p + from, n * 4, cudaMemcpyDeviceToHost, streams[s]));
		memcpy(&h.model[to], &d.model[from], n * 4);
		break;
	case 2:
		noise_fill(scratch, n * 4, noise(&seed));
		CK(cudaMemcpyAsync(d.p + to, scratch, n * 4, cudaMemcpyHostToDevice, streams[s]));
		memcpy(&d.model[to], scratch, n * 4);
		memset(scratch, 0xee, n * 4); /* the bytes were taken */
		break;
	case 3:
		CK(cudaMemcpyAsync(scratch, d.p + from, n * 4, cudaMemcpyDeviceToHost, streams[s]));
		same("pageable copy, on return", scratch, &d.model[from], n);
		break;
	default:
		if (&d == &e)
			return;
		claim(e, s);
		CK(cudaMemcpyAsync(e.p + to, d.p + from, n * 4, cudaMemcpyDeviceToDevice, streams[s]));
		memcpy(&e.model[to], &d.model[from], n * 4);
	}
}

static void do_host_function(int s)
{
	object &h = pinned[up_to(PINNED)];
	unsigned at = up_to(WORDS), n = up_to(WORDS - at) % 500 + 1, key = noise(&seed);

	claim(h, s);
	CK(cudaLaunchHostFunc(streams[s], mix, new change{h.p + at, n, key}));
	for (unsigned i = 0; i < n && at + i < WORDS; i++)
		h.model[at + i] = (h.model[at + i] ^ key) + i;
}

/* Three nodes captured on the stream and launched a few times. */
static void do_graph(int s)
{
	object &o = buffers[up_to(BUFFERS)], &h = pinned[up_to(PINNED)];
	unsigned a = noise(&seed) | 1, b = noise(&seed), times = up_to(3) + 1;
	cudaGraph_t g;
	cudaGraphExec_t x;

	claim(o, s);
	claim(h, s);
	CK(cudaStreamBeginCapture(streams[s], cudaStreamCaptureModeRelaxed));
	CK(cudaMemcpyAsync(o.p, h.p, WORDS * 4, cudaMemcpyHostToDevice, streams[s]));
	affine<<<(WORDS + 255) / 256, 256, 0, streams[s]>>>(o.p, WORDS, a, b);
	CK(cudaMemcpyAsync(h.p, o.p, WORDS * 4, cudaMemcpyDeviceToHost, streams[s]));
	CK(cudaStreamEndCapture(streams[s], &g));
	CK(cudaGraphInstantiate(&x, g, 0));
	for (unsigned t = 0; t < times; t++) {
		CK(cudaGraphLaunch(x, streams[s]));
		for (unsigned i = 0; i < WORDS; i++)
			o.model[i] = h.model[i] = h.model[i] * a + b + i;
	}
	CK(cudaGraphExecDestroy(x));
	CK(cudaGraphDestroy(g));
}

static void do_look(int)
{
	if (up_to(2)) {
		object &o = buffers[up_to(BUFFERS)];

		finish(o);
		CK(cudaMemcpy(scratch, o.p, WORDS * 4, cudaMemcpyDeviceToHost));
		same("device buffer", scratch, o.model.data(), WORDS);
	} else {
		object &h = pinned[up_to(PINNED)];
		unsigned at = up_to(WORDS);

		finish(h);
		same("pinned buffer", h.p, h.model.data(), WORDS);
		h.p[at] = h.model[at] = noise(&seed); /* the host's turn to write */
	}
}

static void do_reallocate(int)
{
	object &o = buffers[up_to(BUFFERS)];

	if (up_to(4))
		return;
	finish(o);
	CK(cudaFree(o.p));
	CK(cudaMalloc(&o.p, WORDS * 4));
	noise_fill(scratch, WORDS * 4, noise(&seed));
	CK(cudaMemcpy(o.p, scratch, WORDS * 4, cudaMemcpyHostToDevice));
	CK(cudaDeviceSynchronize());
	for (object &b : buffers)
		b.stream = -1;
	for (object &h : pinned)
		h.stream = -1;
	o.model.assign(scratch, scratch + WORDS);
}

/* A host thread that does what it is handed and says when it has. */
struct worker {
	std::mutex m;
	std::condition_variable c;
	std::function<void()> job;
	bool stop = false;
	std::thread t{[this] {
		std::unique_lock<std::mutex> l(m);
		for (;;) {
			c.wait(l, [this] { return job || stop; });
			if (!job)
				return;
			job();
			job = nullptr;
			c.notify_all();
		}
	}};
	void run(std::function<void()> f)
	{
		std::unique_lock<std::mutex> l(m);
		job = f;
		c.notify_all();
		c.wait(l, [this] { return !job; });
	}
	~worker()
	{
		{
			std::unique_lock<std::mutex> l(m);
			stop = true;
			c.notify_all();
		}
		t.join();
	}
};

static void round_of(unsigned count)
{
	static const struct {
		const char *name;
		void (*f)(int);
	} list[] = {{"affine", do_affine}, {"affine", do_affine}, {"combine", do_combine}, {"memset",
			do_memset},
		{"copy", do_copy}, {"copy", do_copy}, {"copy", do_copy}, {"host function", do_host_function},
		{"graph", do_graph}, {"look", do_look}, {"reallocate", do_reallocate}};
	worker workers[THREADS];

	for (unsigned i = 0; i < count; i++) {
		int s = (int)up_to(STREAMS), w = (int)up_to(THREADS + 1);
		auto &op = list[up_to(sizeof(list) / sizeof(*list))];

		doing = op.name;
		if (w < THREADS)
			workers[w].run([&] { op.f(s); });
		else
			op.f(s);
	}
	CK(cudaDeviceSynchronize());
	for (object &o : buffers) {
		CK(cudaMemcpy(scratch, o.p, WORDS * 4, cudaMemcpyDeviceToHost));
		same("device buffer at the end", scratch, o.model.data(), WORDS);
	}
	for (object &h : pinned)
		same("pinned buffer at the end", h.p, h.model.data(), WORDS);
}

int main(int argc, char **argv)
{
	unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 1, count = argc > 2 ? (unsigned)atoi(argv[2])
			: 600;
	int seeds = argc > 1 ? 1 : getenv("SCUDAFS_TEST_LONG") ? 20 : 3;

	for (int i = 0; i < STREAMS; i++) {
		CK(cudaStreamCreateWithFlags(&streams[i], i % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
		CK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
	}
	for (object &o : buffers)
		CK(cudaMalloc(&o.p, WORDS * 4));
	for (object &h : pinned)
		CK(cudaMallocHost(&h.p, WORDS * 4));
	for (int k = 0; k < seeds; k++) {
		seed = first + k;
		for (object &o : buffers) {
			noise_fill(scratch, WORDS * 4, noise(&seed));
			o.model.assign(scratch, scratch + WORDS);
			o.stream = -1;
			CK(cudaMemcpy(o.p, scratch, WORDS * 4, cudaMemcpyHostToDevice));
		}
		for (object &h : pinned) {
			noise_fill(h.p, WORDS * 4, noise(&seed));
			h.model.assign(h.p, h.p + WORDS);
			h.stream = -1;
		}
		CK(cudaDeviceSynchronize());
		round_of(count);
	}
	for (object &o : buffers)
		CK(cudaFree(o.p));
	for (object &h : pinned)
		CK(cudaFreeHost(h.p));
	for (int i = 0; i < STREAMS; i++) {
		CK(cudaStreamDestroy(streams[i]));
		CK(cudaEventDestroy(events[i]));
	}
	return pass();
}
