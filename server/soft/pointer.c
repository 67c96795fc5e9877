/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of an address, and advice about managed memory.
 *
 * Thread rule: see state.h. */
#include "server/soft/allocation.h"
#include "server/soft/context.h"
#include "server/soft/pool.h"
#include "server/soft/stream.h"

static CUresult attribute(void *out, CUpointer_attribute a, CUdeviceptr p)
{
	struct allocation m;
	if (!allocation_find(p, &m))
		return CUDA_ERROR_INVALID_VALUE;
	bool host = m.kind == ALLOCATION_PINNED || m.kind == ALLOCATION_REGISTERED,
	     managed = m.kind == ALLOCATION_MANAGED;
	struct context *owner = m.owner;
	switch (a) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)out = owner && m.kind != ALLOCATION_POOL && m.kind != ALLOCATION_MAPPED
					    ? HANDLE(owner)
					    : NULL;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)out = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)out = p; break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host && !managed)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)out = (void *)(uintptr_t)p;
		break;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		if (host)
			return CUDA_ERROR_INVALID_VALUE;
		*(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS *)out =
			(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS){.p2pToken = m.id};
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned *)out = m.sync_memops || m.kind == ALLOCATION_DEVICE || managed;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)out = m.id; break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)out = managed; break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)out = m.device; break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned *)out = m.kind == ALLOCATION_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)out = m.base; break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)out = m.bytes; break;
	case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)out = 1; break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)out = m.kind == ALLOCATION_MAPPED ? m.flags :
				m.kind == ALLOCATION_POOL ? ((struct pool *)m.pool)->props.handleTypes : 0;
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: *(unsigned *)out = 0; break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)out = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)out = m.kind == ALLOCATION_POOL ? HANDLE((struct pool *)m.pool) : NULL;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *(size_t *)out = m.bytes; break;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *(CUdeviceptr *)out = m.base; break;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: *(unsigned long long *)out = m.id; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute a, CUdeviceptr p)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	return out ? attribute(out, a, p) : CUDA_ERROR_INVALID_VALUE;
}

/* What the attribute of memory that is not known reads as. */
static CUresult nothing(void *out, CUpointer_attribute a)
{
	switch (a) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: *(uint64_t *)out = 0; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)out = -2; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: *(unsigned *)out = 0; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		*(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS *)out = (CUDA_POINTER_ATTRIBUTE_P2P_TOKENS){0};
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *a, void **out, CUdeviceptr p)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!n || n > 1024 || !a || !out)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++)
		if (a[i] < CU_POINTER_ATTRIBUTE_CONTEXT ||
			a[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE || !out[i])
			return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++)
		if (attribute(out[i], a[i], p))
			nothing(out[i], a[i]);
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute a, CUdeviceptr p)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct allocation m;
	if (!value || a != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !allocation_find(p, &m))
		return CUDA_ERROR_INVALID_VALUE;
	m.sync_memops = *(const unsigned *)value != 0;
	allocation_update(&m);
	return CUDA_SUCCESS;
}

/* ---- managed memory: host and device share it, so that nothing has to move */

static bool managed_range(CUdeviceptr p, size_t n)
{
	struct allocation m;
	return n && allocation_find(p, &m) && m.kind == ALLOCATION_MANAGED && n <= m.bytes - (p - m.base);
}

/* Module variables may be __managed__; the engine knows, the table does not. */
static bool advisable(CUdeviceptr p, size_t n)
{
	struct allocation m;
	return managed_range(p, n) ||
	       (n && allocation_find(p, &m) && m.kind == ALLOCATION_MODULE && n <= m.bytes - (p - m.base));
}

static CUresult advise(CUdeviceptr p, size_t n, CUmem_advise advice)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY ||
		!advisable(p, n))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise advice, CUdevice device)
{
	bool placed = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
			advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
		      advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
	CUresult r = advise(p, n, advice);
	if (!r && placed && device != CU_DEVICE_CPU && (device < 0 || device >= soft.devices))
		r = CUDA_ERROR_INVALID_DEVICE;
	return r;
}
CUresult cuMemAdvise_v2(CUdeviceptr p, size_t n, CUmem_advise advice, CUmemLocation location)
{
	(void)location;
	return advise(p, n, advice);
}

static CUresult prefetch(CUdeviceptr p, size_t n, CUstream stream)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!advisable(p, n))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult why = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &why);
	if (!s)
		return why;
	struct work w = {.type = WORK_EMPTY};
	return stream_submit(s, &w, NULL);
}

CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice device, CUstream stream)
{
	if (device != CU_DEVICE_CPU && !context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return prefetch(p, n, stream);
}
CUresult cuMemPrefetchAsync_v2(
	CUdeviceptr p, size_t n, CUmemLocation location, unsigned flags, CUstream stream)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && !context_primary(location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	return prefetch(p, n, stream);
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr p, size_t n, unsigned flags)
{
	struct allocation m;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!n && allocation_find(p, &m))
		n = m.bytes;
	return prefetch(p, n, stream);
}

static CUresult range_attribute(void *out, size_t n, CUmem_range_attribute a)
{
	switch (a) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		if (n != sizeof(int))
			return CUDA_ERROR_INVALID_VALUE;
		*(int *)out = 0;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		if (n != sizeof(int))
			return CUDA_ERROR_INVALID_VALUE;
		*(int *)out = CU_DEVICE_INVALID;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		if (!n || n % sizeof(int))
			return CUDA_ERROR_INVALID_VALUE;
		for (size_t i = 0; i < n / sizeof(int); i++)
			((int *)out)[i] = CU_DEVICE_INVALID;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemRangeGetAttribute(void *out, size_t size, CUmem_range_attribute a, CUdeviceptr p, size_t n)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	return out && advisable(p, n) ? range_attribute(out, size, a) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRangeGetAttributes(
	void **out, size_t *sizes, CUmem_range_attribute *a, size_t count, CUdeviceptr p, size_t n)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!out || !sizes || !a || !count || !advisable(p, n))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		CUresult r = out[i] ? range_attribute(out[i], sizes[i], a[i]) : CUDA_ERROR_INVALID_VALUE;
		if (r)
			return r;
	}
	return CUDA_SUCCESS;
}
