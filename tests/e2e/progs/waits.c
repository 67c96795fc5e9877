/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the server again and again, in the way that its argument names, until that fails: says "working" after the first time, then "code N after M
 * ms": what the failing call gave and how long it took. Ways: sync, read (4 bytes), alloc, to_device and to_host (64 MiB of pageable memory), pinned_to_host
 * (asynchronous), host (a host function and its end). One thread. */
#include "prog.h"

#define SIZE ((size_t)64 << 20)

static void host_function(void *counter)
{
	++*(int *)counter;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	CUdeviceptr p, q;
	CUresult r = CUDA_SUCCESS;
	CUstream stream;
	int64_t start = 0;
	int called = 0;
	char *memory;

	prog_up();
	CUfunction f = prog_function("add");
	CHECK(cuMemAlloc_v2(&p, SIZE));
	CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	CHECK(cuMemHostAlloc((void **)&memory, SIZE, 0));
	char *pageable = calloc(1, SIZE);
	REQUIRE(pageable);
	for (int i = 0; !r; i++) {
		start = prog_ms();
		if (!strcmp(how, "sync"))
			r = prog_launch(f, p, 1, 32, 32, NULL) ?: cuCtxSynchronize();
		else if (!strcmp(how, "read"))
			r = cuMemcpyDtoH_v2(pageable, p, 4);
		else if (!strcmp(how, "alloc"))
			r = cuMemAlloc_v2(&q, 1 << 20) ?: cuMemFree_v2(q);
		else if (!strcmp(how, "to_device"))
			r = cuMemcpyHtoD_v2(p, pageable, SIZE) ?: cuCtxSynchronize();
		else if (!strcmp(how, "to_host"))
			r = cuMemcpyDtoH_v2(pageable, p, SIZE);
		else if (!strcmp(how, "pinned_to_host"))
			r = cuMemcpyDtoHAsync_v2(memory, p, SIZE, stream) ?: cuStreamSynchronize(stream);
		else if (!strcmp(how, "host"))
			r = cuLaunchHostFunc(stream, host_function, &called) ?: cuStreamSynchronize(stream);
		else
			return 2;
		if (!i && !r)
			say("working");
	}
	printf("code %d after %lld ms\n", (int)r, (long long)(prog_ms() - start));
	fflush(stdout);
	free(pageable);
	return 0;
}
