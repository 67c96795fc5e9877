/* SPDX-License-Identifier: Apache-2.0 */
/* The first names of calls that still mean what they did, which cuda.h hides behind those of today: programs
 * of that time, and those that look functions up by name, use them. And small calls that few programs
 * make. */
#include "first.h"
#include <cudaProfiler.h>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void contexts(void)
{
	CUresult (*ctxCreate)(CUcontext *, unsigned, CUdevice) = first("cuCtxCreate");
	CUresult (*ctxCreate_v2)(CUcontext *, unsigned, CUdevice) = first("cuCtxCreate_v2");
	CUresult (*ctxCreate_v3)(CUcontext *, CUexecAffinityParam *, int, unsigned, CUdevice) =
			first("cuCtxCreate_v3");
	CUresult (*ctxDestroy)(CUcontext) = first("cuCtxDestroy");
	CUresult (*ctxPush)(CUcontext) = first("cuCtxPushCurrent");
	CUresult (*ctxPop)(CUcontext *) = first("cuCtxPopCurrent");
	CUresult (*primaryRelease)(CUdevice) = first("cuDevicePrimaryCtxRelease");
	CUresult (*primaryReset)(CUdevice) = first("cuDevicePrimaryCtxReset");
	CUresult (*primarySetFlags)(CUdevice, unsigned) = first("cuDevicePrimaryCtxSetFlags");
	CUsharedconfig config = 99;
	CUcontext a = NULL, b = NULL, c;
	unsigned version = 7, flags = 7;
	int active = 7;

	NEED(cuInit(0));
	/* The first of all makes a context of 32-bit addresses, beside which a driver makes no other. */
	ASK(ctxCreate(&b, 77, 0));
	ASK(ctxCreate(&b, 0, 4096));
	ASK(ctxCreate(NULL, 0, 0));
	ASK(ctxCreate_v2(&a, CU_CTX_SCHED_BLOCKING_SYNC, 0));
	ASK(cuCtxGetApiVersion(a, &version));
	SAY("version %u", version);
	ASK(cuCtxGetFlags(&flags));
	SAY("flags %#x", flags);
	ASK(ctxCreate_v3(&c, NULL, 0, CU_CTX_SCHED_YIELD, 0));
	ASK(cuCtxGetApiVersion(c, &version));
	SAY("version %u", version);
	ASK(cuCtxGetFlags(&flags));
	SAY("flags %#x", flags);
	ASK(ctxPop(&b));
	SAY("the last %d", b == c);
	ASK(ctxPush(a));
	ASK(cuCtxAttach(&b, 0));
	SAY("the current one %d", b == a);
	ASK(cuCtxAttach(&b, 1));
	ASK(cuCtxAttach(NULL, 0));
	ASK(cuCtxDetach(a));
	ASK(cuCtxDetach(NULL));
	ASK(cuCtxGetSharedMemConfig(&config));
	SAY("config %d", config);
	ASK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
	ASK(cuCtxGetSharedMemConfig(&config));
	SAY("config %d", config);
	ASK(cuCtxSetSharedMemConfig(77));
	ASK(cuCtxGetSharedMemConfig(NULL));
	ASK(ctxDestroy(c));
	ASK(ctxDestroy(a));
	ASK(primarySetFlags(0, CU_CTX_SCHED_SPIN));
	ASK(primarySetFlags(0, 77));
	ASK(primarySetFlags(4096, 0));
	ASK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	SAY("flags %#x active %d", flags, active);
	ASK(primaryRelease(0));
	NEED(cuDevicePrimaryCtxRetain(&c, 0));
	ASK(primaryReset(0));
	ASK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	SAY("flags %#x active %d", flags, active);
	ASK(primaryReset(4096));
	ASK(primaryRelease(0));
}

static void detached(void)
{
	CUcontext a, now = (CUcontext)7;

	NEED(cuInit(0));
	NEED(cuCtxCreate(&a, NULL, 0, 0));
	ASK(cuCtxAttach(&now, 0));
	ASK(cuCtxDetach(a));
	ASK(cuCtxGetCurrent(&now));
	SAY("still %d", now == a);
	ASK(cuCtxDetach(a));
	ASK(cuCtxGetCurrent(&now));
	SAY("gone %d", now == NULL);
}

