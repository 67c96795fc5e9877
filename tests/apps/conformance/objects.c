/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects over arrays, linear and pitched memory: what is taken, refused,
 * told again, and read. */
#include "objects.h"

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

/* Which windows a driver takes on layers: told only, for the documentation leaves it open. */
static void layers(void)
{
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY};
	CUDA_TEXTURE_DESC d = {.maxAnisotropy = 1};
	CUDA_ARRAY3D_DESCRIPTOR a3 = {.Width = 16,
		.Height = 4,
		.Depth = 3,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_LAYERED};
	static const unsigned layer[][2] = {{0, 0}, {0, 2}, {1, 1}, {1, 2}};
	CUtexObject t;

	begin();
	NEED(cuArray3DCreate(&r.res.array.hArray, &a3));
	for (unsigned depth = 0; depth < 4; depth++)
		for (size_t i = 0; i < COUNT(layer); i++) {
			CUDA_RESOURCE_VIEW_DESC v = {.format = CU_RES_VIEW_FORMAT_FLOAT_1X32,
				.width = 16,
				.height = 4,
				.depth = depth,
				.firstLayer = layer[i][0],
				.lastLayer = layer[i][1]};

			printf("~ depth %u, layers %u to %u -> %s\n", depth, layer[i][0], layer[i][1],
				name_of(cuTexObjectCreate(&t, &r, &d, &v)));
		}
}

SECTIONS({"linear", linear}, {"planes", planes}, {"layers", layers})
