/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's program for a machine without nvcc: the same vectorAdd through the driver API, its kernel
 * embedded as PTX, built by gcc. The prototypes come from our description of the API, which is valid C. One
 * thread. */
#include <stdio.h>
#include <stdlib.h>
#include "wire/cuda.h"

static const char ptx[] = ".version 7.0\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
			  "{\n"
			  "	.reg .pred %past;\n"
			  "	.reg .b32 %i, %n, %block, %width, %thread;\n"
			  "	.reg .b64 %a, %b, %c, %at;\n"
			  "	.reg .f32 %x, %y;\n"
			  "	ld.param.u32 %n, [n];\n"
			  "	mov.u32 %block, %ctaid.x;\n"
			  "	mov.u32 %width, %ntid.x;\n"
			  "	mov.u32 %thread, %tid.x;\n"
			  "	mad.lo.s32 %i, %block, %width, %thread;\n"
			  "	setp.ge.s32 %past, %i, %n;\n"
			  "	@%past bra done;\n"
			  "	ld.param.u64 %a, [a];\n"
			  "	ld.param.u64 %b, [b];\n"
			  "	ld.param.u64 %c, [c];\n"
			  "	mul.wide.s32 %at, %i, 4;\n"
			  "	add.s64 %a, %a, %at;\n"
			  "	add.s64 %b, %b, %at;\n"
			  "	add.s64 %c, %c, %at;\n"
			  "	ld.global.f32 %x, [%a];\n"
			  "	ld.global.f32 %y, [%b];\n"
			  "	add.f32 %x, %x, %y;\n"
			  "	st.global.f32 [%c], %x;\n"
			  "done:\n"
			  "	ret;\n"
			  "}\n";

static void check(CUresult r, const char *what)
{
	const char *name = NULL;

	if (!r)
		return;
	cuGetErrorName(r, &name);
	fprintf(stderr, "%s: %s (%d)\n", what, name ? name : "?", (int)r);
	exit(1);
}
#define CHECK(call) check(call, #call)

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
	size_t bytes = (size_t)n * sizeof(float);
	float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
	CUdeviceptr da, db, dc;
	CUfunction add;
	CUmodule module;
	CUcontext context;
	CUdevice device;
	char name[256];
	int wrong = 0;

	if (n <= 0 || !a || !b || !c) {
		fprintf(stderr, "usage: vectoradd_driver [number of elements]\n");
		return 2;
	}
	for (int i = 0; i < n; i++) {
		a[i] = (float)(i % 1000);
		b[i] = 0.5f * (float)(i % 777);
	}
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDeviceGetName(name, sizeof(name), device));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&add, module, "add"));
	CHECK(cuMemAlloc_v2(&da, bytes));
	CHECK(cuMemAlloc_v2(&db, bytes));
	CHECK(cuMemAlloc_v2(&dc, bytes));
	CHECK(cuMemcpyHtoD_v2(da, a, bytes));
	CHECK(cuMemcpyHtoD_v2(db, b, bytes));
	void *arguments[] = {&da, &db, &dc, &n};
	CHECK(cuLaunchKernel(add, (unsigned)(n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
	CHECK(cuMemcpyDtoH_v2(c, dc, bytes));
	for (int i = 0; i < n; i++)
		if (c[i] != a[i] + b[i] && !wrong++)
			fprintf(stderr, "element %d is %g, not %g\n", i, c[i], a[i] + b[i]);
	CHECK(cuMemFree_v2(da));
	CHECK(cuMemFree_v2(db));
	CHECK(cuMemFree_v2(dc));
	CHECK(cuModuleUnload(module));
	CHECK(cuDevicePrimaryCtxRelease_v2(device));
	printf("vectorAdd: %d sums on \"%s\": %s\n", n, name, wrong ? "WRONG" : "all right");
	free(a);
	free(b);
	free(c);
	return wrong ? 1 : 0;
}
