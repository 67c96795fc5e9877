/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches: checks in the driver's order, parameters in both forms, launch attributes.
 *
 * Thread rule: see state.h. */
#include "server/soft/launch.h"
#include <stdlib.h>
#include <string.h>
#include "server/soft/capture.h"
#include "server/soft/device.h"
#include "server/soft/engine.h"
#include "server/soft/event.h"
#include "server/soft/logs.h"
#include "wire/log.h"

#define PARAMETER_BYTES (64u << 10)

/* Parameters as one block, from CU_LAUNCH_PARAM_... tags. */
static CUresult extra_read(void **extra, const void **p, size_t *n)
{
	*p = NULL;
	*n = 0;
	size_t *bytes = NULL;
	for (unsigned i = 0; i < 16 && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*p = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			bytes = extra[i + 1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (bytes)
		*n = *bytes;
	return CUDA_SUCCESS;
}

static CUresult parameters(const struct engine_function_info *info, void **params, void **extra, void **out)
{
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (info->param_bytes > PARAMETER_BYTES)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	char *block = calloc(1, info->param_bytes ? info->param_bytes : 1);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult r = CUDA_SUCCESS;
	if (extra) {
		const void *p;
		size_t n;
		r = extra_read(extra, &p, &n);
		size_t least = info->nparams ? info->params[info->nparams - 1].offset +
						       info->params[info->nparams - 1].size
					     : 0;
		/* As an H200: a short buffer is taken, one that is longer than the parameters is not. */
		if (!r && least && !p)
			r = CUDA_ERROR_INVALID_VALUE;
		if (!r && p && n > least)
			r = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
		if (!r && p && least)
			memcpy(block, p, n < least ? n : least);
	} else if (info->nparams) {
		for (unsigned i = 0; i < info->nparams && !r; i++) {
			if (!params || !params[i])
				r = CUDA_ERROR_INVALID_VALUE;
			else
				memcpy(block + info->params[i].offset, params[i], info->params[i].size);
		}
	}
	if (r)
		free(block);
	else
		*out = block;
	return r;
}

static unsigned cluster_of(const struct function *f, const struct launch_shape *s, int i)
{
	const int *own = f->settings.cluster;
	return s->cluster[i] ? s->cluster[i] : own[i] > 0 ? (unsigned)own[i] : 1;
}

/* Compute capability 9.0 and up have clusters. */
static CUresult cluster_check(const struct function *f, const struct launch_shape *s)
{
	uint64_t all = 1;
	for (int i = 0; i < 3; i++) {
		unsigned n = cluster_of(f, s, i);
		int own = f->settings.cluster[i];
		if (n > ENGINE_CLUSTER || s->grid[i] % n || (own > 0 && n != (unsigned)own))
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		all *= n;
	}
	unsigned most = soft.major < 9 ? 1 : f->settings.non_portable ? ENGINE_CLUSTER : CLUSTER_PORTABLE;
	return all > most ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

static CUresult shape_check(const struct function *f, const struct launch_shape *s)
{
	const struct engine_function_info *info = engine_function_info(f->code);
	const unsigned *g = s->grid, *b = s->block;
	if (!g[0] || !g[1] || !g[2] || !b[0] || !b[1] || !b[2])
		return CUDA_ERROR_INVALID_VALUE;
	if (g[0] > 0x7fffffffu || g[1] > 65535 || g[2] > 65535 || b[0] > 1024 || b[1] > 1024 || b[2] > 64)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t threads = (uint64_t)b[0] * b[1] * b[2];
	if (threads > (unsigned)info->max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	const unsigned *q = info->required;
	/* A block of one thread is taken whatever the code asks for, as an H200 was seen to. */
	if (q[0] && threads > 1 && (q[0] != b[0] || q[1] != b[1] || q[2] != b[2]))
		return CUDA_ERROR_INVALID_VALUE;
	if (s->cooperative) {
		uint64_t blocks = (uint64_t)g[0] * g[1] * g[2];
		if (blocks > (uint64_t)function_blocks(f, threads, s->shared) * soft.workers)
			return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	}
	if (s->shared > function_shared_most(f))
		return CUDA_ERROR_INVALID_VALUE;
	return cluster_check(f, s);
}

CUresult launch_prepare(
	struct function *f, const struct launch_shape *s, void **params, void **extra, struct work *w)
{
	const struct engine_function_info *info = engine_function_info(f->code);
	CUresult r = shape_check(f, s);
	if (r) {
		soft_log(CU_LOG_LEVEL_ERROR,
			"kernel %s cannot be launched: grid %ux%ux%u, block %ux%ux%u, "
			"%zu bytes of shared memory: code %d",
			info->name, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2],
			s->shared, (int)r);
		return r;
	}
	void *block = NULL;
	r = parameters(info, params, extra, &block);
	if (r) {
		soft_log(CU_LOG_LEVEL_ERROR, "kernel %s cannot be launched: its %u parameters are not given",
			info->name, info->nparams);
		return r;
	}
	if (info->uncovered) {
		free(block);
		log_warning("kernel %s: the software device does not have %s", info->name, info->uncovered);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	*w = (struct work){.type = WORK_KERNEL,
		.kernel = {.function = object_ref(f),
			.shared = s->shared,
			.params = block,
			.cooperative = s->cooperative,
			.priority = s->priority}};
	for (int i = 0; i < 3; i++) {
		w->kernel.grid[i] = s->grid[i];
		w->kernel.block[i] = s->block[i];
		w->kernel.cluster[i] = cluster_of(f, s, i);
	}
	return CUDA_SUCCESS;
}

/* In, with the function in the stream's context. */
static CUresult launch(struct guard *g, CUfunction h, CUstream stream, const struct launch_shape *shape,
	void **params, void **extra, struct event *after)
{
	CUresult r = CUDA_SUCCESS;
	struct function *f = function_named(h, g->context, &r);
	if (!f)
		return r;
	struct stream *s = stream_named(g->context, stream, &r);
	if (!s)
		return r;
	if (f->object.context != s->object.context)
		return CUDA_ERROR_INVALID_HANDLE;
	struct work w;
	r = launch_prepare(f, shape, params, extra, &w);
	if (r && s->capture)
		capture_spoil(s);
	if (!r)
		r = stream_submit(s, &w, NULL);
	f->loaded |= !r;
	if (!r && after)
		r = event_record(after, s);
	return r;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct launch_shape s = {.grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared};
	return launch(&g, f, stream, &s, params, extra, NULL);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct launch_shape s = {
		.grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared, .cooperative = true};
	return launch(&g, f, stream, &s, params, NULL, NULL);
}

#define ATTRIBUTES_MOST 64

static CUresult attribute(const CUlaunchAttribute *a, struct launch_shape *s, struct event **after)
{
	const CUlaunchAttributeValue *v = &a->value;
	switch (a->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: s->cooperative = v->cooperative != 0; return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY: s->priority = v->priority; return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		if (!v->clusterDim.x || !v->clusterDim.y || !v->clusterDim.z)
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		s->cluster[0] = v->clusterDim.x;
		s->cluster[1] = v->clusterDim.y;
		s->cluster[2] = v->clusterDim.z;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		*after = object_find(v->launchCompletionEvent.event, KIND_EVENT);
		return *after ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		*after = object_find(v->programmaticEvent.event, KIND_EVENT);
		return *after ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return v->sharedMemCarveout <= 100 || v->sharedMemCarveout == ~0u ? CUDA_SUCCESS
										  : CUDA_ERROR_INVALID_VALUE;
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* a hint: the next kernel may start early
								     */
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return v->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE ? CUDA_SUCCESS :
				CUDA_ERROR_INVALID_VALUE;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return v->deviceUpdatableKernelNode.deviceUpdatable ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!config || config->numAttrs > ATTRIBUTES_MOST || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	struct launch_shape s = {
		.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
		.shared = config->sharedMemBytes,
	};
	struct event *after = NULL;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		CUresult r = attribute(&config->attrs[i], &s, &after);
		if (r)
			return r;
	}
	return launch(&g, f, config->hStream, &s, params, extra, after);
}
