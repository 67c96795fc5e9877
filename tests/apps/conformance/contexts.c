/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: the stack, create and destroy, objects used in another context, limits, flags, the primary
 * context. */
#include "check.h"

static void stack(void)
{
	CUcontext a, b, c;
	CUdevice d;
	unsigned flags = 99, version = 0;

	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	ASK(cuCtxCreate(NULL, NULL, 0, device));
	ASK(cuCtxCreate(&a, NULL, 0, 4096));
	ASK(cuCtxCreate(&a, NULL, 0x8000, device));
	ASK(cuCtxCreate(&a, NULL, CU_CTX_SCHED_YIELD, device));
	ASK(cuCtxGetFlags(&flags));
	SAY("flags %#x", flags & CU_CTX_SCHED_MASK);
	ASK(cuCtxCreate(&b, NULL, 0, device));
	ASK(cuCtxGetCurrent(&c));
	SAY("the newest %d", c == b);
	ASK(cuCtxPopCurrent(&c));
	SAY("the newest %d", c == b);
	ASK(cuCtxGetCurrent(&c));
	SAY("the first %d", c == a);
	ASK(cuCtxPushCurrent(b));
	ASK(cuCtxPushCurrent(b));
	ASK(cuCtxPopCurrent(NULL));
	ASK(cuCtxGetDevice(&d));
	SAY("device %d", d == device);
	ASK(cuCtxGetApiVersion(b, &version));
	SAY("version %d", version >= 3010);
	ASK(cuCtxGetApiVersion(b, NULL));
	ASK(cuCtxDestroy(b));
	ASK(cuCtxGetCurrent(&c));
	SAY("the first %d", c == a);
	ASK(cuCtxSetCurrent(NULL));
	ASK(cuCtxGetCurrent(&c));
	SAY("none %d", c == NULL);
	ASK(cuCtxPopCurrent(&c));
	ASK(cuCtxPushCurrent(a));
	ASK(cuCtxDestroy(a));
	ASK(cuCtxGetCurrent(&c));
	SAY("none %d", c == NULL);
	ASK(cuCtxSynchronize());
}

static void limits(void)
{
	static const struct {
		const char *name;
		CUlimit limit;
		size_t set;
	} list[] = {
		{"stack", CU_LIMIT_STACK_SIZE, 2048},
		{"printf", CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
		{"heap", CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20},
	};
	size_t v;

	begin();
	for (size_t i = 0; i < COUNT(list); i++) {
		CUresult get = cuCtxGetLimit(&v, list[i].limit), set;

		SAY("%s -> %s positive %d", list[i].name, name_of(get), v > 0);
		set = cuCtxSetLimit(list[i].limit, list[i].set);
		get = cuCtxGetLimit(&v, list[i].limit);
		SAY("%s -> %s %s at least what was set %d", list[i].name, name_of(set), name_of(get),
				v >= list[i].set);
	}
	ASK(cuCtxGetLimit(&v, 999));
	ASK(cuCtxSetLimit(999, 1));
	ASK(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
	ASK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (size_t)1 << 40));
}

static void objects(void)
{
	CUcontext other, c;
	CUstream s;
	CUevent e;
	CUdeviceptr p;
	CUfunction f;
	unsigned v = 3;

	begin();
	f = kernel("store");
	p = zeroed(64);
	NEED(cuCtxCreate(&other, NULL, 0, device));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, 0));
	ASK(cuEventRecord(e, s));
	NEED(cuCtxSetCurrent(context));
	ASK(cuStreamSynchronize(s));
	ASK(cuStreamQuery(s));
	ASK(cuEventQuery(e));
	ASK(cuEventRecord(e, NULL));
	ASK(cuStreamGetCtx(s, &c));
	SAY("the other %d", c == other);
	ASK(LAUNCH(f, s, &p, &v));
	ASK(LAUNCH(f, NULL, &p, &v));
	ASK(cuMemsetD8Async(p, 0, 4, s));
	NEED(cuCtxSetCurrent(other));
	ASK(LAUNCH(f, NULL, &p, &v));
	ASK(cuMemcpyDtoH(&v, p, 4));
	ASK(cuStreamDestroy(s));
	ASK(cuEventDestroy(e));
	ASK(cuCtxDestroy(other));
}

static void primary(void)
{
	CUcontext a, b;
	unsigned flags = 9;
	int active = 9;

	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	ASK(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_BLOCKING_SYNC));
	ASK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	SAY("flags %#x active %d", flags, active);
	ASK(cuDevicePrimaryCtxRetain(&a, device));
	ASK(cuDevicePrimaryCtxRetain(&b, device));
	SAY("one context %d", a == b);
	ASK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	SAY("flags %#x active %d", flags, active);
	ASK(cuDevicePrimaryCtxSetFlags(device, 0x80));
	ASK(cuCtxSetCurrent(a));
	ASK(cuDevicePrimaryCtxRelease(device));
	ASK(cuCtxSynchronize());
	ASK(cuDevicePrimaryCtxRelease(device));
	ASK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	SAY("active %d", active);
	ASK(cuDevicePrimaryCtxRelease(device));
	ASK(cuDevicePrimaryCtxReset(device));
}

SECTIONS({"stack", stack}, {"limits", limits}, {"objects", objects}, {"primary", primary})
