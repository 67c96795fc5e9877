/* SPDX-License-Identifier: Apache-2.0 */
/* faulty FILE.ptx KERNEL THREADS N MEMORY...: runs a kernel of faulty.ptx on memory that is made ready as the
 * words say, and prints how the launch and the synchronisation behind it ended. Words: bytes=N allocates
 * (400), set=N fills the first N bytes, copy=N copies N unwritten bytes there from another allocation, free
 * frees it, null passes none, shared=N gives shared memory, again runs the kernel twice.
 *
 * Thread rule: one thread. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/cuda.h"

enum { MAX_TEXT = 1 << 16 };

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	printf("%s: error %d\n", what, r);
	exit(1);
}

static const char *value(const char *word, const char *name)
{
	size_t n = strlen(name);
	return strncmp(word, name, n) ? NULL : word + n;
}

int main(int argc, char **argv)
{
	static char text[MAX_TEXT];
	FILE *f = argc > 4 ? fopen(argv[1], "r") : NULL;
	if (!f || !fread(text, 1, sizeof text - 1, f)) {
		printf("no kernels\n");
		return 1;
	}
	fclose(f);
	CUdevice d;
	CUcontext c;
	CUmodule m;
	CUfunction k;
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&d, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&c, d), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(c), "cuCtxSetCurrent");
	must(cuModuleLoadData(&m, text), "cuModuleLoadData");
	must(cuModuleGetFunction(&k, m, argv[2]), "cuModuleGetFunction");
	CUdeviceptr p = 0, other;
	size_t bytes = 400, shared = 0;
	unsigned threads = (unsigned)atoi(argv[3]), n = (unsigned)atoi(argv[4]), rounds = 1;
	bool null = false;
	for (int i = 5; i < argc; i++) {
		const char *v;
		if ((v = value(argv[i], "bytes=")))
			bytes = (size_t)atol(v);
		else if ((v = value(argv[i], "shared=")))
			shared = (size_t)atol(v);
		null |= !strcmp(argv[i], "null");
		rounds += !strcmp(argv[i], "again");
	}
	if (!null)
		must(cuMemAlloc_v2(&p, bytes), "cuMemAlloc");
	must(cuMemAlloc_v2(&other, bytes), "cuMemAlloc");
	for (int i = 5; i < argc; i++) {
		const char *v;
		if ((v = value(argv[i], "set=")))
			must(cuMemsetD8_v2(p, 0, (size_t)atol(v)), "cuMemsetD8");
		else if ((v = value(argv[i], "copy=")))
			must(cuMemcpyDtoD_v2(p, other, (size_t)atol(v)), "cuMemcpyDtoD");
		else if (!strcmp(argv[i], "free"))
			must(cuMemFree_v2(p), "cuMemFree");
	}
	while (rounds--) {
		CUresult r = cuLaunchKernel(
			k, 1, 1, 1, threads, 1, 1, (unsigned)shared, NULL, (void *[]){&p, &n}, NULL);
		printf("launch %d, ", r);
		printf("end %d\n", cuCtxSynchronize());
		fflush(stdout);
	}
	return 0;
}
