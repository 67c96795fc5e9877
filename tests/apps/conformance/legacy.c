/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA has kept from its beginnings: launches whose shape and parameters a function keeps, texture and
 * surface references. */
#include "check.h"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void launch(void)
{
	CUdeviceptr p;
	CUstream s;
	unsigned v = 7, *pinned;
	float f = 1.5f;
	int threads = 0;

	begin();
	CUfunction store = kernel("store"), nothing = kernel("nothing");
	p = zeroed(64);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ASK(cuLaunch(nothing));
	ASK(cuFuncSetBlockShape(store, 1, 1, 1));
	ASK(cuFuncSetBlockShape(store, 0, 1, 1));
	ASK(cuFuncSetBlockShape(store, 5000, 1, 1));
	ASK(cuFuncSetBlockShape(NULL, 1, 1, 1));
	ASK(cuFuncSetBlockShape(store, 1, 1, 1));
	ASK(cuFuncSetSharedSize(store, 1024));
	ASK(cuFuncSetSharedSize(store, 1u << 30));
	ASK(cuFuncSetSharedSize(store, 0));
	ASK(cuParamSetv(store, 0, &p, sizeof(p)));
	ASK(cuParamSeti(store, 8, v));
	ASK(cuParamSetSize(store, 12));
	ASK(cuLaunch(store));
	ASK(cuCtxSynchronize());
	SAY("value %u", word(p));
	ASK(cuParamSetf(store, 8, f));
	ASK(cuLaunchGrid(store, 1, 1));
	ASK(cuCtxSynchronize());
	SAY("value %x", word(p));
	v = 9;
	ASK(cuParamSetv(store, 8, &v, sizeof(v)));
	ASK(cuLaunchGridAsync(store, 2, 2, s));
	ASK(cuStreamSynchronize(s));
	SAY("value %u", word(p));
	ASK(cuLaunchGrid(store, 0, 1));
	ASK(cuLaunchGridAsync(NULL, 1, 1, s));
	ASK(cuParamSetSize(store, 100000));
	ASK(cuParamSeti(store, 100000, 1));
	ASK(cuFuncSetBlockShape(nothing, 2, 1, 1));
	ASK(cuLaunch(nothing));
	ASK(cuCtxSynchronize());
	ASK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, store));
	/* Pinned memory that a parameter names. */
	NEED(cuMemHostAlloc((void **)&pinned, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	*pinned = 0;
	p = ADDRESS(pinned);
	ASK(cuParamSetv(store, 0, &p, sizeof(p)));
	ASK(cuParamSeti(store, 8, 11));
	ASK(cuParamSetSize(store, 12));
	ASK(cuLaunch(store));
	ASK(cuCtxSynchronize());
	SAY("value %u", *pinned);
}

static void many(void)
{
	CUDA_LAUNCH_PARAMS l = {0}, two[2];
	CUdeviceptr p;
	CUstream s;
	unsigned v = 5;

	begin();
	CUfunction store = kernel("store");
	p = zeroed(64);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	l.function = store;
	l.gridDimX = l.gridDimY = l.gridDimZ = l.blockDimX = l.blockDimY = l.blockDimZ = 1;
	l.hStream = s;
	l.kernelParams = (void *[]){&p, &v};
	ASK(cuLaunchCooperativeKernelMultiDevice(&l, 1, 0));
	ASK(cuStreamSynchronize(s));
	SAY("value %u", word(p));
	two[0] = two[1] = l;
	ASK(cuLaunchCooperativeKernelMultiDevice(two, 2, 0));
	l.hStream = NULL;
	ASK(cuLaunchCooperativeKernelMultiDevice(&l, 1, 0));
	ASK(cuLaunchCooperativeKernelMultiDevice(&l, 0, 0));
	ASK(cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0));
	l.hStream = s;
	ASK(cuLaunchCooperativeKernelMultiDevice(&l, 1, 77));
	ASK(cuCtxSynchronize());
}

