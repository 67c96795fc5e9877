/* SPDX-License-Identifier: Apache-2.0 */
/* Before cuInit, after it without a context, devices and their attributes, entry points by name, error
 * texts. */
#include "check.h"

static int first = 5, second = 6;

static void uninitialised(void)
{
	CUdevice d = 9;
	CUcontext c;
	CUdeviceptr p;
	CUstream s;
	CUfunction f = NULL;
	CUgraph g;
	size_t n;
	int v = 0;

	ASK(cuDriverGetVersion(&v));
	SAY("version given %d", v >= 12000);
	ASK(cuDriverGetVersion(NULL));
	ASK(cuDeviceGetCount(&first));
	ASK(cuDeviceGet(&d, 0));
	ASK(cuDeviceGetName((char[16]){0}, 16, 0));
	ASK(cuDeviceGetUuid(&(CUuuid){{0}}, 0));
	ASK(cuDevicePrimaryCtxRetain(&c, 0));
	ASK(cuDevicePrimaryCtxRelease(0));
	ASK(cuCtxGetCurrent(&c));
	ASK(cuCtxPopCurrent(&c));
	ASK(cuCtxGetDevice(&d));
	ASK(cuMemAlloc(&p, 4));
	ASK(cuMemGetInfo(&n, &n));
	ASK(cuMemcpyHtoD(4096, &v, 4));
	ASK(cuMemcpyDtoHAsync(&v, 4096, 4, NULL));
	ASK(cuStreamCreate(&s, 0));
	ASK(cuStreamSynchronize(NULL));
	ASK(cuEventQuery(NULL));
	ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	ASK(cuModuleUnload(NULL));
	ASK(cuGraphCreate(&g, 0));
	SAY("untouched %d %d", first, d);
	ASK(cuInit(7));
	ASK(cuInit(0));
	ASK(cuInit(0));
	ASK(cuDeviceGetCount(&first));
	SAY("count at least one %d", first >= 1);
}

