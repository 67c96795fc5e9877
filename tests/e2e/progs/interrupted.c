/* SPDX-License-Identifier: Apache-2.0 */
/* Everything under a timer signal, as profilers set one: from cuInit on, copies of all sizes, six threads;
 * then many short-lived threads one after another. Says "whole". */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include "tests/e2e/progs/prog.h"

#define THREADS 6
#define ROUNDS 12
#define COPIED 3000001
#define SHORT_LIVES 300

static void on_timer(int signal) { (void)signal; }

static void timer(long us)
{
	struct itimerval t = {{0, us}, {0, us}};

	REQUIRE(!setitimer(ITIMER_REAL, &t, NULL));
}

static void *copies(void *number)
{
	uint8_t *from = malloc(COPIED), *to = malloc(COPIED), value = (uint8_t)(intptr_t)number;
	size_t unused;
	CUdeviceptr p;

	REQUIRE(from && to);
	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuMemAlloc_v2(&p, COPIED));
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < COPIED; i++)
			from[i] = (uint8_t)(i * value + (size_t)round);
		CHECK(cuMemcpyHtoD_v2(p, from, COPIED));
		CHECK(cuMemsetD8Async(p, value, 17, NULL));
		memset(from, value, 17);
		CHECK(cuMemcpyDtoH_v2(to, p, COPIED));
		REQUIRE(!memcmp(from, to, COPIED));
		CHECK(cuMemGetInfo_v2(&unused, &unused));
	}
	CHECK(cuMemFree_v2(p));
	free(from);
	free(to);
	return NULL;
}

static void *short_life(void *unused)
{
	size_t bytes;

	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuMemGetInfo_v2(&bytes, &bytes));
	return unused;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_timer};
	pthread_t threads[THREADS];

	REQUIRE(!sigaction(SIGALRM, &action, NULL));
	timer(500);
	prog_up();
	for (intptr_t i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&threads[i], NULL, copies, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SHORT_LIVES; i++) {
		REQUIRE(!pthread_create(&threads[0], NULL, short_life, NULL));
		pthread_join(threads[0], NULL);
	}
	timer(0);
	say("whole");
	return 0;
}
