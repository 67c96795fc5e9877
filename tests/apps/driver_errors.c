/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver API answers to wrong use, as a real driver does: unknown kernel, wrong handles, modules
 * that are none, a stream that was destroyed (any error or the driver's own crash, in a child: never
 * success), invalid and double frees. */
#include <cuda.h>
#include "app.h"

static const char ptx[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 cell = 5;\n"
	".visible .entry nothing() { ret; }\n";

static CUdevice dev;
static CUcontext ctx;

static void up(void)
{
	DRV(cuInit(0));
	DRV(cuDeviceGet(&dev, 0));
	DRV(cuDevicePrimaryCtxRetain(&ctx, dev));
	DRV(cuCtxSetCurrent(ctx));
}

static int handles(void *arg)
{
	CUmodule m, none;
	CUfunction f, g;
	CUdeviceptr p, q;
	CUevent e;
	size_t n;
	void *host;
	int v;

	(void)arg;
	up();
	DRV(cuModuleLoadData(&m, ptx));
	DRV_EXPECT(cuModuleGetFunction(&g, m, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
	DRV_EXPECT(cuModuleGetGlobal(&p, &n, m, "no_such_variable"), CUDA_ERROR_NOT_FOUND);
	DRV_EXPECT(cuModuleGetFunction(&g, m, "cell"), CUDA_ERROR_NOT_FOUND);
	DRV(cuModuleGetFunction(&f, m, "nothing"));
	DRV(cuModuleGetGlobal(&p, &n, m, "cell"));
	if (n != 4)
		fail("cell has %zu bytes, expected 4", n);
	DRV_EXPECT(cuModuleLoadData(&none, ".version 7.5\n.target sm_75\n.address_size 64\n"
		".visible .entry k() { no.such.instruction; ret; }\n"), CUDA_ERROR_INVALID_PTX);
	DRV_EXPECT(cuModuleLoad(&none, "/nonexistent/file.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
	DRV_EXPECT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	DRV_EXPECT(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL), CUDA_ERROR_INVALID_HANDLE);
	DRV_EXPECT(cuEventRecord(NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	DRV_EXPECT(cuEventDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
	DRV_EXPECT(cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	DRV_EXPECT(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	DRV_EXPECT(cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	DRV(cuMemAlloc(&p, 4096));
	DRV(cuMemAlloc(&q, 8 << 20));
	DRV_EXPECT(cuMemFree(p + 256), CUDA_ERROR_INVALID_VALUE);
	DRV_EXPECT(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
	DRV(cuMemFree(q));
	DRV_EXPECT(cuMemFree(q), CUDA_ERROR_INVALID_VALUE);
	DRV_EXPECT(cuMemAlloc(&q, 0), CUDA_ERROR_INVALID_VALUE);
	DRV_EXPECT(cuMemAlloc(&q, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
	DRV_EXPECT(cuMemHostAlloc(&host, 16, 0x100), CUDA_ERROR_INVALID_VALUE);
	DRV_EXPECT(cuMemcpyHtoD(p, &n, (size_t)1 << 40), CUDA_ERROR_INVALID_VALUE);
	DRV_EXPECT(cuDeviceGet(&v, 1000), CUDA_ERROR_INVALID_DEVICE);
	DRV(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	DRV(cuCtxSynchronize());
	DRV(cuMemFree(p));
	DRV(cuModuleUnload(m));
	return 0;
}

/* Exit 0 when the launch was refused. */
static int destroyed_stream(void *arg)
{
	CUmodule m;
	CUfunction f;
	CUstream s;
	CUresult r;

	(void)arg;
	up();
	DRV(cuModuleLoadData(&m, ptx));
	DRV(cuModuleGetFunction(&f, m, "nothing"));
	DRV(cuStreamCreate(&s, 0));
	DRV(cuStreamDestroy(s));
	r = cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	printf("~ launch on a destroyed stream -> %s\n", drv_name(r));
	return r == CUDA_SUCCESS;
}

int main(void)
{
	int status;

	fork_check("handles", handles, NULL, 60);
	status = fork_run(destroyed_stream, NULL, 60);
	if (WIFEXITED(status) && WEXITSTATUS(status))
		fail("a launch on a destroyed stream succeeded");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		fail("a launch on a destroyed stream hung");
	return pass();
}
