/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches and what depends on a launch's shape. Parameters come as one packed buffer, laid out as
 * the function's own layout says, and go to the driver as such, so that kernels with 4 KiB and with 32 KiB
 * of them take the same way.
 *
 * Thread rule: as exec.h; no state. */
#include <string.h>
#include "server/exec.h"
#include "server/handle.h"
#include "server/serve.h"
#include "wire/limits.h"
#include "cuda.calls.h"

#define LIMIT_PARAMS (64u << 10) /* bytes of a kernel's parameters; the hardware's limit is 32764 */
#define LIMIT_LAUNCH_ATTRIBUTES 64

struct launch {
	CUfunction f;
	CUlaunchConfig config;
	void *extra[5];
	size_t size;
	bool first; /* in blocks of this shape, as far as the program's end knows */
};

static bool get_attributes(struct exec *x, CUlaunchConfig *c)
{
	size_t n = get_array(&x->in, LIMIT_LAUNCH_ATTRIBUTES);

	if (!n)
		return !x->in.bad;
	c->attrs = exec_alloc(x, n * sizeof *c->attrs);
	c->numAttrs = n;
	for (size_t i = 0; c->attrs && i < n; i++) {
		CUlaunchAttribute *a = &c->attrs[i];

		a->id = (CUlaunchAttributeID)get_i64(&x->in);
		get_bytes(&x->in, &a->value, sizeof a->value);
		/* Handles come behind the bytes that hold the program's value of them. */
		if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
			a->value.programmaticEvent.event = exec_handle(x, HANDLE_CUevent);
		if (a->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
			a->value.launchCompletionEvent.event = exec_handle(x, HANDLE_CUevent);
		if (a->id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
			a->value.deviceUpdatableKernelNode.devNode = NULL;
	}
	return c->attrs && !x->in.bad;
}

static void get_shape(struct exec *x, CUlaunchConfig *c)
{
	c->gridDimX = (unsigned)get_u64(&x->in);
	c->gridDimY = (unsigned)get_u64(&x->in);
	c->gridDimZ = (unsigned)get_u64(&x->in);
	c->blockDimX = (unsigned)get_u64(&x->in);
	c->blockDimY = (unsigned)get_u64(&x->in);
	c->blockDimZ = (unsigned)get_u64(&x->in);
	c->sharedMemBytes = (unsigned)get_u64(&x->in);
	c->hStream = exec_handle(x, HANDLE_CUstream);
}

bool get_launch_config(struct exec *x, CUlaunchConfig *c, bool attributes)
{
	get_shape(x, c);
	return !attributes || get_attributes(x, c);
}

/* The record of the three launch calls; attributes only in that of cuLaunchKernelEx. */
static bool get_launch(struct exec *x, struct launch *l, bool attributes)
{
	void *params = NULL;

	*l = (struct launch){0};
	l->f = exec_handle(x, HANDLE_CUfunction);
	if (!get_launch_config(x, &l->config, attributes))
		return false;
	l->size = x->frame.bulk_len;
	if (l->size) {
		params = exec_bulk_all(x, LIMIT_PARAMS);
		if (!params)
			return false;
		l->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
		l->extra[1] = params;
		l->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
		l->extra[3] = &l->size;
		l->extra[4] = CU_LAUNCH_PARAM_END;
	}
	l->first = get_bool(&x->in);
	return get_end(&x->in);
}

/* What the driver said. That it took the shape is noted for the next program. */
static CUresult launched(struct exec *x, const struct launch *l, CUresult r)
{
	uint32_t shape = SHAPE(l->config.blockDimX, l->config.blockDimY, l->config.blockDimZ);

	if (!r && l->first)
		note_answer(x, NOTE_SHAPE, l->f, &(struct occupancy_question){.a = {shape}}, r, 0);
	return r;
}

CUresult serve_cuLaunchKernel(struct exec *x)
{
	struct launch l;
	const CUlaunchConfig *c = &l.config;

	if (!get_launch(x, &l, false))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	return launched(x, &l,
		drv.cuLaunchKernel(l.f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
			c->blockDimZ, c->sharedMemBytes, c->hStream, NULL, l.size ? l.extra : NULL));
}

CUresult serve_cuLaunchKernelEx(struct exec *x)
{
	struct launch l;

	if (!get_launch(x, &l, true))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	return launched(x, &l, drv.cuLaunchKernelEx(&l.config, l.f, NULL, l.size ? l.extra : NULL));
}

/* The cooperative call takes no packed buffer: the same as an extended launch with the attribute. */
CUresult serve_cuLaunchCooperativeKernel(struct exec *x)
{
	struct launch l;
	CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};

	if (!get_launch(x, &l, false))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	l.config.attrs = &a;
	l.config.numAttrs = 1;
	return launched(x, &l, drv.cuLaunchKernelEx(&l.config, l.f, NULL, l.size ? l.extra : NULL));
}

/* Pointers to the parameters that lie packed in n bytes; NULL when the driver does not tell where. */
static void **unpack(struct exec *x, CUfunction f, CUkernel k, uint8_t *bytes, size_t n)
{
	void **params = exec_alloc(x, (n + 1) * sizeof *params);
	size_t off, size, i = 0;

	for (; params && i < n; i++) {
		if (k ? drv.cuKernelGetParamInfo(k, i, &off, &size)
		      : drv.cuFuncGetParamInfo(f, i, &off, &size))
			break;
		if (off > n || size > n - off)
			return NULL;
		params[i] = bytes + off;
	}
	return i || !n ? params : NULL;
}

/* Kernel nodes of graphs: context, function, whether the parameters go as one buffer, shape without a stream.
 * A buffer only where the program gave one: the driver lets nodes without change more. */
bool get_kernel_node(struct exec *x, CUDA_KERNEL_NODE_PARAMS *p)
{
	CUlaunchConfig c = {0};
	void **extra = exec_alloc(x, 5 * sizeof *extra);
	size_t *size = exec_alloc(x, sizeof *size);
	void *bytes = NULL;

	if (!extra || !size)
		return false;
	*p = (CUDA_KERNEL_NODE_PARAMS){.ctx = exec_handle(x, HANDLE_CUcontext)};
	uint64_t id = get_u64(&x->in);
	void *f = exec_handle_of(x, HANDLE_CUfunction, id);
	bool packed = get_bool(&x->in);

	if (HANDLE_TYPE(id) == HANDLE_CUkernel)
		p->kern = f;
	else
		p->func = f;
	get_shape(x, &c);
	*size = x->frame.bulk_len;
	if (*size && !(bytes = exec_bulk_all(x, LIMIT_PARAMS)))
		return false;
	if (*size && !packed && !x->bad_handle)
		p->kernelParams = unpack(x, p->func, p->kern, bytes, *size);
	if (*size && !p->kernelParams) {
		extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
		extra[1] = bytes;
		extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
		extra[3] = size;
		extra[4] = CU_LAUNCH_PARAM_END;
		p->extra = extra;
	}
	p->gridDimX = c.gridDimX;
	p->gridDimY = c.gridDimY;
	p->gridDimZ = c.gridDimZ;
	p->blockDimX = c.blockDimX;
	p->blockDimY = c.blockDimY;
	p->blockDimZ = c.blockDimZ;
	p->sharedMemBytes = c.sharedMemBytes;
	return get_end(&x->in);
}

/* ---- one launch on several devices: [an array of function, shape with stream, bytes of parameters, flags],
 * bulk: the parameters of all, one after another. The call takes no packed buffers. */

CUresult serve_cuLaunchCooperativeKernelMultiDevice(struct exec *x)
{
	size_t n = get_array(&x->in, LIMIT_DEVICES), used = 0;
	CUDA_LAUNCH_PARAMS *p = exec_alloc(x, (n + 1) * sizeof *p);
	size_t *bytes = exec_alloc(x, (n + 1) * sizeof *bytes);

	for (size_t i = 0; p && bytes && i < n; i++) {
		CUlaunchConfig c = {0};

		p[i].function = exec_handle(x, HANDLE_CUfunction);
		get_shape(x, &c);
		p[i].gridDimX = c.gridDimX;
		p[i].gridDimY = c.gridDimY;
		p[i].gridDimZ = c.gridDimZ;
		p[i].blockDimX = c.blockDimX;
		p[i].blockDimY = c.blockDimY;
		p[i].blockDimZ = c.blockDimZ;
		p[i].sharedMemBytes = c.sharedMemBytes;
		p[i].hStream = c.hStream;
		bytes[i] = get_u64(&x->in);
		if (bytes[i] > LIMIT_PARAMS)
			return SERVE_BAD;
		used += bytes[i];
	}
	unsigned flags = (unsigned)get_u64(&x->in);

	if (!p || !bytes || !get_end(&x->in) || used != x->frame.bulk_len)
		return SERVE_BAD;
	uint8_t *bulk = exec_bulk_all(x, (size_t)LIMIT_DEVICES * LIMIT_PARAMS);

	if (!bulk)
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	for (size_t i = 0; i < n; bulk += bytes[i], i++) {
		p[i].kernelParams = bytes[i] ? unpack(x, p[i].function, NULL, bulk, bytes[i]) : NULL;
		if (bytes[i] && !p[i].kernelParams)
			return SERVE_BAD;
	}
	return drv.cuLaunchCooperativeKernelMultiDevice(p, (unsigned)n, flags);
}
