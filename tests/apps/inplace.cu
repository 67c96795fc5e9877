// SPDX-License-Identifier: Apache-2.0
// Memory that CPU and GPU use in place, at its edges: hints, pointers inside of structs and of device memory,
// a kernel that waits for the CPU, several host threads with a stream each, queries, rows, and what a reset
// leaves.
#include "app.h"
#include <thread>
#include <vector>

enum { N = 5000, THREADS = 4, ROUNDS = 30 };

struct both {
	int n;
	int *in, *out;
	char tail[3];
};

__global__ void from_struct(both b)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < b.n)
		b.out[i] = b.in[i] * 2 + b.tail[2];
}

__global__ void add(int *p, int n, int by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += by;
}

__global__ void await(volatile int *flag, int *out)
{
	while (!*flag) {
	}
	*out = 42;
}

__global__ void through(int *const *at, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		(*at)[i] += 3;
}

/* Mapped memory whose address kernels find in device memory alone. */
static void hidden(void)
{
	int *p, **at;

	CK(cudaHostAlloc(&p, N * sizeof(int), cudaHostAllocMapped));
	CK(cudaMalloc(&at, sizeof *at));
	CK(cudaMemcpy(at, &p, sizeof p, cudaMemcpyHostToDevice));
	for (int i = 0; i < N; i++)
		p[i] = i;
	for (int round = 1; round <= 3; round++) {
		through<<<(N + 127) / 128, 128>>>(at, N);
		CK(cudaDeviceSynchronize());
		for (int i = 0; i < N; i++)
			if (p[i] != i + 3 * round)
				fail("mapped memory, round %d: element %d is %d", round, i, p[i]);
		p[round] -= 1;
		through<<<1, 1>>>(at, 0);
		CK(cudaDeviceSynchronize());
		p[round] += 1;
	}
	CK(cudaFree(at));
	CK(cudaFreeHost(p));
}

static void hints(int *m)
{
	cudaMemLocation gpu = {}, cpu = {};
	int v = -5;

	gpu.type = cudaMemLocationTypeDevice;
	cpu.type = cudaMemLocationTypeHost;
	for (int i = 0; i < N; i++)
		m[i] = i;
	CK(cudaMemAdvise(m, N * sizeof(int), cudaMemAdviseSetPreferredLocation, gpu));
	CK(cudaMemAdvise(m, N * sizeof(int), cudaMemAdviseSetAccessedBy, cpu));
	CK(cudaMemPrefetchAsync(m, N * sizeof(int), gpu, 0, 0));
	add<<<(N + 127) / 128, 128>>>(m, N, 1);
	CK(cudaMemPrefetchAsync(m, N * sizeof(int), cpu, 0, 0));
	CK(cudaStreamAttachMemAsync(0, m, 0, cudaMemAttachGlobal));
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++)
		if (m[i] != i + 1)
			fail("after prefetching element %d is %d", i, m[i]);
	CK(cudaMemRangeGetAttribute(&v, sizeof v, cudaMemRangeAttributeReadMostly, m, N * sizeof(int)));
	if (v != 0)
		fail("read mostly %d", v);
	CK(cudaMemAdvise(m, N * sizeof(int), cudaMemAdviseUnsetPreferredLocation, gpu));
	if (cudaMemPrefetchAsync(&v, sizeof v, gpu, 0, 0) != cudaErrorInvalidValue)
		fail("memory of the stack can be prefetched");
	cudaGetLastError();
}

/* Neither pointer was asked for: one is in the middle of its range. */
static void structs(void)
{
	both b = {N, NULL, NULL, {1, 2, 3}};
	int *in, *out;

	CK(cudaMallocHost(&in, (N + 10) * sizeof(int)));
	CK(cudaMallocHost(&out, N * sizeof(int)));
	b.in = in + 10;
	b.out = out;
	for (int i = 0; i < N; i++)
		b.in[i] = i;
	from_struct<<<(N + 127) / 128, 128>>>(b);
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++)
		if (out[i] != i * 2 + 3)
			fail("struct: element %d is %d", i, out[i]);
	CK(cudaFreeHost(in));
	CK(cudaFreeHost(out));
}