static void devices(void)
{
	CUresult (*deviceGetUuid)(CUuuid *, CUdevice) = first("cuDeviceGetUuid");
	CUresult (*getProcAddress)(const char *, void **, int, cuuint64_t) = first("cuGetProcAddress");
	CUuuid a = {{0}}, b = {{1}};
	CUdevprop p = {0};
	char luid[8];
	unsigned mask;
	int major = 0, minor = 0, v = 0;
	size_t n = 0;
	void *f = NULL;
	CUmoduleLoadingMode mode = 77;
	const void *table = &table;
	CUuuid unknown = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

	NEED(cuInit(0));
	ASK(deviceGetUuid(&a, 0));
	ASK(cuDeviceGetUuid(&b, 0));
	SAY("equal %d", !memcmp(&a, &b, sizeof a));
	ASK(deviceGetUuid(NULL, 0));
	ASK(cuDeviceComputeCapability(&major, &minor, 0));
	ASK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	SAY("major %d", v == major);
	ASK(cuDeviceComputeCapability(NULL, &minor, 0));
	ASK(cuDeviceComputeCapability(&major, &minor, 4096));
	ASK(cuDeviceGetProperties(&p, 0));
	SAY("%d threads, %d %d %d, shared %d, constant %d, warp %d, registers %d, align %d",
			p.maxThreadsPerBlock, p.maxThreadsDim[0],
		p.maxThreadsDim[1], p.maxThreadsDim[2], p.sharedMemPerBlock, p.totalConstantMemory,
		p.SIMDWidth, p.regsPerBlock, p.textureAlign);
	SAY("grid %d %d %d", p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]);
	ASK(cuDeviceGetProperties(NULL, 0));
	ASK(cuDeviceGetProperties(&p, 4096));
	ASK(cuDeviceGetLuid(luid, &mask, 0));
	ASK(cuDeviceGetTexture1DLinearMaxWidth(&n, CU_AD_FORMAT_FLOAT, 1, 0));
	printf("~ texels %zu\n", n);
	ASK(cuDeviceGetTexture1DLinearMaxWidth(&n, CU_AD_FORMAT_FLOAT, 3, 0));
	ASK(cuModuleGetLoadingMode(&mode));
	printf("~ mode %d\n", mode);
	ASK(getProcAddress("cuMemAlloc", &f, 12000, 0));
	SAY("found %d", f != NULL);
	ASK(getProcAddress("cuMemAlloc", &f, 12000, 77));
	ASK(getProcAddress("cuNobody", &f, 12000, 0));
	SAY("found %d", f != NULL);
	ASK(getProcAddress("cuLaunchKernelEx", &f, 11000, 0));
	ASK(getProcAddress("cuMemAlloc", &f, -1, 0));
	ASK(cuGetExportTable(&table, &unknown));
}

/* By itself: a driver may crash. */
static void no_table(void)
{
	CUuuid unknown = {{1}};

	NEED(cuInit(0));
	ASK(cuGetExportTable(NULL, &unknown));
}

static void streams(void)
{
	CUresult (*streamDestroy)(CUstream) = first("cuStreamDestroy");
	CUresult (*eventDestroy)(CUevent) = first("cuEventDestroy");
	CUresult (*eventElapsedTime)(float *, CUevent, CUevent) = first("cuEventElapsedTime");
	CUresult (*writeValue32)(CUstream, CUdeviceptr, cuuint32_t, unsigned) = first("cuStreamWriteValue32");
	CUresult (*waitValue32)(CUstream, CUdeviceptr, cuuint32_t, unsigned) = first("cuStreamWaitValue32");
	CUresult (*writeValue64)(CUstream, CUdeviceptr, cuuint64_t, unsigned) = first("cuStreamWriteValue64");
	CUresult (*waitValue64)(CUstream, CUdeviceptr, cuuint64_t, unsigned) = first("cuStreamWaitValue64");
	CUresult (*batchMemOp)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned) =
			first("cuStreamBatchMemOp");
	CUstreamBatchMemOpParams ops[2] = {{.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32},
			{.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32}};
	CUdeviceptr p;
	CUstream s;
	CUevent a, b;
	float ms = -1;

	begin();
	p = zeroed(64);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&a, 0));
	NEED(cuEventCreate(&b, 0));
	ASK(writeValue32(s, p, 5, 0));
	ASK(waitValue32(s, p, 5, CU_STREAM_WAIT_VALUE_EQ));
	ASK(cuStreamSynchronize(s));
	SAY("value %u", word(p));
	ASK(writeValue64(s, p + 8, 9, 0));
	ASK(waitValue64(s, p + 8, 9, CU_STREAM_WAIT_VALUE_GEQ));
	ops[0].writeValue.address = ops[1].waitValue.address = p + 16;
	ops[0].writeValue.value = ops[1].waitValue.value = 11;
	ASK(batchMemOp(s, 2, ops, 0));
	ASK(cuStreamSynchronize(s));
	SAY("values %u %u", word(p + 8), word(p + 16));
	ASK(writeValue32(s, p + 1, 5, 0));
	ASK(writeValue32(s, 0, 5, 0));
	ASK(batchMemOp(s, 1, ops, 77));
	ASK(batchMemOp(s, 0, ops, 0));
	ASK(cuEventRecord(a, s));
	ASK(cuEventRecord(b, s));
	ASK(cuEventSynchronize(b));
	ASK(eventElapsedTime(&ms, a, b));
	SAY("some %d", ms >= 0);
	ASK(eventElapsedTime(NULL, a, b));
	ASK(eventElapsedTime(&ms, NULL, b));
	ASK(eventDestroy(a));
	ASK(eventDestroy(b));
	ASK(streamDestroy(s));
	ASK(streamDestroy(NULL));
	ASK(cuProfilerStart());
	ASK(cuProfilerStop());
	VARY(((CUresult (*)(const char *, const char *, int))first("cuProfilerInitialize"))("a", "b", 0));
}

