/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and kernels: the table behind their handles, and every call that asks about one. Attributes
 * change only by the calls here, which post the change when the driver is known to accept it and note the
 * new value.
 *
 * Thread rule: see function.h; `lock` guards the list of all functions and the fields that are filled
 * late. */
#include "devshim/function.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/handle.h"
#include "devshim/occupancy.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct function *all;

static void function_free(struct function *f)
{
	if (!f)
		return;
	for (struct attributes *a = atomic_load(&f->attributes), *next; a; a = next) {
		next = a->next;
		free(a);
	}
	free(f->name);
	free(f->offset);
	occupancy_free(f);
	free(f);
}

static void function_dropped(const void *h, void *data)
{
	struct function *f = data;

	(void)h;
	pthread_mutex_lock(&lock);
	*f->back = f->next;
	if (f->next)
		f->next->back = f->back;
	pthread_mutex_unlock(&lock);
	function_free(f);
}

__attribute__((constructor)) static void watch_functions(void)
{
	handle_on_drop(HANDLE_CUfunction, function_dropped);
	handle_on_drop(HANDLE_CUkernel, function_dropped);
}

static void get_attributes(struct call *c, struct attributes *a)
{
	size_t n = get_array(&c->in, LIMIT_ATTRIBUTES);

	for (size_t i = 0; i < n; i++) {
		if (get_nil(&c->in))
			continue;
		int v = (int)get_i64(&c->in);

		if (i < ATTRIBUTES) {
			a->value[i] = v;
			a->known |= 1u << i;
		}
	}
}

struct attributes *function_attributes(const struct function *f, CUdevice dev)
{
	struct attributes *a = atomic_load_explicit(&f->attributes, memory_order_acquire);

	while (a && a->device != dev)
		a = a->next;
	return a;
}

static bool get_layout(struct call *c, struct function *f)
{
	if (get_nil(&c->in))
		return true;
	size_t n = get_array(&c->in, LIMIT_HEAD);

	if (n % 2)
		return false;
	f->offset = n ? malloc(n * sizeof *f->offset) : NULL;
	if (n && !f->offset)
		return false;
	f->nparams = (unsigned)(n / 2);
	f->size = f->offset + n / 2;
	for (unsigned i = 0; i < f->nparams; i++) {
		f->offset[i] = (uint32_t)get_u64(&c->in);
		f->size[i] = (uint32_t)get_u64(&c->in);
		size_t end = (size_t)f->offset[i] + f->size[i];

		if (end > LIMIT_HEAD)
			return false;
		f->bytes = end > f->bytes ? end : f->bytes;
	}
	f->laid_out = true;
	return true;
}

/* What follows the handle in an answer: layout, and attributes on the current context's device, if any are
 * known. */
static bool get_rest(struct call *c, unsigned type, struct function *f, struct attributes *a)
{
	struct context *current = context_current();
	bool ok = get_layout(c, f);

	if (type == HANDLE_CUkernel)
		get_i64(&c->in); /* the server's ordinal, which we know better */
	if (ok)
		get_attributes(c, a);
	a->device = current ? current->device : -1;
	return ok && !c->in.bad;
}

struct function *function_note(void *handle, unsigned type, void *parent)
{
	struct function *f = handle_data(type, handle);

	if (f)
		return f;
	f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->handle = handle;
	f->parent = parent;
	pthread_mutex_lock(&lock);
	struct function *other = handle_data(type, handle);

	if (other || !handle_set_data(type, handle, f)) {
		free(f);
		f = other;
	} else {
		f->next = all;
		f->back = &all;
		if (all)
			all->back = &f->next;
		all = f;
	}
	pthread_mutex_unlock(&lock);
	return f;
}

/* Under the lock: what is new of an answer. Takes name and attributes over, or leaves them to the caller. */
static void fill(struct function *f, char **name, struct function *fresh, struct attributes **a)
{
	if (!f->name && *name) {
		f->name = *name;
		*name = NULL;
	}
	if (!f->laid_out && fresh->laid_out) {
		f->offset = fresh->offset;
		f->size = fresh->size;
		f->bytes = fresh->bytes;
		f->nparams = fresh->nparams;
		f->laid_out = true;
		fresh->offset = NULL;
	}
	if (*a && (*a)->known && (*a)->device >= 0 && !function_attributes(f, (*a)->device)) {
		(*a)->next = atomic_load(&f->attributes);
		atomic_store_explicit(&f->attributes, *a, memory_order_release);
		atomic_fetch_or(&f->asked, 1ull << ((*a)->device % 64));
		*a = NULL;
	}
}

