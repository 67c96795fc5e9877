/* SPDX-License-Identifier: Apache-2.0 */
/* Threads with a stream each launch, copy to the host in every way, and ask by polling or waiting; host
 * functions of some run beside copies of others. All bytes must be there when a call says so. Prints "rounds
 * N". Argument: seconds (3). Eight threads. */
#include "tests/e2e/progs/prog.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define THREADS 8
#define MOST (2u << 20)

static CUcontext context;
static CUfunction fill;
static atomic_bool over;
static atomic_long rounds, called;

static void called_back(void *unused)
{
	(void)unused;
	called++;
}

static void one_round(unsigned *seed, CUstream s, CUdeviceptr p, unsigned *pinned, unsigned *plain)
{
	static const unsigned sizes[] = {4, 4000, 20000, 65536, 100000, 1 << 20, (1 << 20) + 4, MOST};
	unsigned v = (unsigned)rand_r(seed), how = (unsigned)rand_r(seed) % 4;
	unsigned n = sizes[(unsigned)rand_r(seed) % (rand_r(seed) % 20 ? 4 : 8)], count = n / 4;
	unsigned *to = how == 2 ? plain : pinned;
	CUresult r;

	for (int i = 0; i < (how ? 1 : 10); i++)
		CHECK(prog_launch(fill, p, v, count, count, s));
	if (how == 1) {
		CHECK(cuStreamSynchronize(s));
		CHECK(cuMemcpyDtoH_v2(to, p, n));
	} else {
		CHECK(cuMemcpyDtoHAsync_v2(to, p, n, s));
		if (how == 3)
			CHECK(cuLaunchHostFunc(s, called_back, NULL));
		while (!how && (r = cuStreamQuery(s)) == CUDA_ERROR_NOT_READY)
			;
		CHECK(how ? cuStreamSynchronize(s) : r);
	}
	for (unsigned i = 0; i < count; i++)
		if (to[i] != v + i) {
			printf("wrong: way %u, %u bytes, word %u is %x, not %x\n", how, n, i, to[i], v + i);
			exit(1);
		}
	rounds++;
}

static void *work(void *number)
{
	unsigned seed = (unsigned)(uintptr_t)number, *plain = malloc(MOST);
	void *pinned;
	CUstream s;
	CUdeviceptr p;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc_v2(&p, MOST));
	CHECK(cuMemAllocHost_v2(&pinned, MOST));
	while (!over)
		one_round(&seed, s, p, pinned, plain);
	free(plain);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	prog_up();
	CHECK(cuCtxGetCurrent(&context));
	fill = prog_function("fill");
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, work, (void *)(i + 1)))
			return 1;
	int64_t end = prog_ms() + 1000 * (argc > 1 ? atoi(argv[1]) : 3);
	while (prog_ms() < end) {
		long before = rounds;
		int64_t start = prog_ms();

		while (rounds == before && prog_ms() < end)
			if (prog_ms() - start > 1500 * prog_slow()) {
				printf("nothing moved for 1.5 s after %ld rounds\n", before);
				exit(1);
			} else {
				struct timespec little = {.tv_nsec = 5000000};

				nanosleep(&little, NULL);
			}
	}
	over = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("rounds %ld, host functions %ld\n", rounds, called);
	return 0;
}
