/* SPDX-License-Identifier: Apache-2.0 */
/* The memory functions of the API: device, pitched, managed, pinned and registered memory.
 *
 * Thread rule: see state.h. A free waits for all work of the context, as the real driver's does. */
#include <unistd.h>
#include <sys/mman.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/allocation.h"
#include "server/soft/capture.h"
#include "server/soft/context.h"
#include "server/soft/pool.h"
#include "server/soft/stream.h"

#define PITCH_ALIGN 512u

#define SOILED 4096u        /* bytes at the front of new managed memory */

/* In, for a call that a capture of this thread may forbid. */
static struct guard enter_safe(void)
{
	struct guard g = enter_healthy();
	if (g.error)
		return g;
	g.error = capture_unsafe();
	if (g.error) {
		guard_leave(&g);
		g.held = false;
	}
	return g;
}

static CUresult take(struct context *c, enum allocation_kind kind, unsigned flags, size_t n, CUdeviceptr *out)
{
	struct allocation a = {.kind = kind, .device = c->device, .owner = c, .flags = flags};
	*out = allocation_create(&a, n, 512);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t n)
{
	guarded g = enter_safe();
	if (g.error)
		return g.error;
	if (!out || !n)
		return CUDA_ERROR_INVALID_VALUE;
	return take(g.context, ALLOCATION_DEVICE, 0, n, out);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
	guarded g = enter_safe();
	if (g.error)
		return g.error;
	if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	size_t row = (width + PITCH_ALIGN - 1) / PITCH_ALIGN * PITCH_ALIGN, n;
	if (row < width || __builtin_mul_overflow(row, height, &n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult r = take(g.context, ALLOCATION_DEVICE, 0, n, out);
	if (!r)
		*pitch = row;
	return r;
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t n, unsigned flags)
{
	guarded g = enter_safe();
	if (g.error)
		return g.error;
	if (!out || !n || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = take(g.context, ALLOCATION_MANAGED, flags, n, out);
	/* Not zero, as on a real device, so that who counts on it is found here. */
	if (!r)
		memset((void *)*out, 0x5a, n < SOILED ? n : SOILED);
	return r;
}

/* The context that has to be quiet before its memory goes. */
static CUresult quiet(const struct allocation *a)
{
	struct context *c = a->owner;
	if (!c)
		return CUDA_SUCCESS;
	if (c->error)
		return c->error;
	CUresult r = context_allowed();
	r = r ? r : capture_unsafe();
	if (!r)
		context_drain(c);
	return r ? r : c->error;
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!p)
		return capture_unsafe();
	struct allocation a;
	bool known = allocation_find(p, &a) && a.base == p &&
		     (a.kind == ALLOCATION_DEVICE || a.kind == ALLOCATION_MANAGED ||
			     (a.kind == ALLOCATION_POOL && !a.freeing));
	if (!known)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = quiet(&a);
	if (r)
		return r;
	if (a.kind == ALLOCATION_POOL)
		pool_give(p);
	else
		allocation_remove(p);
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	size_t f, t;
	allocation_info(g.context->device, &f, &t);
	if (free_bytes)
		*free_bytes = f;
	if (total)
		*total = t;
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(unsigned *free_bytes, unsigned *total)
{
	size_t f, t;
	CUresult r = cuMemGetInfo_v2(&f, &t);
	if (r)
		return r;
	if (free_bytes)
		*free_bytes = f > ~0u ? ~0u : (unsigned)f;
	if (total)
		*total = t > ~0u ? ~0u : (unsigned)t;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct allocation a;
	if (!allocation_find(p, &a))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = a.base;
	if (size)
		*size = a.bytes;
	return CUDA_SUCCESS;
}

/* ---- host memory */

#define HOSTALLOC_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define HOSTREGISTER_FLAGS                                                                                   \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |          \
		CU_MEMHOSTREGISTER_READ_ONLY)

CUresult cuMemHostAlloc(void **out, size_t n, unsigned flags)
{
	guarded g = enter_safe();
	if (g.error)
		return g.error;
	if (!out || flags & ~(unsigned)HOSTALLOC_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	if (!n)
		return CUDA_SUCCESS;
	CUdeviceptr p;
	CUresult r = take(g.context, ALLOCATION_PINNED, flags | CU_MEMHOSTALLOC_DEVICEMAP, n, &p);
	*out = (void *)(uintptr_t)p;
	return r;
}
CUresult cuMemAllocHost_v2(void **out, size_t n)
{
	return cuMemHostAlloc(out, n, 0);
}
CUresult cuMemAllocHost(void **out, unsigned n)
{
	return cuMemHostAlloc(out, n, 0);
}

CUresult cuMemFreeHost(void *h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!h)
		return CUDA_SUCCESS;
	struct allocation a;
	uint64_t p = (uintptr_t)h;
	if (!allocation_find(p, &a) || a.base != p || a.kind != ALLOCATION_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = quiet(&a);
	if (!r)
		allocation_remove(p);
	return r;
}

static bool is_host(const struct allocation *a)
{
	return a->kind == ALLOCATION_PINNED || a->kind == ALLOCATION_REGISTERED;
}

/* Whether the program has all of these pages. */
static bool all_there(uintptr_t p, size_t n)
{
	size_t skew = p % (size_t)sysconf(_SC_PAGESIZE);

	return !msync((void *)(p - skew), n + skew, MS_ASYNC);
}

CUresult cuMemHostRegister_v2(void *h, size_t n, unsigned flags)
{
	guarded g = enter_safe();
	if (g.error)
		return g.error;
	if (!h || !n || flags & ~(unsigned)HOSTREGISTER_FLAGS || (uintptr_t)h + n < n ||
			!all_there((uintptr_t)h, n))
		return CUDA_ERROR_INVALID_VALUE;
	struct allocation other;
	if (allocation_find((uintptr_t)h, &other) && !is_host(&other))
		return CUDA_ERROR_INVALID_VALUE;
	struct allocation a = {.base = (uintptr_t)h,
		.bytes = n,
		.kind = ALLOCATION_REGISTERED,
		.device = g.context->device,
		.owner = g.context,
		.flags = flags};
	return allocation_enter(&a) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult cuMemHostUnregister(void *h)
{
	guarded g = enter_safe();
	if (g.error)
		return g.error;
	struct allocation a;
	uint64_t p = (uintptr_t)h;
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation_find(p, &a))
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	if (a.kind != ALLOCATION_REGISTERED || a.base != p)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = quiet(&a);
	if (!r)
		allocation_remove(p);
	return r;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *h, unsigned flags)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct allocation a;
	if (!out || flags || !allocation_find((uintptr_t)h, &a) ||
		!(is_host(&a) || a.kind == ALLOCATION_MANAGED))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (uintptr_t)h;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct allocation a;
	if (!flags || !allocation_find((uintptr_t)h, &a) || !is_host(&a))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = a.flags | CU_MEMHOSTALLOC_DEVICEMAP; /* all of it is, where addresses are unified */
	return CUDA_SUCCESS;
}
