/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, libraries, functions, kernels and the linker. Images arrive whole; wrappers are rebuilt around
 * our own copy. The answer that names a function brings its parameter layout and its attributes, so that
 * the program's end can validate and pack launches.
 *
 * Thread rule: as exec.h; no state but the linkers' buffers, which belong to their records. */
#include <stdlib.h>
#include <string.h>
#include "server/exec.h"
#include "server/serve.h"
#include "wire/image.h"
#include "wire/limits.h"
#include "cuda.calls.h"

#define LIMIT_PARTS 4096
#define LIMIT_LAYOUT 8000 /* parameters of a kernel whose layout is told */

struct wrapper {
	uint32_t magic, version;
	const void *data, *extra;
};

struct image {
	uint8_t *bytes; /* with IMAGE_TAIL zeros behind */
	size_t n;
	bool whole; /* the driver, which is told no size, stays inside */
	struct wrapper wrapper;
	const void **extra;
	const void *code; /* for the driver */
};

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
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: v = v > LIMIT_JIT_LOG ? LIMIT_JIT_LOG : v; break;
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
	uint64_t size[2] = {0, 0};
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
		put_u64(&x->out, size[k]);
	}
	put_f64(&x->out, wall);
}

/* Takes kind and part sizes from the head and the bytes from the bulk. */
static bool get_image(struct exec *x, struct image *i)
{
	uint64_t kind = get_u64(&x->in), total = 0;
	size_t parts = get_array(&x->in, LIMIT_PARTS);
	size_t *size = exec_alloc(x, (parts + 1) * sizeof *size);

	*i = (struct image){0};
	if (!size || !parts)
		return false;
	for (size_t k = 0; k < parts; k++) {
		size[k] = get_u64(&x->in);
		if (size[k] > LIMIT_IMAGE || (total += size[k]) > LIMIT_IMAGE)
			return false;
	}
	if (x->in.bad || total != x->frame.bulk_len || (parts > 1 && kind != IMAGE_WRAPPER2))
		return false;
	i->n = total;
	i->bytes = malloc(total + IMAGE_TAIL);
	if (!i->bytes || !exec_bulk(x, i->bytes, total))
		return false;
	memset(i->bytes + total, 0, IMAGE_TAIL);
	i->code = i->bytes;
	if (kind != IMAGE_WRAPPER1 && kind != IMAGE_WRAPPER2) {
		i->whole = image_whole(i->bytes, total);
		return true;
	}
	i->whole = image_fatbin_whole(i->bytes, size[0]);
	i->wrapper = (struct wrapper){
		.magic = IMAGE_WRAPPER_MAGIC, .version = kind == IMAGE_WRAPPER2 ? 2 : 1, .data = i->bytes};
	if (kind == IMAGE_WRAPPER2) {
		const uint8_t *p = i->bytes + size[0];

		i->extra = exec_alloc(x, parts * sizeof *i->extra);
		if (!i->extra)
			return false;
		for (size_t k = 1; k < parts; k++) {
			i->extra[k - 1] = p;
			i->whole &= image_fatbin_whole(p, size[k]);
			p += size[k];
		}
		i->wrapper.extra = i->extra;
	}
	i->code = &i->wrapper;
	return true;
}

/* A module of any of the cuModuleLoad calls: the program's end sends them all like this. */
static CUresult serve_module_load(struct exec *x)
{
	struct image i;
	struct jit j;
	CUmodule m = NULL;
	bool ok = get_image(x, &i) && get_jit(x, &j) && get_end(&x->in);
	CUresult r = SERVE_BAD;

	if (ok)
		r = i.whole ? drv.cuModuleLoadDataEx(&m, i.code, j.n, j.option, j.value)
			    : CUDA_ERROR_INVALID_IMAGE;
	free(i.bytes);
	if (!ok)
		return r;
	put_jit(x, &j);
	if (!r)
		exec_put_handle(x, HANDLE_CUmodule, m);
	return r;
}

CUresult serve_cuModuleLoad(struct exec *x)
{
	return serve_module_load(x);
}
CUresult serve_cuModuleLoadData(struct exec *x)
{
	return serve_module_load(x);
}
CUresult serve_cuModuleLoadDataEx(struct exec *x)
{
	return serve_module_load(x);
}
CUresult serve_cuModuleLoadFatBinary(struct exec *x)
{
	return serve_module_load(x);
}

static CUresult serve_library_load(struct exec *x)
{
	struct image i;
	struct jit j;
	CUlibrary l = NULL;
	bool ok = get_image(x, &i) && get_jit(x, &j) && get_end(&x->in);
	CUresult r = SERVE_BAD;

	if (ok)
		r = i.whole ? drv.cuLibraryLoadData(&l, i.code, j.option, j.value, j.n, NULL, NULL, 0)
			    : CUDA_ERROR_INVALID_IMAGE;
	free(i.bytes);
	if (!ok)
		return r;
	put_jit(x, &j);
	if (!r)
		exec_put_handle(x, HANDLE_CUlibrary, l);
	return r;
}

CUresult serve_cuLibraryLoadData(struct exec *x)
{
	return serve_library_load(x);
}
CUresult serve_cuLibraryLoadFromFile(struct exec *x)
{
	return serve_library_load(x);
}

typedef CUresult param_info(void *, size_t, size_t *, size_t *);
static CUresult function_param(void *f, size_t i, size_t *off, size_t *n)
{
	return drv.cuFuncGetParamInfo(f, i, off, n);
}
static CUresult kernel_param(void *k, size_t i, size_t *off, size_t *n)
{
	return drv.cuKernelGetParamInfo(k, i, off, n);
}

