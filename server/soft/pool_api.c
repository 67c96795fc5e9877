/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: making and ending them, the current one of a device, their attributes and who may reach them.
 *
 * Thread rule: see pool.h. */
#include "server/soft/context.h"
#include "server/soft/pool.h"

static CUresult device_pool(CUmemoryPool *out, CUdevice d, bool standard)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_primary(d))
		return CUDA_ERROR_INVALID_DEVICE;
	struct pool *p = standard ? pool_default(d) : pool_current(d);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(p);
	return CUDA_SUCCESS;
}
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice d)
{
	return device_pool(out, d, true);
}
CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice d)
{
	return device_pool(out, d, false);
}

static CUresult location_pool(CUmemoryPool *out, CUmemLocation *l, CUmemAllocationType type, bool standard)
{
	/* A documented kind, which this device has not. */
	if (l && out && type == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!l || !out || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	return l->type == CU_MEM_LOCATION_TYPE_DEVICE ? device_pool(out, l->id, standard)
						      : CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *l, CUmemAllocationType type)
{
	return location_pool(out, l, type, true);
}
CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *l, CUmemAllocationType type)
{
	return location_pool(out, l, type, false);
}

CUresult cuDeviceSetMemPool(CUdevice d, CUmemoryPool h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!context_primary(d))
		return CUDA_ERROR_INVALID_DEVICE;
	struct pool *p = object_find(h, KIND_POOL);
	if (!p || p->device != d)
		return CUDA_ERROR_INVALID_VALUE;
	pool_set_current(d, p);
	return CUDA_SUCCESS;
}

CUresult cuMemSetMemPool(CUmemLocation *l, CUmemAllocationType type, CUmemoryPool h)
{
	if (l && type == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!l || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	return l->type == CU_MEM_LOCATION_TYPE_DEVICE ? cuDeviceSetMemPool(l->id, h)
						      : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!context_primary(props->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	struct pool *p = pool_create(props->location.id, props);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(p);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct pool *p = object_find(h, KIND_POOL);
	if (!p || p->standard)
		return CUDA_ERROR_INVALID_VALUE;
	pool_forget_current(p);
	object_close(&p->object); /* what was allocated from it keeps it alive */
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool h, size_t keep)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	(void)keep; /* nothing is held back that could be given up */
	return object_find(h, KIND_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int *switch_of(struct pool *p, CUmemPool_attribute a)
{
	return a == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES     ? &p->follow
	       : a == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC         ? &p->opportunistic
	       : a == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES ? &p->internal
									: NULL;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool h, CUmemPool_attribute a, void *value)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct pool *p = object_find(h, KIND_POOL);
	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	if (switch_of(p, a)) {
		*(int *)value = *switch_of(p, a);
		return CUDA_SUCCESS;
	}
	switch (a) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = p->threshold; return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = p->used; return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = p->used_high; return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemPoolSetAttribute(CUmemoryPool h, CUmemPool_attribute a, void *value)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct pool *p = object_find(h, KIND_POOL);
	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	if (switch_of(p, a)) {
		*switch_of(p, a) = *(const int *)value != 0;
		return CUDA_SUCCESS;
	}
	cuuint64_t v = *(const cuuint64_t *)value;
	switch (a) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: p->threshold = v; return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (v)
			return CUDA_ERROR_INVALID_VALUE;
		p->used_high = p->used;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemPoolSetAccess(CUmemoryPool h, const CUmemAccessDesc *map, size_t n)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct pool *p = object_find(h, KIND_POOL);
	if (!p || (n && !map))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
			!context_primary(map[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (map[i].location.id == p->device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool h, CUmemLocation *l)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct pool *p = object_find(h, KIND_POOL);
	if (!p || !flags || !l)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = l->type == CU_MEM_LOCATION_TYPE_DEVICE && context_primary(l->id)
			 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}
