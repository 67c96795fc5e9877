/* SPDX-License-Identifier: Apache-2.0 */
/* Much at once. `load launch A P N`: N launches while A allocations and P pinned buffers live. `load threads
 * T N`: T threads that begin together, N launches each. `load duplex MIB N`: one thread copies to the device,
 * another to the host, N times so many MiB, and every byte is checked. Says what came out. */
#include <pthread.h>
#include "prog.h"

static CUfunction add;
static CUdeviceptr words;
static pthread_barrier_t barrier;
static int launches;
static size_t bytes;

static void launch(int allocations, int buffers)
{
	CUdeviceptr p;
	void *h;

	for (int i = 0; i < allocations; i++)
		CHECK(cuMemAlloc_v2(&p, 512));
	for (int i = 0; i < buffers; i++)
		CHECK(cuMemHostAlloc(&h, 4096, CU_MEMHOSTALLOC_PORTABLE));
	CHECK(cuCtxSynchronize());
	for (int i = 0; i < launches; i++)
		CHECK(prog_launch(add, words, 1, 32, 32, NULL));
	CHECK(cuCtxSynchronize());
}

static void *launching(void *word)
{
	CHECK(cuCtxSetCurrent(prog_context));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < launches; i++)
		CHECK(prog_launch(add, words + 4 * (uintptr_t)word, 1, 1, 1, NULL));
	return NULL;
}

static void threads(int n)
{
	pthread_t *t = calloc((size_t)n, sizeof(*t));
	unsigned *count = calloc((size_t)n, sizeof(*count));

	REQUIRE(t && count);
	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		REQUIRE(!pthread_create(&t[i], NULL, launching, (void *)(uintptr_t)i));
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	CHECK(cuMemcpyDtoH_v2(count, words, sizeof(*count) * (size_t)n));
	for (int i = 0; i < n; i++)
		REQUIRE(count[i] == (unsigned)launches);
	free(count);
	free(t);
}

/* A byte of the round's pattern at offset i. */
static unsigned char byte_at(size_t i, int round)
{
	return (unsigned char)(i * 7 + i / 4096 + (unsigned)round);
}

struct half { CUdeviceptr device; CUstream stream; int to_host; };

static void *copying(void *arg)
{
	struct half *h = arg;
	unsigned char *host = malloc(bytes);

	REQUIRE(host);
	CHECK(cuCtxSetCurrent(prog_context));
	pthread_barrier_wait(&barrier);
	for (int n = 0; n < launches; n++) {
		if (h->to_host) {
			memset(host, 0, bytes);
			CHECK(cuMemcpyDtoHAsync_v2(host, h->device, bytes, h->stream));
			CHECK(cuStreamSynchronize(h->stream));
			for (size_t i = 0; i < bytes; i += 61)
				REQUIRE(host[i] == byte_at(i, 0));
		} else {
			for (size_t i = 0; i < bytes; i++)
				host[i] = byte_at(i, n == launches - 1 ? 0 : n + 1);
			CHECK(cuMemcpyHtoDAsync_v2(h->device, host, bytes, h->stream));
			CHECK(cuStreamSynchronize(h->stream));
		}
	}
	free(host);
	return NULL;
}

static void duplex(void)
{
	struct half half[2] = {{.to_host = 0}, {.to_host = 1}};
	unsigned char *pattern = malloc(bytes);
	pthread_t t[2];

	REQUIRE(pattern);
	for (size_t i = 0; i < bytes; i++)
		pattern[i] = byte_at(i, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++) {
		CHECK(cuMemAlloc_v2(&half[i].device, bytes));
		CHECK(cuStreamCreate(&half[i].stream, CU_STREAM_NON_BLOCKING));
	}
	CHECK(cuMemcpyHtoD_v2(half[1].device, pattern, bytes));
	for (int i = 0; i < 2; i++)
		REQUIRE(!pthread_create(&t[i], NULL, copying, &half[i]));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	/* What went to the device in the last round is there. */
	memset(pattern, 0, bytes);
	CHECK(cuMemcpyDtoH_v2(pattern, half[0].device, bytes));
	for (size_t i = 0; i < bytes; i++)
		REQUIRE(pattern[i] == byte_at(i, 0));
	free(pattern);
}

int main(int argc, char **argv)
{
	int64_t start;

	REQUIRE(argc >= 4);
	prog_up();
	add = prog_function("add");
	CHECK(cuMemAlloc_v2(&words, 4096));
	CHECK(cuMemsetD8_v2(words, 0, 4096));
	launches = atoi(argv[argc - 1]);
	start = prog_ms();
	if (!strcmp(argv[1], "launch")) {
		REQUIRE(argc == 5);
		launch(atoi(argv[2]), atoi(argv[3]));
	} else if (!strcmp(argv[1], "threads")) {
		REQUIRE(atoi(argv[2]) <= 1024);
		threads(atoi(argv[2]));
	} else {
		bytes = (size_t)atoi(argv[2]) << 20;
		duplex();
	}
	printf("%s right after %lld ms\n", argv[1], (long long)(prog_ms() - start));
	return 0;
}
