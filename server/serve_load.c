/* SPDX-License-Identifier: Apache-2.0 */
/* Loading modules and libraries, and unloading them; compiler options. Wrappers are rebuilt around our own
 * copy of an image. The answer to a load tells functions that the program will probably want: all of a
 * small library, of any those that were asked of it before, as far as they fit.
 *
 * Thread rule: as exec.h; what is known of images is in notes.c. */
#include <string.h>
#include "server/exec.h"
#include "server/image.h"
#include "server/notes.h"
#include "server/serve.h"
#include "server/staging.h"
#include "wire/limits.h"
#include "cuda.calls.h"

#define TOLD_BYTES (48u << 10) /* of an answer's head, so that logs and handle fit in front */
#define TOLD_FEW 16u /* an image with no more functions tells them all */

static bool is_log(CUjit_option o)
{
	return o == CU_JIT_INFO_LOG_BUFFER || o == CU_JIT_ERROR_LOG_BUFFER;
}
static bool is_log_size(CUjit_option o)
{
	return o == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || o == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
}

/* Options as pairs of number and value; buffers come without their addresses, of sizes given by their size
 * options. */
bool get_jit(struct exec *x, struct jit *j)
{
	*j = (struct jit){.n = get_array(&x->in, LIMIT_JIT_OPTIONS)};
	for (unsigned i = 0; i < j->n; i++) {
		CUjit_option o = (CUjit_option)get_i64(&x->in);
		uint64_t v = get_u64(&x->in);

		switch ((int)o) {
		case CU_JIT_GLOBAL_SYMBOL_NAMES:
		case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
		case CU_JIT_GLOBAL_SYMBOL_COUNT:
		case CU_JIT_REFERENCED_KERNEL_NAMES:
		case CU_JIT_REFERENCED_KERNEL_COUNT:
		case CU_JIT_REFERENCED_VARIABLE_NAMES:
		case CU_JIT_REFERENCED_VARIABLE_COUNT:
			return false; /* pointers of the program's: never sent */
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			v = v > LIMIT_JIT_LOG ? LIMIT_JIT_LOG : v;
			j->room[o == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES] = v;
			break;
		}
		j->option[i] = o;
		j->value[i] = is_log(o) ? NULL : (void *)(uintptr_t)v;
	}
	for (unsigned i = 0; i < j->n; i++) {
		if (!is_log(j->option[i]))
			continue;
		char **log = &j->log[j->option[i] == CU_JIT_ERROR_LOG_BUFFER];

		if (!*log && !(*log = exec_alloc(x, LIMIT_JIT_LOG + 1)))
			return false;
		j->value[i] = *log;
	}
	return !x->in.bad;
}

