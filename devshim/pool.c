/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of memory pools, whose values have two sizes. Thread rule: any thread. */
#include "devshim/call.h"
#include "devshim/handle.h"
#include "devshim/process.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

/* Switches are ints, the others counts of bytes. */
static bool is_switch(CUmemPool_attribute a)
{
	return a == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
	       a == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
	       a == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuMemPoolSetAttribute);

	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!put_handle(&c, HANDLE_CUmemoryPool, pool))
		return handle_error(HANDLE_CUmemoryPool);
	put_i64(&c.out, attr);
	put_u64(&c.out, is_switch(attr) ? (uint64_t)(*(const int *)value != 0) : *(const cuuint64_t *)value);
	r = call_wait(&c);
	return call_end(&c, r);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuMemPoolGetAttribute);

	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!put_handle(&c, HANDLE_CUmemoryPool, pool))
		return handle_error(HANDLE_CUmemoryPool);
	put_i64(&c.out, attr);
	r = call_wait(&c);
	if (!r) {
		uint64_t v = get_u64(&c.in);

		if (is_switch(attr))
			*(int *)value = (int)v;
		else
			*(cuuint64_t *)value = v;
	}
	return call_end(&c, r);
}
