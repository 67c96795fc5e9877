/* SPDX-License-Identifier: Apache-2.0 */
/* Primary contexts. The answer that names one brings what programs ask of every new context.
 *
 * Thread rule: as exec.h; no state. */
#include "server/exec.h"
#include "cuda.calls.h"

#define LIMITS 16 /* CU_LIMIT_STACK_SIZE and those behind it */

/* Its number, the priorities of its streams, its cache preference, its limits; nil for what cannot be
 * told. */
static void put_facts(struct exec *x, CUcontext ctx)
{
	unsigned long long id = 0;
	CUfunc_cache cache;
	int least, greatest;
	size_t limit;

	put_u64(&x->out, drv.cuCtxGetId(ctx, &id) ? 0 : id);
	if (drv.cuCtxPushCurrent_v2(ctx)) {
		put_nil(&x->out);
		return;
	}
	put_array(&x->out, 2 + 1 + LIMITS);
	if (drv.cuCtxGetStreamPriorityRange(&least, &greatest)) {
		put_nil(&x->out);
		put_nil(&x->out);
	} else {
		put_i64(&x->out, least);
		put_i64(&x->out, greatest);
	}
	if (drv.cuCtxGetCacheConfig(&cache))
		put_nil(&x->out);
	else
		put_i64(&x->out, cache);
	for (int i = 0; i < LIMITS; i++) {
		if (drv.cuCtxGetLimit(&limit, (CUlimit)i))
			put_nil(&x->out);
		else
			put_u64(&x->out, limit);
	}
	drv.cuCtxPopCurrent_v2(&ctx);
}

CUresult serve_cuDevicePrimaryCtxRetain(struct exec *x)
{
	CUdevice dev = (CUdevice)get_i64(&x->in);
	CUcontext ctx = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	CUresult r = drv.cuDevicePrimaryCtxRetain(&ctx, dev);

	if (r)
		return r;
	exec_put_handle(x, HANDLE_CUcontext, ctx);
	put_facts(x, ctx);
	return r;
}
