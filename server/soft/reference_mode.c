/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface references: how what is bound is read, and questions.
 *
 * Thread rule: see state.h. */
#include "server/soft/reference.h"
#include <string.h>

/* ---- how it is read */

CUresult cuTexRefSetFormat(CUtexref h, CUarray_format format, int channels)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	/* A format that there is not is found when memory is bound. */
	if (channels != 1 && channels != 2 && channels != 4)
		return CUDA_ERROR_INVALID_VALUE;
	r->format = format;
	r->channels = channels;
	if (r->has && r->resource.resType == CU_RESOURCE_TYPE_LINEAR) {
		r->resource.res.linear.format = format;
		r->resource.res.linear.numChannels = (unsigned)channels;
		return reference_bind(r);
	}
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetAddressMode(CUtexref h, int dim, CUaddress_mode mode)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (dim < 0 || dim > 2)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)mode > CU_TR_ADDRESS_MODE_BORDER)
		mode = CU_TR_ADDRESS_MODE_CLAMP;
	r->texture.addressMode[dim] = mode;
	return reference_bind(r);
}

CUresult cuTexRefSetFilterMode(CUtexref h, CUfilter_mode mode)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	r->texture.filterMode = mode;
	return reference_bind(r);
}

#define FLAGS_KNOWN                                                                                          \
	(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |                           \
		CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

CUresult cuTexRefSetFlags(CUtexref h, unsigned flags)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (flags & ~(unsigned)FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	r->texture.flags = flags;
	return reference_bind(r);
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref h, CUfilter_mode mode)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	r->texture.mipmapFilterMode = mode;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref h, float bias)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (!g.error)
		r->texture.mipmapLevelBias = bias;
	return g.error;
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref h, float low, float high)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (!g.error) {
		r->texture.minMipmapLevelClamp = low;
		r->texture.maxMipmapLevelClamp = high;
	}
	return g.error;
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref h, unsigned most)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (!g.error)
		r->texture.maxAnisotropy = most;
	return g.error;
}

CUresult cuTexRefSetBorderColor(CUtexref h, float *color)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (!color)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(r->texture.borderColor, color, sizeof r->texture.borderColor);
	return reference_bind(r);
}

/* ---- questions */

CUresult cuTexRefGetAddress_v2(CUdeviceptr *out, CUtexref h)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (!out || !r->has)
		return CUDA_ERROR_INVALID_VALUE;
	switch (r->resource.resType) {
	case CU_RESOURCE_TYPE_LINEAR: *out = r->resource.res.linear.devPtr; return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_PITCH2D: *out = r->resource.res.pitch2D.devPtr; return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult array_of(CUarray *out, const void *h, bool surface)
{
	struct reference *r;
	guarded g = reference_enter(h, surface, &r);
	if (g.error)
		return g.error;
	if (!out || !r->has || r->resource.resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	*out = r->resource.res.array.hArray;
	return CUDA_SUCCESS;
}
CUresult cuTexRefGetArray(CUarray *out, CUtexref h)
{
	return array_of(out, h, false);
}
CUresult cuSurfRefGetArray(CUarray *out, CUsurfref h)
{
	return array_of(out, h, true);
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *out, CUtexref h)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (!out || !r->has || r->resource.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	*out = r->resource.res.mipmap.hMipmappedArray;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetAddressMode(CUaddress_mode *out, CUtexref h, int dim)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (!out || dim < 0 || dim > 2)
		return CUDA_ERROR_INVALID_VALUE;
	*out = r->texture.addressMode[dim];
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetFormat(CUarray_format *format, int *channels, CUtexref h)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (format)
		*format = r->format;
	if (channels)
		*channels = r->channels;
	return CUDA_SUCCESS;
}

#define ANSWER(call, type, value)                                                                            \
	CUresult call(type *out, CUtexref h)                                                                 \
	{                                                                                                    \
		struct reference *r;                                                                         \
		guarded g = reference_enter(h, false, &r);                                                   \
		if (g.error)                                                                                 \
			return g.error;                                                                      \
		if (!out)                                                                                    \
			return CUDA_ERROR_INVALID_VALUE;                                                     \
		*out = (type)(value);                                                                        \
		return CUDA_SUCCESS;                                                                         \
	}

ANSWER(cuTexRefGetFilterMode, CUfilter_mode, r->texture.filterMode)
ANSWER(cuTexRefGetMipmapFilterMode, CUfilter_mode, r->texture.mipmapFilterMode)
ANSWER(cuTexRefGetMipmapLevelBias, float, r->texture.mipmapLevelBias)
ANSWER(cuTexRefGetMaxAnisotropy, int, r->texture.maxAnisotropy)
ANSWER(cuTexRefGetFlags, unsigned, r->texture.flags)

CUresult cuTexRefGetMipmapLevelClamp(float *low, float *high, CUtexref h)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (!low || !high)
		return CUDA_ERROR_INVALID_VALUE;
	*low = r->texture.minMipmapLevelClamp;
	*high = r->texture.maxMipmapLevelClamp;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetBorderColor(float *out, CUtexref h)
{
	struct reference *r;
	guarded g = reference_enter(h, false, &r);
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(out, r->texture.borderColor, sizeof r->texture.borderColor);
	return CUDA_SUCCESS;
}
