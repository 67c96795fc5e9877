/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies to the device beside a stream that host functions hold, in whose way stand copies of all
 * kinds: pageable ones, which the server takes before their turn, and pinned ones, whose bytes the program is
 * asked for when it comes. Neither may keep the other from going on; every byte is checked. Says "right",
 * waits for a word, does the same again, says "over". Three threads. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/e2e/progs/prog.h"

enum { MIB = 1 << 20, LARGE = 24 * MIB };
enum { SMALL = 3 * MIB + 5, PINNED = 9 * MIB + 3, HELD_MS = 15 };
#ifdef __SANITIZE_THREAD__     /* which takes ten times as long for each byte */
enum { ROUNDS = 3 };
#else
enum { ROUNDS = 12 };
#endif

static _Atomic bool over;

static void *memory(bool pinned, size_t n)
{
	void *p = NULL;

	if (pinned)
		CHECK(cuMemAllocHost_v2(&p, n));
	else
		REQUIRE((p = malloc(n)) != NULL);
	return p;
}

static void release(bool pinned, void *p)
{
	if (pinned)
		CHECK(cuMemFreeHost(p));
	else
		free(p);
}

static void holds(void *ms)
{
	usleep((useconds_t)(1000 * (uintptr_t)ms));
}

/* Large copies on a stream of their own, by the one kind of memory or the other, until all is over. */
static void *large(void *kind)
{
	bool pinned = kind != NULL;
	uint8_t *from, *back = malloc(LARGE);
	CUdeviceptr device;
	CUstream stream;

	REQUIRE(back);
	CHECK(cuCtxSetCurrent(prog_context));
	from = memory(pinned, LARGE);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc_v2(&device, LARGE));
	for (unsigned i = 1; !atomic_load(&over) || i < 3; i++) {
		size_t n = LARGE - i % 7 * 123457;

		prog_fill(from, n, i);
		CHECK(cuMemcpyHtoDAsync_v2(device, from, n, stream));
		CHECK(cuStreamSynchronize(stream));
		CHECK(cuMemcpyDtoHAsync_v2(back, device, n, stream));
		REQUIRE(!memcmp(from, back, n));
	}
	CHECK(cuMemFree_v2(device));
	CHECK(cuStreamDestroy_v2(stream));
	release(pinned, from);
	free(back);
	return NULL;
}

/* Copies behind a host function that takes its time. */
static void behind(void)
{
	uint8_t *small = memory(false, SMALL), *pinned = memory(true, PINNED), *back = memory(true, PINNED);
	CUdeviceptr a, b;
	CUstream stream;

	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc_v2(&a, SMALL));
	CHECK(cuMemAlloc_v2(&b, PINNED));
	for (unsigned i = 1; i <= ROUNDS; i++) {
		prog_fill(small, SMALL, i);
		prog_fill(pinned, PINNED, 100 + i);
		memset(back, 0, PINNED);
		CHECK(cuLaunchHostFunc(stream, holds, (void *)(uintptr_t)HELD_MS));
		CHECK(cuMemcpyHtoDAsync_v2(a, small, SMALL, stream));
		CHECK(cuMemcpyHtoDAsync_v2(b, pinned, PINNED, stream));
		CHECK(cuLaunchHostFunc(stream, holds, (void *)(uintptr_t)1));
		CHECK(cuMemcpyDtoHAsync_v2(back, b, PINNED, stream));
		CHECK(cuStreamSynchronize(stream));
		REQUIRE(!memcmp(pinned, back, PINNED));
		CHECK(cuMemcpyDtoH_v2(back, a, SMALL));
		REQUIRE(!memcmp(small, back, SMALL));
	}
	CHECK(cuMemFree_v2(a));
	CHECK(cuMemFree_v2(b));
	CHECK(cuStreamDestroy_v2(stream));
	free(small);
	CHECK(cuMemFreeHost(pinned));
	CHECK(cuMemFreeHost(back));
}

static void all(void)
{
	pthread_t t[2];

	atomic_store(&over, false);
	for (uintptr_t i = 0; i < 2; i++)
		REQUIRE(!pthread_create(&t[i], NULL, large, (void *)i));
	behind();
	atomic_store(&over, true);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

int main(void)
{
	prog_up();
	all();
	say("right");
	await();
	all();
	say("over");
	return 0;
}