/* Through a mount the store reaches the kernel with the next call. */
static void waiting_kernel(void)
{
	volatile int *flag;
	int *out;

	if (getenv("CUDA_LAUNCH_BLOCKING"))
		return;
	CK(cudaHostAlloc((void **)&flag, sizeof(int), cudaHostAllocMapped));
	CK(cudaMallocManaged(&out, sizeof(int)));
	*flag = 0;
	await<<<1, 1>>>(flag, out);
	CK(cudaGetLastError());
	*flag = 1;
	CK(cudaDeviceSynchronize());
	if (*out != 42)
		fail("the waiting kernel wrote %d", *out);
	CK(cudaFreeHost((void *)flag));
	CK(cudaFree(out));
}

static void of_thread(int *p, int n, int key)
{
	cudaStream_t s;
	int want = 0;

	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	for (int i = 0; i < n; i++)
		p[i] = 0;
	for (int round = 0; round < ROUNDS; round++) {
		add<<<(n + 63) / 64, 64, 0, s>>>(p, n, key);
		if (round % 2) {
			cudaError_t e;

			while ((e = cudaStreamQuery(s)) == cudaErrorNotReady) {
			}
			CK(e);
		} else {
			CK(cudaStreamSynchronize(s));
		}
		want += key;
		for (int i = 0; i < n; i++) {
			if (p[i] != want)
				fail("thread %d, round %d: element %d is %d, expected %d", key, round, i,
					p[i], want);
			p[i]++;
		}
		want++;
	}
	CK(cudaStreamDestroy(s));
}

/* All in one allocation, so that they share pages. */
static void threads(int *m)
{
	std::vector<std::thread> all;
	const int n = N / THREADS;

	for (int t = 0; t < THREADS; t++)
		all.emplace_back(of_thread, m + t * n, n, t + 1);
	for (std::thread &t : all)
		t.join();
}

static void rows(void)
{
	enum { W = 40, H = 30, P = 64 };
	int *m, *h, back[H][W];

	CK(cudaMallocManaged(&m, P * H * sizeof(int)));
	CK(cudaHostAlloc(&h, P * H * sizeof(int), cudaHostAllocMapped));
	CK(cudaHostGetDevicePointer(&h, h, 0));
	for (int i = 0; i < P * H; i++)
		m[i] = i, h[i] = -1;
	CK(cudaMemcpy2D(h, P * 4, m, P * 4, W * 4, H, cudaMemcpyDefault));
	CK(cudaMemset2D(m, P * 4, 0, W * 4, 2));
	CK(cudaMemcpy2D(back, W * 4, h, P * 4, W * 4, H, cudaMemcpyDefault));
	CK(cudaDeviceSynchronize());
	for (int y = 0; y < H; y++)
		for (int x = 0; x < P; x++) {
			int in = y * P + x;

			if (h[in] != (x < W ? in : -1) || (x < W && back[y][x] != in))
				fail("row %d, column %d: %d", y, x, h[in]);
			if (m[in] != (x < W && y < 2 ? 0 : in))
				fail("set row %d, column %d: %d", y, x, m[in]);
		}
	CK(cudaFree(m));
	CK(cudaFreeHost(h));
}

static void after_reset(void)
{
	int *m, *d;

	CK(cudaMallocManaged(&m, N * sizeof(int)));
	add<<<1, 32>>>(m, 32, 1);
	CK(cudaDeviceSynchronize());
	CK(cudaDeviceReset());
	CK(cudaMalloc(&d, 400));
	CK(cudaMemset(d, 0, 400));
	add<<<1, 32>>>(d, 32, 1);
	CK(cudaDeviceSynchronize());
	CK(cudaMallocManaged(&m, N * sizeof(int)));
	m[3] = 4;
	add<<<1, 32>>>(m, 32, 1);
	CK(cudaDeviceSynchronize());
	if (m[3] != 5)
		fail("after a reset: %d", m[3]);
}

int main(void)
{
	int concurrent, mapped, *m;

	CK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	CK(cudaDeviceGetAttribute(&mapped, cudaDevAttrCanMapHostMemory, 0));
	if (!concurrent || !mapped)
		skip("managed memory beside kernels %d, mapped memory %d", concurrent, mapped);
	CK(cudaMallocManaged(&m, N * sizeof(int)));
	hints(m);
	structs();
	hidden();
	waiting_kernel();
	threads(m);
	rows();
	after_reset();
	return pass();
}
