/* SPDX-License-Identifier: Apache-2.0 */
/* The launch interface of CUDA 3, where a function keeps its shape and parameters: the server's driver keeps
 * them. And one launch on several devices at once.
 *
 * Thread rule: any thread; a function is prepared and launched by one thread at a time. */
#include <stdlib.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/function.h"
#include "devshim/handle.h"
#include "devshim/launch.h"
#include "devshim/mirror.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
	return cuParamSetv(hfunc, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction hfunc, int offset, float value)
{
	return cuParamSetv(hfunc, offset, &value, sizeof value);
}

CUresult cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
	struct context *c;
	CUresult r = context_check(&c);

	/* Nonsense at which a driver falls over. */
	if (!r && (!ptr || offset < 0 || numbytes > LAUNCH_PARAMS))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && range_any_host())
		r = mirror_look_at(ptr, (size_t)offset, numbytes);
	return r ? r : remote_cuParamSetv(hfunc, offset, ptr, numbytes);
}

/* Before and after a launch whose parameters only the driver has. */
static CUresult before(void)
{
	struct context *c;
	CUresult r = context_check(&c);

	return r ? r : mirror_send(false);
}

static CUresult launched(CUresult r, CUstream s)
{
	if (!r)
		work_posted(work_of(s), work_mark() + 1);
	return r;
}

CUresult cuLaunch(CUfunction f)
{
	CUresult r = before();

	return r ? r : launched(remote_cuLaunch(f), NULL);
}

CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
	CUresult r = before();

	return r ? r : launched(remote_cuLaunchGrid(f, grid_width, grid_height), NULL);
}

CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
	CUresult r = before();

	return r ? r : launched(remote_cuLaunchGridAsync(f, grid_width, grid_height, hStream), hStream);
}

/* ---- one launch on several devices */

/* Function, shape with stream, size of the parameters; these follow each other in the bulk. */
static CUresult put_launch(struct call *c, const CUDA_LAUNCH_PARAMS *p, struct function *f, uint8_t *room,
	size_t *used)
{
	CUlaunchConfig k = {.gridDimX = p->gridDimX,
		.gridDimY = p->gridDimY,
		.gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX,
		.blockDimY = p->blockDimY,
		.blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes,
		.hStream = p->hStream};
	CUresult r;

	if (!put_handle(c, HANDLE_CUfunction, p->function))
		return CUDA_ERROR_INVALID_HANDLE;
	r = put_launch_shape(c, &k, false);
	if (!r)
		r = put_launch_params(c, f, p->kernelParams, NULL, room + *used);
	put_u64(&c->out, c->bulk_len);
	*used += c->bulk_len;
	c->bulk = NULL;
	c->bulk_len = 0;
	return r;
}

CUresult cuLaunchCooperativeKernelMultiDevice(
	CUDA_LAUNCH_PARAMS *launchParamsList, unsigned int numDevices, unsigned int flags)
{
	struct function *f[LIMIT_DEVICES];
	size_t used = 0;
	uint8_t *room;
	struct call c;
	CUresult r = before();

	if (r)
		return r;
	if (!launchParamsList || !numDevices || numDevices > LIMIT_DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; !r && i < numDevices; i++) {
		f[i] = function_of(launchParamsList[i].function);
		r = f[i] ? function_ready(f[i]) : CUDA_ERROR_INVALID_HANDLE;
		if (!r)
			r = mirror_launch(f[i], launchParamsList[i].kernelParams, NULL);
	}
	if (r)
		return r;
	room = malloc((size_t)numDevices * LAUNCH_PARAMS);
	r = room ? call_begin(&c, CALL_cuLaunchCooperativeKernelMultiDevice) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		put_array(&c.out, numDevices);
		for (unsigned i = 0; !r && i < numDevices; i++)
			r = put_launch(&c, &launchParamsList[i], f[i], room, &used);
		put_u64(&c.out, flags);
	}
	if (!r) {
		c.bulk = room;
		c.bulk_len = used;
		r = call_wait(&c);
		r = call_end(&c, r);
	}
	for (unsigned i = 0; !r && i < numDevices; i++)
		work_posted(work_of(launchParamsList[i].hStream), c.seq);
	free(room);
	return r;
}
