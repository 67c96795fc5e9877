/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the application calls pinned: ordinary memory of the program, or of the arena that its
 * mount sees (arena.h), noted in the range table. Copies from and to it behave as with pinned memory because
 * copy.c says so; kernels reach it once it is in use in place (mirror.h), which the flag Mapped or asking for
 * its device pointer brings about.
 *
 * Thread rule: any thread. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "devshim/arena.h"
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/mirror.h"
#include "devshim/range.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/log.h"
#include "cuda.remote.h"

#define ALLOC_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                                                       \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |          \
		CU_MEMHOSTREGISTER_READ_ONLY)

#define ARENA_LEAST ((size_t)128 << 10) /* smaller copies go through the ring, wherever their bytes are */

/* Memory that the mount sees, where there is any: copies to the device then leave from where they lie. A
 * child shares it, as natively (arena.c), or other shared memory. Memory for kernels is private, so that its
 * written pages can be told (watch.h): a child has a copy of it. */
static void *pinned_alloc(size_t n, bool mapped, struct range *r)
{
	void *p = n >= ARENA_LEAST && !mapped ? arena_alloc(n, &r->arena, &r->forks) : NULL;

	r->shared = !mapped;
	if (p)
		return p;
	r->arena = 0;
	p = mmap(NULL, n, PROT_READ | PROT_WRITE, (mapped ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void pinned_free(const struct range *r)
{
	if (r->arena)
		arena_free((void *)(uintptr_t)r->base, r->mapped, r->arena, r->forks);
	else
		munmap((void *)(uintptr_t)r->base, r->mapped);
}

/* What a capture forbids it answers as the driver does, and is invalid from then on: an allocation of the
 * same kind asks it. */
static CUresult ask_captures(void)
{
	CUdeviceptr p;
	CUresult r = work_capturing() ? remote_cuMemAlloc_v2(&p, 1) : CUDA_SUCCESS;

	return r || !work_capturing() ? r : remote_cuMemFree_v2(p);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped;
	struct context *c;
	CUresult r = context_check(&c);
	int saved = errno;

	if (r)
		return r;
	if (!pp || (Flags & ~ALLOC_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	*pp = NULL;
	r = ask_captures();
	if (r || !bytesize)
		return r;
	if (__builtin_add_overflow(bytesize, page - 1, &mapped))
		return CUDA_ERROR_OUT_OF_MEMORY;
	mapped -= mapped % page;
	struct range range = {.size = bytesize,
		.kind = RANGE_HOST,
		.flags = Flags,
		.device = c->device,
		.ctx = c->handle,
		.mapped = mapped};
	void *p = pinned_alloc(mapped, Flags & CU_MEMHOSTALLOC_DEVICEMAP, &range);

	errno = saved;
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range.base = (uintptr_t)p;
	if (!range_add(&range)) {
		pinned_free(&range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*pp = p;
	/* Kernels may find it through other memory. What cannot be had in place still serves for copies; the
	 * call that asks for its address tells. */
	if (Flags & CU_MEMHOSTALLOC_DEVICEMAP && mirror_use(range.base))
		log_warning("kernels cannot use the %zu bytes of mapped memory at %p", bytesize, p);
	return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

/* A copy under way may still use the memory: it goes once the device has nothing to do. */
static void drain(CUcontext owner)
{
	struct context *c = context_find(owner);

	if (c && c == context_current() && !work_capturing() && work_context_busy(c))
		cuCtxSynchronize();
}

/* The code of a call on memory that works without a current context, but not in a lost one. */
static CUresult check_lost(void)
{
	struct context *c;
	CUresult r = context_check(&c);

	return r == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : r;
}

CUresult cuMemFreeHost(void *p)
{
	struct range range;
	CUresult r = check_lost();

	if (r || !p)
		return r;
	if (!range_find((uintptr_t)p, &range) || range.base != (uintptr_t)p || range.kind != RANGE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	drain(range.ctx);
	mirror_drop(range.base);
	if (!range_take((uintptr_t)p, RANGE_HOST, &range))
		return CUDA_ERROR_INVALID_VALUE;
	pinned_free(&range);
	return CUDA_SUCCESS;
}

/* Whether the program has all of these pages. */
static bool all_there(uintptr_t at, size_t n, size_t page)
{
	uintptr_t from = at - at % page;
	int saved = errno;
	bool there = !msync((void *)from, n + (at - from), MS_ASYNC);

	errno = saved;
	return there;
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct context *c;
	struct range other;
	CUresult r = context_check(&c);
	uintptr_t at = (uintptr_t)p;

	if (r)
		return r;
	if (!p || !bytesize || at + bytesize < at || (Flags & ~REGISTER_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	/* Memory of a device of this machine: the driver here would know none either. */
	if (Flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CUDA_ERROR_INVALID_VALUE;
	if (!all_there(at, bytesize, page))
		return CUDA_ERROR_INVALID_VALUE;
	if (range_overlap(at, bytesize, &other))
		return range_is_host(&other) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
					     : CUDA_ERROR_INVALID_VALUE;
	struct range range = {.base = at,
		.size = bytesize,
		.kind = RANGE_REGISTERED,
		.flags = Flags,
		.device = c->device,
		.ctx = c->handle};

	return range_add(&range) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostUnregister(void *p)
{
	struct range range;
	CUresult r = check_lost();

	if (r)
		return r;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (!range_find((uintptr_t)p, &range))
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	if (range.kind != RANGE_REGISTERED)
		return CUDA_ERROR_INVALID_VALUE;
	if (range.base != (uintptr_t)p)
		return CUDA_ERROR_INVALID_VALUE;
	drain(range.ctx);
	mirror_drop(range.base);
	return range_take((uintptr_t)p, RANGE_REGISTERED, NULL) ? CUDA_SUCCESS
								: CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct context *c;
	struct range range;
	CUresult r = context_check(&c);

	if (r)
		return r;
	if (!pFlags || !range_find((uintptr_t)p, &range) || !range_is_host(&range))
		return CUDA_ERROR_INVALID_VALUE;
	/* With unified addresses the driver calls all of it mapped. */
	*pFlags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	struct context *c;
	struct range range;
	CUresult r = context_check(&c);

	if (r)
		return r;
	if (!pdptr || Flags || !range_find((uintptr_t)p, &range) || !range_is_host(&range))
		return CUDA_ERROR_INVALID_VALUE;
	r = mirror_use(range.base);
	if (!r)
		*pdptr = (uintptr_t)p;
	return r;
}
