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
#include "devshim/device.h"
#include "devshim/handle.h"
#include "devshim/occupancy.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "wire/notes.h"
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
	function_forget_resolved(f);
	free(f->name);
	free(f->offset);
	occupancy_free(f);
	free(f);
}

/* Under the lock. */
static void unlink_function(struct function *f)
{
	*f->back = f->next;
	if (f->next)
		f->next->back = f->back;
}

/* Under the lock. */
static void link_function(struct function *f)
{
	f->next = all;
	f->back = &all;
	if (all)
		all->back = &f->next;
	all = f;
}

static void function_dropped(const void *h, void *data)
{
	(void)h;
	pthread_mutex_lock(&lock);
	unlink_function(data);
	pthread_mutex_unlock(&lock);
	function_free(data);
}

__attribute__((constructor)) static void watch_functions(void)
{
	handle_on_drop(HANDLE_CUfunction, function_dropped);
	handle_on_drop(HANDLE_CUkernel, function_dropped);
}

static void get_attributes(struct msg *m, struct attributes *a)
{
	size_t n = get_array(m, LIMIT_ATTRIBUTES);

	for (size_t i = 0; i < n; i++) {
		if (get_nil(m))
			continue;
		int v = (int)get_i64(m);

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

static bool get_layout(struct msg *m, struct function *f)
{
	if (get_nil(m))
		return true;
	size_t n = get_array(m, LIMIT_HEAD);

	if (n % 2)
		return false;
	f->offset = n ? malloc(n * sizeof *f->offset) : NULL;
	if (n && !f->offset)
		return false;
	f->nparams = (unsigned)(n / 2);
	f->size = f->offset + n / 2;
	for (unsigned i = 0; i < f->nparams; i++) {
		f->offset[i] = (uint32_t)get_u64(m);
		f->size[i] = (uint32_t)get_u64(m);
		size_t end = (size_t)f->offset[i] + f->size[i];

		if (end > LIMIT_HEAD)
			return false;
		f->bytes = end > f->bytes ? end : f->bytes;
	}
	f->laid_out = true;
	return true;
}

/* Device, layout, and the attributes on that device if they are known. */
static bool get_facts(struct msg *m, struct function *f, struct attributes *a)
{
	a->device = device_visible((int)get_i64(m));
	if (!get_layout(m, f))
		return false;
	get_attributes(m, a);
	return !m->bad;
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
	f->type = type;
	f->parent = parent;
	pthread_mutex_lock(&lock);
	struct function *other = handle_data(type, handle);

	if (other || !handle_set_data(type, handle, f)) {
		free(f);
		f = other;
	} else {
		link_function(f);
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

	if (!f || !a || !get_facts(&c->in, &fresh, a)) {
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

/* ---- what is told, and not taken by the program yet ---- */

/* Under the lock. */
static struct function *find(unsigned type, const void *parent, const char *name)
{
	struct function *told = NULL;

	for (struct function *f = all; f; f = f->next) {
		if (f->parent != parent || f->type != type || !f->name || strcmp(f->name, name))
			continue;
		if (f->handle)
			return f;
		told = f;
	}
	return told;
}

struct function *function_named(unsigned type, const void *parent, const char *name)
{
	pthread_mutex_lock(&lock);
	struct function *f = find(type, parent, name);

	pthread_mutex_unlock(&lock);
	return f;
}

void function_told(struct msg *m, unsigned type, void *parent, const char *name)
{
	struct function fresh = {.handle = NULL}, *f = NULL, *made = calloc(1, sizeof *made);
	struct attributes *a = calloc(1, sizeof *a);
	char *copy = strdup(name);

	if (!a || !copy || !made || !get_facts(m, &fresh, a)) {
		m->bad = true;
	} else if (parent) {
		pthread_mutex_lock(&lock);
		f = find(type, parent, name);
		if (!f) {
			f = made;
			made = NULL;
			f->type = type;
			f->parent = parent;
			link_function(f);
		}
		fill(f, &copy, &fresh, &a);
		pthread_mutex_unlock(&lock);
	}
	free(fresh.offset);
	free(copy);
	free(made);
	free(a);
}

void function_taken(struct function *f, void *handle)
{
	handle_set_data(f->type, handle, f);
	pthread_mutex_lock(&lock);
	f->handle = handle;
	pthread_mutex_unlock(&lock);
}

void function_drop_untaken(const void *parent)
{
	pthread_mutex_lock(&lock);
	for (struct function *f = all, *next; f; f = next) {
		next = f->next;
		if (f->parent == parent && !f->handle) {
			unlink_function(f);
			function_free(f);
		}
	}
	pthread_mutex_unlock(&lock);
}

struct function *function_like(struct function *kernel, CUdevice dev)
{
	void *h = handle_new(HANDLE_CUfunction);
	struct function *f = h ? function_note(h, HANDLE_CUfunction, kernel->parent) : NULL;
	struct function fresh = {.laid_out = true, .nparams = kernel->nparams, .bytes = kernel->bytes};
	struct attributes *from = function_attributes(kernel, dev), *a = calloc(1, sizeof *a);
	size_t n = kernel->nparams * sizeof *kernel->offset;
	char *name = kernel->name ? strdup(kernel->name) : NULL;

	fresh.offset = n ? malloc(2 * n) : NULL;
	if (!f || !a || !from || !name || (n && !fresh.offset)) {
		if (h)
			handle_drop(HANDLE_CUfunction, h);
		f = NULL;
	} else {
		fresh.size = fresh.offset + kernel->nparams;
		if (n)
			memcpy(fresh.offset, kernel->offset, 2 * n);
		a->device = dev;
		a->known = atomic_load(&from->known);
		a->accepted = atomic_load(&from->accepted);
		for (int i = 0; i < ATTRIBUTES; i++)
			a->value[i] = atomic_load(&from->value[i]);
		pthread_mutex_lock(&lock);
		fill(f, &name, &fresh, &a);
		pthread_mutex_unlock(&lock);
		atomic_store(&f->shape, atomic_load(&kernel->shape));
	}
	free(fresh.offset);
	free(name);
	free(a);
	return f;
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

	function_forget_told(parent);
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

/* Code may ask for blocks of one shape: what was taken in two has not. */
static void shape_taken(struct function *f, uint32_t shape)
{
	uint32_t known = 0;

	if (!atomic_compare_exchange_strong(&f->shape, &known, shape) && known != shape)
		atomic_store_explicit(&f->shape, SHAPE_ANY, memory_order_relaxed);
}

void function_shape_taken(struct function *f, uint32_t shape)
{
	shape_taken(f, shape);
	if (f->kernel)
		shape_taken(f->kernel, shape);
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
