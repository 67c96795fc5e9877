/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of tensors, which bulk copies go by: what the caller says is checked as a GPU's driver does and kept
 * in this device's own form.
 *
 * Thread rule: no shared state. */
#include <stdint.h>
#include <string.h>
#include "server/soft/context.h"
#include "server/soft/exec_bulk.h"
#include "server/soft/ptx.h"

enum { RANK = 5, BOX = 256, STEP = 8, ALIGN = 16, PIXELS = 1024 };
#define SIZE (1ull << 32)
#define STRIDE (1ull << 40)

/* 0: not one of whole elements. */
static enum ptx_type type_of(CUtensorMapDataType t)
{
	static const uint8_t types[] = {T_U8, T_U16, T_U32, T_S32, T_U64, T_S64, T_F16, T_F32, T_F64, T_BF16,
			T_F32, T_F32,
		T_F32};
	return (unsigned)t < sizeof types ? types[t] : T_NONE;
}

static CUresult sizes(struct tensor_map *m, const cuuint64_t *dim, const cuuint64_t *stride,
		const cuuint32_t *box,
	const cuuint32_t *step)
{
	for (unsigned k = 0; k < m->dimensions; k++) {
		if (!dim[k] || dim[k] > SIZE || !box[k] || box[k] > BOX || !step[k] || step[k] > STEP)
			return CUDA_ERROR_INVALID_VALUE;
		m->size[k] = (uint32_t)(dim[k] - 1);
		m->box[k] = (uint16_t)box[k];
		m->step[k] = (uint8_t)step[k];
		if (!k)
			continue;
		if (stride[k - 1] % ALIGN || stride[k - 1] >= STRIDE)
			return CUDA_ERROR_INVALID_VALUE;
		m->stride[k - 1] = stride[k - 1];
	}
	return (uint64_t)m->box[0] * m->element % ALIGN ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* What the maps of boxes and those of images have in common; `box`: of its elements. */
static CUresult begin(struct tensor_map *m, CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank,
		void *address,
	const cuuint64_t *dim, const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapFloatOOBfill fill)
{
	if (!out || (uintptr_t)out % 64 || !rank || rank > RANK || !dim || !box || !step ||
			(rank > 1 && !stride) ||
		!address || (uintptr_t)address % ALIGN || (unsigned)fill > 1)
		return CUDA_ERROR_INVALID_VALUE;
	enum ptx_type t = type_of(type);
	if (!t || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
			(unsigned)swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
		return soft_unsupported("cuTensorMapEncode with packed elements, interleaving or swizzles "
				"of parts");
	*m = (struct tensor_map){.magic = TENSOR_MAP_MAGIC,
		.dimensions = (uint8_t)rank,
		.element = (uint8_t)ptx_type_bytes(t),
		.type = (uint8_t)t,
		.swizzle = swizzle ? (uint8_t)(4 + swizzle) : 0,
		.fill = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
		.address = (uint64_t)(uintptr_t)address};
	for (unsigned k = 0; k < RANK; k++)
		m->box[k] = m->step[k] = 1;
	CUresult r = sizes(m, dim, stride, box, step);
	if (!r && m->swizzle && (uint64_t)m->box[0] * m->element > 1ull << m->swizzle)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && m->fill && t != T_F16 && t != T_BF16 && t != T_F32 && t != T_F64)
		r = CUDA_ERROR_INVALID_VALUE;
	return r;
}

static CUresult finish(CUtensorMap *out, const struct tensor_map *m)
{
	memset(out, 0, sizeof *out);
	memcpy(out, m, sizeof *m);
	return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
	const cuuint64_t *dim, const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
	CUtensorMapFloatOOBfill fill)
{
	struct tensor_map m;
	(void)promotion;
	CUresult r = begin(&m, out, type, rank, address, dim, stride, box, step, interleave, swizzle, fill);
	return r ? r : finish(out, &m);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
	const cuuint64_t *dim, const cuuint64_t *stride, const int *lower, const int *upper,
	cuuint32_t channels,
	cuuint32_t count, const cuuint32_t *step, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	static const int limit[] = {32768, 128, 16}; /* of corners, by how many dimensions pixels have */
	const cuuint32_t box[RANK] = {channels, 1, 1, 1, 1};
	struct tensor_map m;
	(void)promotion;
	if (rank < 3 || rank > RANK || !lower || !upper || !count || count > PIXELS)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = begin(&m, out, type, rank, address, dim, stride, box, step, interleave, swizzle, fill);
	if (r)
		return r;
	m.pixels = true;
	m.channels = (uint16_t)channels;
	m.count = (uint16_t)count;
	for (unsigned k = 0; k < rank - 2; k++) {
		int most = limit[rank - 3];
		if (lower[k] < -most || lower[k] >= most || upper[k] < -most || upper[k] >= most ||
			lower[k] > (int64_t)m.size[k + 1] + upper[k])
			return CUDA_ERROR_INVALID_VALUE;
		m.lower[k] = (int16_t)lower[k];
		m.upper[k] = (int16_t)upper[k];
	}
	return finish(out, &m);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	struct tensor_map m;
	if (!map || !address || (uintptr_t)address % ALIGN)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&m, map, sizeof m);
	if (m.magic != TENSOR_MAP_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	m.address = (uint64_t)(uintptr_t)address;
	memcpy(map, &m, sizeof m);
	return CUDA_SUCCESS;
}
