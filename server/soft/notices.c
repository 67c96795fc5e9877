/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver tells by itself of a device, of which this one has nothing to tell: no budget is ever
 * exceeded. And the settings of core dumps, which it does not write.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include <string.h>
#include "server/soft/context.h"

struct notice {
	struct object object;
	CUdevice device;
};

static void notice_finish(struct object *o)
{
	free(o);
}

CUresult cuDeviceRegisterAsyncNotification(
	CUdevice device, CUasyncCallback fn, void *data, CUasyncCallbackHandle *out)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	(void)data;
	if (!fn || !out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct notice *n = calloc(1, sizeof *n);
	if (!n || !object_open(&n->object, KIND_NOTICE, NULL, notice_finish)) {
		free(n);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	n->device = device;
	*out = HANDLE(n);
	return CUDA_SUCCESS;
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct notice *n = object_find(h, KIND_NOTICE);
	if (!n || n->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	object_close(&n->object);
	return CUDA_SUCCESS;
}

/* ---- core dumps: off, without a name, whole */

static CUresult get(CUcoredumpSettings which, void *value, size_t *size, bool global)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	size_t needs = which == CU_COREDUMP_GENERATION_FLAGS ? sizeof(int) : sizeof(bool);
	bool text = which == CU_COREDUMP_FILE || (global && which == CU_COREDUMP_PIPE);
	if (!size || which < CU_COREDUMP_ENABLE_ON_EXCEPTION || which >= CU_COREDUMP_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!global && (which == CU_COREDUMP_PIPE || which == CU_COREDUMP_ENABLE_USER_TRIGGER))
		return CUDA_ERROR_INVALID_VALUE;
	if (!value) {
		*size = text ? 1 : needs;
		return CUDA_SUCCESS;
	}
	if (text ? !*size : *size != needs)
		return CUDA_ERROR_INVALID_VALUE;
	memset(value, 0, text ? 1 : needs);
	if (which == CU_COREDUMP_TRIGGER_HOST)
		*(bool *)value = true;
	return CUDA_SUCCESS;
}

/* What is off stays off. */
static CUresult set(CUcoredumpSettings which, const void *value, const size_t *size)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!value || !size || which < CU_COREDUMP_ENABLE_ON_EXCEPTION || which >= CU_COREDUMP_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	bool asks = which != CU_COREDUMP_ENABLE_ON_EXCEPTION && which != CU_COREDUMP_ENABLE_USER_TRIGGER;
	return asks || *(const bool *)value ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings which, void *value, size_t *size)
{
	return get(which, value, size, false);
}
CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings which, void *value, size_t *size)
{
	return get(which, value, size, true);
}
CUresult cuCoredumpSetAttribute(CUcoredumpSettings which, void *value, size_t *size)
{
	return set(which, value, size);
}
CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings which, void *value, size_t *size)
{
	return set(which, value, size);
}
