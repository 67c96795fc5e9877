/* SPDX-License-Identifier: Apache-2.0 */
/* configured NUMBER: chooses a cache configuration for a function unless the number is 0, asks twice how many
 * blocks of it may be active, chooses one for the context, and asks twice again. configured kernel: chooses
 * one for a kernel, the same for its function, and that again, and asks twice of the function each time. Says
 * "right". */
#include "prog.h"

static void ask(CUfunction f)
{
	int first = 0, second = 0;

	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&first, f, 128, 0));
	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&second, f, 128, 0));
	REQUIRE(first > 0 && first == second);
}

static void of_kernel(void)
{
	CUlibrary library;
	CUkernel kernel;
	CUfunction f;

	CHECK(cuLibraryLoadData(&library, prog_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&kernel, library, "add"));
	CHECK(cuKernelGetFunction(&f, kernel));
	CHECK(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, prog_device));
	ask(f);
	for (int i = 0; i < 2; i++) {
		CHECK(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_L1));
		ask(f);
	}
}

int main(int argc, char **argv)
{
	CUfunc_cache config = argc == 2 ? (CUfunc_cache)atoi(argv[1]) : CU_FUNC_CACHE_PREFER_NONE;
	CUfunction f;

	prog_up();
	if (argc == 2 && !strcmp(argv[1], "kernel")) {
		of_kernel();
		say("right");
		return 0;
	}
	f = prog_function("fill");
	if (config)
		CHECK(cuFuncSetCacheConfig(f, config));
	ask(f);
	CHECK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
	ask(f);
	say("right");
	return 0;
}
