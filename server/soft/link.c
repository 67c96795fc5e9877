/* SPDX-License-Identifier: Apache-2.0 */
/* The linker of the API: inputs are gathered, and what comes out is an image that the module functions load.
 * It is made of PTX, for this device runs nothing else.
 *
 * Thread rule: see state.h. Texts are read without the lock; a link then is its thread's alone (link_enter),
 * and others wait for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/archive.h"
#include "server/soft/context.h"
#include "server/soft/engine.h"
#include "server/soft/link_input.h"
#include "server/soft/module.h"

struct link {
	struct object object;
	struct image image;
	struct jit jit;
	struct link_names names;
	unsigned inputs;
	bool device_runtime; /* it is one of them */
	bool completed; /* or tried to be: no input comes behind that */
	CUresult wrong; /* with the names: it will not be mended */
	void *out;
	size_t out_size;
	bool busy; /* a thread works on it without the lock */
};

static void link_finish(struct object *o)
{
	struct link *l = (struct link *)o;
	image_free(&l->image);
	link_names_free(&l->names);
	free(l->out);
	free(l);
}

CUresult cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *out)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	struct link *l = calloc(1, sizeof *l);
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult r = jit_read(&l->jit, n, options, values);
	if (!r && l->jit.fallback)
		r = CUDA_ERROR_INVALID_VALUE; /* there is no binary to prefer */
	if (!r && !object_open(&l->object, KIND_LINK, g.context, link_finish))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		free(l);
		return r;
	}
	*out = HANDLE(l);
	return CUDA_SUCCESS;
}
CUresult cuLinkCreate(unsigned n, CUjit_option *options, void **values, CUlinkState *out)
{
	return cuLinkCreate_v2(n, options, values, out);
}

/* What a real driver answers when names do not fit together. */
static CUresult names_wrong(struct link *l)
{
	return l->wrong = l->jit.verbose ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_INVALID_SOURCE;
}

static CUresult take_names(struct link *l, struct engine_module *const *part, unsigned n, const char *name)
{
	char number[32];
	bool twice = false;
	snprintf(number, sizeof number, "Input %u", l->inputs);
	for (unsigned i = 0; i < n; i++)
		if (!link_names_add(&l->names, part[i], name && *name ? name : number, &l->jit, &twice))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return twice ? names_wrong(l) : CUDA_SUCCESS;
}

/* Each text of an input is checked alone now, so that an error comes with the input that it is in. What it
 * lacks may be in an input to come. */
static CUresult check(struct link *l, unsigned from, const char *name)
{
	unsigned n = l->image.count - from, unused;
	struct engine_module **part = calloc(n + 1, sizeof *part);
	CUresult r = part ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; !r && i < n; i++) {
		struct engine_error error = {0};
		r = (CUresult)engine_module_part(
			l->image.text[from + i], l->image.size[from + i], &part[i], &error);
		if (r)
			jit_wrong(&l->jit, &error);
		else
			r = module_acceptable(part[i], &unused, &l->jit);
	}
	r = r ? r : take_names(l, part, n, name);
	for (unsigned i = 0; part && i < n; i++)
		engine_module_unload(part[i]);
	free(part);
	return r;
}

/* The link for this thread alone, until link_leave. The lock is given back. */
static CUresult link_enter(CUlinkState h, struct link **out)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct link *l = object_find(h, KIND_LINK);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	object_ref(l);
	while (l->busy)
		pthread_cond_wait(&soft.progress, &soft.lock);
	if (!l->object.handle) { /* destroyed meanwhile */
		object_unref(l);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	l->busy = true;
	*out = l;
	return CUDA_SUCCESS;
}

static void link_leave(struct link *l)
{
	pthread_mutex_lock(&soft.lock);
	l->busy = false;
	pthread_cond_broadcast(&soft.progress);
	object_unref(l);
	pthread_mutex_unlock(&soft.lock);
}

