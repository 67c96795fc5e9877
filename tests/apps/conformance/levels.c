/* SPDX-License-Identifier: Apache-2.0 */
/* Texture objects over mipmaps and windows on them, and what no surface is made of. */
#include "objects.h"

static void levels(void)
{
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY}, got = {0};
	CUDA_RESOURCE_VIEW_DESC v = {
		.format = CU_RES_VIEW_FORMAT_FLOAT_1X32, .width = 16, .height = 4, .lastMipmapLevel = 1};
	CUDA_TEXTURE_DESC d = {.maxAnisotropy = 1};
	CUDA_ARRAY3D_DESCRIPTOR a3 = {.Width = 16,
		.Height = 4,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SURFACE_LDST};
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_ARRAY};
	float in[64];
	CUtexObject t = 0;
	CUsurfObject s = 0;
	CUarray a, b;
	CUmipmappedArray m;
	CUdeviceptr q;

	begin();
	CUfunction f = coded("sample");
	q = zeroed(64);
	NEED(cuArrayCreate(&b, &(CUDA_ARRAY_DESCRIPTOR){16, 4, CU_AD_FORMAT_FLOAT, 1}));
	r.res.array.hArray = b;
	ASK(cuSurfObjectCreate(&s, &r));
	memset(&r, 0, sizeof r);
	r.resType = CU_RESOURCE_TYPE_LINEAR;
	ASK(cuSurfObjectCreate(&s, &r));
	NEED(cuMipmappedArrayCreate(&m, &a3, 3));
	for (unsigned level = 0; level < 3; level++) {
		for (int i = 0; i < 64; i++)
			in[i] = (float)(100 * level) + (float)i;
		NEED(cuMipmappedArrayGetLevel(&a, m, level));
		c.srcHost = in;
		c.srcPitch = c.WidthInBytes = 64 >> level;
		c.Height = 4 >> level;
		c.dstArray = a;
		NEED(cuMemcpy2D(&c));
	}
	memset(&r, 0, sizeof r);
	r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	r.res.mipmap.hMipmappedArray = m;
	d.flags = CU_TRSF_NORMALIZED_COORDINATES;
	d.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
	d.maxMipmapLevelClamp = 2;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	tell(t);
	ASK(cuTexObjectGetResourceDesc(&got, t));
	SAY("the mipmap %d", got.res.mipmap.hMipmappedArray == m);
	SAY("%g", at(f, q, t, 0.53125f, 0.625f));
	ASK(cuTexObjectDestroy(t));
	t = 0;
	d.minMipmapLevelClamp = 1;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	SAY("%g", at(f, q, t, 0.53125f, 0.625f));
	ASK(cuTexObjectDestroy(t));
	t = 0;
	d.minMipmapLevelClamp = 0;
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	memset(&v, 0xff, sizeof v);
	ASK(cuTexObjectGetResourceViewDesc(&v, t));
	SAY("view %d %zu x %zu x %zu, levels %u to %u, layers %u to %u", v.format, v.width, v.height, v.depth,
		v.firstMipmapLevel, v.lastMipmapLevel, v.firstLayer, v.lastLayer);
	ASK(cuTexObjectDestroy(t));
	t = 0;
	v.firstMipmapLevel = v.lastMipmapLevel = 1;
	v.width = 8;
	v.height = 2;
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	SAY("%g", at(f, q, t, 0.53125f, 0.625f));
	ASK(cuTexObjectDestroy(t));
	t = 0;
	v.lastMipmapLevel = 3;
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	v.lastMipmapLevel = 0;
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	v.firstMipmapLevel = 0;
	v.width = 16;
	v.height = 4;
	v.lastLayer = 1;
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	v.lastLayer = 0;
	v.format = CU_RES_VIEW_FORMAT_UINT_4X32;
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	v.format = 99;
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	v.format = CU_RES_VIEW_FORMAT_UINT_1X32;
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	d.flags = 0;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	d.flags = CU_TRSF_NORMALIZED_COORDINATES;
	d.minMipmapLevelClamp = 3;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	d.minMipmapLevelClamp = 0;
	d.mipmapFilterMode = 77;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	d.mipmapFilterMode = CU_TR_FILTER_MODE_POINT;
	d.maxAnisotropy = 17;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	d.maxAnisotropy = 0;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	d.flags = 0x1000;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	ASK(cuSurfObjectCreate(&s, &r));
	ASK(cuMipmappedArrayGetLevel(&b, m, 2));
	ASK(cuMipmappedArrayGetLevel(&b, m, 3));
	ASK(cuMipmappedArrayDestroy(m));
}

SECTIONS({"levels", levels})
