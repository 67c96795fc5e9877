/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects over arrays, linear and pitched memory and mipmaps: what is taken, refused,
 * told again, and read. */
#include "check.h"

/* fetch: out[i] = tex1Dfetch(t, i); sample: out[0] = tex2D(t, x, y); put: surf[x] = v. */
static const char code[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .entry fetch(.param .u64 p, .param .u64 t) {\n"
	" .reg .b64 %p<4>; .reg .b32 %r<3>; .reg .f32 %f<6>;\n"
	" ld.param.u64 %p0, [p]; ld.param.u64 %p3, [t]; mov.u32 %r0, %tid.x;\n"
	" tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%p3, {%r0}];\n"
	" mul.wide.u32 %p1, %r0, 4; add.u64 %p2, %p0, %p1; st.global.f32 [%p2], %f0; ret; }\n"
	".visible .entry sample(.param .u64 p, .param .u64 t, .param .f32 x, .param .f32 y) {\n"
	" .reg .b64 %p<2>; .reg .f32 %f<6>;\n"
	" ld.param.u64 %p0, [p]; ld.param.u64 %p1, [t]; ld.param.f32 %f4, [x]; ld.param.f32 %f5, [y];\n"
	" tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%p1, {%f4, %f5}];\n"
	" st.global.f32 [%p0], %f0; ret; }\n"
	".visible .entry put(.param .u64 s, .param .u32 x, .param .u32 y, .param .u32 v) {\n"
	" .reg .b64 %p; .reg .b32 %r<3>;\n"
	" ld.param.u64 %p, [s]; ld.param.u32 %r0, [x]; ld.param.u32 %r1, [y]; ld.param.u32 %r2, [v];\n"
	" sust.b.2d.b32.trap [%p, {%r0, %r1}], {%r2}; ret; }\n";

static CUfunction coded(const char *name)
{
	static CUmodule m;
	CUfunction f;

	if (!m)
		NEED(cuModuleLoadData(&m, code));
	NEED(cuModuleGetFunction(&f, m, name));
	return f;
}

static void tell(CUtexObject t)
{
	CUDA_RESOURCE_DESC r = {0};
	CUDA_TEXTURE_DESC d = {0};
	CUDA_RESOURCE_VIEW_DESC v = {0};

	ASK(cuTexObjectGetResourceDesc(&r, t));
	SAY("type %d, flags %u", r.resType, r.flags);
	if (r.resType == CU_RESOURCE_TYPE_LINEAR)
		SAY("format %d, channels %u, bytes %zu", r.res.linear.format, r.res.linear.numChannels,
			r.res.linear.sizeInBytes);
	if (r.resType == CU_RESOURCE_TYPE_PITCH2D)
		SAY("format %d, channels %u, %zu x %zu, pitch %zu", r.res.pitch2D.format,
			r.res.pitch2D.numChannels, r.res.pitch2D.width, r.res.pitch2D.height,
			r.res.pitch2D.pitchInBytes);
	ASK(cuTexObjectGetTextureDesc(&d, t));
	SAY("modes %d %d %d, filter %d, flags %#x, aniso %u, mipmap %d bias %g clamp %g %g, border %g",
		d.addressMode[0], d.addressMode[1], d.addressMode[2], d.filterMode, d.flags, d.maxAnisotropy,
		d.mipmapFilterMode, d.mipmapLevelBias, d.minMipmapLevelClamp, d.maxMipmapLevelClamp,
		d.borderColor[0]);
	ASK(cuTexObjectGetResourceViewDesc(&v, t));
}

static void linear(void)
{
	float in[256], out[16];
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_LINEAR};
	CUDA_TEXTURE_DESC d = {.maxAnisotropy = 1};
	CUtexObject t = 0;
	CUdeviceptr p, q;

	begin();
	for (int i = 0; i < 256; i++)
		in[i] = (float)i / 2;
	NEED(cuMemAlloc(&p, sizeof in));
	q = zeroed(256);
	NEED(cuMemcpyHtoD(p, in, sizeof in));
	r.res.linear.devPtr = p;
	r.res.linear.format = CU_AD_FORMAT_FLOAT;
	r.res.linear.numChannels = 1;
	r.res.linear.sizeInBytes = sizeof in;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	tell(t);
	CUfunction f = coded("fetch");
	ASK(cuLaunchKernel(f, 1, 1, 1, 16, 1, 1, 0, NULL, (void *[]){&q, &t}, NULL));
	NEED(cuMemcpyDtoH(out, q, sizeof out));
	SAY("%g %g %g", out[0], out[7], out[15]);
	ASK(cuTexObjectDestroy(t));
	ASK(cuTexObjectGetTextureDesc(&d, t));
	ASK(cuTexObjectDestroy(0));
	ASK(cuTexObjectCreate(NULL, &r, &d, NULL));
	ASK(cuTexObjectCreate(&t, NULL, &d, NULL));
	ASK(cuTexObjectCreate(&t, &r, NULL, NULL));
	r.res.linear.devPtr = p + 4;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	r.res.linear.devPtr = p;
	r.res.linear.numChannels = 3;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	r.res.linear.numChannels = 1;
	r.res.linear.format = 77;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	r.res.linear.format = CU_AD_FORMAT_FLOAT;
	r.flags = 1;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	r.flags = 0;
	r.resType = 77;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	r.resType = CU_RESOURCE_TYPE_ARRAY;
	r.res.array.hArray = NULL;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
}

static float at(CUfunction f, CUdeviceptr q, CUtexObject t, float x, float y)
{
	float v = -1;

	if (!t)
		return v;
	NEED(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&q, &t, &x, &y}, NULL));
	NEED(cuMemcpyDtoH(&v, q, 4));
	return v;
}

