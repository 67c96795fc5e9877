/* SPDX-License-Identifier: Apache-2.0 */
/* Several modules at once: the same names in each are apart, globals keep their values, unloading one
 * leaves the others, reloading starts afresh; the library API; a module that a linker made of two PTX
 * texts; JIT options with logs. */
#include <cuda.h>
#include "app.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
#define MODULE(v) \
	HEAD ".visible .global .align 4 .u32 value = " v ";\n" \
	".visible .entry get(.param .u64 p) { .reg .b64 %p; .reg .b32 %r<2>; ld.param.u64 %p,[p]; " \
	"ld.global.u32 %r0,[value];\n" \
	" st.global.u32 [%p],%r0; add.u32 %r1,%r0,1; st.global.u32 [value],%r1; ret; }\n"

static const char caller[] =
	HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
	".visible .entry call(.param .u64 p, .param .u32 v) { .reg .b64 %p; .reg .b32 %r<3>; "
	"ld.param.u64 %p,[p];\n"
	" ld.param.u32 %r0,[v]; { .param .b32 a; .param .b32 b; st.param.b32 [a],%r0; "
	"call.uni (b), twice, (a);\n"
	" ld.param.b32 %r1,[b]; } st.global.u32 [%p],%r1; ret; }\n";
static const char callee[] =
	HEAD ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<2>; ld.param.u32 %r0,[x];\n"
	" add.u32 %r1,%r0,%r0; st.param.b32 [r],%r1; ret; }\n";

static CUdeviceptr out;

static unsigned run(CUfunction f)
{
	unsigned v = 0;
	void *args[] = {&out};

	DRV(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	DRV(cuMemcpyDtoH(&v, out, sizeof(v)));
	return v;
}

static void is(const char *what, unsigned got, unsigned want)
{
	if (got != want)
		fail("%s: %u, expected %u", what, got, want);
}

static void modules(void)
{
	enum { COUNT = 12 };
	static const char *const texts[3] = {MODULE("100"), MODULE("200"), MODULE("300")};
	CUmodule m[COUNT];
	CUfunction f[COUNT];
	CUdeviceptr p;
	size_t n;
	unsigned v = 777;

	for (int i = 0; i < COUNT; i++) {
		DRV(cuModuleLoadData(&m[i], texts[i % 3]));
		DRV(cuModuleGetFunction(&f[i], m[i], "get"));
	}
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < COUNT; i++)
			is("a module's own global", run(f[i]), (i % 3 + 1) * 100 + round);
	DRV(cuModuleGetGlobal(&p, &n, m[4], "value"));
	DRV(cuMemcpyHtoD(p, &v, sizeof(v)));
	is("global set through its address", run(f[4]), 777);
	is("the same module loaded twice", run(f[1]), 203);
	DRV(cuModuleUnload(m[1]));
	is("after another was unloaded", run(f[4]), 778);
	DRV(cuModuleLoadData(&m[1], texts[1]));
	DRV(cuModuleGetFunction(&f[1], m[1], "get"));
	is("loaded again", run(f[1]), 200);
	for (int i = 0; i < COUNT; i++)
		DRV(cuModuleUnload(m[i]));
}

static void library(void)
{
	CUlibrary lib;
	CUkernel k;
	CUfunction f;
	CUmodule m;
	CUdeviceptr p;
	size_t n;
	unsigned count = 0;

	DRV(cuLibraryLoadData(&lib, MODULE("55"), NULL, NULL, 0, NULL, NULL, 0));
	DRV(cuLibraryGetKernelCount(&count, lib));
	is("kernels in the library", count, 1);
	DRV(cuLibraryGetKernel(&k, lib, "get"));
	DRV_EXPECT(cuLibraryGetKernel(&k, lib, "none"), CUDA_ERROR_NOT_FOUND);
	DRV(cuLibraryGetKernel(&k, lib, "get"));
	DRV(cuKernelGetFunction(&f, k));
	is("library's kernel", run(f), 55);
	is("kernel handle as function", run((CUfunction)k), 56);
	DRV(cuLibraryGetModule(&m, lib));
	DRV(cuLibraryGetGlobal(&p, &n, lib, "value"));
	is("size of the library's global", (unsigned)n, 4);
	DRV(cuLibraryUnload(lib));
}

static void linked(void)
{
	static char info[4096], errors[4096];
	CUlinkState link;
	CUmodule m;
	CUfunction f;
	void *image, *again;
	size_t size;
	unsigned v = 21, got = 0;
	void *args[] = {&out, &v};
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
			CU_JIT_ERROR_LOG_BUFFER,
				  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {info, (void *)sizeof(info), errors, (void *)sizeof(errors)};

	DRV(cuLinkCreate(4, options, values, &link));
	DRV(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)caller, sizeof(caller), "caller", 0,
			NULL, NULL));
	DRV(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)callee, sizeof(callee), "callee", 0,
			NULL, NULL));
	DRV(cuLinkComplete(link, &image, &size));
	/* The image is the linker's until it goes, also when it is asked for again; a driver may refuse
	 * that. */
	(void)cuLinkComplete(link, &again, &size);
	DRV(cuModuleLoadData(&m, image));
	DRV(cuLinkDestroy(link));
	DRV(cuModuleGetFunction(&f, m, "call"));
	DRV(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	DRV(cuMemcpyDtoH(&got, out, sizeof(got)));
	is("through a linked function", got, 42);
	DRV(cuModuleUnload(m));
}

static void logs(void)
{
	static char errors[4096];
	CUmodule m;
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {errors, (void *)sizeof(errors)};

	DRV_EXPECT(cuModuleLoadDataEx(&m, HEAD ".visible .entry k() { mov.u32 %r0, 1; ret; }\n", 2, options,
			values),
		   CUDA_ERROR_INVALID_PTX);
	if (!errors[0])
		fail("no text in the error log");
	DRV(cuModuleLoadDataEx(&m, MODULE("1"), 2, options, (void *[]){errors, (void *)sizeof(errors)}));
	DRV(cuModuleUnload(m));
}

int main(void)
{
	CUdevice dev;
	CUcontext ctx;

	DRV(cuInit(0));
	DRV(cuDeviceGet(&dev, 0));
	DRV(cuDevicePrimaryCtxRetain(&ctx, dev));
	DRV(cuCtxSetCurrent(ctx));
	DRV(cuMemAlloc(&out, 64));
	modules();
	library();
	linked();
	logs();
	DRV(cuMemFree(out));
	DRV(cuDevicePrimaryCtxRelease(dev));
	return pass();
}
