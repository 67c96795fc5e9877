// SPDX-License-Identifier: Apache-2.0
// Host functions and stream callbacks: order within a stream, that they see the stream's results, that work
// behind them waits for them, many in flight, and a callback's status argument.
#include "app.h"
#include <semaphore.h>

static int order[4096], count;
static int *pinned;
static pthread_t main_thread;

struct note {
	int value, seen;
};

__global__ void put(int *p, int v)
{
	*p = v;
}

static void note(void *arg)
{
	struct note *n = (struct note *)arg;

	order[count++] = n->value;
	n->seen = *pinned;
}

static void CUDART_CB called(cudaStream_t, cudaError_t status, void *arg)
{
	struct note *n = (struct note *)arg;

	order[count++] = n->value;
	n->seen = status == cudaSuccess ? *pinned : -1;
	if (pthread_equal(pthread_self(), main_thread))
		n->seen = -2;
}

static void wait(void *s)
{
	while (sem_wait((sem_t *)s))
		;
}

int main(void)
{
	enum { N = 100, MANY = 2000 };
	static struct note notes[MANY];
	cudaStream_t s, t;
	sem_t sem;
	int *d;

	main_thread = pthread_self();
	sem_init(&sem, 0, 0);
	CK(cudaStreamCreate(&s));
	CK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	CK(cudaMalloc(&d, sizeof(int)));
	CK(cudaMallocHost(&pinned, sizeof(int)));
	for (int i = 0; i < N; i++) {
		notes[i].value = i;
		put<<<1, 1, 0, s>>>(d, 1000 + i);
		CK(cudaMemcpyAsync(pinned, d, sizeof(int), cudaMemcpyDeviceToHost, s));
		CK(i % 2 ? cudaStreamAddCallback(s, called, &notes[i], 0) : cudaLaunchHostFunc(s, note,
				&notes[i]));
	}
	CK(cudaStreamSynchronize(s));
	if (count != N)
		fail("%d functions ran, expected %d", count, N);
	for (int i = 0; i < N; i++)
		if (order[i] != i || notes[i].seen != 1000 + i)
			fail("function %d ran as number %d and saw %d", order[i], i, notes[i].seen);

	count = 0;
	for (int i = 0; i < MANY; i++) {
		notes[i].value = i;
		CK(cudaLaunchHostFunc(s, note, &notes[i]));
	}
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < MANY; i++)
		if (order[i] != i)
			fail("of many, function %d ran as number %d", order[i], i);

	/* Held: what is behind waits, another stream does not. (Functions of two streams may be run one
	 * after the other, so one must not wait for another.) */
	CK(cudaMemset(d, 0, sizeof(int)));
	CK(cudaLaunchHostFunc(s, wait, &sem));
	put<<<1, 1, 0, s>>>(d, 7);
	CK(cudaMemcpyAsync(pinned, d, sizeof(int), cudaMemcpyDeviceToHost, t));
	CK(cudaStreamSynchronize(t));
	if (*pinned == 7)
		fail("a launch behind a held host function has run");
	EXPECT(cudaStreamQuery(s), cudaErrorNotReady);
	cudaGetLastError();
	sem_post(&sem);
	CK(cudaStreamSynchronize(s));
	int h = 0;
	CK(cudaMemcpy(&h, d, sizeof(h), cudaMemcpyDeviceToHost));
	if (h != 7)
		fail("behind the function: %d, expected 7", h);
	EXPECT(cudaLaunchHostFunc(s, NULL, NULL), cudaErrorInvalidValue);
	CK(cudaStreamDestroy(s));
	CK(cudaStreamDestroy(t));
	CK(cudaFree(d));
	CK(cudaFreeHost(pinned));
	return pass();
}
