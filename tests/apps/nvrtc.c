/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC: C++ text compiled at run time to PTX, templates by name expression, an error with its log; then
 * loaded and launched by the driver API. */
#include <cuda.h>
#include <nvrtc.h>
#include "app.h"

#define RTC(x) rtc((x), #x, __LINE__)
static void rtc(nvrtcResult r, const char *what, int line)
{
	if (r != NVRTC_SUCCESS)
		fail("line %d: %s -> %s", line, what, nvrtcGetErrorString(r));
}

static const char source[] =
	"template <typename T> __global__ void axpy(T a, const T *x, T *y, int n)\n"
	"{\n"
	"\tint i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"\tif (i < n) y[i] = a * x[i] + y[i];\n"
	"}\n"
	"extern \"C\" __global__ void square(int *p) { p[threadIdx.x] *= p[threadIdx.x] + OFFSET; }\n";

int main(void)
{
	enum { N = 1000 };
	static float x[N], y[N];
	int squares[32], n = N;
	float a = 2.5f;
	const char *options[] = {"--gpu-architecture=compute_75", "-DOFFSET=3", "--std=c++17"}, *lowered;
	nvrtcProgram p, bad;
	size_t size;
	char *ptx;
	CUdevice dev;
	CUcontext ctx;
	CUmodule m;
	CUfunction f;
	CUdeviceptr dx, dy;

	RTC(nvrtcCreateProgram(&bad, "__global__ void k() { undeclared = 1; }", "bad.cu", 0, NULL, NULL));
	if (nvrtcCompileProgram(bad, 0, NULL) != NVRTC_ERROR_COMPILATION)
		fail("a wrong program compiles");
	RTC(nvrtcGetProgramLogSize(bad, &size));
	if (size < 10)
		fail("no log of a wrong program");
	RTC(nvrtcDestroyProgram(&bad));

	RTC(nvrtcCreateProgram(&p, source, "app.cu", 0, NULL, NULL));
	RTC(nvrtcAddNameExpression(p, "axpy<float>"));
	RTC(nvrtcCompileProgram(p, 3, options));
	RTC(nvrtcGetPTXSize(p, &size));
	ptx = malloc(size);
	RTC(nvrtcGetPTX(p, ptx));
	RTC(nvrtcGetLoweredName(p, "axpy<float>", &lowered));

	DRV(cuInit(0));
	DRV(cuDeviceGet(&dev, 0));
	DRV(cuDevicePrimaryCtxRetain(&ctx, dev));
	DRV(cuCtxSetCurrent(ctx));
	DRV(cuModuleLoadData(&m, ptx));
	free(ptx);
	DRV(cuModuleGetFunction(&f, m, lowered));
	DRV(cuMemAlloc(&dx, sizeof(x)));
	DRV(cuMemAlloc(&dy, sizeof(y)));
	for (int i = 0; i < N; i++) {
		x[i] = i * 0.5f;
		y[i] = N - i;
	}
	DRV(cuMemcpyHtoD(dx, x, sizeof(x)));
	DRV(cuMemcpyHtoD(dy, y, sizeof(y)));
	void *args[] = {&a, &dx, &dy, &n};
	DRV(cuLaunchKernel(f, (N + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, args, NULL));
	DRV(cuMemcpyDtoH(y, dy, sizeof(y)));
	for (int i = 0; i < N; i++)
		if (y[i] != fmaf(a, x[i], N - i))
			fail("axpy[%d] is %g, expected %g", i, y[i], fmaf(a, x[i], N - i));
	DRV(cuModuleGetFunction(&f, m, "square"));
	for (int i = 0; i < 32; i++)
		squares[i] = i;
	DRV(cuMemcpyHtoD(dx, squares, sizeof(squares)));
	void *one[] = {&dx};
	DRV(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, one, NULL));
	DRV(cuMemcpyDtoH(squares, dx, sizeof(squares)));
	for (int i = 0; i < 32; i++)
		if (squares[i] != i * (i + 3))
			fail("square[%d] is %d, expected %d", i, squares[i], i * (i + 3));
	RTC(nvrtcDestroyProgram(&p));
	DRV(cuMemFree(dx));
	DRV(cuMemFree(dy));
	DRV(cuModuleUnload(m));
	DRV(cuDevicePrimaryCtxRelease(dev));
	return pass();
}