void put_jit(struct exec *x, const struct jit *j)
{
	uint64_t size[2] = {j->room[0], j->room[1]};
	float wall = 0;

	for (unsigned i = 0; i < j->n; i++) {
		if (is_log_size(j->option[i]))
			size[j->option[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES] = (uintptr_t)j->value[i];
		if (j->option[i] == CU_JIT_WALL_TIME)
			memcpy(&wall, &j->value[i], sizeof wall);
	}
	for (int k = 0; k < 2; k++) {
		const char *log = j->log[k];
		size_t n = log ? strnlen(log, size[k] < LIMIT_JIT_LOG ? size[k] : LIMIT_JIT_LOG) : 0;

		put_bytes(&x->out, log ? log : "", n);
		if (size[k] != j->room[k] || n)
			put_u64(&x->out, size[k]);
		else
			put_nil(&x->out);
	}
	put_f64(&x->out, wall);
}

void jit_empty(struct jit *j)
{
	for (unsigned i = 0; i < j->n; i++)
		if (is_log_size(j->option[i]))
			j->value[i] = NULL;
}

/* ---- what a load tells ---- */

/* Names and layouts of a library's kernels when there are few. Not of a module: taking a function from it
 * makes a driver load the function. */
static void put_few(struct exec *x, CUlibrary l)
{
	CUkernel k[TOLD_FEW];
	const char *name = NULL;
	unsigned n = 0;

	if (drv.cuLibraryGetKernelCount(&n, l) || !n || n > TOLD_FEW ||
			drv.cuLibraryEnumerateKernels(k, n, l))
		return;
	for (unsigned i = 0; i < n; i++) {
		struct msg *out = &x->out;
		size_t before = out->len;

		if (drv.cuKernelGetName(&name, k[i]) || !name || before + strlen(name) > TOLD_BYTES)
			return;
		put_text(out, name);
		put_u64(out, NOTE_FUNCTION);
		put_facts(x, HANDLE_CUkernel, k[i], -1);
		if (!out->bad && out->len <= TOLD_BYTES)
			continue;
		out->bad = false;
		out->len = before;
		return;
	}
}

/* The handle, then what is known of its functions, then nil; as bulk the same of images that will probably
 * come next. What comes of the module ends with it. */
static void put_loaded(struct exec *x, unsigned type, void *real, const struct image *i, const struct jit *j)
{
	struct msg ahead;

	x->parent = exec_id_of(x, type, real);
	exec_put_handle(x, type, real);
	notes_begin(x->parent, i, j);
	notes_put(x->parent, &x->out, TOLD_BYTES);
	if (type == HANDLE_CUlibrary)
		put_few(x, real);
	put_nil(&x->out);
	if (!notes_has_next(x->parent))
		return;
	void *room = exec_alloc(x, NOTES_AHEAD);

	msg_init(&ahead, room, room ? NOTES_AHEAD : 0);
	notes_put_ahead(x->parent, &ahead);
	if (!ahead.bad) {
		x->bulk = room;
		x->bulk_len = ahead.len;
	}
}

/* ---- loading and unloading ---- */

/* The driver need not copy an image that we preserve, nor unpack of it what no kernel wants. The runtime says
 * so of all that it loads, for what it loads is mapped as long as the program. */
static CUresult load_library(CUlibrary *l, const struct image *i, struct jit *j)
{
	CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
	void *value = (void *)1;

	return drv.cuLibraryLoadData(l, i->code, j->option, j->value, j->n, &option, &value, 1);
}

static CUresult load(struct exec *x, unsigned type)
{
	struct image *i = image_get(x);
	struct jit j;
	void *real = NULL;
	bool ok = i && get_jit(x, &j);
	uint64_t id = exec_new_id(x); /* 0: we choose */
	CUresult r = SERVE_BAD;

	if (!ok || !get_end(&x->in))
		goto out;
	r = id && !i->known ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
	if (!id)
		put_bool(&x->out, i->known);
	if (!i->known)
		goto out;
	if (!i->whole) {
		r = CUDA_ERROR_INVALID_IMAGE;
		jit_empty(&j);
	} else if (type == HANDLE_CUmodule) {
		r = drv.cuModuleLoadDataEx((CUmodule *)&real, i->code, j.n, j.option, j.value);
	} else {
		r = load_library((CUlibrary *)&real, i, &j);
	}
	if (!id)
		put_jit(x, &j);
	if (r)
		goto out;
	if (id) {
		exec_bind(x, type, id, real);
		notes_begin(id, i, &j);
	} else {
		put_loaded(x, type, real, i, &j);
		image_keep(i);
	}
	if (type == HANDLE_CUlibrary) {
		image_preserve(i, id ? id : x->parent);
		i = NULL;
	}
out:
	image_free(i);
	return r;
}

/* A module of any of the cuModuleLoad calls: the program's end sends them all like this. */
CUresult serve_cuModuleLoad(struct exec *x)
{
	return load(x, HANDLE_CUmodule);
}
CUresult serve_cuModuleLoadData(struct exec *x)
{
	return load(x, HANDLE_CUmodule);
}
CUresult serve_cuModuleLoadDataEx(struct exec *x)
{
	return load(x, HANDLE_CUmodule);
}
CUresult serve_cuModuleLoadFatBinary(struct exec *x)
{
	return load(x, HANDLE_CUmodule);
}
CUresult serve_cuLibraryLoadData(struct exec *x)
{
	return load(x, HANDLE_CUlibrary);
}
CUresult serve_cuLibraryLoadFromFile(struct exec *x)
{
	return load(x, HANDLE_CUlibrary);
}

CUresult serve_cuModuleUnload(struct exec *x)
{
	CUmodule m = exec_handle(x, HANDLE_CUmodule);

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuModuleUnload(m);

	if (!r)
		notes_end(x->first_id);
	return r;
}

CUresult serve_cuLibraryUnload(struct exec *x)
{
	CUlibrary l = exec_handle(x, HANDLE_CUlibrary);

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	/* Out of the list first: a driver may give the handle again as soon as it is free. */
	struct image *i = image_release(x->first_id);
	CUresult r = drv.cuLibraryUnload(l);

	if (!r) {
		notes_end(x->first_id);
		image_free(i);
	} else if (i) {
		image_preserve(i, x->first_id);
	}
	return r;
}
