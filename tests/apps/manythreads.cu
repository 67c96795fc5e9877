// SPDX-License-Identifier: Apache-2.0
// Threads come and go: waves of short-lived threads that each use the device in passing, some leaving work
// behind, beside a long-lived one that never stops; then all at once on streams of their own, with
// allocations freed by another thread.
#include "app.h"

enum { WAVES = 15, WIDTH = 16, N = 2048 };

__global__ void fill(int *p, int v)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		p[i] = v + i;
}

static volatile bool stop;
static int *left[WAVES][WIDTH];

static void check(const int *h, int v)
{
	for (int i = 0; i < N; i++)
		if (h[i] != v + i)
			fail("element %d is %d, expected %d", i, h[i], v + i);
}

/* Leaves its allocation, and the work on it, to the main thread. */
static void *passing(void *arg)
{
	int id = (int)(intptr_t)arg, h[N];
	cudaStream_t s;
	int *d;

	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaMalloc(&d, sizeof(h)));
	fill<<<N / 256, 256, 0, s>>>(d, id * 7);
	if (id % 3 == 0) {
		CK(cudaMemcpyAsync(h, d, sizeof(h), cudaMemcpyDeviceToHost, s));
		CK(cudaStreamSynchronize(s));
		check(h, id * 7);
	}
	CK(cudaStreamDestroy(s));
	left[id / WIDTH][id % WIDTH] = d;
	return NULL;
}

static void *lasting(void *)
{
	int h[N], *d;

	CK(cudaMalloc(&d, sizeof(h)));
	for (int r = 0; !stop; r++) {
		fill<<<N / 256, 256, 0, cudaStreamPerThread>>>(d, r);
		CK(cudaMemcpyAsync(h, d, sizeof(h), cudaMemcpyDeviceToHost, cudaStreamPerThread));
		CK(cudaStreamSynchronize(cudaStreamPerThread));
		check(h, r);
	}
	CK(cudaFree(d));
	return NULL;
}

int main(void)
{
	pthread_t longest, t[WIDTH];
	int h[N];

	if (pthread_create(&longest, NULL, lasting, NULL))
		fail("pthread_create");
	for (int w = 0; w < WAVES; w++) {
		for (int i = 0; i < WIDTH; i++)
			if (pthread_create(&t[i], NULL, passing, (void *)(intptr_t)(w * WIDTH + i)))
				fail("pthread_create");
		for (int i = 0; i < WIDTH; i++)
			pthread_join(t[i], NULL);
	}
	stop = true;
	pthread_join(longest, NULL);
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < WAVES * WIDTH; i++) {
		CK(cudaMemcpy(h, left[i / WIDTH][i % WIDTH], sizeof(h), cudaMemcpyDeviceToHost));
		check(h, i * 7);
		CK(cudaFree(left[i / WIDTH][i % WIDTH]));
	}
	return pass();
}
