/* SPDX-License-Identifier: Apache-2.0 */
/* What else a driver tells or leaves behind by itself: notices about a device, and core dumps, which would be
 * of the GPU host and are not asked for.
 *
 * Thread rule: any thread; notices arrive on the thread of host functions. */
#include <errno.h>
#include <stdlib.h>
#include "devshim/call.h"
#include "devshim/handle.h"
#include "devshim/process.h"
#include "devshim/upcall.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "cuda.calls.h"

struct notice {
	CUasyncCallback fn;
	void *data;
	CUasyncCallbackHandle handle;
	uint64_t upcall;
};

static void run(void *arg)
{
	const struct notice *n = arg;
	CUasyncNotificationInfo info = {.type = (CUasyncNotificationType)upcall_value(0)};

	info.info.overBudget.bytesOverBudget = upcall_value(1);
	n->fn(&info, n->data, n->handle);
}

CUresult cuDeviceRegisterAsyncNotification(
	CUdevice device, CUasyncCallback callbackFunc, void *userData, CUasyncCallbackHandle *callback)
{
	struct notice *n;
	struct call c;
	CUresult r = process_check();

	if (r)
		return r;
	if (!callbackFunc || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	n = malloc(sizeof *n);
	if (n) {
		*n = (struct notice){.fn = callbackFunc, .data = userData};
		n->upcall = upcall_new(run, n, false, true);
	}
	r = n && n->upcall ? call_begin(&c, CALL_cuDeviceRegisterAsyncNotification)
			   : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r && !put_device(&c, device))
		r = CUDA_ERROR_INVALID_DEVICE;
	if (!r) {
		put_u64(&c.out, n->upcall);
		r = call_wait(&c);
		if (!r)
			n->handle = get_handle(&c, HANDLE_CUasyncCallbackHandle);
		r = call_end(&c, r);
	}
	if (!r && !handle_set_data(HANDLE_CUasyncCallbackHandle, n->handle, n))
		r = process_die(-EPROTO, "cuDeviceRegisterAsyncNotification");
	if (!r) {
		*callback = n->handle;
		return r;
	}
	if (n && n->upcall)
		upcall_drop(n->upcall);
	free(n);
	return r;
}

/* A notice that is on its way still arrives: what it needs is kept to the end of the process. */
CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback)
{
	struct notice *n = handle_data(HANDLE_CUasyncCallbackHandle, callback);
	struct call c;
	CUresult r = call_begin(&c, CALL_cuDeviceUnregisterAsyncNotification);

	if (r)
		return r;
	if (!put_device(&c, device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!n || !put_handle(&c, HANDLE_CUasyncCallbackHandle, callback))
		return CUDA_ERROR_INVALID_VALUE;
	r = call_wait(&c);
	r = call_end(&c, r);
	if (!r) {
		upcall_drop(n->upcall);
		handle_drop(HANDLE_CUasyncCallbackHandle, callback);
	}
	return r;
}

/* ---- core dumps */

/* The driver's settings can be read. */
static CUresult get(unsigned id, CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct call c;
	CUresult r = call_begin(&c, id);
	size_t room;

	if (r)
		return r;
	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	room = *size < LIMIT_STRING ? *size : LIMIT_STRING;
	put_i64(&c.out, attrib);
	put_bool(&c.out, value);
	put_u64(&c.out, value ? room : 0);
	c.bulk_out = value;
	c.bulk_out_len = value ? room : 0;
	r = call_wait(&c);
	if (!r)
		*size = get_u64(&c.in);
	return call_end(&c, r);
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	return get(CALL_cuCoredumpGetAttribute, attrib, value, size);
}

CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	return get(CALL_cuCoredumpGetAttributeGlobal, attrib, value, size);
}

/* What leaves dumps off is granted. */
static CUresult set(CUcoredumpSettings attrib, const void *value, const size_t *size)
{
	CUresult r = process_check();
	bool off = false;

	if (r)
		return r;
	if (!value || !size || attrib < CU_COREDUMP_ENABLE_ON_EXCEPTION || attrib >= CU_COREDUMP_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (attrib == CU_COREDUMP_ENABLE_ON_EXCEPTION || attrib == CU_COREDUMP_ENABLE_USER_TRIGGER)
		off = *size && !*(const char *)value;
	if (off)
		return CUDA_SUCCESS;
	log_warning("a core dump of the GPU would be written on its host: cuCoredumpSetAttribute is refused");
	return CUDA_ERROR_NOT_PERMITTED;
}

CUresult cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	return set(attrib, value, size);
}

CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	return set(attrib, value, size);
}
