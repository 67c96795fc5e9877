/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries: code that is not bound to a context, instantiated in each one that uses it. Their kernels are in
 * kernel.c.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include "server/soft/engine.h"
#include "server/soft/module.h"
#include "server/soft/stream.h"

static struct library *libraries[1 << 14]; /* live ones, for contexts that die */
static unsigned nlibraries;

static void library_finish(struct object *o)
{
	struct library *l = (struct library *)o;
	image_free(&l->image);
	free(l);
}

static void functions_close(struct module *m)
{
	while (m->functions) {
		struct function *f = m->functions;
		m->functions = f->next;
		f->kernel = NULL; /* queued work and graphs may keep the function, the kernel goes */
		object_close(&f->object);
	}
}

static void instance_close(struct module *m)
{
	object_ref(m);
	functions_close(m);
	object_close(&m->object);
	object_unref(m);
}

static bool has_managed(const struct module *m)
{
	const char *name;
	uint64_t p;
	size_t n;
	bool managed;
	for (unsigned i = 0; m->code && engine_global_at(m->code, i, &name, &p, &n, &managed); i++)
		if (managed)
			return true;
	return false;
}

void libraries_context_died(struct context *c)
{
	for (unsigned i = 0; i < nlibraries; i++) {
		for (struct module **p = &libraries[i]->instances; *p;) {
			struct module *m = *p;
			if (m->object.context != c) {
				p = &m->next;
			} else if (has_managed(m)) {
				/* the program keeps the addresses of managed variables, whatever becomes of
				 * contexts */
				functions_close(m);
				m->object.context = NULL;
				p = &m->next;
			} else {
				*p = m->next;
				instance_close(m);
			}
		}
	}
}

struct module *library_any(struct library *l, CUresult *why)
{
	if (!l->instances) {
		struct module *m = NULL;
		*why = module_load(&l->image, NULL, l, NULL, &m);
		if (*why)
			return NULL;
		m->next = l->instances;
		l->instances = m;
	}
	return l->instances;
}

struct module *library_instance(struct library *l, struct context *c, CUresult *why)
{
	for (struct module *m = l->instances; m; m = m->next)
		if (m->object.context == c)
			return m;
	for (struct module *m = l->instances; m; m = m->next)
		if (!m->object.context) {
			m->object.context = c;
			return m;
		}
	struct module *m = NULL;
	object_ref(l);
	*why = module_load(&l->image, c, l, NULL, &m);
	if (!*why) {
		m->next = l->instances;
		l->instances = m;
	}
	object_unref(l);
	return m;
}

static CUresult library_load(CUlibrary *out, const void *code, size_t size, CUjit_option *options,
	void **values, unsigned n, CUlibraryOption *library_options, unsigned nlibrary)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || !code || (nlibrary && !library_options))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < nlibrary; i++)
		if ((unsigned)library_options[i] >= CU_LIBRARY_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	struct jit jit;
	CUresult r = jit_read(&jit, n, options, values);
	if (r)
		return r;
	struct library *l = nlibraries < sizeof libraries / sizeof *libraries ? calloc(1, sizeof *l) : NULL;
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = image_read(&l->image, code, size, soft.major * 10 + soft.minor, &jit);
	struct module *m = NULL;
	if (!r)
		r = module_load(&l->image, NULL, l, &jit, &m);
	jit_end(&jit);
	/* As on a real device: what does not compile is told by whoever asks for something in it. */
	if (r == CUDA_ERROR_INVALID_PTX && l->image.count)
		r = CUDA_SUCCESS;
	if (!r && !object_open(&l->object, KIND_LIBRARY, NULL, library_finish)) {
		if (m)
			instance_close(m);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r) {
		image_free(&l->image);
		free(l);
		return r;
	}
	l->instances = m;
	l->count = m ? m->count : 0;
	libraries[nlibraries++] = l;
	*out = HANDLE(l);
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *options, void **values, unsigned n,
	CUlibraryOption *library_options, void **library_values, unsigned nlibrary)
{
	(void)library_values; /* the image is unpacked at once: it need not be preserved */
	return library_load(out, code, 0, options, values, n, library_options, nlibrary);
}

CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *options, void **values,
	unsigned n, CUlibraryOption *library_options, void **library_values, unsigned nlibrary)
{
	(void)library_values;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	size_t size;
	char *data = image_file(path, &size);
	if (!data)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult r = size ? library_load(out, data, size, options, values, n, library_options, nlibrary)
			  : CUDA_ERROR_INVALID_IMAGE;
	free(data);
	return r;
}

CUresult cuLibraryUnload(CUlibrary h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct library *l = object_find(h, KIND_LIBRARY);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult r = context_allowed();
	if (r)
		return r;
	for (unsigned i = 0; i < nlibraries; i++)
		if (libraries[i] == l) {
			libraries[i] = libraries[--nlibraries];
			break;
		}
	object_ref(l);
	object_close(&l->object);
	for (struct module *m = l->instances; m; m = m->next)
		if (m->object.context)
			context_drain(m->object.context);
	while (l->instances) {
		struct module *m = l->instances;
		l->instances = m->next;
		instance_close(m);
	}
	while (l->kernels) {
		struct kernel *k = l->kernels;
		l->kernels = k->next;
		object_close(&k->object);
	}
	object_unref(l);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary h, const char *name)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct library *l = object_find(h, KIND_LIBRARY);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	struct module *m = library_any(l, &why);
	if (!m)
		return why;
	if (!m->code)
		return module_empty(name);
	if (!engine_function_find(m->code, name))
		return CUDA_ERROR_NOT_FOUND;
	struct kernel *k = kernel_named(l, name);
	if (!k)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(k);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct library *l = object_find(h, KIND_LIBRARY);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	if (!library_any(l, &why))
		return why;
	*count = l->count;
	return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned n, CUlibrary h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct library *l = object_find(h, KIND_LIBRARY);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!kernels)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	struct module *m = library_any(l, &why);
	if (!m)
		return why;
	for (unsigned i = 0; i < n && i < l->count; i++) {
		struct kernel *k =
			kernel_named(l, engine_function_info(engine_function_at(m->code, i))->name);
		if (!k)
			return CUDA_ERROR_OUT_OF_MEMORY;
		kernels[i] = HANDLE(k);
	}
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct library *l = object_find(h, KIND_LIBRARY);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	struct module *m = library_instance(l, g.context, &why);
	if (!m)
		return why;
	*out = HANDLE(m);
	return CUDA_SUCCESS;
}

static CUresult library_variable(
	struct module *m, CUdeviceptr *p, size_t *bytes, const char *name, bool want_managed)
{
	uint64_t address;
	size_t n;
	bool managed;
	if (!want_managed && m->code && engine_function_find(m->code, name))
		return CUDA_ERROR_INVALID_VALUE;
	if (!m->code || !engine_global_find(m->code, name, &address, &n, &managed) ||
		(want_managed && !managed))
		return CUDA_ERROR_NOT_FOUND;
	if (p)
		*p = address;
	if (bytes)
		*bytes = n;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *p, size_t *bytes, CUlibrary h, const char *name)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct library *l = object_find(h, KIND_LIBRARY);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || (!p && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	struct module *m = library_instance(l, g.context, &why);
	return m ? library_variable(m, p, bytes, name, false) : why;
}

CUresult cuLibraryGetManaged(CUdeviceptr *p, size_t *bytes, CUlibrary h, const char *name)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct library *l = object_find(h, KIND_LIBRARY);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || (!p && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	struct module *m = library_any(l, &why);
	while (m && m->next) /* the oldest: its variables are the ones that the program knows */
		m = m->next;
	return m ? library_variable(m, p, bytes, name, true) : why;
}
