/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: allocation, release, what is known of an address. An allocation waits for its address,
 * which both ends share; a release waits unless the device has nothing to do, since the driver would wait
 * for the device then, and a post must not hold up the server.
 *
 * Thread rule: any thread; the range table decides which of two threads frees an address. */
#include <pthread.h>
#include <stdlib.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/graph.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "devshim/range.h"
#include "devshim/share.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

/* `types`: of handles by which it may be exported. */
static CUresult note(CUdeviceptr p, size_t size, enum range_kind kind, CUmemoryPool pool, unsigned types)
{
	struct context *c = context_current();
	struct range r = {.base = p, .size = size, .kind = kind, .pool = pool, .types = types};

	r.graph = kind == RANGE_POOL && work_capturing();
	if (r.graph)
		graph_has_memory();
	if (c) {
		r.ctx = c->handle;
		r.device = c->device;
	}
	range_reserve(p, size);
	return range_add(&r) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	struct context *c;
	CUresult r = context_check(&c);

	if (r)
		return r;
	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr = 0;
	r = bytesize ? remote_cuMemAlloc_v2(dptr, bytesize) : CUDA_ERROR_INVALID_VALUE;
	return r ? r : note(*dptr, bytesize, RANGE_DEVICE, NULL, 0);
}

CUresult cuMemAllocPitch_v2(
	CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes)
{
	CUresult r = remote_cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
	size_t size;

	if (r)
		return r;
	if (__builtin_mul_overflow(*pPitch, Height, &size))
		size = *pPitch;
	return note(*dptr, size, RANGE_DEVICE, NULL, 0);
}

static CUresult post_free(CUdeviceptr p)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuMemFree_v2);

	if (r)
		return r;
	put_u64(&c.out, p);
	return call_post(&c);
}

