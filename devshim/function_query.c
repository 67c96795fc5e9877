/* SPDX-License-Identifier: Apache-2.0 */
/* What a program asks of a function or kernel besides its attributes: name, parameters, whether it is loaded,
 * and what it belongs to.
 *
 * Thread rule: any thread; what changes is in function.c. */
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/device.h"
#include "devshim/function.h"
#include "devshim/handle.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

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