static void code(void)
{
	CUresult (*linkCreate)(unsigned, CUjit_option *, void **, CUlinkState *) = first("cuLinkCreate");
	CUresult (*linkAddData)(CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned,
			CUjit_option *, void **) =
		first("cuLinkAddData");
	CUresult (*linkAddFile)(CUlinkState, CUjitInputType, const char *, unsigned, CUjit_option *,
			void **) = first("cuLinkAddFile");
	char path[] = "/tmp/conformance-early-XXXXXX";
	int fd = mkstemp(path);
	CUlinkState l;
	CUmodule m;
	CUlibrary lib;
	CUkernel k;
	CUfunction f;
	void *image = NULL;
	size_t n = 0, at = 77, size = 77;

	if (fd < 0 || write(fd, kernels, sizeof kernels) != (ssize_t)sizeof kernels)
		exit(4);
	begin();
	ASK(linkCreate(0, NULL, NULL, &l));
	ASK(linkAddFile(l, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
	ASK(linkAddFile(l, CU_JIT_INPUT_PTX, "/nonexistent/file", 0, NULL, NULL));
	ASK(cuLinkComplete(l, &image, &n));
	SAY("image %d", image && n);
	ASK(cuModuleLoadData(&m, image));
	ASK(cuModuleGetFunction(&f, m, "store"));
	ASK(cuLinkDestroy(l));
	ASK(cuFuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
	ASK(cuFuncSetSharedMemConfig(f, 77));
	ASK(cuFuncSetSharedMemConfig(NULL, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
	ASK(cuModuleUnload(m));
	ASK(linkCreate(0, NULL, NULL, &l));
	ASK(linkAddData(l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)kernels, sizeof kernels, "kernels", 0, NULL,
			NULL));
	ASK(cuLinkDestroy(l));
	ASK(cuModuleLoad(&m, path));
	ASK(cuModuleUnload(m));
	ASK(cuModuleLoadFatBinary(&m, kernels));
	NEED(cuLibraryLoadFromFile(&lib, path, NULL, NULL, 0, NULL, NULL, 0));
	NEED(cuLibraryGetKernel(&k, lib, "store"));
	ASK(cuKernelGetParamInfo(k, 0, &at, &size));
	SAY("at %zu, %zu bytes", at, size);
	ASK(cuKernelGetParamInfo(k, 1, &at, &size));
	SAY("at %zu, %zu bytes", at, size);
	ASK(cuKernelGetParamInfo(k, 2, &at, &size));
	ASK(cuKernelGetParamInfo(k, 0, NULL, &size));
	ASK(cuKernelGetParamInfo(k, 0, &at, NULL));
	ASK(cuKernelGetParamInfo(NULL, 0, &at, &size));
	unlink(path);
}

static void ranges(void)
{
	CUresult (*memAdvise)(CUdeviceptr, size_t, CUmem_advise, CUdevice) = first("cuMemAdvise");
	CUresult (*memPrefetchAsync)(CUdeviceptr, size_t, CUdevice, CUstream) = first("cuMemPrefetchAsync");
	CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
			CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
		CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION};
	int values[3] = {77, 77, 77};
	void *data[] = {&values[0], &values[1], &values[2]};
	size_t sizes[] = {4, 4, 4};
	CUdeviceptr p, d;

	begin();
	NEED(cuMemAllocManaged(&p, 65536, CU_MEM_ATTACH_GLOBAL));
	d = zeroed(4096);
	ASK(memAdvise(p, 65536, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	ASK(memAdvise(p, 65536, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
	ASK(memAdvise(p, 65536, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 4096));
	ASK(memAdvise(p, 65536, 77, 0));
	ASK(memAdvise(d, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	ASK(memPrefetchAsync(p, 65536, 0, NULL));
	ASK(memPrefetchAsync(p, 65536, CU_DEVICE_CPU, NULL));
	ASK(memPrefetchAsync(p, 65536, 4096, NULL));
	ASK(memPrefetchAsync(d, 4096, 0, NULL));
	ASK(cuCtxSynchronize());
	ASK(cuMemRangeGetAttributes(data, sizes, which, 3, p, 65536));
	printf("~ %d %d %d\n", values[0], values[1], values[2]);
	ASK(cuMemRangeGetAttributes(data, sizes, which, 0, p, 65536));
	ASK(cuMemRangeGetAttributes(NULL, sizes, which, 3, p, 65536));
	ASK(cuMemRangeGetAttributes(data, sizes, which, 3, d, 4096));
}

SECTIONS({"contexts", contexts}, {"detached", detached}, {"devices", devices}, {"no_table", no_table},
		{"streams", streams}, {"code", code}, {"ranges", ranges})
