/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of a module or of a mipmapped array belongs to that one's context, whichever is current: it is
 * not lost with another context. `owners IMAGE`: functions of the PTX in the file, which the server may have
 * told of before. Says "right". One thread. */
#include "tests/e2e/progs/prog.h"

static void adds(CUfunction f, CUdeviceptr p, unsigned want)
{
	unsigned got = 0;

	CHECK(prog_launch(f, p, 1, 1, 1, NULL));
	CHECK(cuMemcpyDtoH_v2(&got, p, sizeof got));
	REQUIRE(got == want);
}

int main(int argc, char **argv)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 16, .Height = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1}, level = {.Width = 0};
	CUmipmappedArray mipmap;
	CUmodule module;
	CUcontext other;
	CUdeviceptr p;
	CUfunction f;
	CUarray a;

	REQUIRE(argc == 2);
	prog_up();
	CHECK(cuModuleLoad(&module, argv[1]));
	CHECK(cuMipmappedArrayCreate(&mipmap, &shape, 2));
	CHECK(cuMemAlloc_v2(&p, 4));
	CHECK(cuMemsetD32_v2(p, 0, 1));
	CHECK(cuCtxCreate_v4(&other, NULL, 0, prog_device));
	CHECK(cuModuleGetFunction(&f, module, "add"));
	CHECK(cuMipmappedArrayGetLevel(&a, mipmap, 1));
	CHECK(cuCtxDestroy_v2(other));
	CHECK(cuCtxSetCurrent(prog_context));
	adds(f, p, 1);
	CHECK(cuArray3DGetDescriptor_v2(&level, a));
	REQUIRE(level.Width == 8);
	puts("right");
	return 0;
}
