/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the server again and again, in the way that its argument names, until that fails: says "working"
 * after the first time, then "code N after M ms": what the failing call gave and how long it took. Ways:
 * sync, read (4 bytes), alloc, to_device and to_host (SIZE bytes of pageable memory), pinned_to_device and
 * pinned_to_host (asynchronous), both (these two at once), host (a host function and its end). Bytes that
 * came back wrong are code 1000; so are those that were sent in a copy of more than 5 s. One thread; a second
 * one for both. */
#include <pthread.h>
#include "prog.h"

#ifdef __SANITIZE_THREAD__     /* which takes ten times as long for each byte */
#define SIZE ((size_t)16 << 20)
#else
#define SIZE ((size_t)64 << 20)
#endif
#define WORDS (SIZE / sizeof(uint64_t))
#define STEP 8192               /* words between two that are looked at each time */
#define LONG_MS 5000
#define WRONG ((CUresult)1000)

static void host_function(void *counter)
{
	++*(int *)counter;
}

static uint64_t word(size_t i)
{
	return i * 0x9e3779b97f4a7c15 + 1;
}

static void *filled(bool pinned)
{
	uint64_t *p = NULL;

	if (pinned)
		CHECK(cuMemHostAlloc((void **)&p, SIZE, 0));
	else
		REQUIRE((p = malloc(SIZE)) != NULL);
	for (size_t i = 0; i < WORDS; i++)
		p[i] = word(i);
	return p;
}

/* The copy in the middle of which we were stopped: every byte is there. */
static CUresult look(CUdeviceptr p)
{
	uint64_t *back = calloc(1, SIZE);
	CUresult r = cuMemcpyDtoH_v2(back, p, SIZE);

	for (size_t i = 0; !r && i < WORDS; i++)
		r = back[i] == word(i) ? CUDA_SUCCESS : WRONG;
	free(back);
	return r;
}

static CUresult to_device(CUdeviceptr p, const void *from, CUstream stream)
{
	int64_t start = prog_ms();
	CUresult r = stream ? cuMemcpyHtoDAsync_v2(p, from, SIZE, stream) ?: cuStreamSynchronize(stream) :
		cuMemcpyHtoD_v2(p, from, SIZE) ?: cuCtxSynchronize();

	return r || prog_ms() - start < LONG_MS ? r : look(p);
}

static CUresult to_host(uint64_t *to, CUdeviceptr p, CUstream stream)
{
	CUresult r;

	for (size_t i = 0; i < WORDS; i += STEP)
		to[i] = 0;
	r = stream ? cuMemcpyDtoHAsync_v2(to, p, SIZE, stream) ?: cuStreamSynchronize(stream) :
		cuMemcpyDtoH_v2(to, p, SIZE);
	for (size_t i = 0; !r && i < WORDS; i += STEP)
		r = to[i] == word(i) ? CUDA_SUCCESS : WRONG;
	return r;
}

static _Atomic CUresult second = CUDA_SUCCESS;

static void *beside(void *from)
{
	CUstream stream;
	CUdeviceptr p;
	CUresult r;

	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuMemAlloc_v2(&p, SIZE));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	while (!(r = to_device(p, from, stream)))
		;
	second = r;
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	bool pinned = !strncmp(how, "pinned", 6) || !strcmp(how, "both");
	CUdeviceptr p, q;
	CUresult r = CUDA_SUCCESS;
	CUstream stream;
	int64_t start = 0;
	int called = 0;
	pthread_t thread;

	prog_up();
	CUfunction f = prog_function("add");
	static uint64_t *memory; /* no leak */
	memory = filled(pinned);
	CHECK(cuMemAlloc_v2(&p, SIZE));
	CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	CHECK(cuMemAlloc_v2(&q, 4096));
	CHECK(cuMemcpyHtoD_v2(p, memory, SIZE));
	if (!strcmp(how, "both"))
		REQUIRE(!pthread_create(&thread, NULL, beside, filled(true)));
	for (int i = 0; !r; i++) {
		start = prog_ms();
		if (!strcmp(how, "sync"))
			r = prog_launch(f, q, 1, 32, 32, NULL) ?: cuCtxSynchronize();
		else if (!strcmp(how, "read"))
			r = cuMemcpyDtoH_v2(memory, p, 4);
		else if (!strcmp(how, "alloc"))
			r = cuMemAlloc_v2(&q, 1 << 20) ?: cuMemFree_v2(q);
		else if (!strcmp(how, "to_device") || !strcmp(how, "pinned_to_device"))
			r = to_device(p, memory, pinned ? stream : NULL);
		else if (!strcmp(how, "to_host") || !strcmp(how, "pinned_to_host"))
			r = to_host(memory, p, pinned ? stream : NULL);
		else if (!strcmp(how, "both"))
			r = to_host(memory, p, stream) ?: second;
		else if (!strcmp(how, "host"))
			r = cuLaunchHostFunc(stream, host_function, &called) ?: cuStreamSynchronize(stream);
		else
			return 2;
		if (!i && !r)
			say("working");
	}
	printf("code %d after %lld ms\n", (int)r, (long long)(prog_ms() - start));
	fflush(stdout);
	return 0;
}