/* The free waits for the device, which may need what the program wrote last. */
static CUresult free_managed(CUdeviceptr p)
{
	struct range range;

	if (!range_take(p, RANGE_MANAGED, &range))
		return CUDA_ERROR_INVALID_VALUE;
	copy_drain();
	mirror_drop(p);
	CUresult r = remote_cuMemFree_v2(p);

	/* A lost context keeps it. */
	if (r && mirror_managed(p, range.size, NULL))
		log_warning("managed memory at %#llx is out of use", (unsigned long long)p);
	return r;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	struct context *current = NULL;
	struct range range;
	CUresult r = process_check();

	/* Nothing is freed by that; but a capture does not take it. */
	if (r || (!dptr && !work_capturing()))
		return r;
	if (!dptr)
		return remote_cuMemFree_v2(dptr);
	r = context_check(&current);
	if (r && r != CUDA_ERROR_INVALID_CONTEXT)
		return r;
	if (range_find(dptr, &range) && range.kind == RANGE_MANAGED && range.base == dptr && range.ctx)
		return free_managed(dptr);
	if (!range_take(dptr, RANGE_DEVICE, &range) && !range_take(dptr, RANGE_POOL, &range))
		return CUDA_ERROR_INVALID_VALUE;
	struct context *owner = context_find(range.ctx);

	if (range.kind == RANGE_DEVICE && owner && owner == current && !work_context_busy(owner)) {
		r = post_free(dptr);
	} else {
		copy_drain();
		r = remote_cuMemFree_v2(dptr);
	}
	if (r || range.graph)
		range_add(&range); /* it is still there, or comes back */
	return r;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	size_t f = 0, t = 0;
	CUresult r = remote_cuMemGetInfo_v2(&f, &t);

	if (r)
		return r;
	if (free)
		*free = f;
	if (total)
		*total = t;
	return r;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct context *c;
	struct range range;
	CUresult r = context_check(&c);

	if (r)
		return r;
	if (!range_find(dptr, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (range.kind == RANGE_VIRTUAL || range.kind == RANGE_MAPPED)
		return remote_cuMemGetAddressRange_v2(pbase, psize, dptr);
	if (pbase)
		*pbase = range.base;
	if (psize)
		*psize = range.size;
	return CUDA_SUCCESS;
}

/* ---- stream-ordered allocation */

static CUresult allocated_async(
	struct call *c, CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream s)
{
	CUresult r = call_wait(c);

	if (!r)
		*dptr = get_u64(&c->in);
	r = call_end(c, r);
	if (r)
		return r;
	work_posted(work_of(s), c->seq);
	unsigned types = pool ? (unsigned)(uintptr_t)handle_data(HANDLE_CUmemoryPool, pool) : 0;

	return *dptr ? note(*dptr, bytesize, RANGE_POOL, pool, types) : CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (!r && !dptr)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = call_begin(&c, CALL_cuMemAllocAsync);
	if (r)
		return r;
	put_u64(&c.out, bytesize);
	if (!put_handle(&c, HANDLE_CUstream, hStream))
		return handle_error(HANDLE_CUstream);
	return allocated_async(&c, dptr, bytesize, NULL, hStream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (!r && !dptr)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = call_begin(&c, CALL_cuMemAllocFromPoolAsync);
	if (r)
		return r;
	put_u64(&c.out, bytesize);
	if (!put_handle(&c, HANDLE_CUmemoryPool, pool))
		return handle_error(HANDLE_CUmemoryPool);
	if (!put_handle(&c, HANDLE_CUstream, hStream))
		return handle_error(HANDLE_CUstream);
	return allocated_async(&c, dptr, bytesize, pool, hStream);
}

/* Posted: of an address that the table knows as stream-ordered the driver can only say yes. Others are
 * asked about, and those of graphs. */
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	struct context *ctx;
	struct range range;
	struct call c;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	r = call_begin(&c, CALL_cuMemFreeAsync);
	if (r)
		return r;
	put_u64(&c.out, dptr);
	if (!put_handle(&c, HANDLE_CUstream, hStream))
		return handle_error(HANDLE_CUstream);
	bool graph = work_capturing() || (range_find(dptr, &range) && range.graph);

	if (!graph && range_take(dptr, RANGE_POOL, &range)) {
		r = call_post(&c);
		if (r)
			range_add(&range);
	} else {
		r = call_wait(&c);
		r = call_end(&c, r);
		if (!r && !graph)
			range_take(dptr, RANGE_DEVICE, &range);
	}
	if (!r)
		work_posted(work_of(hStream), c.seq);
	return r;
}

/* ---- reserved addresses and what is mapped there */

/* Reservations, which a mapping at their start hides in the range table. */
struct reservation {
	struct reservation *next;
	CUdeviceptr p;
	size_t size;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reservation *reservations;

CUresult cuMemAddressReserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	struct reservation *v = malloc(sizeof *v);
	CUresult r =
		v ? remote_cuMemAddressReserve(ptr, size, alignment, addr, flags) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		free(v);
		return r;
	}
	pthread_mutex_lock(&lock);
	*v = (struct reservation){reservations, *ptr, size};
	reservations = v;
	pthread_mutex_unlock(&lock);
	return note(*ptr, size, RANGE_VIRTUAL, NULL, 0);
}

/* Takes the reservation that starts at p off the list, or only looks: its size, 0 when there is none. */
static size_t reservation_at(CUdeviceptr p, bool take)
{
	size_t size = 0;

	pthread_mutex_lock(&lock);
	for (struct reservation **at = &reservations; *at && !size; at = &(*at)->next) {
		struct reservation *v = *at;

		if (v->p != p)
			continue;
		size = v->size;
		if (take) {
			*at = v->next;
			free(v);
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return size;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult r = remote_cuMemAddressFree(ptr, size);

	if (!r) {
		range_take(ptr, RANGE_VIRTUAL, NULL);
		reservation_at(ptr, true);
	}
	return r;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	unsigned long long flags)
{
	CUresult r = remote_cuMemMap(ptr, size, offset, handle, flags);

	return r ? r : note(ptr, size, RANGE_MAPPED, NULL, share_types(handle));
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult r = remote_cuMemUnmap(ptr, size);
	struct range range;
	size_t reserved;

	if (r)
		return r;
	/* One call may unmap several mappings that lie in a row. */
	for (CUdeviceptr p = ptr; p - ptr < size && range_take(p, RANGE_MAPPED, &range); p += range.size)
		if ((reserved = reservation_at(p, false)))
			note(p, reserved, RANGE_VIRTUAL, NULL, 0);
	return r;
}

CUresult cuMemGetAllocationGranularity(
	size_t *granularity, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	return remote_cuMemGetAllocationGranularity(granularity, prop, option);
}
