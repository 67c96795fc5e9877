// SPDX-License-Identifier: Apache-2.0
// Compiled with --default-stream per-thread: each host thread's default stream is its own, does not wait for
// another thread's, and is ordered in itself; the legacy stream by its name still waits for both.
#include "app.h"
#include <semaphore.h>

enum { THREADS = 4, N = 1000, ROUNDS = 50 };

__global__ void step(int *p, int v)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		p[i] = p[i] * 3 + v;
}

static void hold(void *s)
{
	while (sem_wait((sem_t *)s))
		;
}

static void *run(void *arg)
{
	int me = (int)(intptr_t)arg, *d, *h = (int *)calloc(N, sizeof(int));
	unsigned want = 0;

	CK(cudaMalloc(&d, N * sizeof(int)));
	CK(cudaMemsetAsync(d, 0, N * sizeof(int)));
	for (int r = 0; r < ROUNDS; r++) {
		step<<<(N + 127) / 128, 128>>>(d, r * me);
		want = want * 3 + r * me;
	}
	CK(cudaMemcpyAsync(h, d, N * sizeof(int), cudaMemcpyDeviceToHost));
	CK(cudaStreamSynchronize(cudaStreamPerThread));
	for (int i = 0; i < N; i++)
		if ((unsigned)h[i] != want)
			fail("thread %d: element %d is %d, expected %d", me, i, h[i], (int)want);
	CK(cudaFree(d));
	free(h);
	return NULL;
}

static void *free_of_others(void *arg)
{
	int *d = (int *)arg;

	step<<<1, 128>>>(d, 1);
	CK(cudaStreamSynchronize(0)); /* in this build 0 is the thread's own stream */
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	sem_t gate;
	int *d;

	CK(cudaMalloc(&d, N * sizeof(int)));
	CK(cudaMemset(d, 0, N * sizeof(int)));
	step<<<1, 128>>>(d, 1);
	CK(cudaDeviceSynchronize());
	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, run, (void *)(i + 1)))
			fail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);

	sem_init(&gate, 0, 0);
	CK(cudaLaunchHostFunc(0, hold, &gate));
	if (pthread_create(&t[0], NULL, free_of_others, d))
		fail("pthread_create");
	pthread_join(t[0], NULL);
	EXPECT(cudaStreamQuery(0), cudaErrorNotReady);
	sem_post(&gate);
	CK(cudaStreamSynchronize(cudaStreamLegacy));
	CK(cudaStreamSynchronize(0));
	EXPECT(cudaStreamQuery(0), cudaSuccess);
	CK(cudaFree(d));
	return pass();
}
