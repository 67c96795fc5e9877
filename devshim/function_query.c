/* SPDX-License-Identifier: Apache-2.0 */
/* Every call that asks about a function or kernel, and those that set its attributes: a setting that the
 * driver is known to accept is posted and noted, any other waits for the driver.
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

/* The name of a function is its handle's when it was found by name; `name` may be the same for many. */
static CUresult name_of(const char **name, const void *h, unsigned type)
{
	CUresult r = process_check();
	struct function *f = r || handle_type(h) != type ? NULL : function_of(h);

	if (r)
		return r;
	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!f->name && (r = function_ask(f)))
		return r;
	*name = f->name;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	return name_of(name, hfunc, HANDLE_CUfunction);
}
CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
	return name_of(name, hfunc, HANDLE_CUkernel);
}

static CUresult param_info(const void *h, unsigned type, size_t i, size_t *offset, size_t *size)
{
	CUresult r = process_check();
	struct function *f = r || handle_type(h) != type ? NULL : function_of(h);

	if (r)
		return r;
	if (!f)
		return !h && type == HANDLE_CUkernel ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	if (!f->laid_out)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!offset || i >= f->nparams)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = f->offset[i];
	if (size)
		*size = f->size[i];
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t i, size_t *offset, size_t *size)
{
	return param_info(func, HANDLE_CUfunction, i, offset, size);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t i, size_t *offset, size_t *size)
{
	return param_info(kernel, HANDLE_CUkernel, i, offset, size);
}

/* A function of a module: attributes were read from it, so the driver has loaded it. A kernel tells its own
 * without. */
static bool is_loaded(const struct function *f)
{
	return handle_type(f->handle) == HANDLE_CUfunction && function_loaded(f);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	CUresult r = process_check();

	if (r)
		return r;
	struct function *f = function_of(function);

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_loaded(f))
		return remote_cuFuncIsLoaded(state, function);
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
	struct context *c;
	CUresult r = context_check(&c);

	if (r)
		return r;
	struct function *f = function_of(function);

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (is_loaded(f))
		return CUDA_SUCCESS;
	copy_drain();
	r = remote_cuFuncLoad(function);
	return r ? r : function_ask(f);
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct context *c;
	CUresult r = context_check(&c);

	if (r)
		return r;
	struct function *f = function_of(hfunc);

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!hmod)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle_live(HANDLE_CUlibrary, f->parent))
		return cuLibraryGetModule(hmod, f->parent);
	*hmod = f->parent;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	CUresult r = process_check();

	if (r)
		return r;
	struct function *f = handle_data(HANDLE_CUkernel, kernel);

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pLib)
		return CUDA_ERROR_INVALID_VALUE;
	*pLib = f->parent;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	struct function *k = handle_data(HANDLE_CUkernel, kernel), *f;

	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pFunc)
		return CUDA_ERROR_INVALID_VALUE;
	void *known;

	r = function_in_context(k, ctx, &known);
	if (known)
		*pFunc = known;
	if (r || known)
		return r;
	copy_drain();
	r = call_begin(&c, CALL_cuKernelGetFunction);
	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUkernel, kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	put_u64(&c.out, 0);
	r = call_wait(&c);
	f = r ? NULL : function_get(&c, HANDLE_CUfunction, k->parent, k->name);
	r = call_end(&c, r);
	if (r)
		return r;
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	function_resolve(k, ctx->handle, f);
	*pFunc = f->handle;
	return CUDA_SUCCESS;
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

/* A profiler would have to run beside the server's driver. */
CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, CUoutput_mode outputMode)
{
	(void)configFile;
	(void)outputFile;
	(void)outputMode;
	return call_unsupported(CALL_cuProfilerInitialize, "the profiler is of the GPU host");
}

CUresult cuProfilerStart(void)
{
	struct context *c;

	return context_check(&c);
}

CUresult cuProfilerStop(void)
{
	struct context *c;

	return context_check(&c);
}
