// SPDX-License-Identifier: Apache-2.0
// Eight host threads share one stream and hand a counter on to each other: each launches work that depends on
// what its predecessor launched, and tells its successor only by a host-side flag, without any synchronize.
// The order of launches across threads must be the order on the device. Then eight threads, each with a
// stream and memory of its own, at once.
#include "app.h"

enum { THREADS = 8, ROUNDS = 200, N = 4096 };

static int *state;
static cudaStream_t shared_stream;
static int turn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

/* state = state * 3 + v: any swap of two launches changes the result. */
__global__ void step(int *p, int v)
{
	p[threadIdx.x] = p[threadIdx.x] * 3 + v;
}

__global__ void scale(int *p, int n, int v)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * 5 + v;
}

static void *pass_on(void *arg)
{
	int me = (int)(intptr_t)arg;

	CK(cudaSetDevice(0));
	for (int r = 0; r < ROUNDS; r++) {
		pthread_mutex_lock(&lock);
		while (turn % THREADS != me)
			pthread_cond_wait(&moved, &lock);
		pthread_mutex_unlock(&lock);
		step<<<1, 64, 0, shared_stream>>>(state, turn);
		CK(cudaGetLastError());
		pthread_mutex_lock(&lock);
		turn++;
		pthread_cond_broadcast(&moved);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *alone(void *arg)
{
	int me = (int)(intptr_t)arg, *d, *h = (int *)malloc(N * sizeof(int));
	unsigned want = me;
	cudaStream_t s;

	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaMalloc(&d, N * sizeof(int)));
	for (int i = 0; i < N; i++)
		h[i] = me;
	CK(cudaMemcpyAsync(d, h, N * sizeof(int), cudaMemcpyHostToDevice, s));
	for (int r = 0; r < ROUNDS; r++) {
		scale<<<N / 256, 256, 0, s>>>(d, N, r + me);
		want = want * 5 + r + me;
		if (r % 40 == 39)
			CK(cudaStreamSynchronize(s));
	}
	CK(cudaMemcpyAsync(h, d, N * sizeof(int), cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	for (int i = 0; i < N; i++)
		if ((unsigned)h[i] != want)
			fail("thread %d: element %d is %d, expected %d", me, i, h[i], (int)want);
	CK(cudaFree(d));
	CK(cudaStreamDestroy(s));
	free(h);
	return NULL;
}

static void run(void *(*f)(void *))
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, f, (void *)(intptr_t)i))
			fail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

int main(void)
{
	int h[64];
	unsigned want = 0;

	CK(cudaMalloc(&state, sizeof(h)));
	CK(cudaMemset(state, 0, sizeof(h)));
	CK(cudaStreamCreate(&shared_stream));
	CK(cudaDeviceSynchronize());
	run(pass_on);
	CK(cudaMemcpyAsync(h, state, sizeof(h), cudaMemcpyDeviceToHost, shared_stream));
	CK(cudaStreamSynchronize(shared_stream));
	for (unsigned i = 0; i < THREADS * ROUNDS; i++)
		want = want * 3 + i;
	for (int i = 0; i < 64; i++)
		if ((unsigned)h[i] != want)
			fail("element %d is %d, expected %d", i, h[i], (int)want);
	run(alone);
	CK(cudaStreamDestroy(shared_stream));
	CK(cudaFree(state));
	return pass();
}
