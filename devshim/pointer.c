/* SPDX-License-Identifier: Apache-2.0 */
/* Pointer attributes, answered from the range table. They work in a lost context and without one, as the
 * driver's do.
 *
 * Thread rule: any thread. */
#include <string.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/range.h"
#include "wire/cuda.h"

enum value_size { VALUE_BOOL = 1, VALUE_INT = 4, VALUE_WORD = 8 };

/* The value of one attribute; 1 when the attribute has none for this pointer. */
static CUresult attribute(void *data, CUpointer_attribute a, CUdeviceptr p, const struct range *r)
{
	uint64_t v = 0;
	size_t n = VALUE_WORD;
	bool host = range_is_host(r);

	switch ((int)a) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		/* Memory of a pool, or mapped, belongs to no context. */
		if (r->kind == RANGE_POOL || r->kind == RANGE_VIRTUAL || r->kind == RANGE_MAPPED)
			v = 0;
		else
			v = (uintptr_t)r->ctx;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		v = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		n = VALUE_INT;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: v = p; break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host && r->kind != RANGE_MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
		v = p;
		break;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		if (host)
			return CUDA_ERROR_INVALID_VALUE;
		n = 16;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		/* The driver synchronises for device memory unless told otherwise. */
		v = r->sync_memops || (!host && r->kind != RANGE_POOL);
		n = VALUE_BOOL;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID: v = r->id; break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: /* seen: the driver writes a word */
		v = r->kind == RANGE_MANAGED;
		n = VALUE_INT;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		v = (uint64_t)r->device;
		n = VALUE_INT;
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		v = r->kind == RANGE_DEVICE;
		n = VALUE_BOOL;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: v = r->base; break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: v = r->size; break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		v = 1;
		n = VALUE_BOOL;
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: v = r->types; break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: n = VALUE_BOOL; break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		v = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		n = VALUE_INT;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: v = (uintptr_t)r->pool; break;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: v = r->size; break;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: v = r->base; break;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: v = r->id; break;
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: n = VALUE_BOOL; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	if (n > sizeof v)
		memset(data, 0, n);
	else
		memcpy(data, &v, n);
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attrib, CUdeviceptr ptr)
{
	struct range r;
	CUresult code = process_check();

	if (code)
		return code;
	if (!data || !range_find(ptr, &r))
		return CUDA_ERROR_INVALID_VALUE;
	return attribute(data, attrib, ptr, &r);
}

static size_t size_of(CUpointer_attribute a)
{
	static const struct range any = {.kind = RANGE_HOST};
	uint64_t scratch[2] = {~0ull, ~0ull};

	/* What is written of a scratch value of all ones tells the size: sizes are 1, 4, 8. */
	if (a == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
		return 16;
	if (attribute(scratch, a, 0, &any))
		return 0;
	uint8_t *b = (uint8_t *)scratch;

	return b[4] != 0xff ? VALUE_WORD : b[1] != 0xff ? VALUE_INT : VALUE_BOOL;
}

/* Unlike the single call, a pointer that CUDA does not know is no error: its values are zero, and its
 * ordinal -2. */
CUresult cuPointerGetAttributes(
	unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	struct range r;
	bool found;
	CUresult code = process_check();

	if (code)
		return code;
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numAttributes; i++)
		if (!data[i] || !size_of(attributes[i]))
			return CUDA_ERROR_INVALID_VALUE;
	found = range_find(ptr, &r);
	for (unsigned i = 0; i < numAttributes; i++) {
		if (found && !attribute(data[i], attributes[i], ptr, &r))
			continue;
		memset(data[i], 0, size_of(attributes[i]));
		if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = -2;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attrib, CUdeviceptr ptr)
{
	struct range r;
	CUresult code = process_check();

	if (code)
		return code;
	if (!value || attrib != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !range_find(ptr, &r))
		return CUDA_ERROR_INVALID_VALUE;
	range_set_sync_memops(ptr, *(const unsigned *)value != 0);
	return CUDA_SUCCESS;
}
