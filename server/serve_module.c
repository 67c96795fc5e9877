/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of modules and the kernels of libraries. The answer that names one brings its parameter
 * layout and its attributes, so that the program's end can validate and pack launches.
 *
 * Thread rule: as exec.h; no state. */
#include "server/exec.h"
#include "server/notes.h"
#include "server/serve.h"
#include "server/state.h"
#include "wire/limits.h"
#include "cuda.calls.h"

#define LIMIT_LAYOUT 8000 /* parameters of a kernel whose layout is told */

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

int current_device(void)
{
	CUcontext ctx = NULL;
	CUdevice dev = 0;

	return !drv.cuCtxGetCurrent(&ctx) && ctx && !drv.cuCtxGetDevice(&dev) ? dev : -1;
}

CUresult attribute_of(unsigned type, void *f, int device, int a, int *v)
{
	return type == HANDLE_CUkernel ? drv.cuKernelGetAttribute(v, a, f, device)
				       : drv.cuFuncGetAttribute(v, a, f);
}

/* Of a function that it has not loaded yet a driver tells some attributes and refuses others: the program's
 * end takes it for loaded when it has been told any. */
static bool is_unloaded(unsigned type, void *f)
{
	CUfunctionLoadingState state;

	return type == HANDLE_CUfunction && !drv.cuFuncIsLoaded(&state, f) &&
	       state == CU_FUNCTION_LOADING_STATE_UNLOADED;
}

void put_facts(struct exec *x, unsigned type, void *f, int device)
{
	int n = device < 0 || is_unloaded(type, f) ? 0 : CU_FUNC_ATTRIBUTE_MAX, v;

	put_i64(&x->out, device);
	put_layout(x, f, type == HANDLE_CUkernel ? kernel_param : function_param);
	put_array(&x->out, n);
	for (int a = 0; a < n; a++) {
		if (attribute_of(type, f, device, a, &v))
			put_nil(&x->out);
		else
			put_i64(&x->out, v);
	}
}

/* The handle, and what is to know of it. `of`: the module or library that is to have it noted, under its
 * name. */
static void put_function(struct exec *x, unsigned type, void *f, uint64_t of, const char *name)
{
	int device = current_device();
	uint8_t entry[8192];
	struct msg m;

	exec_put_handle(x, type, f);
	size_t start = x->out.len;

	put_facts(x, type, f, device);
	/* What a program has set is no other's. */
	if (!name || x->out.bad || atomic_load(&x->session->configured) ||
		handle_changed(x->session->handles, exec_id_of(x, type, f)))
		return;
	msg_init(&m, entry, sizeof entry);
	put_text(&m, name);
	put_u64(&m, NOTE_FUNCTION);
	size_t before = m.len;

	put_i64(&m, device); /* the facts begin with it */
	size_t same = m.len;

	m.len = before;
	put_encoded(&m, x->out.buf + start, x->out.len - start);
	if (!m.bad)
		notes_add(of, entry, m.len, same);
}

static char *get_name(struct exec *x)
{
	char *name = exec_alloc(x, LIMIT_STRING + 1);

	if (name)
		get_text(&x->in, name, LIMIT_STRING + 1);
	return name;
}

/* The program chose its id when it was told of the function; else it learns all. */
static void took(struct exec *x, unsigned type, void *f, uint64_t id, const char *name)
{
	if (id)
		exec_bind(x, type, id, f);
	else
		put_function(x, type, f, x->parent, name);
}

CUresult serve_cuModuleGetFunction(struct exec *x)
{
	CUmodule m = exec_handle(x, HANDLE_CUmodule);
	const char *name = get_name(x);
	uint64_t id = exec_new_id(x);
	CUfunction f = NULL;

	if (!name || !get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuModuleGetFunction(&f, m, name);

	if (!r)
		took(x, HANDLE_CUfunction, f, id, name);
	return r;
}

CUresult serve_cuLibraryGetKernel(struct exec *x)
{
	CUlibrary l = exec_handle(x, HANDLE_CUlibrary);
	const char *name = get_name(x);
	uint64_t id = exec_new_id(x);
	CUkernel k = NULL;

	if (!name || !get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuLibraryGetKernel(&k, l, name);

	if (!r)
		took(x, HANDLE_CUkernel, k, id, name);
	return r;
}

/* One function of a kernel for the current context, with all that is to know. */
CUresult serve_cuKernelGetFunction(struct exec *x)
{
	CUkernel k = exec_handle(x, HANDLE_CUkernel);
	uint64_t id = exec_new_id(x);
	CUfunction f = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuKernelGetFunction(&f, k);

	if (!r)
		took(x, HANDLE_CUfunction, f, id, NULL);
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
	bool load = get_bool(&x->in);
	const char *name = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = load ? drv.cuFuncLoad(f) : CUDA_SUCCESS;

	if (!r)
		r = drv.cuFuncGetName(&name, f);
	if (r)
		return r;
	put_text(&x->out, name);
	put_function(x, HANDLE_CUfunction, f, 0, NULL);
	return r;
}

CUresult serve_cuKernelGetName(struct exec *x)
{
	CUkernel k = exec_handle(x, HANDLE_CUkernel);
	bool load = get_bool(&x->in);
	const char *name = NULL;
	CUfunction f;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = load ? drv.cuKernelGetFunction(&f, k) : CUDA_SUCCESS;

	if (!r)
		r = drv.cuKernelGetName(&name, k);
	if (r || !name)
		return r ? r : CUDA_ERROR_NOT_FOUND;
	put_text(&x->out, name);
	put_function(x, HANDLE_CUkernel, k, handle_parent(x->session->handles, x->first_id), name);
	return r;
}
