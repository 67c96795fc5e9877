/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of more than one request's bytes by threads whose records lie at every place of a page: a record on
 * two pages takes two of the pages that a request may have. Its memory is of the thread and comes from
 * malloc, behind what the threads took before: all of them stay. They copy one after the other. */
#include <pthread.h>
#include <semaphore.h>
#include "tests/e2e/progs/prog.h"

#define COPIED ((3u << 20) / 2)
#define STEP 32

static struct { CUcontext context; CUdeviceptr d; uint8_t *bytes; sem_t copied, over; } all;

static void *copy(void *arg)
{
	char *before = malloc((size_t)(uintptr_t)arg + 24);

	REQUIRE(before && !cuCtxSetCurrent(all.context) && !cuMemcpyHtoD_v2(all.d, all.bytes, COPIED));
	sem_post(&all.copied);
	sem_wait(&all.over);
	free(before);
	return NULL;
}

int main(void)
{
	uint8_t *back = malloc(COPIED);
	pthread_t thread[4096 / STEP];

	prog_up();
	all.bytes = aligned_alloc(4096, COPIED);
	REQUIRE(all.bytes && back && !cuCtxGetCurrent(&all.context) && !cuMemAlloc_v2(&all.d, COPIED));
	for (size_t i = 0; i < COPIED; i++)
		all.bytes[i] = (uint8_t)(i * 2654435761u >> 11);
	REQUIRE(!sem_init(&all.copied, 0, 0) && !sem_init(&all.over, 0, 0));
	for (size_t i = 0; i < 4096 / STEP; i++) {
		REQUIRE(!pthread_create(&thread[i], NULL, copy, (void *)(uintptr_t)(i * STEP)));
		while (sem_wait(&all.copied))
			;
	}
	for (size_t i = 0; i < 4096 / STEP; i++)
		sem_post(&all.over);
	for (size_t i = 0; i < 4096 / STEP; i++)
		REQUIRE(!pthread_join(thread[i], NULL));
	REQUIRE(!cuMemcpyDtoH_v2(back, all.d, COPIED) && !memcmp(back, all.bytes, COPIED));
	free(back);
	free(all.bytes);
	say("right");
	return 0;
}
