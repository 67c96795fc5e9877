/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries: images that need no context, their kernels and variables. Answers that do not change are
 * remembered with the library: cudart asks for a variable twice per symbol, and for the module of a
 * library in each context.
 *
 * Thread rule: any thread; `lock` guards what is remembered. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/function.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "devshim/module.h"
#include "devshim/range.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

/* Found by name, in a context. */
struct found {
	struct found *next;
	CUcontext ctx;
	CUdeviceptr p;
	size_t n;
	CUmodule module;
	char name[];
};
struct library {
	struct library *next, **back; /* in the list of all */
	struct found *found;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct library *all;

static void library_dropped(const void *h, void *data)
{
	struct library *l = data;

	(void)h;
	pthread_mutex_lock(&lock);
	*l->back = l->next;
	if (l->next)
		l->next->back = l->back;
	pthread_mutex_unlock(&lock);
	while (l->found) {
		struct found *next = l->found->next;

		free(l->found);
		l->found = next;
	}
	free(l);
}

__attribute__((constructor)) static void watch_libraries(void)
{
	handle_on_drop(HANDLE_CUlibrary, library_dropped);
}

void library_context_died(CUcontext ctx)
{
	pthread_mutex_lock(&lock);
	for (struct library *l = all; l; l = l->next)
		for (struct found **at = &l->found, *f; (f = *at);) {
			if (f->ctx != ctx) {
				at = &f->next;
				continue;
			}
			*at = f->next;
			free(f);
		}
	pthread_mutex_unlock(&lock);
}

/* A module of the library is noted under the empty name. */
static bool recall(CUlibrary h, CUcontext ctx, const char *name, struct found *out)
{
	bool ok = false;

	pthread_mutex_lock(&lock);
	struct library *l = handle_data(HANDLE_CUlibrary, h);

	for (struct found *f = l ? l->found : NULL; f && !ok; f = f->next) {
		ok = f->ctx == ctx && !strcmp(f->name, name);
		if (ok)
			*out = *f;
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

bool library_has_module(CUlibrary library, CUcontext ctx)
{
	struct found f;

	return recall(library, ctx, "", &f);
}

static void remember(CUlibrary h, const char *name, const struct found *v)
{
	struct found *f = malloc(sizeof *f + strlen(name) + 1);

	if (!f)
		return;
	*f = *v;
	strcpy(f->name, name);
	pthread_mutex_lock(&lock);
	struct library *l = handle_data(HANDLE_CUlibrary, h);

	if (l) {
		f->next = l->found;
		l->found = f;
		f = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(f);
}

static CUresult load(unsigned id, CUlibrary *library, struct image *i, const struct jit *j)
{
	struct library *l = calloc(1, sizeof *l);
	CUresult r = l ? image_load(id, HANDLE_CUlibrary, i, j, (void **)library) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		free(l);
		return r;
	}
	pthread_mutex_lock(&lock);
	if (handle_set_data(HANDLE_CUlibrary, *library, l)) {
		l->next = all;
		l->back = &all;
		if (all)
			all->back = &l->next;
		all = l;
		l = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(l);
	return r;
}

/* The server keeps no reference to our memory, so that BINARY_IS_PRESERVED changes nothing; the other
 * option holds pointers. */
static CUresult check_options(const CUlibraryOption *options, unsigned n)
{
	if (n && !options)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			continue;
		if (options[i] != CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE)
			return CUDA_ERROR_INVALID_VALUE;
		log_warning("library option %d is not remoted", (int)options[i]);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
	void **libraryOptionValues, unsigned int numLibraryOptions)
{
	struct image_target t;
	struct image i;
	CUresult r = process_check();

	(void)libraryOptionValues;
	if (!r && (!library || !code))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check_options(libraryOptions, numLibraryOptions);
	if (r)
		return r;
	struct jit j = {numJitOptions, jitOptions, jitOptionsValues};

	image_target(&t);
	r = image_read(code, &t, &i);
	if (r) {
		jit_empty(&j);
		return r;
	}
	r = load(CALL_cuLibraryLoadData, library, &i, &j);
	image_finish(&i);
	return r;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
	void **libraryOptionValues, unsigned int numLibraryOptions)
{
	struct image_target t;
	struct image i;
	void *bytes = NULL;
	size_t n = 0;
	CUresult r = process_check();

	(void)libraryOptionValues;
	if (!r && (!library || !fileName))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check_options(libraryOptions, numLibraryOptions);
	if (!r)
		r = read_image_file(fileName, &bytes, &n);
	if (r)
		return r;
	struct jit j = {numJitOptions, jitOptions, jitOptionsValues};

	image_target(&t);
	r = image_read_sized(bytes, n, &t, &i);
	if (r) {
		jit_empty(&j);
	} else {
		r = load(CALL_cuLibraryLoadFromFile, library, &i, &j);
		image_finish(&i);
	}
	free(bytes);
	return r;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	copy_drain();
	mirror_drop_owner(library);
	CUresult r = remote_cuLibraryUnload(library);

	if (r)
		return r;
	function_drop_parent(library);
	range_drop_owner(RANGE_GLOBAL, (CUcontext)(void *)library);
	handle_drop(HANDLE_CUlibrary, library);
	return r;
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	struct function *f;
	struct call c;
	void *known;
	CUresult r = process_check();

	if (!r && (!pKernel || !name))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	if (!handle_live(HANDLE_CUlibrary, library))
		return handle_error(HANDLE_CUlibrary);
	r = function_take(CALL_cuLibraryGetKernel, HANDLE_CUkernel, library, name, &known);
	if (known)
		*pKernel = known;
	if (r || known)
		return r;
	copy_drain();
	r = call_begin(&c, CALL_cuLibraryGetKernel);
	if (r)
		return r;
	put_handle(&c, HANDLE_CUlibrary, library);
	put_text(&c.out, name);
	put_u64(&c.out, 0);
	r = call_wait(&c);
	f = r ? NULL : function_get(&c, HANDLE_CUkernel, library, name);

	r = call_end(&c, r);
	if (!r)
		*pKernel = f ? f->handle : NULL;
	return r || f ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	return remote_cuLibraryGetKernelCount(count, lib);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuLibraryEnumerateKernels);

	if (r)
		return r;
	if (!kernels && numKernels)
		return CUDA_ERROR_INVALID_VALUE;
	function_forget_told(lib);
	put_u64(&c.out, numKernels);
	if (!put_handle(&c, HANDLE_CUlibrary, lib))
		return handle_error(HANDLE_CUlibrary);
	r = call_wait(&c);
	for (size_t i = 0, n = r ? 0 : get_array(&c.in, numKernels); i < n; i++) {
		kernels[i] = get_handle(&c, HANDLE_CUkernel);
		if (kernels[i])
			function_note(kernels[i], HANDLE_CUkernel, lib);
	}
	return call_end(&c, r);
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	struct context *ctx;
	struct found f;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	if (pMod && recall(library, ctx->handle, "", &f)) {
		*pMod = f.module;
		return CUDA_SUCCESS;
	}
	r = remote_cuLibraryGetModule(pMod, library);
	if (!r)
		remember(library, "", &(struct found){.ctx = ctx->handle, .module = *pMod});
	return r;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct context *ctx;
	struct found f = {.p = 0};
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	if (!name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!recall(library, ctx->handle, name, &f)) {
		r = remote_cuLibraryGetGlobal(&f.p, &f.n, library, name);
		if (r)
			return r;
		f.ctx = ctx->handle;
		remember(library, name, &f);
		note_global(f.p, f.n, library);
	}
	if (dptr)
		*dptr = f.p;
	if (bytes)
		*bytes = f.n;
	return CUDA_SUCCESS;
}

/* Before any context exists, too: the runtime asks for them in its first call. */
CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUdeviceptr p = 0;
	size_t n = 0;
	CUresult r = remote_cuLibraryGetManaged(&p, &n, library, name);

	if (!r && p && n)
		r = mirror_managed(p, n, library);
	if (r)
		return r;
	if (dptr)
		*dptr = p;
	if (bytes)
		*bytes = n;
	return r;
}
