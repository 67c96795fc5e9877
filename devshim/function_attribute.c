/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of functions and kernels: every call that asks for one, and those that set one. A setting
 * that the driver is known to accept is posted and noted, any other waits for the driver.
 *
 * Thread rule: any thread; what changes is in function.c. */
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/device.h"
#include "devshim/function.h"
#include "devshim/handle.h"
#include "devshim/occupancy.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	struct context *c;
	/* No function at all is told even before cuInit. */
	CUresult r = hfunc ? context_check(&c) : CUDA_ERROR_INVALID_HANDLE;

	if (r)
		return r;
	struct function *f = function_of(hfunc);

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pi)
		return CUDA_ERROR_INVALID_VALUE;
	return function_attribute(f, attrib, c->device, pi) ? CUDA_SUCCESS
							    : remote_cuFuncGetAttribute(pi, attrib, hfunc);
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	CUresult r = process_check();

	if (r)
		return r;
	struct function *f = function_of(kernel);

	if (!f || handle_type(kernel) != HANDLE_CUkernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pi)
		return CUDA_ERROR_INVALID_VALUE;
	return function_attribute(f, attrib, dev, pi) ? CUDA_SUCCESS
						      : remote_cuKernelGetAttribute(pi, attrib, kernel, dev);
}

/* Settings that the driver is known to take: what it took before, a shared size within the device's limit, a
 * carve-out in percent. */
static bool acceptable(const struct function *f, CUfunction_attribute a, int v, CUdevice dev)
{
	struct attributes *k = function_attributes(f, dev);
	int fixed;

	if (k && (unsigned)a < ATTRIBUTES &&
		atomic_load_explicit(&k->accepted, memory_order_acquire) >> a & 1 &&
		atomic_load_explicit(&k->value[a], memory_order_relaxed) == v)
		return true;
	switch ((int)a) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		return v >= 0 && function_attribute(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, dev, &fixed) &&
		       v <= device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0) -
				       fixed;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return v >= -1 && v <= 100;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		return (v == 0 || v == 1) && k &&
		       device_attribute(dev, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0);
	default: return false;
	}
}

static void note_attribute(struct function *f, int a, int v, CUdevice dev)
{
	struct attributes *k = function_attributes(f, dev);

	if (k && (unsigned)a < ATTRIBUTES) {
		atomic_store_explicit(&k->value[a], v, memory_order_relaxed);
		atomic_fetch_or_explicit(&k->accepted, 1u << a, memory_order_release);
		atomic_fetch_or_explicit(&k->known, 1u << a, memory_order_release);
	}
}

static CUresult finish_set(struct call *c, struct function *f, CUfunction_attribute a, int v, CUdevice dev)
{
	CUresult r;

	if (acceptable(f, a, v, dev)) {
		r = call_post(c);
	} else {
		r = call_wait(c);
		r = call_end(c, r);
	}
	if (!r)
		note_attribute(f, a, v, dev);
	return r;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	struct function *f = function_of(hfunc);

	r = call_begin(&c, CALL_cuFuncSetAttribute);
	if (r)
		return r;
	if (!f || !put_handle(&c, HANDLE_CUfunction, hfunc))
		return CUDA_ERROR_INVALID_HANDLE;
	put_i64(&c.out, attrib);
	put_i64(&c.out, value);
	return finish_set(&c, f, attrib, value, ctx->device);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	struct function *f;
	struct call c;
	CUresult r = process_check();

	if (r)
		return r;
	f = function_of(kernel);
	r = call_begin(&c, CALL_cuKernelSetAttribute);
	if (r)
		return r;
	put_i64(&c.out, attrib);
	put_i64(&c.out, val);
	if (!f || !put_handle(&c, HANDLE_CUkernel, kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!put_device(&c, dev))
		return CUDA_ERROR_INVALID_DEVICE;
	r = finish_set(&c, f, attrib, val, dev);
	if (!r)
		function_each_resolved(f, dev, note_attribute, attrib, val);
	return r;
}

static bool is_cache_config(CUfunc_cache v)
{
	return (unsigned)v <= CU_FUNC_CACHE_PREFER_EQUAL;
}

/* Many programs choose the same again ahead of each launch: only another choice changes an answer, or the
 * same for another of a kernel's functions or the kernel itself. */
static CUresult finish_configuring(
	struct call *c, struct function *f, const void *h, CUdevice dev, CUfunc_cache config)
{
	uint64_t choice = (uint64_t)(uintptr_t)h << 16 | (uint64_t)dev << 8 | (unsigned)config % 128 | 128;
	CUresult r;

	if (is_cache_config(config)) {
		r = call_post(c);
	} else {
		r = call_wait(c);
		r = call_end(c, r);
	}
	f = f && f->kernel ? f->kernel : f;
	if (!f || r || atomic_exchange(&f->chosen, choice) != choice)
		occupancy_configured();
	return r;
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	struct function *f = function_of(hfunc); /* it may ask: ahead of the call */

	r = call_begin(&c, CALL_cuFuncSetCacheConfig);
	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUfunction, hfunc))
		return CUDA_ERROR_INVALID_HANDLE;
	put_i64(&c.out, config);
	return finish_configuring(&c, f, hfunc, ctx->device, config);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	struct call c;
	CUresult r = process_check();

	if (r)
		return r;
	struct function *f = function_of(kernel);

	r = call_begin(&c, CALL_cuKernelSetCacheConfig);
	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUkernel, kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	put_i64(&c.out, config);
	if (!put_device(&c, dev))
		return CUDA_ERROR_INVALID_DEVICE;
	return finish_configuring(&c, f, kernel, dev, config);
}

/* Bank sizes are fixed on every device of today: accepted and without effect, as in the driver. */
CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
	struct context *c;
	CUresult r = context_check(&c);

	if (r)
		return r;
	if (!function_of(hfunc))
		return CUDA_ERROR_INVALID_HANDLE;
	return (unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_SUCCESS
									     : CUDA_ERROR_INVALID_VALUE;
}
