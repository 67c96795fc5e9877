// SPDX-License-Identifier: Apache-2.0
// Streams and events: order inside a stream, order between streams through events, that two held streams are
// both held (no false waiting between non-blocking ones), the legacy default stream's barrier, elapsed times,
// priorities, flags. A stream is held by a host function that waits for a semaphore; nothing here waits by
// sleeping, except to see time pass.
#include "app.h"
#include <semaphore.h>

__global__ void append(int *log, int value)
{
	log[1 + log[0]] = value;
	log[0]++;
}

__global__ void multiply_add(int *p, int n, int a, int b)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * a + b;
}

static void hold(void *s)
{
	while (sem_wait((sem_t *)s))
		;
}

static int *device_log, host_log[64];

static void check_log(const char *what, int n, const int *want)
{
	CK(cudaMemcpy(host_log, device_log, sizeof(host_log), cudaMemcpyDeviceToHost));
	if (host_log[0] != n)
		fail("%s: %d entries, expected %d", what, host_log[0], n);
	for (int i = 0; i < n; i++)
		if (host_log[1 + i] != want[i])
			fail("%s: entry %d is %d, expected %d", what, i, host_log[1 + i], want[i]);
	CK(cudaMemset(device_log, 0, sizeof(host_log)));
	CK(cudaDeviceSynchronize());
}

