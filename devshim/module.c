/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: loading from memory and files, functions, globals.
 *
 * Thread rule: any thread; what is remembered about a module is under `lock`. */
#include "devshim/module.h"

#include <stdlib.h>
#include <string.h>
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/device.h"
#include "devshim/function.h"
#include "devshim/handle.h"
#include "devshim/range.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

static CUresult load_memory(unsigned id, CUmodule *module, const void *image, const struct jit *j)
{
	struct context *ctx;
	struct image_target t;
	struct image i;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	image_target(&t);
	r = image_read(image, &t, &i);
	if (r) {
		jit_empty(j);
		return r;
	}
	r = image_load(id, HANDLE_CUmodule, &i, j, (void **)module);
	image_finish(&i);
	return r;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return load_memory(CALL_cuModuleLoadData, module, image, &(struct jit){0});
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
	CUjit_option *options, void **optionValues)
{
	return load_memory(
		CALL_cuModuleLoadDataEx, module, image, &(struct jit){numOptions, options, optionValues});
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return load_memory(CALL_cuModuleLoadFatBinary, module, fatCubin, &(struct jit){0});
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	struct context *ctx;
	struct image_target t;
	struct image i;
	void *bytes = NULL;
	size_t n = 0;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	r = read_image_file(fname, &bytes, &n);
	if (r)
		return r;
	image_target(&t);
	r = image_read_sized(bytes, n, &t, &i);
	if (!r) {
		r = image_load(CALL_cuModuleLoad, HANDLE_CUmodule, &i, &(struct jit){0}, (void **)module);
		image_finish(&i);
	}
	free(bytes);
	return r;
}

CUresult cuModuleUnload(CUmodule hmod)
{
	copy_drain();
	CUresult r = remote_cuModuleUnload(hmod);

	if (r)
		return r;
	function_drop_parent(hmod);
	range_drop_owner(RANGE_GLOBAL, (CUcontext)(void *)hmod);
	handle_drop(HANDLE_CUmodule, hmod);
	return r;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (!r && (!hfunc || !name))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	if (!handle_live(HANDLE_CUmodule, hmod))
		return handle_error(HANDLE_CUmodule);
	void *known;

	r = function_take(CALL_cuModuleGetFunction, HANDLE_CUfunction, hmod, name, &known);
	if (known)
		*hfunc = known;
	if (r || known)
		return r;
	copy_drain();
	r = call_begin(&c, CALL_cuModuleGetFunction);
	if (r)
		return r;
	put_handle(&c, HANDLE_CUmodule, hmod);
	put_text(&c.out, name);
	put_u64(&c.out, 0);
	r = call_wait(&c);
	struct function *f = r ? NULL : function_get(&c, HANDLE_CUfunction, hmod, name);

	r = call_end(&c, r);
	if (!r)
		*hfunc = f ? f->handle : NULL;
	return r || f ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	return remote_cuModuleGetFunctionCount(count, mod);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuModuleEnumerateFunctions);

	if (r)
		return r;
	if (!functions && numFunctions)
		return CUDA_ERROR_INVALID_VALUE;
	function_forget_told(mod);
	put_u64(&c.out, numFunctions);
	if (!put_handle(&c, HANDLE_CUmodule, mod))
		return handle_error(HANDLE_CUmodule);
	r = call_wait(&c);
	for (size_t i = 0, n = r ? 0 : get_array(&c.in, numFunctions); i < n; i++) {
		functions[i] = get_handle(&c, HANDLE_CUfunction);
		if (functions[i])
			function_note(functions[i], HANDLE_CUfunction, mod);
	}
	return call_end(&c, r);
}

/* Notes a variable's range, so that copies to and from it are known to be right. */
void note_global(CUdeviceptr p, size_t n, const void *owner)
{
	struct context *c = context_current();
	struct range r = {.base = p,
		.size = n,
		.kind = RANGE_GLOBAL,
		.ctx = (CUcontext)(void *)owner,
		.device = c ? c->device : 0};

	if (!p || !n)
		return;
	range_reserve(p, n);
	range_add(&r);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	struct context *ctx;
	CUdeviceptr p = 0;
	size_t n = 0;
	CUresult r = context_check(&ctx);

	if (!r && !dptr && !bytes)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = remote_cuModuleGetGlobal_v2(&p, &n, hmod, name);
	if (r)
		return r;
	note_global(p, n, hmod);
	if (dptr)
		*dptr = p;
	if (bytes)
		*bytes = n;
	return r;
}

/* CUDA_MODULE_LOADING is the driver's to read; lazy is its default. */
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	const char *wanted = getenv("CUDA_MODULE_LOADING");
	CUresult r = process_check();

	if (r)
		return r;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = wanted && !strcmp(wanted, "EAGER") ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}
