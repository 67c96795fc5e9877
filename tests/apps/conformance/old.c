/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of CUDA 2 and 3 whose device addresses have 32 bits: the library still exports them under their first names, which
 * cuda.h hides behind those of today. */
#include "check.h"
#include <dlfcn.h>

struct copy2d { /* CUDA_MEMCPY2D of CUDA 2 */
	unsigned srcXInBytes, srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	unsigned srcDevice;
	CUarray srcArray;
	unsigned srcPitch, dstXInBytes, dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	unsigned dstDevice;
	CUarray dstArray;
	unsigned dstPitch, WidthInBytes, Height;
};

struct copy3d {
	unsigned srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	unsigned srcDevice;
	CUarray srcArray;
	void *reserved0;
	unsigned srcPitch, srcHeight;
	unsigned dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	unsigned dstDevice;
	CUarray dstArray;
	void *reserved1;
	unsigned dstPitch, dstHeight, WidthInBytes, Height, Depth;
};

struct array {
	unsigned Width, Height;
	CUarray_format Format;
	unsigned NumChannels;
};

struct array3d {
	unsigned Width, Height, Depth;
	CUarray_format Format;
	unsigned NumChannels, Flags;
};

static void *first(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);

	if (!f) {
		SAY("%s is not there", name);
		exit(3);
	}
	return f;
}

static void memory(void)
{
	CUresult (*memAlloc)(unsigned *, unsigned) = first("cuMemAlloc");
	CUresult (*memAllocPitch)(unsigned *, unsigned *, unsigned, unsigned, unsigned) = first("cuMemAllocPitch");
	CUresult (*memFree)(unsigned) = first("cuMemFree");
	CUresult (*memGetAddressRange)(unsigned *, unsigned *, unsigned) = first("cuMemGetAddressRange");
	CUresult (*memAllocHost)(void **, unsigned) = first("cuMemAllocHost");
	CUresult (*memHostGetDevicePointer)(unsigned *, void *, unsigned) = first("cuMemHostGetDevicePointer");
	CUresult (*memGetInfo)(unsigned *, unsigned *) = first("cuMemGetInfo");
	CUresult (*deviceTotalMem)(unsigned *, CUdevice) = first("cuDeviceTotalMem");
	CUresult (*moduleGetGlobal)(unsigned *, unsigned *, CUmodule, const char *) = first("cuModuleGetGlobal");
	unsigned p = 7, q = 7, n = 7, m = 7;
	void *host = NULL;

	begin();
	ASK(memAlloc(&p, 4096));
	SAY("untouched %d, zero %d", p == 7, p == 0);
	ASK(memAlloc(NULL, 4096));
	ASK(memAlloc(&q, 0));
	ASK(memAllocPitch(&q, &n, 100, 10, 4));
	SAY("untouched %d, pitch untouched %d", q == 7, n == 7);
	ASK(memGetAddressRange(&q, &n, 4096));
	ASK(memFree(4096));
	ASK(memFree(0));
	ASK(memGetInfo(&n, &m));
	printf("~ all bits %d %d\n", n == ~0u, m == ~0u);
	ASK(memGetInfo(NULL, NULL));
	ASK(deviceTotalMem(&n, 0));
	printf("~ all bits %d\n", n == ~0u);
	ASK(deviceTotalMem(&n, 4096));
	q = n = 7;
	ASK(moduleGetGlobal(&q, &n, module, "number"));
	SAY("untouched %d, bytes %u", q == 7, n);
	ASK(moduleGetGlobal(NULL, &n, module, "number"));
	SAY("bytes %u", n);
	ASK(moduleGetGlobal(&q, NULL, module, "nobody"));
	ASK(memAllocHost(&host, 64));
	SAY("some %d", !!host);
	q = 7;
	ASK(memHostGetDevicePointer(&q, host, 0));
	SAY("untouched %d", q == 7);
	ASK(memHostGetDevicePointer(&q, &q, 0));
	ASK(cuMemFreeHost(host));
}

