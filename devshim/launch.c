/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches. One that the driver will accept, by all that is known of the function and the device,
 * is posted; any other waits for the driver's own code. Parameters are packed by the function's layout.
 *
 * Thread rule: as call.h. */
#include "devshim/launch.h"

#include <string.h>
#include "devshim/context.h"
#include "devshim/device.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/notes.h"
#include "cuda.calls.h"

#define LIMIT_LAUNCH_ATTRIBUTES 64

static CUresult put_attribute(struct call *c, const CUlaunchAttribute *a)
{
	CUlaunchAttributeValue v = a->value;

	if (a->id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE &&
		v.deviceUpdatableKernelNode.deviceUpdatable)
		return call_unsupported(CALL_cuLaunchKernelEx, "nodes that a device updates are not remoted");
	put_i64(&c->out, a->id);
	put_bytes(&c->out, &v, sizeof v);
	if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT &&
		!put_handle(c, HANDLE_CUevent, v.programmaticEvent.event))
		return CUDA_ERROR_INVALID_HANDLE;
	if (a->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT &&
		!put_handle(c, HANDLE_CUevent, v.launchCompletionEvent.event))
		return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_SUCCESS;
}

CUresult put_launch_shape(struct call *c, const CUlaunchConfig *k, bool attributes)
{
	CUresult r = CUDA_SUCCESS;

	put_u64(&c->out, k->gridDimX);
	put_u64(&c->out, k->gridDimY);
	put_u64(&c->out, k->gridDimZ);
	put_u64(&c->out, k->blockDimX);
	put_u64(&c->out, k->blockDimY);
	put_u64(&c->out, k->blockDimZ);
	put_u64(&c->out, k->sharedMemBytes);
	if (!put_handle(c, HANDLE_CUstream, k->hStream))
		return handle_error(HANDLE_CUstream);
	if (!attributes)
		return r;
	if (k->numAttrs > LIMIT_LAUNCH_ATTRIBUTES || (k->numAttrs && !k->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	put_array(&c->out, k->numAttrs);
	for (unsigned i = 0; !r && i < k->numAttrs; i++)
		r = put_attribute(c, &k->attrs[i]);
	return r;
}

/* The buffer of an `extra` list. */
static CUresult packed_buffer(void **extra, const void **p, size_t *n)
{
	*p = NULL;
	*n = 0;
	while (*extra != CU_LAUNCH_PARAM_END) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*p = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			*n = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
		extra += 2;
	}
	return (*n && !*p) || *n > LAUNCH_PARAMS ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult put_launch_params(struct call *c, const struct function *f, void **params, void **extra, void *room)
{
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (extra)
		return packed_buffer(extra, &c->bulk, &c->bulk_len);
	if (!f->laid_out)
		return call_unsupported(CALL_cuLaunchKernel,
				"the parameter layout of this function is not known");
	if (!f->nparams)
		return CUDA_SUCCESS;
	if (!params || f->bytes > LAUNCH_PARAMS)
		return CUDA_ERROR_INVALID_VALUE;
	/* Padding is zeroed, so that equal launches are equal bytes and nothing of an earlier launch leaves.
	 * */
	memset(room, 0, f->bytes);
	for (unsigned i = 0; i < f->nparams; i++) {
		if (!params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy((uint8_t *)room + f->offset[i], params[i], f->size[i]);
	}
	c->bulk = room;
	c->bulk_len = f->bytes;
	return CUDA_SUCCESS;
}

/* ---- what the driver is known to accept */

static bool within(CUdevice dev, CUdevice_attribute a, unsigned v)
{
	return v && v <= (unsigned)device_attribute(dev, a, 0);
}

static bool shape_fits(const struct function *f, const CUlaunchConfig *k, CUdevice dev)
{
	int threads, dynamic;

	return within(dev, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, k->gridDimX) &&
	       within(dev, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, k->gridDimY) &&
	       within(dev, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, k->gridDimZ) &&
	       within(dev, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, k->blockDimX) &&
	       within(dev, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, k->blockDimY) &&
	       within(dev, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, k->blockDimZ) &&
	       function_attribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, dev, &threads) &&
	       (uint64_t)k->blockDimX * k->blockDimY * k->blockDimZ <= (uint64_t)threads &&
	       function_attribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dev, &dynamic) &&
	       k->sharedMemBytes <= (unsigned)dynamic;
}

/* Code may ask for blocks of one shape, and no attribute tells. So the first launch of a function waits, and
 * the first in another shape: when both are taken, all are. What a driver took is noted for the next program.
 * Blocks of one thread are always taken, as an H200 was seen to. Returns the shape, or 0 when it is known. */
static uint32_t doubtful_shape(const struct function *f, const CUlaunchConfig *k)
{
	uint32_t shape = SHAPE(k->blockDimX, k->blockDimY, k->blockDimZ),
		 known = atomic_load_explicit(&f->shape, memory_order_relaxed);

	return known == shape || known == SHAPE_ANY || shape == SHAPE(1, 1, 1) ? 0 : shape;
}

static bool cluster_fits(const CUlaunchConfig *k, unsigned x, unsigned y, unsigned z)
{
	return x && y && z && (uint64_t)x * y * z <= 8 && k->gridDimX % x == 0 && k->gridDimY % y == 0 &&
	       k->gridDimZ % z == 0;
}

static bool attributes_fit(const CUlaunchConfig *k, CUdevice dev)
{
	int major = device_attribute(dev, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);

	for (unsigned i = 0; i < k->numAttrs; i++) {
		const CUlaunchAttributeValue *v = &k->attrs[i].value;

		switch ((int)k->attrs[i].id) {
		case CU_LAUNCH_ATTRIBUTE_IGNORE:
		case CU_LAUNCH_ATTRIBUTE_PRIORITY: break;
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
			if (major < 9 || !cluster_fits(k, v->clusterDim.x, v->clusterDim.y, v->clusterDim.z))
				return false;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
			if (major < 9)
				return false;
			break;
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			/* A block on each multiprocessor fits if one block fits at all. */
			if (v->cooperative && (uint64_t)k->gridDimX * k->gridDimY * k->gridDimZ >
						      (uint64_t)device_attribute(dev,
							      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0))
				return false;
			break;
		default: return false;
		}
	}
	return true;
}

/* The code's own cluster, to which the grid does not fit or which the launch gives otherwise, or none where
 * one must be given. */
static bool needs_cluster(const struct function *f, const CUlaunchConfig *k, CUdevice dev)
{
	int must = 0, x = 0, y = 0, z = 0;

	if (function_attribute(f, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, dev, &must) && must)
		return true;
	if (!function_attribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, dev, &x) || x <= 0 ||
		!function_attribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, dev, &y) || y <= 0 ||
		!function_attribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, dev, &z) || z <= 0)
		return x > 0;
	for (unsigned i = 0; i < k->numAttrs; i++)
		if (k->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			return true;
	return k->gridDimX % (unsigned)x || k->gridDimY % (unsigned)y || k->gridDimZ % (unsigned)z;
}

