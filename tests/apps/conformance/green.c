/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: a device's resources, their parts, contexts and streams with a part each. */
#include <stdbool.h>
#include "check.h"

static void resources(void)
{
	CUdevResource all, part[8], rest;
	CUdevResourceDesc desc = NULL;
	unsigned n = 0;

	begin();
	memset(&all, 0, sizeof(all));
	if (ASK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM)) == CUDA_ERROR_NOT_SUPPORTED) {
		SAY("not supported by this device");
		return;
	}
	SAY("type %d, as many as multiprocessors %d", all.type,
		all.sm.smCount == (unsigned)attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
	SAY("~ %u at least, %u aligned", all.sm.minSmPartitionSize, all.sm.smCoscheduledAlignment);
	ASK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_INVALID));
	ASK(cuDeviceGetDevResource(device, &all, 9));
	ASK(cuDeviceGetDevResource(99, &all, CU_DEV_RESOURCE_TYPE_SM));
	ASK(cuDeviceGetDevResource(device, NULL, CU_DEV_RESOURCE_TYPE_SM));
	NEED(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	ASK(cuDevSmResourceSplitByCount(NULL, &n, &all, NULL, 0, 8));
	SAY("some groups %d", n > 0);
	n = 2;
	memset(&rest, 0, sizeof(rest));
	ASK(cuDevSmResourceSplitByCount(part, &n, &all, &rest, 0, 8));
	SAY("%u groups, equal %d, enough %d", n, part[0].sm.smCount == part[1].sm.smCount,
			part[0].sm.smCount >= 8);
	SAY("type of the rest %d, all there %d", rest.type,
		rest.sm.smCount + part[0].sm.smCount + part[1].sm.smCount == all.sm.smCount);
	n = 1;
	ASK(cuDevSmResourceSplitByCount(part, &n, &all, NULL, 0, 0));
	SAY("%u groups", n);
	n = 1;
	ASK(cuDevSmResourceSplitByCount(part, &n, &all, NULL, 0, 100000));
	n = 0;
	ASK(cuDevSmResourceSplitByCount(part, &n, &all, NULL, 0, 8));
	n = 1;
	ASK(cuDevSmResourceSplitByCount(part, &n, &all, NULL, 99, 8));
	ASK(cuDevSmResourceSplitByCount(part, NULL, &all, NULL, 0, 8));
	ASK(cuDevSmResourceSplitByCount(part, &n, NULL, NULL, 0, 8));
	n = 1;
	NEED(cuDevSmResourceSplitByCount(part, &n, &all, &rest, 0, 8));
	ASK(cuDevResourceGenerateDesc(&desc, part, 1));
	SAY("a description %d", desc != NULL);
	memset(&rest, 0, sizeof(rest));
	ASK(cuDevResourceGenerateDesc(&desc, &rest, 1));
}

