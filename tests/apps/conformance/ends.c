/* SPDX-License-Identifier: Apache-2.0 */
/* How things end: contexts with work outstanding, the primary context reset under live objects, several
 * contexts of one thread and one of several threads, a child of fork, threads that end, and a program that
 * never calls cuInit. */
#include "check.h"

static void outstanding(void)
{
	CUcontext a, now = NULL;
	CUmodule m;
	CUfunction f;
	CUdeviceptr p, q;
	CUstream s;
	CUevent e;
	unsigned v = 3;

	NEED(cuInit(0));
	NEED(cuCtxCreate(&a, NULL, 0, 0));
	NEED(cuModuleLoadData(&m, kernels));
	NEED(cuModuleGetFunction(&f, m, "store"));
	NEED(cuMemAlloc(&p, 32 << 20));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, 0));
	for (unsigned i = 0; i < 100; i++) {
		NEED(cuMemsetD8Async(p, 1, 32 << 20, s));
		NEED(LAUNCH(f, s, &p, &v));
	}
	NEED(cuEventRecord(e, s));
	ASK(cuCtxDestroy(a));
	ASK(cuCtxGetCurrent(&now));
	SAY("none %d", now == NULL);
	ASK(cuMemAlloc(&q, 4));
	/* A driver may crash when it is given what died with the context; but addresses are only numbers. */
	NEED(cuCtxCreate(&a, NULL, 0, 0));
	ASK(cuMemFree(p));
	ASK(cuMemAlloc(&q, 4));
	ASK(cuMemsetD32(q, 5, 1));
	SAY("value %u", word(q));
}

static void reset(void)
{
	CUcontext again = NULL;
	CUdeviceptr p, q;
	CUstream s;
	CUevent e;
	CUfunction f;
	unsigned flags, v = 5;
	void *pin;
	int active = 7;

	begin();
	f = kernel("store");
	p = zeroed(64);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, 0));
	NEED(cuMemAllocHost(&pin, 64));
	ASK(cuDevicePrimaryCtxReset(device));
	ASK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	SAY("active %d", active);
	ASK(cuCtxGetCurrent(&again));
	SAY("the same %d", again == context);
	ASK(cuMemAlloc(&q, 64));
	ASK(cuMemcpyDtoH(&v, p, 4));
	ASK(cuStreamSynchronize(NULL));
	ASK(cuCtxSynchronize());
	ASK(cuCtxSetCurrent(context));
	ASK(cuMemAlloc(&q, 64));
	ASK(cuDevicePrimaryCtxRetain(&again, device));
	SAY("the same %d", again == context);
	ASK(cuCtxSetCurrent(again));
	ASK(cuMemAlloc(&q, 64));
	ASK(cuMemsetD32(q, 9, 1));
	SAY("value %u", word(q));
	NEED(cuModuleLoadData(&module, kernels));
	f = kernel("store");
	v = 11;
	ASK(LAUNCH(f, NULL, &q, &v));
	ASK(cuCtxSynchronize());
	SAY("value %u", word(q));
	ASK(cuDevicePrimaryCtxRelease(device));
	ASK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	SAY("active %d", active);
	ASK(cuMemAlloc(&q, 64));
	ASK(cuCtxSynchronize());
	ASK(cuDevicePrimaryCtxRelease(device));
}

static void two_contexts(void)
{
	CUcontext a, b, now;
	CUdeviceptr p, q;
	CUstream s;
	CUevent e;
	CUmodule m;
	CUfunction f;
	unsigned v = 7;

	NEED(cuInit(0));
	NEED(cuCtxCreate(&a, NULL, 0, 0));
	NEED(cuModuleLoadData(&m, kernels));
	NEED(cuModuleGetFunction(&f, m, "store"));
	NEED(cuMemAlloc(&p, 64));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, 0));
	NEED(cuCtxCreate(&b, NULL, 0, 0));
	NEED(cuMemAlloc(&q, 64));
	/* b is current; what belongs to a is used. */
	ASK(cuMemsetD32(p, 3, 1));
	ASK(cuMemsetD32Async(p, 3, 1, s));
	ASK(LAUNCH(f, s, &p, &v));
	ASK(LAUNCH(f, NULL, &p, &v));
	ASK(cuStreamSynchronize(s));
	ASK(cuEventRecord(e, s));
	ASK(cuEventRecord(e, NULL));
	ASK(cuStreamWaitEvent(NULL, e, 0));
	ASK(cuMemcpyDtoD(q, p, 4));
	SAY("value %u", word(q));
	ASK(cuStreamGetCtx(s, &now));
	SAY("a %d", now == a);
	ASK(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	SAY("a %d", now == a);
	ASK(cuMemcpyPeer(q, b, p, a, 4));
	ASK(cuMemFree(p));
	ASK(cuStreamDestroy(s));
	ASK(cuModuleUnload(m));
	ASK(cuCtxDestroy(a));
	ASK(cuCtxGetCurrent(&now));
	SAY("b %d", now == b);
	ASK(cuCtxPopCurrent(&now));
	SAY("b %d", now == b);
	ASK(cuCtxGetCurrent(&now));
	SAY("none %d", now == NULL);
	ASK(cuCtxPopCurrent(&now));
}