static CUresult launch(unsigned id, const CUlaunchConfig *k, CUfunction h, void **params, void **extra,
	bool attributes, bool cooperative)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	struct function *f = function_of(h);

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	struct work *w = work_of(k->hStream);

	r = function_ready(f);
	if (!r)
		r = mirror_launch(f, params, extra);
	if (!r)
		r = call_begin(&c, id);
	if (r)
		return r;
	put_handle(&c, HANDLE_CUfunction, h);
	r = put_launch_shape(&c, k, attributes);
	if (!r)
		r = put_launch_params(&c, f, params, extra, launch_room());
	if (r)
		return r;
	const CUlaunchAttribute coop = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	CUlaunchConfig known = *k;

	if (cooperative) {
		known.attrs = (CUlaunchAttribute *)&coop;
		known.numAttrs = 1;
	}
	/* A function belongs to its context, a kernel to none. */
	CUcontext of = handle_owner(HANDLE_CUfunction, h);
	bool right = (!of || of == ctx->handle) && !work_is_foreign(k->hStream) && !work_capturing() &&
		     shape_fits(f, k, ctx->device) && attributes_fit(&known, ctx->device) &&
		     !needs_cluster(f, &known, ctx->device) && (!extra || c.bulk_len == f->bytes);

	uint32_t shape = right ? doubtful_shape(f, k) : 0;

	put_bool(&c.out, shape);
	if (right && !shape && w && !work_is_full(w)) {
		r = call_post(&c);
	} else {
		r = call_wait(&c);
		r = call_end(&c, r);
	}
	if (r)
		return r;
	work_posted(w, c.seq);
	if (shape)
		function_shape_taken(f, shape);
	return r;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
	unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
	CUstream hStream, void **kernelParams, void **extra)
{
	CUlaunchConfig k = {.gridDimX = gridDimX,
		.gridDimY = gridDimY,
		.gridDimZ = gridDimZ,
		.blockDimX = blockDimX,
		.blockDimY = blockDimY,
		.blockDimZ = blockDimZ,
		.sharedMemBytes = sharedMemBytes,
		.hStream = hStream};

	return launch(CALL_cuLaunchKernel, &k, f, kernelParams, extra, false, false);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	CUresult r = process_check();

	if (r)
		return r;
	return config ? launch(CALL_cuLaunchKernelEx, config, f, kernelParams, extra, true, false)
		      : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
	unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
	unsigned int sharedMemBytes, CUstream hStream, void **kernelParams)
{
	CUlaunchConfig k = {.gridDimX = gridDimX,
		.gridDimY = gridDimY,
		.gridDimZ = gridDimZ,
		.blockDimX = blockDimX,
		.blockDimY = blockDimY,
		.blockDimZ = blockDimZ,
		.sharedMemBytes = sharedMemBytes,
		.hStream = hStream};

	return launch(CALL_cuLaunchCooperativeKernel, &k, f, kernelParams, NULL, false, true);
}
