/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: loading, functions and variables in them.
 *
 * Thread rule: see state.h. */
#include "server/soft/module.h"
#include "server/soft/reference.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/allocation.h"
#include "server/soft/capture.h"
#include "server/soft/engine.h"
#include "server/soft/names.h"
#include "server/soft/stream.h"
#include "wire/log.h"

#define PARAMETERS_MOST 32764 /* bytes of a kernel's parameters */

static void function_finish(struct object *o)
{
	struct function *f = (struct function *)o;
	for (struct function **p = &f->module->functions; *p; p = &(*p)->next)
		if (*p == f) {
			*p = f->next;
			break;
		}
	object_unref(f->module);
	free(f->prepared);
	free(f);
}

static void module_finish(struct object *o)
{
	struct module *m = (struct module *)o;
	engine_module_unload(m->code);
	free(m);
}

/* CUDA_MODULE_LOADING=EAGER loads all functions with their module. */
static bool eager(void)
{
	const char *mode = getenv("CUDA_MODULE_LOADING");
	return mode && !strcmp(mode, "EAGER");
}

struct function *module_function(struct module *m, const struct engine_function *code)
{
	for (struct function *f = m->functions; f; f = f->next)
		if (f->code == code)
			return f;
	struct function *f = calloc(1, sizeof *f);
	if (!f || !object_open(&f->object, KIND_FUNCTION, m->object.context, function_finish)) {
		free(f);
		return NULL;
	}
	f->module = object_ref(m);
	f->code = code;
	f->loaded = eager();
	settings_init(&f->settings);
	for (int i = 0; i < 3; i++)
		f->settings.cluster[i] = (int)engine_function_info(code)->cluster[i];
	f->next = m->functions;
	m->functions = f;
	return f;
}

static bool acceptable(const struct engine_function_info *f, struct jit *jit)
{
	if (f->param_bytes > PARAMETERS_MOST)
		jit_error(jit, "entry %s: parameters take %zu bytes, more than %d", f->name, f->param_bytes,
			PARAMETERS_MOST);
	return f->param_bytes <= PARAMETERS_MOST;
}

CUresult module_acceptable(struct engine_module *code, unsigned *count, struct jit *jit)
{
	struct engine_function *f;
	for (*count = 0; code && (f = engine_function_at(code, *count)); ++*count)
		if (!acceptable(engine_function_info(f), jit))
			return CUDA_ERROR_INVALID_PTX;
	return CUDA_SUCCESS;
}

bool module_of_device_runtime(const char *name)
{
	return !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6);
}

static bool unresolved(void *jit, const struct engine_name *n)
{
	if (n->kind != ENGINE_NAME_USED || !n->function || module_of_device_runtime(n->name))
		return true;
	jit_error(jit, "ptxas fatal   : Unresolved extern function '%s'", n->name);
	return false;
}

/* A module has all that it calls. An external variable that it lacks is an own one. */
static CUresult complete(struct engine_module *code, struct jit *jit)
{
	return !code || engine_names(code, unresolved, jit) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

/* Code is made for another target, or by fewer threads than none. */
static CUresult made_for(const struct jit *jit)
{
	unsigned kind = jit->target >> JIT_TARGET_KIND, sm = jit->target & ((1u << JIT_TARGET_KIND) - 1);
	unsigned own = (unsigned)(soft.major * 10 + soft.minor);
	bool runs = kind == 1 ? sm == own : sm / 10 == own / 10 && sm <= own;
	if (jit->target && !runs)
		return CUDA_ERROR_INVALID_SOURCE;
	return jit->split < 0 ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

CUresult module_load(
	const struct image *im, struct context *c, struct library *l, struct jit *jit, struct module **out)
{
	struct engine_module *code = NULL;
	CUresult wrong = im->count && jit ? made_for(jit) : CUDA_SUCCESS;
	if (wrong)
		return wrong;
	if (im->count) {
		object_ref(c);
		pthread_mutex_unlock(&soft.lock);
		struct engine_error error = {0};
		int r = engine_module_load((const char *const *)im->text, im->size, im->count, &code, &error);
		if (r)
			jit_wrong(jit, &error);
		pthread_mutex_lock(&soft.lock);
		bool gone = c && !c->active;
		object_unref(c);
		if (!r && gone) {
			engine_module_unload(code);
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		}
		if (r)
			return (CUresult)r;
	}
	struct module *m = calloc(1, sizeof *m);
	if (!m || !object_open(&m->object, KIND_MODULE, c, module_finish)) {
		free(m);
		engine_module_unload(code);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->code = code;
	m->library = l;
	wrong = module_acceptable(code, &m->count, jit);
	wrong = wrong ? wrong : complete(code, jit);
	if (wrong) {
		object_close(&m->object);
		return wrong;
	}
	const char *name;
	uint64_t p;
	size_t n;
	bool managed;
	for (unsigned i = 0; code && engine_global_at(code, i, &name, &p, &n, &managed); i++) {
		struct allocation a;
		if (allocation_find(p, &a)) {
			a.owner = c;
			allocation_update(&a);
		}
	}
	*out = m;
	return CUDA_SUCCESS;
}

CUresult module_empty(const char *name)
{
	log_warning("kernel %s: its image has no PTX. The software device runs PTX only: compile with "
		    "-gencode arch=compute_%d,code=compute_%d",
		name, soft.major * 10 + soft.minor, soft.major * 10 + soft.minor);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* ---- API */

static CUresult load(
	CUmodule *out, const void *image, size_t size, unsigned n, CUjit_option *options, void **values)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!out || !image)
		return CUDA_ERROR_INVALID_VALUE;
	struct jit jit;
	struct image im;
	CUresult r = jit_read(&jit, n, options, values);
	if (r)
		return r;
	struct context *c = g.context;
	r = image_read(&im, image, size, soft.major * 10 + soft.minor, &jit);
	if (!r) {
		struct module *m;
		r = module_load(&im, c, NULL, &jit, &m);
		image_free(&im);
		if (!r)
			*out = HANDLE(m);
	}
	jit_end(&jit);
	return r;
}

CUresult cuModuleLoadDataEx(
	CUmodule *out, const void *image, unsigned n, CUjit_option *options, void **values)
{
	return load(out, image, 0, n, options, values);
}
CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	return load(out, image, 0, 0, NULL, NULL);
}
CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
	return load(out, image, 0, 0, NULL, NULL);
}

