/* SPDX-License-Identifier: Apache-2.0 */
/* image VALUE KIB INDEX...: loads a module of 40 kernels and at least so many KiB, as a module and as a
 * library, takes the kernels with those numbers and runs them; kernel i must store VALUE + i. Says "right".
 * INDEX "none": a kernel that is not there must be 500, also when others were told. */
#include "prog.h"

#define KERNELS 40

static char *image(unsigned value, size_t kib)
{
	size_t cap = (kib << 10) + KERNELS * 512 + 1024, n;
	char *p = malloc(cap);

	REQUIRE(p);
	n = (size_t)snprintf(p, cap, ".version 7.0\n.target sm_70\n.address_size 64\n");
	for (unsigned i = 0; i < KERNELS; i++)
		n += (size_t)snprintf(p + n, cap - n,
			".visible .entry k%u(.param .u64 p)\n{\n	.reg .b64 %%d;\n"
			"	ld.param.u64 %%d, [p];\n"
			"	st.global.u32 [%%d], %u;\n	ret;\n}\n",
			i, value + i);
	while (n < kib << 10)
		n += (size_t)snprintf(p + n, cap - n, "// %zu: so that the image is not small\n", n);
	return p;
}

static void run(CUfunction f, CUdeviceptr p, unsigned want)
{
	void *arguments[] = {&p};
	unsigned got = 0;

	CHECK(cuMemsetD32_v2(p, 0, 1));
	CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
	CHECK(cuMemcpyDtoH_v2(&got, p, sizeof got));
	if (got != want)
		fprintf(stderr, "got %u, want %u\n", got, want);
	REQUIRE(got == want);
}

int main(int argc, char **argv)
{
	unsigned value = (unsigned)atoi(argv[1]);
	char *code = image(value, (size_t)atoi(argv[2]));
	CUlibrary library;
	CUmodule module;
	CUdeviceptr p;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&prog_device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&prog_context, prog_device));
	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuMemAlloc_v2(&p, 4));
	CHECK(cuModuleLoadData(&module, code));
	CHECK(cuLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
	for (int a = 3; a < argc; a++) {
		unsigned i = (unsigned)atoi(argv[a]);
		CUfunction f, g;
		CUkernel k;
		char name[16];

		if (!strcmp(argv[a], "none")) {
			REQUIRE(cuModuleGetFunction(&f, module, "nobody") == CUDA_ERROR_NOT_FOUND);
			REQUIRE(cuLibraryGetKernel(&k, library, "nobody") == CUDA_ERROR_NOT_FOUND);
			continue;
		}
		snprintf(name, sizeof name, "k%u", i);
		CHECK(cuModuleGetFunction(&f, module, name));
		run(f, p, value + i);
		CHECK(cuLibraryGetKernel(&k, library, name));
		run((CUfunction)k, p, value + i);
		CHECK(cuKernelGetFunction(&g, k));
		run(g, p, value + i);
	}
	CHECK(cuModuleUnload(module));
	CHECK(cuLibraryUnload(library));
	free(code);
	say("right");
	return 0;
}
