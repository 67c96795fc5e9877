/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of CUDA 2 whose device addresses have 32 bits: the library still exports them under their first
 * names, which cuda.h hides behind those of today, for contexts that the first cuCtxCreate makes; in any
 * other they are refused. */
#include "first.h"

struct array {
	unsigned Width, Height;
	CUarray_format Format;
	unsigned NumChannels;
};

static void memory(void)
{
	CUresult (*memAlloc)(unsigned *, unsigned) = first("cuMemAlloc");
	CUresult (*memAllocPitch)(unsigned *, unsigned *, unsigned, unsigned, unsigned) =
			first("cuMemAllocPitch");
	CUresult (*memFree)(unsigned) = first("cuMemFree");
	CUresult (*memGetAddressRange)(unsigned *, unsigned *, unsigned) = first("cuMemGetAddressRange");
	CUresult (*memAllocHost)(void **, unsigned) = first("cuMemAllocHost");
	CUresult (*memHostGetDevicePointer)(unsigned *, void *, unsigned) =
			first("cuMemHostGetDevicePointer");
	CUresult (*memGetInfo)(unsigned *, unsigned *) = first("cuMemGetInfo");
	CUresult (*deviceTotalMem)(unsigned *, CUdevice) = first("cuDeviceTotalMem");
	CUresult (*moduleGetGlobal)(unsigned *, unsigned *, CUmodule, const char *) =
			first("cuModuleGetGlobal");
	unsigned p = 7, q = 7, n = 7, m = 7;
	void *host = NULL;

	begin();
	ASK(memAlloc(&p, 4096));
	ASK(memAlloc(NULL, 4096));
	ASK(memAlloc(&q, 0));
	ASK(memAllocPitch(&q, &n, 100, 10, 4));
	ASK(memGetAddressRange(&q, &n, 4096));
	ASK(memFree(4096));
	ASK(memFree(0));
	VARY(memGetInfo(&n, &m));
	printf("~ all bits %d %d\n", n == ~0u, m == ~0u);
	ASK(deviceTotalMem(&n, 0));
	printf("~ all bits %d\n", n == ~0u);
	ASK(deviceTotalMem(&n, 4096));
	q = n = 7;
	ASK(moduleGetGlobal(&q, &n, module, "number"));
	ASK(moduleGetGlobal(NULL, &n, module, "number"));
	ASK(moduleGetGlobal(&q, NULL, module, "nobody"));
	VARY(memAllocHost(&host, 64));
	q = 7;
	ASK(memHostGetDevicePointer(&q, host, 0));
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
	CUresult (*memsetD2D16)(unsigned, unsigned, unsigned short, unsigned, unsigned) =
			first("cuMemsetD2D16");
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

static void references(void)
{
	CUresult (*texRefSetAddress)(unsigned *, CUtexref, unsigned, unsigned) = first("cuTexRefSetAddress");
	CUresult (*texRefSetAddress2D)(CUtexref, const struct array *, unsigned, unsigned) =
			first("cuTexRefSetAddress2D");
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
	ASK(texRefSetAddress2D(t, &d, 4096, 16));
	ASK(texRefGetAddress(&p, t));
	ASK(texRefDestroy(t));
}

SECTIONS({"memory", memory}, {"copies", copies}, {"references", references})
