/* SPDX-License-Identifier: Apache-2.0 */
/* What one can ask of a context and set in it; synchronisation of a whole context.
 *
 * Thread rule: see state.h. */
#include "server/soft/context.h"
#include "server/soft/engine.h"
#include "server/soft/capture.h"
#include "server/soft/stream.h"

CUresult cuCtxGetDevice(CUdevice *out)
{
	guarded g = enter_context();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = g.context->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext h)
{
	if (!h)
		return cuCtxGetDevice(out);
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	const struct context *c = object_find(h, KIND_CONTEXT);
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = c->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags)
{
	guarded g = enter_context();
	if (g.error)
		return g.error;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = g.context->flags | (g.context->primary ? CU_CTX_MAP_HOST : 0);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags)
{
	guarded g = enter_context();
	if (g.error)
		return g.error;
	if (flags & ~CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	g.context->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext h, unsigned long long *id)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	const struct context *c = h ? context_named(h, &why) : context_current(&why);
	if (!c)
		return why;
	*id = c->id;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext h, unsigned *version)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	CUresult why = CUDA_SUCCESS;
	const struct context *c = h ? context_named(h, &why) : context_current(&why);
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = 3020;
	return CUDA_SUCCESS;
}

static CUresult synchronize(struct context *c)
{
	CUresult r = capture_blocks_sync(c);
	if (r)
		return r;
	context_drain(c);
	return c->error;
}

CUresult cuCtxSynchronize(void)
{
	guarded g = enter_healthy();
	return g.error ? g.error : synchronize(g.context);
}

CUresult cuCtxSynchronize_v2(CUcontext h)
{
	if (!h)
		return cuCtxSynchronize();
	guarded g = enter();
	if (g.error)
		return g.error;
	CUresult why = context_allowed();
	struct context *c = why ? NULL : context_named(h, &why);
	if (!c)
		return why;
	if (!c->error)
		return synchronize(c);
	context_drain(c); /* which prints what its work printed */
	return c->error;
}

static bool limit_known(CUlimit l)
{
	return l == CU_LIMIT_STACK_SIZE || l == CU_LIMIT_PRINTF_FIFO_SIZE || l == CU_LIMIT_MALLOC_HEAP_SIZE ||
	       l == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT || l == CU_LIMIT_MAX_L2_FETCH_GRANULARITY ||
	       l == CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit l)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!value || (unsigned)l >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	/* no context here is one of graphics; cuBLAS leaves its handle half made when it cannot learn that */
	if (l == CU_LIMIT_CIG_ENABLED || l == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED) {
		*value = 0;
		return CUDA_SUCCESS;
	}
	if (!limit_known(l))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = g.context->limits[l];
	return CUDA_SUCCESS;
}

#define STACK_MOST (512u << 10)
#define HEAP_MOST (1ull << 32)

CUresult cuCtxSetLimit(CUlimit l, size_t value)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if ((unsigned)l >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!limit_known(l))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	if ((l == CU_LIMIT_STACK_SIZE && value > STACK_MOST) ||
		(l == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128))
		return CUDA_ERROR_INVALID_VALUE;
	if ((l == CU_LIMIT_PRINTF_FIFO_SIZE || l == CU_LIMIT_MALLOC_HEAP_SIZE) && value > HEAP_MOST)
		return CUDA_ERROR_OUT_OF_MEMORY;
	g.context->limits[l] = value;
	if (l == CU_LIMIT_PRINTF_FIFO_SIZE)
		engine_set_printf_fifo(value);
	if (l == CU_LIMIT_MALLOC_HEAP_SIZE)
		engine_set_malloc_heap(value);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *out)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = g.context->cache;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	g.context->cache = config;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *out)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
									    : CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	guarded g = enter_context();
	if (g.error)
		return g.error;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = STREAM_PRIORITY_GREATEST;
	return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	guarded g = enter_healthy();
	return g.error;
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam *out, CUexecAffinityType type)
{
	guarded g = enter_context();
	if (g.error)
		return g.error;
	if (!out || (unsigned)type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	const struct context *c = context_named(peer, &why);
	return c ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	CUresult why = CUDA_SUCCESS;
	return context_named(peer, &why) ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_ERROR_INVALID_CONTEXT;
}