/* read: out[i] = tex[i], i < 4, as floats. */
static const char textures[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .global .texref line;\n.visible .global .texref plane;\n.visible .global .surfref surface;"
	"\n"
	".visible .entry read(.param .u64 p) {\n"
	" .reg .b64 %p<3>; .reg .b32 %r<3>; .reg .f32 %f<6>;\n"
	" ld.param.u64 %p0, [p]; mov.u32 %r0, %tid.x;\n"
	" tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [line, {%r0}];\n"
	" mul.wide.u32 %p1, %r0, 4; add.u64 %p2, %p0, %p1; st.global.f32 [%p2], %f0; ret; }\n"
	".visible .entry read2(.param .u64 p, .param .f32 x, .param .f32 y) {\n"
	" .reg .b64 %p; .reg .f32 %f<6>;\n"
	" ld.param.u64 %p, [p]; ld.param.f32 %f4, [x]; ld.param.f32 %f5, [y];\n"
	" tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [plane, {%f4, %f5}];\n"
	" st.global.f32 [%p], %f0; ret; }\n";

static void tell(CUtexref t)
{
	CUaddress_mode am = 99;
	CUfilter_mode fm = 99;
	CUarray_format format = 99;
	CUarray a = NULL;
	CUmipmappedArray m = NULL;
	CUdeviceptr p = 1;
	float bias = 9, low = 9, high = 9, color[4] = {9, 9, 9, 9};
	int channels = 99, aniso = 99;
	unsigned flags = 99;

	for (int dim = 0; dim < 4; dim++) {
		CUresult r = cuTexRefGetAddressMode(&am, t, dim);

		SAY("address mode %d -> %s %d", dim, name_of(r), r ? 0 : (int)am);
	}
	ASK(cuTexRefGetFilterMode(&fm, t));
	ASK(cuTexRefGetFormat(&format, &channels, t));
	ASK(cuTexRefGetFlags(&flags, t));
	SAY("filter %d, format %d, channels %d, flags %u", fm, format, channels, flags);
	ASK(cuTexRefGetMipmapFilterMode(&fm, t));
	ASK(cuTexRefGetMipmapLevelBias(&bias, t));
	ASK(cuTexRefGetMipmapLevelClamp(&low, &high, t));
	ASK(cuTexRefGetMaxAnisotropy(&aniso, t));
	ASK(cuTexRefGetBorderColor(color, t));
	SAY("filter %d, bias %g, from %g to %g, anisotropy %d, border %g %g %g %g", fm, bias, low, high,
			aniso, color[0],
		color[1], color[2], color[3]);
	SAY("array -> %s", name_of(cuTexRefGetArray(&a, t)));
	SAY("mipmap -> %s", name_of(cuTexRefGetMipmappedArray(&m, t)));
	SAY("address -> %s", name_of(cuTexRefGetAddress(&p, t)));
	SAY("an array %d, a mipmap %d", a != NULL, m != NULL);
}

static void references(void)
{
	CUmodule m;
	CUtexref t = NULL, own = NULL, plane = NULL;
	CUsurfref sr = NULL;
	CUfunction read, read2;
	CUdeviceptr p, out, told = 0;
	CUarray a, back = NULL;
	CUDA_ARRAY_DESCRIPTOR d = {.Width = 8, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	size_t offset = 99;
	unsigned flags;
	float in[64], got[8], x = 2.5f, y = 3.5f, border[4] = {1, 2, 3, 4};

	begin();
	ASK(cuTexRefCreate(&own));
	if (own) {
		tell(own);
		ASK(cuTexRefSetFormat(own, CU_AD_FORMAT_FLOAT, 1));
		ASK(cuTexRefSetFormat(own, CU_AD_FORMAT_FLOAT, 3));
		ASK(cuTexRefSetFormat(own, 99, 1));
		ASK(cuTexRefSetAddressMode(own, 0, CU_TR_ADDRESS_MODE_CLAMP));
		ASK(cuTexRefSetAddressMode(own, 5, CU_TR_ADDRESS_MODE_CLAMP));
		ASK(cuTexRefSetAddressMode(own, 1, 99));
		ASK(cuTexRefSetFilterMode(own, CU_TR_FILTER_MODE_LINEAR));
		ASK(cuTexRefSetFilterMode(own, 99));
		ASK(cuTexRefSetFlags(own, CU_TRSF_NORMALIZED_COORDINATES));
		ASK(cuTexRefSetMipmapFilterMode(own, CU_TR_FILTER_MODE_LINEAR));
		ASK(cuTexRefSetMipmapLevelBias(own, 0.5f));
		ASK(cuTexRefSetMipmapLevelClamp(own, 1.0f, 2.0f));
		ASK(cuTexRefSetMaxAnisotropy(own, 4));
		ASK(cuTexRefSetBorderColor(own, border));
		tell(own);
		ASK(cuTexRefDestroy(own));
	}
	ASK(cuTexRefDestroy(NULL));
	ASK(cuTexRefSetFlags(NULL, 0));
	ASK(cuTexRefGetFlags(&flags, NULL));

	if (ASK(cuModuleLoadData(&m, textures)))
		return;
	ASK(cuModuleGetTexRef(&t, m, "none"));
	ASK(cuModuleGetTexRef(&t, m, "line"));
	ASK(cuModuleGetTexRef(NULL, m, "line"));
	ASK(cuModuleGetTexRef(&plane, m, "plane"));
	ASK(cuModuleGetSurfRef(&sr, m, "none"));
	ASK(cuModuleGetSurfRef(&sr, m, "surface"));
	ASK(cuModuleGetFunction(&read, m, "read"));
	ASK(cuModuleGetFunction(&read2, m, "read2"));
	NEED(cuMemAlloc(&p, sizeof(in)));
	out = zeroed(64);
	for (int i = 0; i < 64; i++)
		in[i] = (float)i;
	NEED(cuMemcpyHtoD(p, in, sizeof(in)));
	if (t) {
		ASK(cuTexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 1));
		ASK(cuTexRefSetFlags(t, 0));
		ASK(cuTexRefSetAddress(&offset, t, p, sizeof(in)));
		SAY("offset %zu", offset);
		ASK(cuTexRefGetAddress(&told, t));
		SAY("the same %d", told == p);
		ASK(cuLaunchKernel(read, 1, 1, 1, 4, 1, 1, 0, NULL, (void *[]){&out}, NULL));
		ASK(cuCtxSynchronize());
		NEED(cuMemcpyDtoH(got, out, 16));
		SAY("%g %g %g %g", got[0], got[1], got[2], got[3]);
		ASK(cuTexRefSetAddress(&offset, t, p + 4, sizeof(in) - 4));
		SAY("offset %zu", offset);
		ASK(cuTexRefSetAddress(NULL, t, p + 256, 0));
		ASK(cuParamSetTexRef(read, CU_PARAM_TR_DEFAULT, t));
	}
	NEED(cuArrayCreate(&a, &d));
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .srcPitch = 32,
			.WidthInBytes = 32,
		.Height = 8, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a};
	NEED(cuMemcpy2D(&c));
	if (plane) {
		ASK(cuTexRefSetArray(plane, a, CU_TRSA_OVERRIDE_FORMAT));
		ASK(cuTexRefSetArray(plane, a, 0));
		ASK(cuTexRefSetArray(plane, a, CU_TRSA_OVERRIDE_FORMAT));
		ASK(cuTexRefGetArray(&back, plane));
		SAY("the same %d", back == a);
		ASK(cuTexRefSetFilterMode(plane, CU_TR_FILTER_MODE_LINEAR));
		ASK(cuLaunchKernel(read2, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&out, &x, &y}, NULL));
		ASK(cuCtxSynchronize());
		NEED(cuMemcpyDtoH(got, out, 4));
		SAY("%g", got[0]);
		d.Width = 8;
		ASK(cuTexRefSetAddress2D(plane, &d, p, 32));
		tell(plane);
	}
	if (sr) {
		ASK(cuSurfRefSetArray(sr, a, 0));
		ASK(cuSurfRefGetArray(&back, sr));
		ASK(cuSurfRefSetArray(sr, a, 5));
	}
	ASK(cuModuleUnload(m));
}

SECTIONS({"launch", launch}, {"many", many}, {"references", references})
