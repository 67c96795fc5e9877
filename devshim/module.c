/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: loading from memory and files, functions, globals. All loads send the image whole and wait.
 *
 * Thread rule: any thread; what is remembered about a module is under `lock`. */
#include "devshim/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/device.h"
#include "devshim/function.h"
#include "devshim/handle.h"
#include "devshim/range.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

#define LIMIT_LOG (20u << 10)
#define LIMIT_OPTIONS 64

void image_target(struct image_target *t)
{
	const char *force = getenv("CUDA_FORCE_PTX_JIT");
	int n = device_count();

	*t = (struct image_target){.force_ptx = force && atoi(force), .ptx_only = device_is_soft()};
	for (int d = 0; d < n && t->n < sizeof t->cc / sizeof *t->cc; d++)
		t->cc[t->n++] = 10 * device_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) +
				device_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
}

CUresult put_image(struct call *c, const struct image *i, void **packed)
{
	*packed = NULL;
	put_u64(&c->out, i->kind);
	put_array(&c->out, i->nparts);
	for (unsigned k = 0; k < i->nparts; k++)
		put_u64(&c->out, i->part_size[k]);
	c->bulk_len = i->total;
	c->bulk = i->piece[0].p;
	if (i->npieces == 1)
		return CUDA_SUCCESS;
	*packed = malloc(i->total);
	if (!*packed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	image_pack(i, *packed);
	c->bulk = *packed;
	return CUDA_SUCCESS;
}

CUresult put_jit(struct call *c, const struct jit *j)
{
	if (j->n > LIMIT_OPTIONS || (j->n && (!j->options || !j->values)))
		return CUDA_ERROR_INVALID_VALUE;
	put_array(&c->out, j->n);
	for (unsigned i = 0; i < j->n; i++) {
		uint64_t v = (uintptr_t)j->values[i];

		switch ((int)j->options[i]) {
		case CU_JIT_GLOBAL_SYMBOL_NAMES:
		case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
		case CU_JIT_GLOBAL_SYMBOL_COUNT:
		case CU_JIT_REFERENCED_KERNEL_NAMES:
		case CU_JIT_REFERENCED_KERNEL_COUNT:
		case CU_JIT_REFERENCED_VARIABLE_NAMES:
		case CU_JIT_REFERENCED_VARIABLE_COUNT:
			log_warning("compiler option %d is not remoted", (int)j->options[i]);
			return CUDA_ERROR_NOT_SUPPORTED;
		case CU_JIT_INFO_LOG_BUFFER:
		case CU_JIT_ERROR_LOG_BUFFER:
		case CU_JIT_WALL_TIME: v = 0; break;
		}
		put_i64(&c->out, j->options[i]);
		put_u64(&c->out, v);
	}
	return CUDA_SUCCESS;
}

/* The value of an option, or NULL. */
static void **option(const struct jit *j, CUjit_option o)
{
	for (unsigned i = 0; i < j->n; i++)
		if (j->options[i] == o)
			return &j->values[i];
	return NULL;
}

void get_jit(struct call *c, const struct jit *j)
{
	static const CUjit_option buffer[2] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER};
	static const CUjit_option size[2] = {
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};

	for (int k = 0; k < 2; k++) {
		size_t n = 0;
		const char *log = get_blob(&c->in, &n, LIMIT_LOG);
		uint64_t used = get_u64(&c->in);
		void **b = option(j, buffer[k]), **s = option(j, size[k]);
		size_t room = s ? (uintptr_t)*s : 0;

		if (b && *b && room && log) {
			n = n < room ? n : room - 1;
			memcpy(*b, log, n);
			((char *)*b)[n] = 0;
		}
		if (s)
			*s = (void *)(uintptr_t)(used < room ? used : room);
	}
	float wall = (float)get_f64(&c->in);
	void **w = option(j, CU_JIT_WALL_TIME);

	if (w)
		memcpy(w, &wall, sizeof wall);
}

