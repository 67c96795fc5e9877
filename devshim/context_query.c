/* SPDX-License-Identifier: Apache-2.0 */
/* What applications ask about a context: answered from the shim's state, or asked once and remembered until
 * our own setter changes it.
 *
 * Thread rule: what was learnt is published by its bit in `known`, which is set after the value;
 * `context_lock` is not needed for it. A setter clears the bit before it asks and sets nothing. */
#include <stdatomic.h>
#include <stddef.h>
#include "cuda.calls.h"
#include "cuda.remote.h"
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/occupancy.h"
#include "wire/cuda.h"

#define API_VERSION 3020    /* of all contexts since the _v2 interface */

static bool is_known(struct context *c, unsigned bit)
{
	return atomic_load_explicit(&c->known, memory_order_acquire) & bit;
}

static void learnt(struct context *c, unsigned bit)
{
	atomic_fetch_or_explicit(&c->known, bit, memory_order_release);
}

static void forget(struct context *c, unsigned bit)
{
	atomic_fetch_and_explicit(&c->known, ~bit, memory_order_release);
}

/* True, and the value, unless the answer says that it cannot be told. */
static bool told(struct call *k, int64_t *v)
{
	if (get_nil(&k->in))
		return false;
	*v = get_i64(&k->in);
	return !k->in.bad;
}

void context_facts(struct call *k, struct context *c)
{
	unsigned known = 0;
	int64_t least = 0, greatest = 0, v = 0;

	atomic_store(&c->id, get_u64(&k->in));
	if (get_nil(&k->in))
		return;
	size_t n = get_array(&k->in, 64);
	bool range = told(k, &least);
	if (told(k, &greatest) && range) {
		c->priority[0] = (int)least;
		c->priority[1] = (int)greatest;
		known |= CONTEXT_PRIORITY;
	}
	if (told(k, &v)) {
		c->cache = (CUfunc_cache)v;
		known |= CONTEXT_CACHE;
	}
	for (size_t i = 3; i < n; i++)
		if (told(k, &v) && i - 3 < CONTEXT_LIMITS) {
			c->limit[i - 3] = (size_t)v;
			known |= 1u << (i - 3);
		}
	learnt(c, known);
}

/* The context that a function with a context argument means: NULL stands for the current one. */
static CUresult named(CUcontext ctx, struct context **out)
{
	if (!ctx)
		return context_check_present(out);
	CUresult r = process_check();
	if (r)
		return r;
	*out = context_find(ctx);
	return *out && atomic_load_explicit(&(*out)->alive, memory_order_relaxed) ? CUDA_SUCCESS :
			CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *c = context_current();
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = c->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	if (!ctx)
		return cuCtxGetDevice(device);
	CUresult r = process_check();
	if (r)
		return r;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *c = context_current();
	if (!c || c->handle != ctx)
		c = context_find(ctx);
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = c->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct context *c;
	CUresult r = context_check_present(&c);
	if (r)
		return r;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = atomic_load_explicit(&c->flags, memory_order_relaxed) | (c->primary ? CU_CTX_MAP_HOST : 0);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	struct context *c;
	CUresult r = context_check(&c);
	if (!r)
		r = remote_cuCtxSetFlags(flags);
	if (!r)
		context_set_flags(c, flags);
	return r;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct context *c;
	CUresult r = named(ctx, &c);
	if (r)
		return r;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = API_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	struct context *c;
	CUresult r = named(ctx, &c);
	if (r)
		return r;
	if (!ctxId)
		return CUDA_ERROR_INVALID_VALUE;
	*ctxId = atomic_load_explicit(&c->id, memory_order_relaxed);
	if (*ctxId)
		return CUDA_SUCCESS;
	r = remote_cuCtxGetId(c->handle, ctxId);
	if (!r)
		atomic_store(&c->id, *ctxId);
	return r;
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	struct context *c;
	CUresult r = context_check(&c);
	if (r)
		return r;
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned i = (unsigned)limit, bit = i < CONTEXT_LIMITS ? 1u << i : 0;
	if (bit && is_known(c, bit)) {
		*pvalue = c->limit[i];
		return CUDA_SUCCESS;
	}
	r = remote_cuCtxGetLimit(pvalue, limit);
	if (!r && bit) {
		c->limit[i] = *pvalue;
		learnt(c, bit);
	}
	return r;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct context *c;
	CUresult r = context_check(&c);
	if (r)
		return r;
	/* The driver rounds, and one limit may move another. */
	forget(c, (1u << CONTEXT_LIMITS) - 1);
	return remote_cuCtxSetLimit(limit, value);
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	struct context *c;
	CUresult r = context_check(&c);
	if (r)
		return r;
	if (!pconfig)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_known(c, CONTEXT_CACHE)) {
		*pconfig = c->cache;
		return CUDA_SUCCESS;
	}
	r = remote_cuCtxGetCacheConfig(pconfig);
	if (!r) {
		c->cache = *pconfig;
		learnt(c, CONTEXT_CACHE);
	}
	return r;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct context *c;
	CUresult r = context_check(&c);
	if (r)
		return r;
	forget(c, CONTEXT_CACHE);
	r = remote_cuCtxSetCacheConfig(config);
	if (r || atomic_exchange(&c->chosen, (unsigned)config + 1) != (unsigned)config + 1)
		occupancy_configured();
	return r;
}

/* No device of the last ten years has a choice here: the driver takes the setting and answers with four
 * bytes. */
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	struct context *c;
	CUresult r = context_check(&c);
	if (r)
		return r;
	if (!pConfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct context *c;
	CUresult r = context_check(&c);
	if (r)
		return r;
	return config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	struct context *c;
	CUresult r = context_check(&c);
	if (r)
		return r;
	int range[2] = {c->priority[0], c->priority[1]};
	if (!is_known(c, CONTEXT_PRIORITY)) {
		r = remote_cuCtxGetStreamPriorityRange(&range[0], &range[1]);
		if (r)
			return r;
		c->priority[0] = range[0];
		c->priority[1] = range[1];
		learnt(c, CONTEXT_PRIORITY);
	} else {
		range[0] = c->priority[0];
		range[1] = c->priority[1];
	}
	if (leastPriority)
		*leastPriority = range[0];
	if (greatestPriority)
		*greatestPriority = range[1];
	return CUDA_SUCCESS;
}
