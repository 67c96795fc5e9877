/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs about texture and surface objects share: kernels that read and write through them, and
 * what a driver tells of an object. Threads: none. */
#pragma once
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

static inline CUfunction coded(const char *name)
{
	static CUmodule m;
	CUfunction f;

	if (!m)
		NEED(cuModuleLoadData(&m, code));
	NEED(cuModuleGetFunction(&f, m, name));
	return f;
}

static inline void tell(CUtexObject t)
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

static inline float at(CUfunction f, CUdeviceptr q, CUtexObject t, float x, float y)
{
	float v = -1;

	if (!t)
		return v;
	NEED(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&q, &t, &x, &y}, NULL));
	NEED(cuMemcpyDtoH(&v, q, 4));
	return v;
}
