/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of libraries: handles that are good in every context, with settings for all, and the function that
 * each is in one.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include <string.h>
#include "server/soft/context.h"
#include "server/soft/engine.h"
#include "server/soft/module.h"

static void kernel_finish(struct object *o)
{
	struct kernel *k = (struct kernel *)o;
	free((char *)k->name);
	object_unref(k->library);
	free(k);
}

struct kernel *kernel_named(struct library *l, const char *name)
{
	for (struct kernel *k = l->kernels; k; k = k->next)
		if (!strcmp(k->name, name))
			return k;
	struct kernel *k = calloc(1, sizeof *k);
	char *copy = strdup(name);
	if (!k || !copy || !object_open(&k->object, KIND_KERNEL, NULL, kernel_finish)) {
		free(k);
		free(copy);
		return NULL;
	}
	k->name = copy;
	k->library = object_ref(l);
	settings_init(&k->settings);
	k->next = l->kernels;
	l->kernels = k;
	return k;
}

struct function *kernel_function(struct kernel *k, struct context *c, CUresult *why)
{
	struct module *m = library_instance(k->library, c, why);
	if (!m)
		return NULL;
	const struct engine_function *code = engine_function_find(m->code, k->name);
	struct function *f = code ? module_function(m, code) : NULL;
	if (!f) {
		*why = code ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_FOUND;
		return NULL;
	}
	if (!f->kernel) {
		f->kernel = k;
		f->settings = k->settings;
	}
	f->loaded = true;
	return f;
}

struct function *function_named(CUfunction handle, struct context *c, CUresult *why)
{
	struct function *f = object_find(handle, KIND_FUNCTION);
	if (f)
		return f;
	struct kernel *k = object_find(handle, KIND_KERNEL);
	if (k)
		return kernel_function(k, c, why);
	*why = CUDA_ERROR_INVALID_HANDLE;
	return NULL;
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct kernel *k = object_find(h, KIND_KERNEL);
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	struct function *f = kernel_function(k, g.context, &why);
	if (!f)
		return why;
	*out = HANDLE(f);
	return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct kernel *k = object_find(h, KIND_KERNEL);
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = HANDLE(k->library);
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	const struct kernel *k = object_find(h, KIND_KERNEL);
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = k->name;
	return CUDA_SUCCESS;
}

static const struct engine_function *kernel_code(struct kernel *k, CUresult *why)
{
	struct module *m = library_any(k->library, why);
	return m ? engine_function_find(m->code, k->name) : NULL;
}

CUresult cuKernelGetParamInfo(CUkernel h, size_t i, size_t *offset, size_t *size)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct kernel *k = object_find(h, KIND_KERNEL);
	if (!k)
		return h ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	const struct engine_function *code = kernel_code(k, &why);
	if (!code)
		return why;
	const struct engine_function_info *info = engine_function_info(code);
	if (!offset || i >= info->nparams)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = info->params[i].offset;
	if (size)
		*size = info->params[i].size;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute a, CUkernel h, CUdevice device)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct kernel *k = object_find(h, KIND_KERNEL);
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult why = CUDA_SUCCESS;
	const struct engine_function *code = kernel_code(k, &why);
	return code ? function_attribute(code, &k->settings, a, value) : why;
}

/* A kernel's settings are those of its functions in all contexts. */
static void settings_spread(struct kernel *k)
{
	for (struct module *m = k->library->instances; m; m = m->next)
		for (struct function *f = m->functions; f; f = f->next)
			if (f->kernel == k)
				f->settings = k->settings;
}

CUresult cuKernelSetAttribute(CUfunction_attribute a, int value, CUkernel h, CUdevice device)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct kernel *k = object_find(h, KIND_KERNEL);
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult why = CUDA_SUCCESS;
	const struct engine_function *code = kernel_code(k, &why);
	if (!code)
		return why;
	why = function_set(code, &k->settings, a, value);
	if (!why)
		settings_spread(k);
	return why;
}

CUresult cuKernelSetCacheConfig(CUkernel h, CUfunc_cache config, CUdevice device)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct kernel *k = object_find(h, KIND_KERNEL);
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	k->settings.cache = config;
	settings_spread(k);
	return CUDA_SUCCESS;
}