static void copies(void)
{
	CUresult (*memcpyHtoD)(unsigned, const void *, unsigned) = first("cuMemcpyHtoD");
	CUresult (*memcpyDtoH)(void *, unsigned, unsigned) = first("cuMemcpyDtoH");
	CUresult (*memcpyDtoD)(unsigned, unsigned, unsigned) = first("cuMemcpyDtoD");
	CUresult (*memcpyHtoDAsync)(unsigned, const void *, unsigned, CUstream) = first("cuMemcpyHtoDAsync");
	CUresult (*memcpyDtoHAsync)(void *, unsigned, unsigned, CUstream) = first("cuMemcpyDtoHAsync");
	CUresult (*memcpyDtoDAsync)(unsigned, unsigned, unsigned, CUstream) = first("cuMemcpyDtoDAsync");
	CUresult (*memsetD8)(unsigned, unsigned char, unsigned) = first("cuMemsetD8");
	CUresult (*memsetD16)(unsigned, unsigned short, unsigned) = first("cuMemsetD16");
	CUresult (*memsetD32)(unsigned, unsigned, unsigned) = first("cuMemsetD32");
	CUresult (*memsetD2D8)(unsigned, unsigned, unsigned char, unsigned, unsigned) = first("cuMemsetD2D8");
	CUresult (*memsetD2D16)(unsigned, unsigned, unsigned short, unsigned, unsigned) = first("cuMemsetD2D16");
	CUresult (*memsetD2D32)(unsigned, unsigned, unsigned, unsigned, unsigned) = first("cuMemsetD2D32");
	unsigned char b[64] = {1};

	begin();
	ASK(memcpyHtoD(4096, b, 64));
	ASK(memcpyHtoD(0, b, 0));
	ASK(memcpyHtoD(4096, b, 0));
	ASK(memcpyDtoH(b, 4096, 64));
	ASK(memcpyDtoH(b, 4096, 0));
	ASK(memcpyDtoD(4096, 8192, 64));
	ASK(memcpyHtoDAsync(4096, b, 64, NULL));
	ASK(memcpyDtoHAsync(b, 4096, 64, NULL));
	ASK(memcpyDtoDAsync(4096, 8192, 64, NULL));
	ASK(memsetD8(4096, 1, 64));
	ASK(memsetD8(4096, 1, 0));
	ASK(memsetD16(4096, 1, 64));
	ASK(memsetD16(4097, 1, 64));
	ASK(memsetD32(4096, 1, 64));
	ASK(memsetD2D8(4096, 64, 1, 16, 4));
	ASK(memsetD2D16(4096, 64, 1, 16, 4));
	ASK(memsetD2D32(4096, 64, 1, 16, 4));
	ASK(cuCtxSynchronize());
}