static void *with_context(void *arg)
{
	CUcontext now = (CUcontext)7;
	CUdeviceptr p = *(CUdeviceptr *)arg;

	ASK(cuCtxGetCurrent(&now));
	SAY("none %d", now == NULL);
	ASK(cuMemsetD32(p, 4, 1));
	ASK(cuCtxSetCurrent(context));
	ASK(cuMemsetD32Async(p, 4, 1, CU_STREAM_PER_THREAD));
	return NULL;
}

static void threads(void)
{
	CUdeviceptr p;
	pthread_t t;

	begin();
	p = zeroed(64);
	for (int i = 0; i < 2; i++) {
		pthread_create(&t, NULL, with_context, &p);
		pthread_join(t, NULL);
	}
	ASK(cuCtxSynchronize());
	SAY("value %u", word(p));
}

static void forked(void)
{
	CUdeviceptr p, q;
	CUcontext now = (CUcontext)7;
	CUstream s;
	int n = 7, status = 0;
	char name[16];
	pid_t child;

	begin();
	CUfunction f = kernel("nothing");
	p = zeroed(64);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	fflush(stdout);
	child = fork();
	if (!child) {
		ASK(cuDeviceGetCount(&n));
		ASK(cuCtxGetCurrent(&now));
		ASK(cuCtxSetCurrent(context));
		ASK(cuMemAlloc(&q, 64));
		ASK(cuMemcpyDtoH(&n, p, 4));
		VARY(cuStreamSynchronize(s));
		ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
		ASK(cuDeviceGetName(name, 16, 0));
		ASK(cuDriverGetVersion(&n));
		ASK(cuInit(0));
		ASK(cuDeviceGetCount(&n));
		ASK(cuMemFree(p));
		ASK(cuCtxSynchronize());
		exit(0);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	SAY("child %d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	ASK(cuMemsetD32(p, 6, 1));
	SAY("value %u", word(p));
}

static void never(void)
{
	CUdeviceptr p;
	CUgraph g;
	CUfunction f = NULL;
	CUmodule m;
	CUlibrary l;
	CUevent e;
	CUcontext c;
	CUmemoryPool pool;
	void *h;
	int n;
	size_t size;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	const char *s;

	ASK(cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &s));
	ASK(cuDeviceGetCount(&n));
	ASK(cuDeviceTotalMem(&size, 0));
	ASK(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	ASK(cuDeviceGetDefaultMemPool(&pool, 0));
	ASK(cuDevicePrimaryCtxRetain(&c, 0));
	ASK(cuDevicePrimaryCtxReset(0));
	ASK(cuCtxCreate(&c, NULL, 0, 0));
	ASK(cuCtxSetCurrent(NULL));
	ASK(cuCtxPushCurrent(NULL));
	ASK(cuCtxSynchronize());
	ASK(cuMemAlloc(&p, 4));
	ASK(cuMemFree(0));
	ASK(cuMemAllocHost(&h, 4));
	ASK(cuMemFreeHost(NULL));
	ASK(cuMemAllocManaged(&p, 4, CU_MEM_ATTACH_GLOBAL));
	ASK(cuMemAllocAsync(&p, 4, NULL));
	ASK(cuMemHostRegister(&n, 4, 0));
	ASK(cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4096));
	ASK(cuMemcpy(4096, 8192, 4));
	ASK(cuMemsetD8(4096, 0, 4));
	ASK(cuEventCreate(&e, 0));
	ASK(cuEventDestroy(NULL));
	ASK(cuEventSynchronize(NULL));
	ASK(cuStreamQuery(NULL));
	ASK(cuStreamDestroy(NULL));
	ASK(cuModuleLoadData(&m, kernels));
	ASK(cuLibraryLoadData(&l, kernels, NULL, NULL, 0, NULL, NULL, 0));
	ASK(cuLaunchHostFunc(NULL, gate_wait, NULL));
	ASK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
	ASK(cuGraphCreate(&g, 0));
	ASK(cuThreadExchangeStreamCaptureMode(&mode));
	ASK(cuMemAddressReserve(&p, 2 << 20, 0, 0, 0));
	ASK(cuDeviceCanAccessPeer(&n, 0, 0));
	ASK(cuDeviceGetByPCIBusId(&n, "0000:00:00.0"));
}

SECTIONS({"outstanding", outstanding}, {"reset", reset}, {"two_contexts", two_contexts}, {"threads", threads},
		{"forked", forked},
	{"never", never})
