/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of the program's own: create, the stack of current contexts, per-thread current context,
 * objects that belong to one, what dies with one, the primary context beside them, limits, ids and flags. */
#include <cuda.h>
#include "app.h"

static const char ptx[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .entry put(.param .u64 p, .param .u32 v) { .reg .b64 %p; .reg .b32 %r; "
	"ld.param.u64 %p,[p]; ld.param.u32 %r,[v];\n"
	" st.global.u32 [%p],%r; ret; }\n";

static CUdevice dev;

static void current_is(const char *what, CUcontext want)
{
	CUcontext c = (CUcontext)(uintptr_t)1;

	DRV(cuCtxGetCurrent(&c));
	if (c != want)
		fail("%s: current context is not the expected one", what);
}

/* Load, allocate, launch and read back in the current context. */
static void work(unsigned v)
{
	CUmodule m;
	CUfunction f;
	CUdeviceptr p;
	CUstream s;
	unsigned got = 0;
	void *args[] = {&p, &v};

	DRV(cuModuleLoadData(&m, ptx));
	DRV(cuModuleGetFunction(&f, m, "put"));
	DRV(cuMemAlloc(&p, 16));
	DRV(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DRV(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, args, NULL));
	DRV(cuStreamSynchronize(s));
	DRV(cuMemcpyDtoH(&got, p, sizeof(got)));
	if (got != v)
		fail("a kernel wrote %u, expected %u", got, v);
	DRV(cuStreamDestroy(s));
	DRV(cuMemFree(p));
	DRV(cuModuleUnload(m));
}

static void *thread(void *arg)
{
	CUcontext c = arg;

	current_is("a new thread", NULL);
	DRV_EXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	DRV(cuCtxPushCurrent(c));
	work(3);
	DRV(cuCtxPopCurrent(&c));
	current_is("a thread after pop", NULL);
	return NULL;
}

int main(void)
{
	CUcontext a, b, c, primary, of;
	CUdeviceptr p;
	CUdevice d = -1;
	CUstream s;
	pthread_t t;
	unsigned flags = 99, version = 0;
	unsigned long long ida = 0, idb = 0;
	size_t stack;
	int active = 9;

	DRV(cuInit(0));
	DRV(cuDeviceGet(&dev, 0));
	current_is("at the start", NULL);
	DRV(cuCtxCreate(&a, NULL, CU_CTX_SCHED_BLOCKING_SYNC, dev));
	current_is("after create", a);
	DRV(cuCtxGetFlags(&flags));
	if ((flags & CU_CTX_SCHED_MASK) != CU_CTX_SCHED_BLOCKING_SYNC)
		fail("flags are %#x", flags);
	DRV(cuCtxGetApiVersion(a, &version));
	if (version < 3000)
		fail("api version %u", version);
	work(1);
	DRV(cuCtxCreate(&b, NULL, 0, dev));
	current_is("after the second create", b);
	DRV(cuCtxGetId(a, &ida));
	DRV(cuCtxGetId(b, &idb));
	if (ida == idb)
		fail("two contexts have one id");
	DRV(cuStreamCreate(&s, 0));
	DRV(cuStreamGetCtx(s, &of));
	if (of != b)
		fail("a stream's context is not the one it was made in");
	DRV(cuMemAlloc(&p, 1024));
	DRV(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	if (of != b)
		fail("an allocation's context is not the one it was made in");
	DRV(cuCtxPopCurrent(&c));
	if (c != b)
		fail("pop gave another context");
	current_is("after pop", a);
	DRV(cuCtxPushCurrent(b));
	DRV(cuCtxPushCurrent(a));
	DRV(cuCtxPushCurrent(a));
	current_is("after pushes", a);
	DRV(cuCtxPopCurrent(&c));
	DRV(cuCtxPopCurrent(&c));
	current_is("after pops", b);
	DRV(cuCtxSetCurrent(a));
	current_is("after set", a);
	DRV(cuCtxPopCurrent(&c));
	current_is("set replaced the top", a);
	DRV(cuCtxSetCurrent(b));
	DRV(cuCtxGetDevice(&d));
	if (d != dev)
		fail("device of the context is %d", d);
	if (pthread_create(&t, NULL, thread, a))
		fail("pthread_create");
	pthread_join(t, NULL);
	current_is("after another thread", b);

	DRV(cuDevicePrimaryCtxGetState(dev, &flags, &active));
	if (active)
		fail("the primary context is active though nobody retained it");
	DRV(cuDevicePrimaryCtxRetain(&primary, dev));
	DRV(cuDevicePrimaryCtxGetState(dev, &flags, &active));
	if (!active || primary == a || primary == b)
		fail("primary context: active %d", active);
	DRV(cuCtxPushCurrent(primary));
	work(2);
	DRV(cuCtxPopCurrent(&c));
	DRV(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	DRV(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
	if (stack < 4096)
		fail("stack limit is %zu, expected at least 4096", stack);
	DRV_EXPECT(cuCtxSetLimit(99, 1), CUDA_ERROR_INVALID_VALUE);

	/* b is current here and ends with all it has; then its pointer is nobody's. */
	DRV(cuCtxDestroy(b));
	current_is("after destroying the current one", NULL);
	DRV(cuCtxSetCurrent(a));
	DRV_EXPECT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	work(4);
	DRV(cuCtxDestroy(a));
	DRV(cuDevicePrimaryCtxRelease(dev));
	DRV(cuDevicePrimaryCtxGetState(dev, &flags, &active));
	if (active)
		fail("the primary context is active after its last release");
	return pass();
}
