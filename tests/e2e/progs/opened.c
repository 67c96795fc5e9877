/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is not linked with the driver library, nor position independent: it opens the library,
 * computes, closes it, and opens it again; what it has from the first time is still good. Says "right". One
 * thread. */
#include <dlfcn.h>
#include "tests/e2e/progs/prog.h"

#define FUNCTIONS(X) \
	X(cuInit) X(cuDeviceGet) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuModuleLoadData) \
	X(cuModuleGetFunction) X(cuMemAlloc_v2) X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuLaunchKernel) \
	X(cuMemAllocManaged) X(cuCtxSynchronize) X(cuMemFree_v2)
static struct {
#define X(name) __typeof__(name) *name;
	FUNCTIONS(X)
#undef X
} cuda;

static void *opened(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	REQUIRE(library);
#define X(name) REQUIRE((cuda.name = (__typeof__(name) *)dlsym(library, #name)));
	FUNCTIONS(X)
#undef X
	return library;
}

static unsigned words[1024];
static CUfunction add;

static void compute(CUdeviceptr p, unsigned value)
{
	unsigned n = 1024;
	void *arguments[] = {&p, &value, &n};

	for (unsigned i = 0; i < n; i++)
		words[i] = i;
	REQUIRE(!cuda.cuMemcpyHtoD_v2(p, words, sizeof(words)));
	REQUIRE(!cuda.cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
	REQUIRE(!cuda.cuMemcpyDtoH_v2(words, p, sizeof(words)));
	for (unsigned i = 0; i < n; i++)
		REQUIRE(words[i] == i + value);
}

int main(void)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUdeviceptr p, managed;

	void *library = opened();
	REQUIRE(!cuda.cuInit(0) && !cuda.cuDeviceGet(&device, 0));
	REQUIRE(!cuda.cuDevicePrimaryCtxRetain(&context, device) && !cuda.cuCtxSetCurrent(context));
	REQUIRE(!cuda.cuModuleLoadData(&module, prog_ptx) && !cuda.cuModuleGetFunction(&add, module, "add"));
	REQUIRE(!cuda.cuMemAlloc_v2(&p, sizeof(words)));
	REQUIRE(!cuda.cuMemAllocManaged(&managed, sizeof(words), CU_MEM_ATTACH_GLOBAL));
	compute(p, 5);
	REQUIRE(!dlclose(library));
	library = opened();
	REQUIRE(!cuda.cuInit(0));
	compute(p, 6);
	compute(managed, 7);
	REQUIRE(!cuda.cuCtxSynchronize());
	REQUIRE(((unsigned *)(uintptr_t)managed)[3] == 10);
	REQUIRE(!cuda.cuMemFree_v2(p));
	REQUIRE(!dlclose(library));
	puts("right");
	return 0;
}
