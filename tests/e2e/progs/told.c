/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to pinned memory whose end other threads learn first: three threads synchronise one stream that the
 * main thread gives work, four others copy on streams of their own, with host functions in between. Whoever
 * learns of a copy's end, by whatever call, must find the bytes. Eight threads; they meet at `meeting` twice
 * a round. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/e2e/progs/prog.h"

#define ROUNDS 300
#define SHARED_BYTES 4000
#define OWN_BYTES 9000

static CUstream shared;
static uint8_t *pinned;
static pthread_barrier_t meeting;

static void ran(void *count) { atomic_fetch_add((atomic_int *)count, 1); }

static void look(const uint8_t *p, size_t n, uint8_t want, const char *who, int round)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == want)
			continue;
		fprintf(stderr, "%s, round %d: byte %zu is %d, not %d\n", who, round, i, p[i], want);
		exit(1);
	}
}

static void *own(void *number)
{
	atomic_int functions = 0;
	CUdeviceptr p;
	CUevent event;
	CUstream s;
	uint8_t *to;

	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuMemAlloc_v2(&p, OWN_BYTES));
	CHECK(cuMemAllocHost_v2((void **)&to, OWN_BYTES));
	for (int round = 0; round < ROUNDS; round++) {
		size_t n = (size_t)round * 37 % OWN_BYTES + 1;
		uint8_t value = (uint8_t)(round * 7 + (intptr_t)number);
		CHECK(cuMemsetD8Async(p, value, n, s));
		CHECK(cuMemcpyDtoHAsync_v2(to, p, n, s));
		if (round % 3 == 0)
			CHECK(cuLaunchHostFunc(s, ran, &functions));
		CHECK(cuEventRecord(event, s));
		CHECK(round % 2 ? cuStreamSynchronize(s) : cuEventSynchronize(event));
		look(to, n, value, "own stream", round);
	}
	CHECK(cuStreamSynchronize(s));
	REQUIRE(functions == (ROUNDS + 2) / 3);
	return NULL;
}

static void *sharer(void *unused)
{
	CHECK(cuCtxSetCurrent(prog_context));
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&meeting);
		CHECK(cuStreamSynchronize(shared));
		look(pinned, SHARED_BYTES, (uint8_t)round, "shared stream", round);
		pthread_barrier_wait(&meeting);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[7];
	CUdeviceptr p;

	prog_up();
	CHECK(cuStreamCreate(&shared, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc_v2(&p, SHARED_BYTES));
	CHECK(cuMemAllocHost_v2((void **)&pinned, SHARED_BYTES));
	pthread_barrier_init(&meeting, NULL, 4);
	for (intptr_t i = 0; i < 7; i++)
		REQUIRE(!pthread_create(&threads[i], NULL, i < 4 ? own : sharer, (void *)i));
	for (int round = 0; round < ROUNDS; round++) {
		CHECK(cuMemsetD8Async(p, (unsigned char)round, SHARED_BYTES, shared));
		CHECK(cuMemcpyDtoHAsync_v2(pinned, p, SHARED_BYTES, shared));
		pthread_barrier_wait(&meeting);
		pthread_barrier_wait(&meeting);
	}
	for (int i = 0; i < 7; i++)
		pthread_join(threads[i], NULL);
	say("told");
	return 0;
}
