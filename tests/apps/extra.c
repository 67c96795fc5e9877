/* SPDX-License-Identifier: Apache-2.0 */
/* Launches by the driver API with parameters packed in one buffer (`extra`), the same launch by an array
 * of pointers, and by cuLaunchKernelEx; what the caller does with its buffers afterwards must not matter. */
#include <cuda.h>
#include "app.h"

static const char ptx[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .entry mix(.param .u64 out, .param .u8 a, .param .u32 b, .param .f64 c, .param .u16 d)\n"
	"{\n"
	"\t.reg .b64 %p; .reg .b32 %r<4>; .reg .f64 %f;\n"
	"\tld.param.u64 %p, [out]; ld.param.u8 %r0, [a]; ld.param.u32 %r1, [b]; ld.param.f64 %f, [c]; "
	"ld.param.u16 %r2, [d];\n"
	"\tst.global.u32 [%p], %r0; st.global.u32 [%p+4], %r1; st.global.f64 [%p+8], %f; "
	"st.global.u32 [%p+16], %r2;\n"
	"\tret;\n"
	"}\n";

struct packed {
	CUdeviceptr out;
	unsigned char a, gap[3];
	unsigned b;
	double c;
	unsigned short d;
};

struct result {
	unsigned a, b;
	double c;
	unsigned d, pad;
};

static CUdeviceptr out;

static void check(const char *way, unsigned a, unsigned b, double c, unsigned d)
{
	struct result r;

	DRV(cuMemcpyDtoH(&r, out, sizeof(r)));
	if (r.a != a || r.b != b || r.c != c || r.d != d)
		fail("%s: got %u %u %g %u, expected %u %u %g %u", way, r.a, r.b, r.c, r.d, a, b, c, d);
	printf("%s: %u %u %g %u\n", way, r.a, r.b, r.c, r.d);
	DRV(cuMemsetD8(out, 0, sizeof(r)));
}

int main(void)
{
	CUdevice dev;
	CUcontext ctx;
	CUmodule m;
	CUfunction f;
	struct packed p = {.a = 200, .b = 123456789, .c = -0.125, .d = 54321};
	size_t n = 26; /* up to the last parameter's end: the struct's own tail padding is not needed */
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p, CU_LAUNCH_PARAM_BUFFER_SIZE, &n,
			CU_LAUNCH_PARAM_END};
	void *swapped[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &n, CU_LAUNCH_PARAM_BUFFER_POINTER, &p,
			CU_LAUNCH_PARAM_END};
	void *array[] = {&p.out, &p.a, &p.b, &p.c, &p.d};
	CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
			.blockDimZ = 1};

	DRV(cuInit(0));
	DRV(cuDeviceGet(&dev, 0));
	DRV(cuDevicePrimaryCtxRetain(&ctx, dev));
	DRV(cuCtxSetCurrent(ctx));
	DRV(cuModuleLoadData(&m, ptx));
	DRV(cuModuleGetFunction(&f, m, "mix"));
	DRV(cuMemAlloc(&out, sizeof(struct result)));
	DRV(cuMemsetD8(out, 0, sizeof(struct result)));
	p.out = out;
	DRV(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	p.a = 0;
	p.c = 99;
	check("packed", 200, 123456789, -0.125, 54321);
	p.a = 7;
	p.b = 8;
	DRV(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, swapped));
	check("packed, size first", 7, 8, 99, 54321);
	p.d = 1;
	DRV(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, array, NULL));
	p.d = 2;
	check("array", 7, 8, 99, 1);
	DRV(cuLaunchKernelEx(&config, f, array, NULL));
	check("extended, array", 7, 8, 99, 2);
	DRV(cuLaunchKernelEx(&config, f, NULL, extra));
	check("extended, packed", 7, 8, 99, 2);
	DRV_EXPECT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, array, extra), CUDA_ERROR_INVALID_VALUE);
	DRV(cuMemFree(out));
	DRV(cuModuleUnload(m));
	DRV(cuDevicePrimaryCtxRelease(dev));
	return pass();
}
