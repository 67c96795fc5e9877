// SPDX-License-Identifier: Apache-2.0
// A pipeline over four streams: each piece is copied to the device, worked on and copied back while its
// neighbours are on their way; then managed memory attached to streams with host threads as some of the
// workers; then thirty-two chains of small kernels at once.
#include "app.h"
#include <thread>
#include <vector>

__global__ void work(int *x, int n, int rounds)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		for (int r = 0; r < rounds; r++)
			x[i] = x[i] * 3 + r;
}

static int model(int v, int rounds)
{
	for (int r = 0; r < rounds; r++)
		v = (int)((unsigned)v * 3u + (unsigned)r);
	return v;
}

static void pipeline(void)
{
	enum { STREAMS = 4, PIECES = 16, N = 1 << 15 };
	cudaStream_t s[STREAMS];
	int *in, *out, *d[STREAMS];

	CK(cudaMallocHost(&in, PIECES * N * sizeof(int)));
	CK(cudaMallocHost(&out, PIECES * N * sizeof(int)));
	for (int i = 0; i < PIECES * N; i++)
		in[i] = i;
	for (int i = 0; i < STREAMS; i++) {
		CK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
		CK(cudaMalloc(&d[i], N * sizeof(int)));
	}
	for (int p = 0; p < PIECES; p++) {
		int i = p % STREAMS;

		CK(cudaMemcpyAsync(d[i], in + p * N, N * sizeof(int), cudaMemcpyHostToDevice, s[i]));
		work<<<N / 256, 256, 0, s[i]>>>(d[i], N, p);
		CK(cudaMemcpyAsync(out + p * N, d[i], N * sizeof(int), cudaMemcpyDeviceToHost, s[i]));
	}
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < PIECES * N; i++)
		if (out[i] != model(i, i / N))
			fail("element %d is %d, expected %d", i, out[i], model(i, i / N));
	for (int i = 0; i < STREAMS; i++) {
		CK(cudaFree(d[i]));
		CK(cudaStreamDestroy(s[i]));
	}
	CK(cudaFreeHost(in));
	CK(cudaFreeHost(out));
	puts("pipeline");
}

/* Tasks of different sizes: the small ones are the CPU's, the others a stream's; all of it in managed memory.
 */
static void tasks(void)
{
	enum { TASKS = 24, LANES = 3 };
	std::vector<std::thread> lanes;
	int *data[TASKS], concurrent;

	CK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	for (int t = 0; t < TASKS; t++) {
		CK(cudaMallocManaged(&data[t], (size_t)(t + 1) * 500 * sizeof(int)));
		for (int i = 0; i < (t + 1) * 500; i++)
			data[t][i] = i + t;
	}
	for (int l = 0; l < LANES; l++)
		lanes.emplace_back([&, l] {
			cudaStream_t s;

			CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
			for (int t = l; t < TASKS; t += LANES) {
				int n = (t + 1) * 500;

				if (n < 3000 && concurrent) {
					for (int i = 0; i < n; i++)
						data[t][i] = model(data[t][i], t);
					continue;
				}
				CK(cudaStreamAttachMemAsync(s, data[t], 0,
					concurrent ? cudaMemAttachSingle : cudaMemAttachGlobal));
				CK(cudaStreamSynchronize(s));
				work<<<(n + 255) / 256, 256, 0, s>>>(data[t], n, t);
				CK(cudaGetLastError());
			}
			CK(cudaStreamSynchronize(s));
			CK(cudaStreamDestroy(s));
		});
	for (std::thread &t : lanes)
		t.join();
	CK(cudaDeviceSynchronize());
	for (int t = 0; t < TASKS; t++) {
		for (int i = 0; i < (t + 1) * 500; i++)
			if (data[t][i] != model(i + t, t))
				fail("task %d, element %d is %d, expected %d", t, i, data[t][i],
					model(i + t, t));
		CK(cudaFree(data[t]));
	}
	puts("tasks");
}

static void chains(void)
{
	enum { CHAINS = 32, LENGTH = 10 };
	cudaStream_t s[CHAINS];
	cudaEvent_t done[CHAINS];
	int *x, host[CHAINS];

	CK(cudaMalloc(&x, sizeof(host)));
	CK(cudaMemset(x, 0, sizeof(host)));
	for (int c = 0; c < CHAINS; c++) {
		CK(cudaStreamCreateWithPriority(&s[c], cudaStreamNonBlocking, c % 2 ? -1 : 0));
		CK(cudaEventCreateWithFlags(&done[c], cudaEventDisableTiming));
	}
	CK(cudaDeviceSynchronize());
	for (int k = 0; k < LENGTH; k++)
		for (int c = 0; c < CHAINS; c++)
			work<<<1, 1, 0, s[c]>>>(x + c, 1, c);
	for (int c = 0; c < CHAINS; c++) {
		CK(cudaEventRecord(done[c], s[c]));
		CK(cudaStreamWaitEvent(s[0], done[c], 0));
	}
	CK(cudaMemcpyAsync(host, x, sizeof(host), cudaMemcpyDeviceToHost, s[0]));
	CK(cudaStreamSynchronize(s[0]));
	for (int c = 0; c < CHAINS; c++) {
		int want = 0;

		for (int k = 0; k < LENGTH; k++)
			want = model(want, c);
		if (host[c] != want)
			fail("chain %d gives %d, expected %d", c, host[c], want);
		CK(cudaStreamDestroy(s[c]));
		CK(cudaEventDestroy(done[c]));
	}
	CK(cudaFree(x));
	puts("chains");
}

int main(void)
{
	pipeline();
	tasks();
	chains();
	return pass();
}