static void devices(void)
{
	static const struct {
		const char *name;
		CUdevice_attribute a;
		int least;
	} list[] = {
		{"warp size", CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
		{"threads per block", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
		{"grid x", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
		{"grid y", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
		{"block z", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
		{"shared memory", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
		{"constant memory", CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
		{"unified addressing", CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
		{"managed memory", CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
		{"cooperative launch", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
		{"memory pools", CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
		{"map host memory", CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
	};
	char name[256], bus[32];
	CUuuid u;
	CUdevice d = -3, again;
	size_t total;
	int v = -1;

	ASK(cuInit(0));
	ASK(cuDeviceGet(&d, -1));
	ASK(cuDeviceGet(&d, 4096));
	ASK(cuDeviceGet(NULL, 0));
	SAY("untouched %d", d);
	ASK(cuDeviceGet(&d, 0));
	ASK(cuDeviceGetName(name, sizeof(name), d));
	SAY("named %d", name[0] != 0);
	ASK(cuDeviceGetName(name, 6, d));
	SAY("cut to %zu", strlen(name));
	ASK(cuDeviceGetName(name, 16, 4096));
	ASK(cuDeviceGetUuid(&u, d));
	ASK(cuDeviceGetUuid(&u, 4096));
	ASK(cuDeviceTotalMem(&total, d));
	SAY("some memory %d", total >= 256u << 20);
	ASK(cuDeviceTotalMem(&total, 4096));
	ASK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 4096));
	ASK(cuDeviceGetAttribute(&v, 0, d));
	ASK(cuDeviceGetAttribute(&v, 100000, d));
	for (size_t i = 0; i < COUNT(list); i++) {
		CUresult r = cuDeviceGetAttribute(&v, list[i].a, d);

		SAY("%s -> %s %d", list[i].name, name_of(r), v);
	}
	ASK(cuDeviceGetPCIBusId(bus, sizeof(bus), d));
	ASK(cuDeviceGetByPCIBusId(&again, bus));
	SAY("found again %d", again == d);
	ASK(cuDeviceGetByPCIBusId(&again, "ffff:ff:1f.7"));
	ASK(cuDeviceCanAccessPeer(&second, d, d));
	SAY("its own peer %d", second);
	ASK(cuDeviceCanAccessPeer(&second, d, 4096));
}

static void no_context(void)
{
	CUcontext c = (CUcontext)(uintptr_t)8;
	CUdeviceptr p;
	CUdevice d;
	CUstream s;
	CUevent e;
	CUmodule m;
	unsigned flags;
	size_t n;
	void *h;
	int v = 0, active = 9;

	ASK(cuInit(0));
	ASK(cuCtxGetCurrent(&c));
	SAY("none %d", c == NULL);
	ASK(cuCtxGetDevice(&d));
	ASK(cuCtxGetFlags(&flags));
	ASK(cuCtxSynchronize());
	ASK(cuCtxPopCurrent(&c));
	ASK(cuCtxPushCurrent(NULL));
	ASK(cuCtxSetCurrent(NULL));
	ASK(cuCtxDestroy(NULL));
	ASK(cuCtxGetLimit(&n, CU_LIMIT_STACK_SIZE));
	ASK(cuMemAlloc(&p, 4));
	ASK(cuMemFree(0));
	ASK(cuMemAllocHost(&h, 4));
	ASK(cuMemAllocPitch(&p, &n, 4, 4, 4));
	ASK(cuMemGetInfo(&n, &n));
	ASK(cuMemcpyHtoD(4096, &v, 4));
	ASK(cuMemcpyHtoDAsync(4096, &v, 4, NULL));
	ASK(cuMemsetD32(4096, 0, 1));
	ASK(cuStreamCreate(&s, 0));
	ASK(cuStreamSynchronize(NULL));
	ASK(cuEventCreate(&e, 0));
	ASK(cuModuleLoadData(&m, kernels));
	ASK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	SAY("active %d", active);
	ASK(cuDevicePrimaryCtxRelease(0));
	ASK(cuDevicePrimaryCtxRetain(&c, 0));
	ASK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	SAY("active %d", active);
	ASK(cuCtxGetDevice(&d));
	ASK(cuCtxSetCurrent(c));
	ASK(cuCtxGetDevice(&d));
	ASK(cuMemAlloc(&p, 4));
	ASK(cuMemFree(p));
	ASK(cuDevicePrimaryCtxRetain(NULL, 0));
	ASK(cuDevicePrimaryCtxRetain(&c, 4096));
	ASK(cuDevicePrimaryCtxRelease(0));
	ASK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	SAY("active %d", active);
}

static void entry_points(void)
{
	static const char *const names[] = {"cuInit", "cuMemAlloc", "cuMemAlloc_v2", "cuLaunchKernel",
			"cuNoSuchFunction", "", "cuGetProcAddress"};
	void *f;
	CUdriverProcAddressQueryResult q;

	for (size_t i = 0; i < COUNT(names); i++) {
		CUresult r;

		f = NULL;
		q = 9;
		r = cuGetProcAddress(names[i], &f, 12000, 0, &q);
		SAY("%s -> %s found %d, query %d", names[i], name_of(r), f != NULL, q);
	}
	f = NULL;
	ASK(cuGetProcAddress("cuLaunchKernelEx", &f, 11000, 0, &q));
	SAY("too new for the asker: found %d, query %d", f != NULL, q);
	ASK(cuGetProcAddress("cuMemcpyHtoDAsync", &f, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
			&q));
	SAY("per thread: found %d, query %d", f != NULL, q);
	ASK(cuGetProcAddress("cuInit", &f, 12000, 0, NULL));
}

static void texts(void)
{
	static const int codes[] = {0, 1, 2, 3, 100, 101, 200, 201, 209, 218, 304, 400, 500, 600, 700, 702,
			710, 716, 719, 801, 806, 900, 901, 999};
	const char *s, *t;

	for (size_t i = 0; i < COUNT(codes); i++) {
		s = t = "?";
		if (cuGetErrorName(codes[i], &s) || cuGetErrorString(codes[i], &t))
			SAY("%d unknown", codes[i]);
		else
			SAY("%d %s: %s", codes[i], s, t);
	}
	s = "?";
	ASK(cuGetErrorName(12345, &s));
	SAY("nulled %d", s == NULL);
	t = "?";
	ASK(cuGetErrorString(-2, &t));
	SAY("nulled %d", t == NULL);
}

SECTIONS({"uninitialised", uninitialised}, {"devices", devices}, {"no_context", no_context}, {"entry_points",
		entry_points},
	 {"texts", texts})