/* A whole file, ended by NULs. NULL with errno. */
static char *file_read(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rbe");
	if (!f)
		return NULL;
	char *data = NULL;
	size_t n = 0, room = 0;
	for (;;) {
		if (n + 4096 > room) {
			room = room ? room * 2 : 65536;
			char *more = room > IMAGE_FILE ? NULL : realloc(data, room);
			if (!more)
				break;
			data = more;
		}
		size_t k = fread(data + n, 1, room - n - 64, f);
		n += k;
		if (!k) {
			bool bad = ferror(f);
			fclose(f);
			if (bad) {
				free(data);
				return NULL;
			}
			memset(data + n, 0, 64);
			*size = n;
			return data;
		}
	}
	fclose(f);
	free(data);
	errno = ENOMEM;
	return NULL;
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	size_t n;
	char *data = file_read(path, &n);
	if (!data)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult r = n ? load(out, data, n, 0, NULL, NULL) : CUDA_ERROR_INVALID_IMAGE;
	free(data);
	return r;
}

char *image_file(const char *path, size_t *size)
{
	return file_read(path, size);
}

CUresult cuModuleUnload(CUmodule h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct module *m = object_find(h, KIND_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (m->library)
		return CUDA_ERROR_NOT_PERMITTED; /* it goes with its library */
	CUresult r = capture_unsafe();
	if (r)
		return r;
	object_ref(m);
	context_drain(g.context);
	references_drop(m);
	while (m->functions) {
		struct function *f = m->functions;
		m->functions = f->next;
		object_close(&f->object);
	}
	if (m->object.handle)
		object_close(&m->object);
	object_unref(m);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	const char *s = getenv("CUDA_MODULE_LOADING");
	*mode = s && !strcmp(s, "EAGER") ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule h, const char *name)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct module *m = object_find(h, KIND_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!m->code)
		return module_empty(name);
	const struct engine_function *code = engine_function_find(m->code, name);
	if (!code)
		return CUDA_ERROR_NOT_FOUND;
	struct function *f = module_function(m, code);
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	f->loaded = true;
	*out = HANDLE(f);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	const struct module *m = object_find(h, KIND_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = m->count;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned n, CUmodule h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct module *m = object_find(h, KIND_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!functions)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n && i < m->count; i++) {
		struct function *f = module_function(m, engine_function_at(m->code, i));
		if (!f)
			return CUDA_ERROR_OUT_OF_MEMORY;
		functions[i] = HANDLE(f);
	}
	return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *bytes, CUmodule h, const char *name)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	const struct module *m = object_find(h, KIND_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || !*name || (!p && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address;
	size_t n;
	bool managed;
	if (m->code && engine_function_find(m->code, name))
		return CUDA_ERROR_INVALID_VALUE;
	if (!m->code || !engine_global_find(m->code, name, &address, &n, &managed))
		return CUDA_ERROR_NOT_FOUND;
	if (p)
		*p = address;
	if (bytes)
		*bytes = n;
	return CUDA_SUCCESS;
}