/* A green context with at least eight multiprocessors, and the rest. */
static bool make(CUgreenCtx *green, CUdevResource *part)
{
	CUdevResource all;
	CUdevResourceDesc desc;
	unsigned n = 1;

	if (cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_ERROR_NOT_SUPPORTED)
		return false;
	NEED(cuDevSmResourceSplitByCount(part, &n, &all, NULL, 0, 8));
	NEED(cuDevResourceGenerateDesc(&desc, part, 1));
	ASK(cuGreenCtxCreate(green, desc, device, 0));
	ASK(cuGreenCtxCreate(NULL, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	ASK(cuGreenCtxCreate(green, desc, 99, CU_GREEN_CTX_DEFAULT_STREAM));
	ASK(cuGreenCtxCreate(green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	return true;
}

static void contexts(void)
{
	CUgreenCtx green = NULL, told = NULL;
	CUdevResource part, got;
	CUcontext c = NULL, again = NULL, now = NULL;
	CUdevice d = 9;
	CUstream s, plain;
	CUevent e;
	unsigned long long id = 0, id2 = 0;
	unsigned seven = 7, eight = 8, flags = 9;
	int active = 9, priority = 9;

	begin();
	CUfunction store = kernel("store");
	CUdeviceptr p = zeroed(64);
	if (!make(&green, &part)) {
		SAY("not supported by this device");
		return;
	}
	ASK(cuCtxGetCurrent(&now));
	SAY("still the primary %d", now == context);
	ASK(cuGreenCtxGetDevResource(green, &got, CU_DEV_RESOURCE_TYPE_SM));
	SAY("type %d, as asked for %d", got.type, got.sm.smCount == part.sm.smCount);
	ASK(cuGreenCtxGetDevResource(green, &got, 9));
	ASK(cuGreenCtxGetDevResource(NULL, &got, CU_DEV_RESOURCE_TYPE_SM));
	ASK(cuCtxGetDevResource(context, &got, CU_DEV_RESOURCE_TYPE_SM));
	SAY("all of them %d",
			got.sm.smCount == (unsigned)attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
	ASK(cuCtxGetDevResource(NULL, &got, CU_DEV_RESOURCE_TYPE_SM));
	ASK(cuGreenCtxGetId(green, &id));
	SAY("an id %d", id != 0);
	ASK(cuCtxFromGreenCtx(&c, green));
	ASK(cuCtxFromGreenCtx(&again, green));
	SAY("a context %d, the same %d, not the primary %d", c != NULL, c == again, c != context);
	ASK(cuCtxFromGreenCtx(NULL, green));
	ASK(cuCtxFromGreenCtx(&c, NULL));
	ASK(cuCtxGetDevResource(again, &got, CU_DEV_RESOURCE_TYPE_SM));
	SAY("as asked for %d", got.sm.smCount == part.sm.smCount);
	c = again;

	ASK(cuGreenCtxStreamCreate(&s, green, 0, 0));
	ASK(cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
	ASK(cuGreenCtxStreamCreate(NULL, green, CU_STREAM_NON_BLOCKING, 0));
	ASK(cuStreamGetFlags(s, &flags));
	SAY("flags %u", flags);
	ASK(cuStreamGetPriority(s, &priority));
	SAY("priority %d", priority);
	ASK(cuStreamGetGreenCtx(s, &told));
	SAY("the green context %d", told == green);
	ASK(cuStreamGetCtx(s, &now));
	SAY("~ the primary %d, its own %d", now == context, now == c);
	now = NULL;
	told = NULL;
	ASK(cuStreamGetCtx_v2(s, &now, &told));
	SAY("the primary %d, the green one %d", now == context, told == green);
	ASK(LAUNCH(store, s, &p, &seven));
	ASK(cuStreamSynchronize(s));
	SAY("value %u", word(p));
	NEED(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
	told = green;
	ASK(cuStreamGetGreenCtx(plain, &told));
	SAY("no green context %d", told == NULL);
	NEED(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	ASK(LAUNCH(store, s, &p, &eight));
	ASK(cuGreenCtxRecordEvent(green, e));
	ASK(cuEventSynchronize(e));
	SAY("value %u", word(p));
	ASK(cuEventRecord(e, plain));
	ASK(cuGreenCtxWaitEvent(green, e));
	ASK(cuGreenCtxRecordEvent(NULL, e));
	ASK(cuGreenCtxRecordEvent(green, NULL));

	ASK(cuCtxPushCurrent(c));
	ASK(cuCtxGetDevice(&d));
	SAY("device %d", d);
	ASK(cuCtxGetId(c, &id2));
	SAY("~ the same id %d", id == id2);
	ASK(LAUNCH(store, NULL, &p, &seven));
	ASK(cuCtxSynchronize());
	SAY("value %u", word(p));
	told = NULL;
	ASK(cuStreamGetGreenCtx(NULL, &told));
	SAY("the green context %d", told == green);
	CUstream own;
	ASK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	told = NULL;
	ASK(cuStreamGetGreenCtx(own, &told));
	SAY("the green context %d", told == green);
	ASK(LAUNCH(store, own, &p, &eight));
	ASK(cuStreamSynchronize(own));
	SAY("value %u", word(p));
	ASK(cuStreamDestroy(own));
	CUdeviceptr q = 0;
	ASK(cuMemAlloc(&q, 64));
	ASK(cuMemFree(q));
	ASK(cuCtxDestroy(c));
	ASK(cuCtxPopCurrent(&now));
	SAY("the green one's %d", now == c);
	ASK(cuStreamDestroy(s));
	ASK(cuGreenCtxDestroy(green));
	ASK(cuGreenCtxDestroy(NULL));
	ASK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	SAY("active %d", active);
}

/* The primary context lives as long as a green one, whether it was retained or not. */
static void alone(void)
{
	CUgreenCtx green = NULL;
	CUdevResource part;
	unsigned flags;
	int active = 9;
	CUcontext c;
	CUdeviceptr p = 0;

	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	if (!make(&green, &part)) {
		SAY("not supported by this device");
		return;
	}
	ASK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	SAY("active %d", active);
	ASK(cuCtxFromGreenCtx(&c, green));
	ASK(cuCtxSetCurrent(c));
	ASK(cuMemAlloc(&p, 64));
	ASK(cuMemsetD32(p, 5, 16));
	SAY("value %u", word(p));
	ASK(cuMemFree(p));
	ASK(cuCtxSetCurrent(NULL));
	ASK(cuGreenCtxDestroy(green));
	ASK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	SAY("active %d", active);
}

SECTIONS({"resources", resources}, {"contexts", contexts}, {"alone", alone})