static CUresult add(struct link *l, CUjitInputType type, const void *data, size_t size, const char *name)
{
	if (l->completed)
		return CUDA_ERROR_INVALID_VALUE;
	jit_begin(&l->jit);
	l->inputs++;
	/* What of the device runtime there is here is in the engine. */
	if (type == CU_JIT_INPUT_LIBRARY && name && strstr(name, "cudadevrt")) {
		l->device_runtime = true;
		return CUDA_SUCCESS;
	}
	unsigned before = l->image.count;
	int capability = soft.major * 10 + soft.minor;
	CUresult r = link_form(type, data, size);
	if (!r)
		r = type == CU_JIT_INPUT_LIBRARY || type == CU_JIT_INPUT_OBJECT
			    ? archive_add(&l->image, data, size, capability, &l->jit)
			    : image_add(&l->image, data, size, capability, &l->jit);
	r = r ? r : check(l, before, name);
	if (r)
		image_shrink(&l->image, before);
	jit_end(&l->jit);
	return r;
}

CUresult cuLinkAddData_v2(CUlinkState h, CUjitInputType type, void *data, size_t size, const char *name,
	unsigned n, CUjit_option *options, void **values)
{
	struct jit unused;
	struct link *l;
	CUresult r = link_enter(h, &l);
	if (r)
		return r;
	if (!data || !size || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = jit_read(&unused, n, options, values);
	r = r ? r : add(l, type, data, size, name);
	link_leave(l);
	return r;
}
CUresult cuLinkAddData(CUlinkState h, CUjitInputType type, void *data, size_t size, const char *name,
	unsigned n, CUjit_option *options, void **values)
{
	return cuLinkAddData_v2(h, type, data, size, name, n, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState h, CUjitInputType type, const char *path, unsigned n,
	CUjit_option *options, void **values)
{
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	size_t size;
	char *data = image_file(path, &size);
	if (!data)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult r = cuLinkAddData_v2(h, type, data, size, path, n, options, values);
	free(data);
	return r;
}
CUresult cuLinkAddFile(CUlinkState h, CUjitInputType type, const char *path, unsigned n,
	CUjit_option *options, void **values)
{
	return cuLinkAddFile_v2(h, type, path, n, options, values);
}

/* Do the inputs make a module together? */
static CUresult try(struct link *l)
{
	const struct image *im = &l->image;
	struct engine_module *m = NULL;
	struct engine_error error = {0};
	if (!link_names_complete(&l->names, l->device_runtime, &l->jit))
		return names_wrong(l);
	if (!im->count)
		return CUDA_SUCCESS; /* a module of nothing */
	CUresult r = (CUresult)engine_module_load(
		(const char *const *)im->text, im->size, im->count, &m, &error);
	if (r)
		jit_error(&l->jit, "error   : line %u: %s", error.line, error.text);
	if (r && error.unresolved)
		r = names_wrong(l);
	unsigned unused;
	r = r ? r : module_acceptable(m, &unused, &l->jit);
	engine_module_unload(m);
	return r;
}

static CUresult complete(struct link *l, void **out, size_t *size)
{
	l->completed = true;
	if (l->wrong)
		return l->wrong;
	if (l->out)
		return CUDA_ERROR_INVALID_HANDLE;
	jit_begin(&l->jit);
	CUresult r = try(l);
	jit_end(&l->jit);
	if (r)
		return r;
	l->out = image_pack(&l->image, soft.major * 10 + soft.minor, &l->out_size);
	if (!l->out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = l->out;
	if (size)
		*size = l->out_size;
	return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState h, void **out, size_t *size)
{
	struct link *l;
	CUresult r = link_enter(h, &l);
	if (r)
		return r;
	r = out ? complete(l, out, size) : CUDA_ERROR_INVALID_VALUE;
	link_leave(l);
	return r;
}

CUresult cuLinkDestroy(CUlinkState h)
{
	guarded g = enter_context();
	if (g.error)
		return g.error;
	struct link *l = object_find(h, KIND_LINK);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	object_close(&l->object);
	return CUDA_SUCCESS;
}
