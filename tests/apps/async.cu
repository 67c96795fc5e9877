// SPDX-License-Identifier: Apache-2.0
// Observable completion of asynchronous copies: pinned memory is written when, and only when, a query, an
// event, a synchronize or a host function says so; pageable copies are done on return (to the host) or have
// taken their bytes (to the device); a pinned source is read when the stream gets there, so a host function
// in front of the copy may fill it.
#include "app.h"
#include <semaphore.h>

enum { N = 1 << 18 };

__global__ void fill(unsigned *p, unsigned base)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		p[i] = base + i;
}

struct seen {
	unsigned *pin, base;
	int wrong;
	sem_t *gate;
};

static void look(void *arg)
{
	struct seen *s = (struct seen *)arg;

	for (unsigned i = 0; i < N; i++)
		s->wrong += s->pin[i] != s->base + i;
}

static void produce(void *arg)
{
	struct seen *s = (struct seen *)arg;

	for (unsigned i = 0; i < N; i++)
		s->pin[i] = s->base + i;
}

static void hold(void *arg)
{
	while (sem_wait((sem_t *)arg))
		;
}

static void all(const char *what, const unsigned *p, unsigned base)
{
	for (unsigned i = 0; i < N; i++)
		if (p[i] != base + i)
			fail("%s: word %u is %u, expected %u", what, i, p[i], base + i);
}

int main(void)
{
	unsigned *d, *e, *pin, *pin2, *heap = (unsigned *)malloc(N * 4);
	cudaStream_t s;
	cudaEvent_t ev;
	sem_t gate;
	cudaError_t r;
	struct seen seen = {};

	sem_init(&gate, 0, 0);
	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaEventCreateWithFlags(&ev, cudaEventDisableTiming));
	CK(cudaMalloc(&d, N * 4));
	CK(cudaMalloc(&e, N * 4));
	CK(cudaMallocHost(&pin, N * 4));
	CK(cudaHostAlloc(&pin2, N * 4, cudaHostAllocPortable));
	fill<<<N / 256, 256, 0, s>>>(d, 0);
	CK(cudaStreamSynchronize(s));

	for (unsigned round = 1; round < 20; round++) {
		fill<<<N / 256, 256, 0, s>>>(d, round * 1000003);
		memset(pin, 0, N * 4);
		CK(cudaMemcpyAsync(pin, d, N * 4, cudaMemcpyDeviceToHost, s));
		CK(cudaEventRecord(ev, s));
		switch (round % 4) {
		case 0:
			while ((r = cudaStreamQuery(s)) == cudaErrorNotReady)
				;
			CK(r);
			break;
		case 1:
			while ((r = cudaEventQuery(ev)) == cudaErrorNotReady)
				;
			CK(r);
			break;
		case 2:
			CK(cudaEventSynchronize(ev));
			break;
		default:
			CK(cudaDeviceSynchronize());
		}
		all("pinned after completion was told", pin, round * 1000003);
	}
	cudaGetLastError();

	/* Held: nothing may arrive early. */
	memset(pin, 0, N * 4);
	CK(cudaLaunchHostFunc(s, hold, &gate));
	CK(cudaMemcpyAsync(pin, d, N * 4, cudaMemcpyDeviceToHost, s));
	EXPECT(cudaStreamQuery(s), cudaErrorNotReady);
	if (pin[N - 1])
		fail("a held copy has already written");
	sem_post(&gate);
	CK(cudaStreamSynchronize(s));
	all("released", pin, 19 * 1000003);
	cudaGetLastError();

	/* A host function behind the copy sees the bytes; one in front of a copy makes them. */
	fill<<<N / 256, 256, 0, s>>>(d, 77);
	seen.pin = pin;
	seen.base = 77;
	CK(cudaMemcpyAsync(pin, d, N * 4, cudaMemcpyDeviceToHost, s));
	CK(cudaLaunchHostFunc(s, look, &seen));
	CK(cudaStreamSynchronize(s));
	if (seen.wrong)
		fail("the host function behind a copy saw %d wrong words", seen.wrong);
	struct seen source = {pin2, 5000, 0, NULL};
	memset(pin2, 0, N * 4);
	CK(cudaLaunchHostFunc(s, hold, &gate));
	CK(cudaLaunchHostFunc(s, produce, &source));
	CK(cudaMemcpyAsync(e, pin2, N * 4, cudaMemcpyHostToDevice, s));
	sem_post(&gate);
	CK(cudaStreamSynchronize(s));
	CK(cudaMemcpy(heap, e, N * 4, cudaMemcpyDeviceToHost));
	all("pinned source made by a host function", heap, 5000);

	/* From pinned memory that an earlier copy of the same stream still writes. */
	fill<<<N / 256, 256, 0, s>>>(d, 123456);
	CK(cudaMemcpyAsync(pin, d, N * 4, cudaMemcpyDeviceToHost, s));
	CK(cudaMemcpyAsync(e, pin, N * 4, cudaMemcpyHostToDevice, s));
	CK(cudaMemcpyAsync(pin2, e, N * 4, cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	all("through pinned memory", pin2, 123456);

	/* Pageable. */
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned i = 0; i < N; i++)
			heap[i] = round * 31 + i;
		CK(cudaMemcpyAsync(d, heap, N * 4, cudaMemcpyHostToDevice, s));
		memset(heap, 0xee, N * 4);
		CK(cudaMemcpyAsync(heap, d, N * 4, cudaMemcpyDeviceToHost, s));
		all("pageable, on return", heap, round * 31);
	}
	CK(cudaFree(d));
	CK(cudaFree(e));
	CK(cudaFreeHost(pin));
	CK(cudaFreeHost(pin2));
	CK(cudaEventDestroy(ev));
	CK(cudaStreamDestroy(s));
	free(heap);
	return pass();
}