static void planes(void)
{
	float in[64 * 4];
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_PITCH2D}, got = {0};
	CUDA_RESOURCE_VIEW_DESC v = {.format = CU_RES_VIEW_FORMAT_FLOAT_1X32, .width = 16, .height = 4};
	CUDA_TEXTURE_DESC d = {.maxAnisotropy = 1};
	CUDA_ARRAY3D_DESCRIPTOR a3 = {.Width = 16,
		.Height = 4,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SURFACE_LDST};
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcHost = in,
		.srcPitch = 64,
		.WidthInBytes = 64,
		.Height = 4};
	CUtexObject t = 0;
	CUsurfObject s = 0;
	CUarray a;
	CUdeviceptr p, q;
	unsigned x = 12, y = 2, bits = 0x42280000; /* 42.0f */

	begin();
	for (int i = 0; i < 64; i++)
		in[i] = (float)i;
	CUfunction f = coded("sample"), put = coded("put");
	NEED(cuMemAlloc(&p, 512 * 4));
	NEED(cuMemsetD8(p, 0, 512 * 4));
	for (int i = 0; i < 4; i++)
		NEED(cuMemcpyHtoD(p + 512 * (unsigned)i, in + 16 * i, 64));
	q = zeroed(64);
	r.res.pitch2D.devPtr = p;
	r.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
	r.res.pitch2D.numChannels = 1;
	r.res.pitch2D.width = 16;
	r.res.pitch2D.height = 4;
	r.res.pitch2D.pitchInBytes = 512;
	d.addressMode[0] = d.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	tell(t);
	SAY("%g %g %g", at(f, q, t, 0.5f, 0.5f), at(f, q, t, 3.5f, 2.5f), at(f, q, t, 100, 100));
	ASK(cuTexObjectDestroy(t));
	r.res.pitch2D.pitchInBytes = 500;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	NEED(cuArray3DCreate(&a, &a3));
	c.dstArray = a;
	NEED(cuMemcpy2D(&c));
	memset(&r, 0, sizeof r);
	r.resType = CU_RESOURCE_TYPE_ARRAY;
	r.res.array.hArray = a;
	d.filterMode = CU_TR_FILTER_MODE_LINEAR;
	d.flags = CU_TRSF_NORMALIZED_COORDINATES;
	d.addressMode[0] = CU_TR_ADDRESS_MODE_WRAP;
	d.addressMode[1] = CU_TR_ADDRESS_MODE_MIRROR;
	d.borderColor[0] = 2.5f;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	tell(t);
	ASK(cuTexObjectGetResourceDesc(&got, t));
	SAY("the array %d", got.res.array.hArray == a);
	SAY("%g %g", at(f, q, t, 0.5f, 0.5f), at(f, q, t, 1.03125f, 0.125f));
	ASK(cuTexObjectDestroy(t));
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	ASK(cuTexObjectGetResourceViewDesc(&v, t));
	SAY("view %d %zu x %zu", v.format, v.width, v.height);
	ASK(cuTexObjectDestroy(t));
	v.width = 99;
	ASK(cuTexObjectCreate(&t, &r, &d, &v));
	d.addressMode[0] = 77;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	d.addressMode[0] = 0;
	d.filterMode = 77;
	ASK(cuTexObjectCreate(&t, &r, &d, NULL));
	ASK(cuSurfObjectCreate(&s, &r));
	memset(&got, 0, sizeof got);
	ASK(cuSurfObjectGetResourceDesc(&got, s));
	SAY("type %d, the array %d", got.resType, got.res.array.hArray == a);
	ASK(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&s, &x, &y, &bits}, NULL));
	c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.srcArray = a;
	c.dstHost = in;
	c.dstPitch = 64;
	ASK(cuMemcpy2D(&c));
	SAY("%g %g %g", in[34], in[35], in[36]);
	ASK(cuSurfObjectDestroy(s));
	ASK(cuSurfObjectDestroy(0));
	NEED(cuArrayDestroy(a));
}

/* What no surface is made of, and textures over mipmaps. */
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

SECTIONS({"linear", linear}, {"planes", planes}, {"levels", levels})
