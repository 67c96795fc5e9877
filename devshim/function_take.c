/* SPDX-License-Identifier: Apache-2.0 */
/* A program takes functions by name, and asks for the function that a kernel is in its context. What the
 * server has told of is taken without an answer, under a handle of our own: the driver can only say yes, and
 * should it not (memory is short), the next call that CUDA lets tell it does, as for the first launch of a
 * kernel.
 *
 * Thread rule: any thread. `taking` is held while a function gets a handle of ours, until that is on its way
 * to the server; `lock` guards the lists of kernels' functions. */
#include <pthread.h>
#include <stdlib.h>
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/function.h"
#include "devshim/handle.h"
#include "devshim/module.h"
#include "devshim/work.h"
#include "cuda.calls.h"

struct resolved {
	struct resolved *next;
	CUcontext ctx;
	void *function;
};

static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void function_forget_told(const void *parent)
{
	pthread_mutex_lock(&taking);
	function_drop_untaken(parent);
	pthread_mutex_unlock(&taking);
}

/* Under `taking`: sends parent, name and a handle of our own. */
static CUresult take(unsigned id, struct function *f)
{
	unsigned of = f->type == HANDLE_CUkernel ? HANDLE_CUlibrary : HANDLE_CUmodule;
	void *h = handle_new_of(f->type, of, f->parent);
	struct call c;
	CUresult r = h ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	copy_drain();
	if (!r)
		r = call_begin(&c, id);
	if (!r) {
		put_handle(&c, of, f->parent);
		put_text(&c.out, f->name);
		put_u64(&c.out, (uintptr_t)h);
		r = call_post(&c);
	}
	if (!r)
		function_taken(f, h);
	else if (h)
		handle_drop(f->type, h);
	return r;
}

/* The handle that the program may have. Taking a module's function makes a driver load it, and attributes are
 * told of what is loaded. */
static void *taken(const struct function *f)
{
	return f && (f->type == HANDLE_CUkernel || function_loaded(f)) ? f->handle : NULL;
}

CUresult function_take(unsigned id, unsigned type, void *parent, const char *name, void **handle)
{
	struct context *ctx = context_current();
	CUresult r = CUDA_SUCCESS;

	*handle = taken(function_named(type, parent, name));
	if (*handle)
		return r;
	pthread_mutex_lock(&taking);
	struct function *f = function_named(type, parent, name);

	if (f && !f->handle && !work_capturing() &&
		(type == HANDLE_CUkernel || (ctx && function_attributes(f, ctx->device))))
		r = take(id, f);
	if (!r)
		*handle = taken(f);
	pthread_mutex_unlock(&taking);
	return r;
}

/* ---- kernels in contexts ---- */

void function_forget_resolved(struct function *kernel)
{
	for (struct resolved *r = kernel->resolved, *next; r; r = next) {
		next = r->next;
		free(r);
	}
}

void function_resolve(struct function *kernel, CUcontext ctx, struct function *f)
{
	struct resolved *r = malloc(sizeof *r);

	if (!r)
		return;
	pthread_mutex_lock(&lock);
	*r = (struct resolved){kernel->resolved, ctx, f->handle};
	kernel->resolved = r;
	f->kernel = kernel;
	pthread_mutex_unlock(&lock);
}

static void *resolved(const struct function *kernel, const struct context *ctx)
{
	void *f = NULL;

	pthread_mutex_lock(&lock);
	for (struct resolved *k = kernel->resolved; k && !f; k = k->next)
		if (k->ctx == ctx->handle && handle_live(HANDLE_CUfunction, k->function))
			f = k->function;
	pthread_mutex_unlock(&lock);
	return f;
}

/* Under `taking`. */
static CUresult take_in_context(struct function *kernel, struct context *ctx, void **handle)
{
	struct function *f = function_like(kernel, ctx->device);
	struct call c;
	CUresult r = f ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	copy_drain();
	if (!r)
		r = call_begin(&c, CALL_cuKernelGetFunction);
	if (!r) {
		put_handle(&c, HANDLE_CUkernel, kernel->handle);
		put_u64(&c.out, (uintptr_t)f->handle);
		r = call_post(&c);
	}
	if (!r) {
		*handle = f->handle;
		function_resolve(kernel, ctx->handle, f);
	} else if (f) {
		handle_drop(HANDLE_CUfunction, f->handle);
	}
	return r;
}

/* Where the program has taken the library's module, it may know the function by that already. */
CUresult function_in_context(struct function *kernel, struct context *ctx, void **handle)
{
	CUresult r = CUDA_SUCCESS;

	*handle = resolved(kernel, ctx);
	if (*handle)
		return r;
	pthread_mutex_lock(&taking);
	*handle = resolved(kernel, ctx);
	if (!*handle && kernel->laid_out && kernel->name && function_attributes(kernel, ctx->device) &&
		!work_capturing() && !library_has_module(kernel->parent, ctx->handle))
		r = take_in_context(kernel, ctx, handle);
	pthread_mutex_unlock(&taking);
	return r;
}

void function_each_resolved(struct function *kernel, CUdevice dev,
	void (*each)(struct function *f, int a, int v, CUdevice dev), int a, int v)
{
	pthread_mutex_lock(&lock);
	for (struct resolved *k = kernel->resolved; k; k = k->next) {
		struct function *f = handle_data(HANDLE_CUfunction, k->function);

		if (f && function_attributes(f, dev))
			each(f, a, v, dev);
	}
	pthread_mutex_unlock(&lock);
}