struct function *function_get(struct call *c, unsigned type, void *parent, const char *name)
{
	void *handle = get_handle(c, type);
	struct function *f = handle ? function_note(handle, type, parent) : NULL;
	struct attributes *a = calloc(1, sizeof *a);
	struct function fresh = {.handle = NULL};
	char *copy = name ? strdup(name) : NULL;

	if (!f || !a || !get_rest(c, type, &fresh, a)) {
		c->in.bad |= handle && f && a;
		free(fresh.offset);
		free(copy);
		free(a);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	fill(f, &copy, &fresh, &a);
	pthread_mutex_unlock(&lock);
	free(fresh.offset);
	free(copy);
	free(a);
	return f;
}

bool function_loaded(const struct function *f)
{
	return atomic_load_explicit(&f->attributes, memory_order_acquire);
}

struct function *function_find(unsigned type, const void *parent, const char *name)
{
	struct function *f;

	pthread_mutex_lock(&lock);
	for (f = all; f; f = f->next)
		if (f->parent == parent && handle_type(f->handle) == type && f->name &&
			!strcmp(f->name, name) && (type == HANDLE_CUkernel || function_loaded(f)))
			break;
	pthread_mutex_unlock(&lock);
	return f;
}

void *function_resolved(const struct function *kernel, CUcontext ctx)
{
	pthread_mutex_lock(&lock);
	void *f = kernel->resolved_in == ctx ? kernel->resolved : NULL;

	pthread_mutex_unlock(&lock);
	return f && handle_live(HANDLE_CUfunction, f) ? f : NULL;
}

void function_resolve(struct function *kernel, CUcontext ctx, void *function)
{
	pthread_mutex_lock(&lock);
	kernel->resolved_in = ctx;
	kernel->resolved = function;
	pthread_mutex_unlock(&lock);
}

/* `load`: it is about to run, and a driver that loads functions late tells nothing of it before. */
static CUresult ask(struct function *f, bool load)
{
	unsigned type = handle_type(f->handle);
	struct call c;

	copy_drain();
	CUresult r = call_begin(&c, type == HANDLE_CUkernel ? CALL_cuKernelGetName : CALL_cuFuncGetName);

	if (r)
		return r;
	if (!put_handle(&c, type, f->handle))
		return handle_error(type);
	put_bool(&c.out, load);
	r = call_wait(&c);
	if (!r) {
		char name[4096];

		get_text(&c.in, name, sizeof name);
		function_get(&c, type, f->parent, name);
	}
	return call_end(&c, r);
}

CUresult function_ask(struct function *f)
{
	return ask(f, false);
}

CUresult function_ready(struct function *f)
{
	bool ready = f->laid_out && (handle_type(f->handle) == HANDLE_CUkernel || function_loaded(f));

	return __builtin_expect(ready, 1) ? CUDA_SUCCESS : ask(f, true);
}

struct function *function_of(const void *h)
{
	unsigned type = handle_type(h);
	struct function *f =
		type == HANDLE_CUfunction || type == HANDLE_CUkernel ? handle_data(type, h) : NULL;
	struct context *c = context_current();

	if (!f && handle_live(type, h) && (type == HANDLE_CUfunction || type == HANDLE_CUkernel))
		f = function_note((void *)h, type, NULL);
	if (!f || !c)
		return f;
	uint64_t bit = 1ull << (c->device % 64);

	if (__builtin_expect(!(atomic_load_explicit(&f->asked, memory_order_relaxed) & bit), 0)) {
		atomic_fetch_or(&f->asked, bit);
		function_ask(f);
	}
	return f;
}

void function_drop_parent(void *parent)
{
	struct function *f;

	do {
		pthread_mutex_lock(&lock);
		for (f = all; f && f->parent != parent; f = f->next) {
		}
		void *h = f ? f->handle : NULL;

		pthread_mutex_unlock(&lock);
		if (h)
			handle_drop(handle_type(h), h);
	} while (f);
}

bool function_attribute(const struct function *f, CUfunction_attribute a, CUdevice dev, int *v)
{
	struct attributes *k = function_attributes(f, dev);

	if ((unsigned)a >= ATTRIBUTES || !k ||
		!(atomic_load_explicit(&k->known, memory_order_acquire) >> a & 1))
		return false;
	*v = atomic_load_explicit(&k->value[a], memory_order_relaxed);
	return true;
}