static void in_order(void)
{
	enum { N = 10000 };
	cudaStream_t s;
	int *p, *h = (int *)malloc(N * sizeof(int)), want = 1;

	CK(cudaStreamCreate(&s));
	CK(cudaMalloc(&p, N * sizeof(int)));
	for (int i = 0; i < N; i++)
		h[i] = 1;
	CK(cudaMemcpyAsync(p, h, N * sizeof(int), cudaMemcpyHostToDevice, s));
	for (int i = 0; i < 500; i++) {
		multiply_add<<<(N + 255) / 256, 256, 0, s>>>(p, N, i % 7 + 1, i);
		want = (int)((unsigned)want * (i % 7 + 1) + i);
	}
	CK(cudaMemcpyAsync(h, p, N * sizeof(int), cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	for (int i = 0; i < N; i++)
		if (h[i] != want)
			fail("500 launches in order: p[%d] is %d, expected %d", i, h[i], want);
	CK(cudaStreamDestroy(s));
	CK(cudaFree(p));
	free(h);
}

static void between(void)
{
	cudaStream_t s[4];
	cudaEvent_t e[4];
	int want[32];

	for (int i = 0; i < 4; i++) {
		CK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
		CK(cudaEventCreateWithFlags(&e[i], cudaEventDisableTiming));
	}
	for (int i = 0; i < 32; i++) {
		append<<<1, 1, 0, s[i % 4]>>>(device_log, i);
		CK(cudaEventRecord(e[i % 4], s[i % 4]));
		CK(cudaStreamWaitEvent(s[(i + 1) % 4], e[i % 4], 0));
		want[i] = i;
	}
	CK(cudaDeviceSynchronize());
	check_log("ring of streams", 32, want);
	for (int i = 0; i < 4; i++) {
		CK(cudaStreamDestroy(s[i]));
		CK(cudaEventDestroy(e[i]));
	}
}

static void held(void)
{
	cudaStream_t a, b, c;
	cudaEvent_t e;
	sem_t gate;
	const int want[] = {2, 3, 1, 4};

	sem_init(&gate, 0, 0);
	CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	CK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
	CK(cudaEventCreate(&e));
	CK(cudaLaunchHostFunc(a, hold, &gate));
	append<<<1, 1, 0, a>>>(device_log, 1);
	CK(cudaEventRecord(e, a));
	CK(cudaStreamWaitEvent(c, e, 0));
	append<<<1, 1, 0, c>>>(device_log, 4);
	append<<<1, 1, 0, b>>>(device_log, 2);
	append<<<1, 1, 0, b>>>(device_log, 3);
	CK(cudaStreamSynchronize(b));
	EXPECT(cudaStreamQuery(b), cudaSuccess);
	EXPECT(cudaStreamQuery(a), cudaErrorNotReady);
	EXPECT(cudaStreamQuery(c), cudaErrorNotReady);
	EXPECT(cudaEventQuery(e), cudaErrorNotReady);
	sem_post(&gate);
	CK(cudaStreamSynchronize(c));
	EXPECT(cudaEventQuery(e), cudaSuccess);
	EXPECT(cudaStreamQuery(a), cudaSuccess);
	check_log("held stream", 4, want);
	cudaGetLastError();
	CK(cudaStreamDestroy(a));
	CK(cudaStreamDestroy(b));
	CK(cudaStreamDestroy(c));
	CK(cudaEventDestroy(e));
}

static void legacy(void)
{
	cudaStream_t blocking, free_one;
	sem_t gate;
	const int want[] = {9, 1, 2, 3};

	sem_init(&gate, 0, 0);
	CK(cudaStreamCreate(&blocking));
	CK(cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking));
	CK(cudaLaunchHostFunc(blocking, hold, &gate));
	append<<<1, 1, 0, blocking>>>(device_log, 1);
	append<<<1, 1>>>(device_log, 2);
	append<<<1, 1, 0, blocking>>>(device_log, 3);
	append<<<1, 1, 0, free_one>>>(device_log, 9);
	CK(cudaStreamSynchronize(free_one));
	if (cudaStreamQuery(0) != cudaErrorNotReady)
		fail("the default stream did not wait for a blocking stream");
	sem_post(&gate);
	CK(cudaStreamSynchronize(blocking));
	check_log("legacy default stream", 4, want);
	cudaGetLastError();
	CK(cudaStreamDestroy(blocking));
	CK(cudaStreamDestroy(free_one));
}

static void times(void)
{
	cudaEvent_t a, b;
	cudaStream_t s;
	sem_t gate;
	float ms = -1, none = -1;
	double t = seconds();

	sem_init(&gate, 0, 0);
	CK(cudaEventCreate(&a));
	CK(cudaEventCreate(&b));
	CK(cudaStreamCreate(&s));
	CK(cudaEventRecord(a, s));
	CK(cudaEventSynchronize(a));
	CK(cudaLaunchHostFunc(s, hold, &gate));
	CK(cudaEventRecord(b, s));
	sleep_ms(40);
	EXPECT(cudaEventElapsedTime(&ms, a, b), cudaErrorNotReady);
	sem_post(&gate);
	CK(cudaEventSynchronize(b));
	CK(cudaEventElapsedTime(&ms, a, b));
	CK(cudaEventElapsedTime(&none, a, a));
	t = (seconds() - t) * 1e3;
	if (ms < 35 || ms > t + 1 || none != 0)
		fail("elapsed %g ms around a pause of 40 ms (%g by the clock), same event %g", ms, t, none);
	cudaGetLastError();
	CK(cudaEventDestroy(a));
	CK(cudaEventDestroy(b));
	CK(cudaStreamDestroy(s));
}

static void flags(void)
{
	cudaStream_t s;
	unsigned f = 99;
	int least, greatest, priority;

	CK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	if (greatest > least)
		fail("priorities from %d to %d", least, greatest);
	CK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest));
	CK(cudaStreamGetPriority(s, &priority));
	CK(cudaStreamGetFlags(s, &f));
	if (priority != greatest || f != cudaStreamNonBlocking)
		fail("priority %d flags %u, expected %d and %u", priority, f, greatest,
				cudaStreamNonBlocking);
	CK(cudaStreamDestroy(s));
	CK(cudaStreamGetFlags(0, &f));
	if (f != cudaStreamDefault)
		fail("the default stream has flags %u", f);
}

int main(void)
{
	CK(cudaMalloc(&device_log, sizeof(host_log)));
	CK(cudaMemset(device_log, 0, sizeof(host_log)));
	append<<<1, 1>>>(device_log, 0);
			/* loads the kernels: a first launch under a held stream could wait for it */
	multiply_add<<<1, 1>>>(device_log, 0, 0, 0);
	CK(cudaMemset(device_log, 0, sizeof(host_log)));
	CK(cudaDeviceSynchronize());
	in_order();
	between();
	held();
	legacy();
	times();
	flags();
	CK(cudaFree(device_log));
	return pass();
}
