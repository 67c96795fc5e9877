/* SPDX-License-Identifier: Apache-2.0 */
/* How a program may live and end, one way each: `exit` and `quick` from a thread that is not the first while
 * others copy and launch, `now` by _exit in the middle of copies each way (all three with status 7), `threads
 * N` at once, and `storm N`: N children forked by each of four threads while these and two more compute. Says
 * "right", or "copying" where its end is the test. */
#include <pthread.h>
#include <sys/wait.h>
#include "tests/e2e/progs/prog.h"

#define WORDS 1024u
#define LARGE ((size_t)24 << 20)
#define FORKERS 4
#define COPIERS 4

static pthread_barrier_t together;
static CUfunction add;
static _Atomic unsigned copied;

static void compute(CUdeviceptr p, CUstream s, unsigned value)
{
	unsigned words[WORDS];

	for (unsigned i = 0; i < WORDS; i++)
		words[i] = i ^ value;
	CHECK(cuMemcpyHtoDAsync_v2(p, words, sizeof(words), s));
	CHECK(prog_launch(add, p, value, WORDS, WORDS, s));
	memset(words, 0, sizeof(words));
	CHECK(cuMemcpyDtoHAsync_v2(words, p, sizeof(words), s));
	CHECK(cuStreamSynchronize(s));
	for (unsigned i = 0; i < WORDS; i++)
		REQUIRE(words[i] == (i ^ value) + value);
}

static void *one_of_many(void *arg)
{
	unsigned value = (unsigned)(uintptr_t)arg;
	CUdeviceptr p;
	CUstream s;

	pthread_barrier_wait(&together);
	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuMemAlloc_v2(&p, WORDS * 4));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (unsigned round = 0; round < 3; round++)
		compute(p, s, value + round);
	CHECK(cuStreamDestroy_v2(s));
	CHECK(cuMemFree_v2(p));
	return NULL;
}

static void many(unsigned n)
{
	pthread_t *t = calloc(n, sizeof(*t));
	pthread_attr_t small;

	REQUIRE(t && !pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 256 << 10));
	REQUIRE(!pthread_barrier_init(&together, NULL, n));
	for (unsigned i = 0; i < n; i++)
		REQUIRE(!pthread_create(&t[i], &small, one_of_many, (void *)(uintptr_t)i));
	for (unsigned i = 0; i < n; i++)
		REQUIRE(!pthread_join(t[i], NULL));
	free(t);
}

static int child(unsigned way)
{
	CUdeviceptr p;
	int status;

	switch (way % 4) {
	case 0: _exit(0);
	case 1: _exit(cuMemAlloc_v2(&p, 16) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
	case 2: /* a child's child */
		if (!(way = (unsigned)fork()))
			_exit(cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
		_exit(waitpid((pid_t)way, &status, 0) == (pid_t)way && !status ? 0 : 1);
	default: execlp("true", "true", (char *)NULL); _exit(1);
	}
}

static unsigned storm;

static void *forker(void *arg)
{
	unsigned value = (unsigned)(uintptr_t)arg;
	CUdeviceptr p;

	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuMemAlloc_v2(&p, WORDS * 4));
	for (unsigned i = 0; i < storm; i++) {
		int status;
		CHECK(prog_launch(add, p, i, WORDS, WORDS, NULL));
		pid_t pid = value < FORKERS ? fork() : 0;
		if (!pid && value < FORKERS)
			child(i);
		compute(p, NULL, value + i);
		if (pid)
			REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
				!WEXITSTATUS(status));
	}
	CHECK(cuMemFree_v2(p));
	return NULL;
}

static void forks(unsigned n)
{
	pthread_t t[FORKERS + 2];

	storm = n;
	for (uintptr_t i = 0; i < FORKERS + 2; i++)
		REQUIRE(!pthread_create(&t[i], NULL, forker, (void *)i));
	for (unsigned i = 0; i < FORKERS + 2; i++)
		REQUIRE(!pthread_join(t[i], NULL));
}

static void *pageable[COPIERS]; /* no leak of a thread that ends first */

/* What an end finds under way: its result is of no interest any more, the process may be half gone. */
static void *copier(void *arg)
{
	uintptr_t way = (uintptr_t)arg;
	void *host = NULL;
	CUdeviceptr p;
	CUstream s;

	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuMemAlloc_v2(&p, LARGE));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	if (way & 1)
		pageable[way] = host = malloc(LARGE);
	else
		CHECK(cuMemAllocHost_v2(&host, LARGE));
	REQUIRE(host);
	memset(host, 1, LARGE);
	for (;;) {
		if (way & 2)
			cuMemcpyHtoDAsync_v2(p, host, LARGE, s);
		else
			cuMemcpyDtoHAsync_v2(host, p, LARGE, s);
		prog_launch(add, p, 1, WORDS, WORDS, s);
		if (cuStreamSynchronize(s))
			return NULL;
		copied++;
	}
}

static void *ender(void *arg)
{
	const char *how = arg;

	while (copied < 6)
		usleep(1000);
	say("copying");
	if (!strcmp(how, "exit"))
		exit(7);
	if (!strcmp(how, "quick"))
		quick_exit(7);
	_exit(7);
}

int main(int argc, char **argv)
{
	pthread_t t;

	REQUIRE(argc > 1);
	prog_up();
	add = prog_function("add");
	if (!strcmp(argv[1], "threads")) {
		many((unsigned)atoi(argv[2]));
	} else if (!strcmp(argv[1], "storm")) {
		forks((unsigned)atoi(argv[2]));
	} else {
		for (uintptr_t i = 0; i < COPIERS; i++)
			REQUIRE(!pthread_create(&t, NULL, copier, (void *)i));
		REQUIRE(!pthread_create(&t, NULL, ender, argv[1]));
		pthread_join(t, NULL);
	}
	say("right");
	return 0;
}