/* An array of offset and size in turn; nil when the layout cannot be told. */
static void put_layout(struct exec *x, void *f, param_info *info)
{
	uint32_t *list = exec_alloc(x, 2 * LIMIT_LAYOUT * sizeof *list);
	size_t n = 0, off, size;
	CUresult r = CUDA_SUCCESS;

	while (list && n < LIMIT_LAYOUT && !(r = info(f, n, &off, &size))) {
		list[2 * n] = (uint32_t)off;
		list[2 * n + 1] = (uint32_t)size;
		n++;
	}
	if (!list || n == LIMIT_LAYOUT || r != CUDA_ERROR_INVALID_VALUE) {
		put_nil(&x->out);
		return;
	}
	put_array(&x->out, 2 * n);
	for (size_t i = 0; i < 2 * n; i++)
		put_u64(&x->out, list[i]);
}

static void put_function(struct exec *x, CUfunction f)
{
	exec_put_handle(x, HANDLE_CUfunction, f);
	put_layout(x, f, function_param);
	put_array(&x->out, CU_FUNC_ATTRIBUTE_MAX);
	for (int a = 0; a < CU_FUNC_ATTRIBUTE_MAX; a++) {
		int v = 0;

		if (drv.cuFuncGetAttribute(&v, a, f))
			put_nil(&x->out);
		else
			put_i64(&x->out, v);
	}
}

/* The attributes are those on the current context's device, which comes first; without a context there are
 * none. */
static void put_kernel(struct exec *x, CUkernel k)
{
	CUdevice dev = 0;
	CUcontext ctx = NULL;
	bool current = !drv.cuCtxGetCurrent(&ctx) && ctx && !drv.cuCtxGetDevice(&dev);

	exec_put_handle(x, HANDLE_CUkernel, k);
	put_layout(x, k, kernel_param);
	put_i64(&x->out, current ? dev : -1);
	put_array(&x->out, current ? CU_FUNC_ATTRIBUTE_MAX : 0);
	for (int a = 0; current && a < CU_FUNC_ATTRIBUTE_MAX; a++) {
		int v = 0;

		if (drv.cuKernelGetAttribute(&v, a, k, dev))
			put_nil(&x->out);
		else
			put_i64(&x->out, v);
	}
}

static char *get_name(struct exec *x)
{
	char *name = exec_alloc(x, LIMIT_STRING + 1);

	if (name)
		get_text(&x->in, name, LIMIT_STRING + 1);
	return name;
}

CUresult serve_cuModuleGetFunction(struct exec *x)
{
	CUmodule m = exec_handle(x, HANDLE_CUmodule);
	const char *name = get_name(x);
	CUfunction f = NULL;

	if (!name || !get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuModuleGetFunction(&f, m, name);

	if (!r)
		put_function(x, f);
	return r;
}

CUresult serve_cuLibraryGetKernel(struct exec *x)
{
	CUlibrary l = exec_handle(x, HANDLE_CUlibrary);
	const char *name = get_name(x);
	CUkernel k = NULL;

	if (!name || !get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuLibraryGetKernel(&k, l, name);

	if (!r)
		put_kernel(x, k);
	return r;
}

/* One function of a kernel for the current context, with all that is to know. */
CUresult serve_cuKernelGetFunction(struct exec *x)
{
	CUkernel k = exec_handle(x, HANDLE_CUkernel);
	CUfunction f = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuKernelGetFunction(&f, k);

	if (!r)
		put_function(x, f);
	return r;
}

/* Handles and names only; the rest is asked when one is used. */
CUresult serve_cuModuleEnumerateFunctions(struct exec *x)
{
	unsigned n = (unsigned)get_u64(&x->in);
	CUmodule m = exec_handle(x, HANDLE_CUmodule);

	if (!get_end(&x->in) || n > LIMIT_ARRAY)
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUfunction *f = exec_alloc(x, (n + 1) * sizeof *f);
	CUresult r = f ? drv.cuModuleEnumerateFunctions(f, n, m) : SERVE_BAD;

	if (r)
		return r;
	put_array(&x->out, n);
	for (unsigned i = 0; i < n; i++)
		exec_put_handle(x, HANDLE_CUfunction, f[i]);
	return r;
}

CUresult serve_cuLibraryEnumerateKernels(struct exec *x)
{
	unsigned n = (unsigned)get_u64(&x->in);
	CUlibrary l = exec_handle(x, HANDLE_CUlibrary);

	if (!get_end(&x->in) || n > LIMIT_ARRAY)
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUkernel *k = exec_alloc(x, (n + 1) * sizeof *k);
	CUresult r = k ? drv.cuLibraryEnumerateKernels(k, n, l) : SERVE_BAD;

	if (r)
		return r;
	put_array(&x->out, n);
	for (unsigned i = 0; i < n; i++)
		exec_put_handle(x, HANDLE_CUkernel, k[i]);
	return r;
}

/* What a program's end asks about a function that it got by enumeration: name, layout, attributes. */
CUresult serve_cuFuncGetName(struct exec *x)
{
	CUfunction f = exec_handle(x, HANDLE_CUfunction);
	const char *name = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuFuncGetName(&name, f);

	if (r)
		return r;
	put_text(&x->out, name);
	put_function(x, f);
	return r;
}

CUresult serve_cuKernelGetName(struct exec *x)
{
	CUkernel k = exec_handle(x, HANDLE_CUkernel);
	const char *name = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuKernelGetName(&name, k);

	if (r)
		return r;
	put_text(&x->out, name);
	put_kernel(x, k);
	return r;
}
