/* SPDX-License-Identifier: Apache-2.0 */
/* The launch interface of CUDA 3: a function keeps its block's shape and its parameters. And a
 * cooperative launch on several devices at once, which here is one after another: each kernel's grid
 * barrier is its own.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include <string.h>
#include "server/soft/engine.h"
#include "server/soft/launch.h"

#define PARAMETERS_MOST 4096 /* bytes, as these calls have always had */

struct prepared {
	unsigned block[3];
	unsigned shared;
	size_t bytes; /* as the program said, or as far as it has written */
	uint8_t params[PARAMETERS_MOST];
};

/* In, with the function and what is kept of it. */
static struct guard enter_function(CUfunction h, struct function **f)
{
	struct guard g = enter_healthy();
	if (g.error)
		return g;
	CUresult r = CUDA_SUCCESS;
	*f = function_named(h, g.context, &r);
	if (*f && !(*f)->prepared) {
		struct prepared *p = calloc(1, sizeof *p);
		if (p)
			p->block[0] = p->block[1] = p->block[2] = 1;
		else
			r = CUDA_ERROR_OUT_OF_MEMORY;
		(*f)->prepared = p;
	}
	if (r) {
		guard_leave(&g);
		g = (struct guard){.error = r};
	}
	return g;
}

CUresult cuFuncSetBlockShape(CUfunction h, int x, int y, int z)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (x <= 0 || y <= 0 || z <= 0 || x > 1024 || y > 1024 || z > 64 ||
		(uint64_t)x * (uint64_t)y * (uint64_t)z > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	f->prepared->block[0] = (unsigned)x;
	f->prepared->block[1] = (unsigned)y;
	f->prepared->block[2] = (unsigned)z;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(CUfunction h, unsigned bytes)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (bytes > function_shared_most(f))
		return CUDA_ERROR_INVALID_VALUE;
	f->prepared->shared = bytes;
	return CUDA_SUCCESS;
}

CUresult cuParamSetSize(CUfunction h, unsigned bytes)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (bytes > PARAMETERS_MOST)
		return CUDA_ERROR_INVALID_VALUE;
	f->prepared->bytes = bytes;
	return CUDA_SUCCESS;
}

static CUresult set(CUfunction h, int offset, const void *p, unsigned n)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (offset < 0 || (n && !p) || n > PARAMETERS_MOST || (unsigned)offset > PARAMETERS_MOST - n)
		return CUDA_ERROR_INVALID_VALUE;
	if (n)
		memcpy(f->prepared->params + offset, p, n);
	return CUDA_SUCCESS;
}

CUresult cuParamSeti(CUfunction h, int offset, unsigned value)
{
	return set(h, offset, &value, sizeof value);
}
CUresult cuParamSetf(CUfunction h, int offset, float value)
{
	return set(h, offset, &value, sizeof value);
}
CUresult cuParamSetv(CUfunction h, int offset, void *p, unsigned n)
{
	return set(h, offset, p, n);
}

static CUresult launch(CUfunction h, int width, int height, CUstream stream)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &r);
	if (!s)
		return r;
	if (f->object.context != s->object.context)
		return CUDA_ERROR_INVALID_HANDLE;
	struct prepared *p = f->prepared;
	struct launch_shape shape = {.grid = {(unsigned)width, (unsigned)height, 1},
		.block = {p->block[0], p->block[1], p->block[2]},
		.shared = p->shared};
	size_t bytes = p->bytes;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, p->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
		CU_LAUNCH_PARAM_END};
	struct work w;
	r = launch_prepare(f, &shape, NULL, extra, &w);
	return r ? r : stream_submit(s, &w, NULL);
}

CUresult cuLaunch(CUfunction f)
{
	return launch(f, 1, 1, NULL);
}
CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
	return launch(f, width, height, NULL);
}
CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
	return launch(f, width, height, stream);
}

CUresult cuParamSetTexRef(CUfunction h, int unit, CUtexref t)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	/* References are found by their names: this call has nothing to say any more. */
	return unit == CU_PARAM_TR_DEFAULT && object_find(t, KIND_REFERENCE) ? CUDA_SUCCESS
									     : CUDA_ERROR_INVALID_VALUE;
}

/* ---- several devices */

#define DEVICES_AT_ONCE 64
#define MULTI_KNOWN                                                                                          \
	(CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |                                           \
		CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC)

static bool same_shape(const CUDA_LAUNCH_PARAMS *a, const CUDA_LAUNCH_PARAMS *b)
{
	return a->gridDimX == b->gridDimX && a->gridDimY == b->gridDimY && a->gridDimZ == b->gridDimZ &&
	       a->blockDimX == b->blockDimX && a->blockDimY == b->blockDimY &&
	       a->blockDimZ == b->blockDimZ && a->sharedMemBytes == b->sharedMemBytes;
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned n, unsigned flags)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!list || !n || n > (unsigned)soft.devices || flags & ~(unsigned)MULTI_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = CUDA_SUCCESS;
	struct stream *s[DEVICES_AT_ONCE];
	struct work w[DEVICES_AT_ONCE];
	unsigned made = 0;
	if (n > DEVICES_AT_ONCE)
		return CUDA_ERROR_INVALID_VALUE;
	for (; made < n && !r; made++) {
		const CUDA_LAUNCH_PARAMS *p = &list[made];
		struct launch_shape shape = {.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
			.block = {p->blockDimX, p->blockDimY, p->blockDimZ},
			.shared = p->sharedMemBytes,
			.cooperative = true};
		if ((uintptr_t)p->hStream <= 2 || !same_shape(p, list)) {
			r = (uintptr_t)p->hStream <= 2 ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
			break;
		}
		s[made] = stream_named(g.context, p->hStream, &r);
		struct context *c = s[made] ? s[made]->object.context : NULL;
		for (unsigned i = 0; i < made && c; i++)
			if (s[i]->object.context->device == c->device)
				r = CUDA_ERROR_INVALID_DEVICE;
		struct function *f = c && !r ? function_named(p->function, c, &r) : NULL;
		if (f && f->object.context != c)
			r = CUDA_ERROR_INVALID_HANDLE;
		if (!r && f)
			r = launch_prepare(f, &shape, p->kernelParams, NULL, &w[made]);
		if (r)
			break;
	}
	for (unsigned i = 0; i < made; i++) {
		if (r)
			work_finish(&w[i]);
		else
			r = stream_submit(s[i], &w[i], NULL);
	}
	return r;
}