CUresult read_image_file(const char *path, void **bytes, size_t *n)
{
	int saved = errno, fd = open(path, O_RDONLY | O_CLOEXEC);
	CUresult r = CUDA_ERROR_FILE_NOT_FOUND;
	struct stat st;
	char *p = NULL;
	size_t got = 0;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		goto out;
	r = CUDA_ERROR_INVALID_IMAGE;
	if (st.st_size <= 0 || (uint64_t)st.st_size > LIMIT_IMAGE)
		goto out;
	r = CUDA_ERROR_OUT_OF_MEMORY;
	p = malloc((size_t)st.st_size + 1);
	if (!p)
		goto out;
	while (got < (size_t)st.st_size) {
		ssize_t k = read(fd, p + got, (size_t)st.st_size - got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			break;
		got += (size_t)k;
	}
	p[got] = 0;
	*bytes = p;
	*n = got;
	r = CUDA_SUCCESS;
out:
	if (fd >= 0)
		close(fd);
	errno = saved;
	return r;
}

static CUresult load(unsigned id, CUmodule *module, struct image *i, const struct jit *j)
{
	void *packed = NULL;
	struct call c;

	copy_drain();
	CUresult r = call_begin(&c, id);

	if (!r)
		r = put_image(&c, i, &packed);
	if (!r)
		r = put_jit(&c, j);
	if (!r) {
		r = call_wait(&c);
		if (c.in.len < c.in.cap)
			get_jit(&c, j);
		if (!r)
			*module = get_handle(&c, HANDLE_CUmodule);
		r = call_end(&c, r);
	}
	free(packed);
	return r;
}

static CUresult load_memory(unsigned id, CUmodule *module, const void *image, const struct jit *j)
{
	struct context *ctx;
	struct image_target t;
	struct image i;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	image_target(&t);
	r = image_read(image, &t, &i);
	if (r)
		return r;
	r = load(id, module, &i, j);
	image_finish(&i);
	return r;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return load_memory(CALL_cuModuleLoadData, module, image, &(struct jit){0});
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
	CUjit_option *options, void **optionValues)
{
	return load_memory(
		CALL_cuModuleLoadDataEx, module, image, &(struct jit){numOptions, options, optionValues});
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return load_memory(CALL_cuModuleLoadFatBinary, module, fatCubin, &(struct jit){0});
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	struct context *ctx;
	struct image_target t;
	struct image i;
	void *bytes = NULL;
	size_t n = 0;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	r = read_image_file(fname, &bytes, &n);
	if (r)
		return r;
	image_target(&t);
	r = image_read_sized(bytes, n, &t, &i);
	if (!r) {
		r = load(CALL_cuModuleLoad, module, &i, &(struct jit){0});
		image_finish(&i);
	}
	free(bytes);
	return r;
}

CUresult cuModuleUnload(CUmodule hmod)
{
	copy_drain();
	CUresult r = remote_cuModuleUnload(hmod);

	if (r)
		return r;
	function_drop_parent(hmod);
	range_drop_owner(RANGE_GLOBAL, (CUcontext)(void *)hmod);
	handle_drop(HANDLE_CUmodule, hmod);
	return r;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (!r && (!hfunc || !name))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	copy_drain();
	r = call_begin(&c, CALL_cuModuleGetFunction);
	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUmodule, hmod))
		return handle_error(HANDLE_CUmodule);
	put_text(&c.out, name);
	r = call_wait(&c);
	struct function *f = r ? NULL : function_get(&c, HANDLE_CUfunction, hmod, name);

	r = call_end(&c, r);
	if (!r)
		*hfunc = f ? f->handle : NULL;
	return r || f ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	return remote_cuModuleGetFunctionCount(count, mod);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuModuleEnumerateFunctions);

	if (r)
		return r;
	if (!functions && numFunctions)
		return CUDA_ERROR_INVALID_VALUE;
	put_u64(&c.out, numFunctions);
	if (!put_handle(&c, HANDLE_CUmodule, mod))
		return handle_error(HANDLE_CUmodule);
	r = call_wait(&c);
	for (size_t i = 0, n = r ? 0 : get_array(&c.in, numFunctions); i < n; i++) {
		functions[i] = get_handle(&c, HANDLE_CUfunction);
		if (functions[i])
			function_note(functions[i], HANDLE_CUfunction, mod);
	}
	return call_end(&c, r);
}

/* Notes a variable's range, so that copies to and from it are known to be right. */
void note_global(CUdeviceptr p, size_t n, const void *owner)
{
	struct context *c = context_current();
	struct range r = {.base = p,
		.size = n,
		.kind = RANGE_GLOBAL,
		.ctx = (CUcontext)(void *)owner,
		.device = c ? c->device : 0};

	if (!p || !n)
		return;
	range_reserve(p, n);
	range_add(&r);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	struct context *ctx;
	CUdeviceptr p = 0;
	size_t n = 0;
	CUresult r = context_check(&ctx);

	if (!r && !dptr && !bytes)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = remote_cuModuleGetGlobal_v2(&p, &n, hmod, name);
	if (r)
		return r;
	note_global(p, n, hmod);
	if (dptr)
		*dptr = p;
	if (bytes)
		*bytes = n;
	return r;
}

/* CUDA_MODULE_LOADING is the driver's to read; lazy is its default. */
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	const char *wanted = getenv("CUDA_MODULE_LOADING");
	CUresult r = process_check();

	if (r)
		return r;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = wanted && !strcmp(wanted, "EAGER") ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}