static void arrays(void)
{
	CUresult (*arrayCreate)(CUarray *, const struct array *) = first("cuArrayCreate");
	CUresult (*arrayGetDescriptor)(struct array *, CUarray) = first("cuArrayGetDescriptor");
	CUresult (*array3DCreate)(CUarray *, const struct array3d *) = first("cuArray3DCreate");
	CUresult (*array3DGetDescriptor)(struct array3d *, CUarray) = first("cuArray3DGetDescriptor");
	CUresult (*memcpyHtoA)(CUarray, unsigned, const void *, unsigned) = first("cuMemcpyHtoA");
	CUresult (*memcpyAtoH)(void *, CUarray, unsigned, unsigned) = first("cuMemcpyAtoH");
	CUresult (*memcpyAtoA)(CUarray, unsigned, CUarray, unsigned, unsigned) = first("cuMemcpyAtoA");
	CUresult (*memcpyDtoA)(CUarray, unsigned, unsigned, unsigned) = first("cuMemcpyDtoA");
	CUresult (*memcpyAtoD)(unsigned, CUarray, unsigned, unsigned) = first("cuMemcpyAtoD");
	CUresult (*memcpyHtoAAsync)(CUarray, unsigned, const void *, unsigned, CUstream) = first("cuMemcpyHtoAAsync");
	CUresult (*memcpyAtoHAsync)(void *, CUarray, unsigned, unsigned, CUstream) = first("cuMemcpyAtoHAsync");
	CUresult (*memcpy2D)(const struct copy2d *) = first("cuMemcpy2D");
	CUresult (*memcpy2DUnaligned)(const struct copy2d *) = first("cuMemcpy2DUnaligned");
	CUresult (*memcpy2DAsync)(const struct copy2d *, CUstream) = first("cuMemcpy2DAsync");
	CUresult (*memcpy3D)(const struct copy3d *) = first("cuMemcpy3D");
	CUresult (*memcpy3DAsync)(const struct copy3d *, CUstream) = first("cuMemcpy3DAsync");
	struct array d = {16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1}, got = {0};
	struct array3d d3 = {16, 4, 2, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0}, got3 = {0};
	unsigned char in[64], out[64] = {0};
	unsigned in3[128], out3[128] = {0};
	CUarray a, b, c;
	CUstream s;

	begin();
	for (unsigned i = 0; i < 64; i++)
		in[i] = (unsigned char)(i * 3);
	for (unsigned i = 0; i < 128; i++)
		in3[i] = i * 7;
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ASK(arrayCreate(&a, &d));
	ASK(arrayGetDescriptor(&got, a));
	SAY("%u %u %d %u", got.Width, got.Height, got.Format, got.NumChannels);
	ASK(arrayCreate(&b, &(struct array){64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1}));
	ASK(arrayCreate(&c, &(struct array){0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1}));
	ASK(arrayCreate(&c, NULL));
	ASK(arrayGetDescriptor(NULL, a));
	ASK(array3DCreate(&c, &d3));
	ASK(array3DGetDescriptor(&got3, c));
	SAY("%u %u %u %d %u %u", got3.Width, got3.Height, got3.Depth, got3.Format, got3.NumChannels, got3.Flags);
	ASK(memcpyHtoA(b, 0, in, 64));
	ASK(memcpyAtoH(out, b, 16, 32));
	SAY("equal %d", !memcmp(out, in + 16, 32));
	ASK(memcpyHtoA(b, 32, in, 33));
	ASK(memcpyAtoA(b, 0, b, 32, 16));
	ASK(memcpyAtoHAsync(out, b, 0, 16, s));
	ASK(cuStreamSynchronize(s));
	SAY("equal %d", !memcmp(out, in + 32, 16));
	ASK(memcpyHtoAAsync(b, 8, in, 8, s));
	ASK(cuStreamSynchronize(s));
	ASK(memcpyAtoH(out, b, 8, 8));
	SAY("equal %d", !memcmp(out, in, 8));
	ASK(memcpyDtoA(b, 0, 4096, 16));
	ASK(memcpyAtoD(4096, b, 0, 16));

	struct copy2d to = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .srcPitch = 16,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a, .WidthInBytes = 16, .Height = 4};
	struct copy2d from = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a, .srcXInBytes = 4, .srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = out, .dstPitch = 8, .WidthInBytes = 8, .Height = 3};
	struct copy2d device2 = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .srcPitch = 16,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = 4096, .dstPitch = 16, .WidthInBytes = 16, .Height = 4};

	ASK(memcpy2D(&to));
	ASK(memcpy2D(&from));
	SAY("equal %d %d", !memcmp(out, in + 20, 8), !memcmp(out + 16, in + 52, 8));
	memset(out, 0, sizeof(out));
	ASK(memcpy2DUnaligned(&from));
	SAY("equal %d", !memcmp(out, in + 20, 8));
	memset(out, 0, sizeof(out));
	ASK(memcpy2DAsync(&from, s));
	ASK(cuStreamSynchronize(s));
	SAY("equal %d", !memcmp(out, in + 20, 8));
	ASK(memcpy2D(&device2));
	ASK(memcpy2D(NULL));
	from.Height = 4;
	ASK(memcpy2D(&from));

	struct copy3d to3 = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in3, .srcPitch = 64, .srcHeight = 4,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = c, .WidthInBytes = 64, .Height = 4, .Depth = 2};
	struct copy3d from3 = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = c, .srcZ = 1,
		.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = out3, .dstPitch = 64, .dstHeight = 4,
		.WidthInBytes = 64, .Height = 4, .Depth = 1};
	ASK(memcpy3D(&to3));
	ASK(memcpy3D(&from3));
	SAY("equal %d", !memcmp(out3, in3 + 64, 256));
	memset(out3, 0, sizeof(out3));
	ASK(memcpy3DAsync(&from3, s));
	ASK(cuStreamSynchronize(s));
	SAY("equal %d", !memcmp(out3, in3 + 64, 256));
	from3.Depth = 2;
	ASK(memcpy3D(&from3));
	ASK(memcpy3D(NULL));
	ASK(cuArrayDestroy(a));
	ASK(cuArrayDestroy(b));
	ASK(cuArrayDestroy(c));
}

static void references(void)
{
	CUresult (*texRefSetAddress)(unsigned *, CUtexref, unsigned, unsigned) = first("cuTexRefSetAddress");
	CUresult (*texRefSetAddress2D)(CUtexref, const struct array *, unsigned, unsigned) = first("cuTexRefSetAddress2D");
	CUresult (*texRefGetAddress)(unsigned *, CUtexref) = first("cuTexRefGetAddress");
	CUresult (*texRefCreate)(CUtexref *) = first("cuTexRefCreate");
	CUresult (*texRefDestroy)(CUtexref) = first("cuTexRefDestroy");
	struct array d = {16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
	unsigned offset = 7, p = 7;
	CUtexref t;

	begin();
	NEED(texRefCreate(&t));
	ASK(texRefSetAddress(&offset, t, 4096, 64));
	ASK(texRefSetAddress(&offset, t, 0, 0));
	SAY("offset %u", offset);
	ASK(texRefSetAddress2D(t, &d, 4096, 16));
	ASK(texRefGetAddress(&p, t));
	SAY("untouched %d", p == 7);
	ASK(texRefDestroy(t));
}

SECTIONS({"memory", memory}, {"copies", copies}, {"arrays", arrays}, {"references", references})
