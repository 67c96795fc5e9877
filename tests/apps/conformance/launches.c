/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: shapes, shared memory, parameters in every form, attributes, cooperation, contexts that do not
 * match. */
#include "check.h"

static CUfunction store, shared;
static CUdeviceptr p;
static unsigned value = 5;

static void shapes(void)
{
	static const unsigned list[][7] = {
		{1, 1, 1, 1, 1, 1, 0}, {3, 2, 2, 8, 4, 2, 64}, {1, 1, 1, 1024, 1, 1, 0}, {1, 1, 1, 1, 1, 64,
				0}, {65536, 1, 1, 1, 1, 1, 0},
		{1, 65535, 1, 1, 1, 1, 0}, {0, 1, 1, 1, 1, 1, 0}, {1, 0, 1, 1, 1, 1, 0}, {1, 1, 0, 1, 1, 1,
				0}, {1, 1, 1, 0, 1, 1, 0},
		{1, 1, 1, 1, 0, 1, 0}, {1, 1, 1, 1, 1, 0, 0}, {1, 1, 1, 1025, 1, 1, 0}, {1, 1, 1, 1, 1, 65,
				0}, {1, 1, 1, 33, 32, 1, 0},
		{1, 65536, 1, 1, 1, 1, 0}, {1, 1, 65536, 1, 1, 1, 0}, {0x80000000u, 1, 1, 1, 1, 1, 0}, {1, 1,
				1, 1, 1, 1, 48 << 10},
		{1, 1, 1, 1, 1, 1, (48 << 10) + 4}, {1, 1, 1, 1, 1, 1, 0x7fffffff},
	};
	void *args[] = {&p, &value};

	begin();
	store = kernel("store");
	p = zeroed(64);
	for (size_t i = 0; i < COUNT(list); i++) {
		const unsigned *l = list[i];
		CUresult r = cuLaunchKernel(store, l[0], l[1], l[2], l[3], l[4], l[5], l[6], NULL, args,
				NULL);

		SAY("%u,%u,%u %u,%u,%u shared %u -> %s", l[0], l[1], l[2], l[3], l[4], l[5], l[6],
				name_of(r));
		NEED(cuCtxSynchronize());
	}
	SAY("%u", word(p));
}

static void shared_memory(void)
{
	void *args[] = {&p};
	int v;

	begin();
	shared = kernel("with_shared");
	p = zeroed(64);
	ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared));
	SAY("static and dynamic make 48 KiB %d", v + 4096 == 48 << 10);
	ASK(cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, 44 << 10, NULL, args, NULL));
	ASK(cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, (44 << 10) + 4, NULL, args, NULL));
	ASK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50 << 10));
	ASK(cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, 50 << 10, NULL, args, NULL));
	ASK(cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, (50 << 10) + 4, NULL, args, NULL));
	v = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	ASK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, v - 4096));
	ASK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, v - 4092));
	ASK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -4));
	ASK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 4));
	ASK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 40));
	ASK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 400));
	ASK(cuFuncSetAttribute(NULL, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4));
	ASK(cuFuncSetCacheConfig(shared, CU_FUNC_CACHE_PREFER_L1));
	ASK(cuFuncSetCacheConfig(shared, 77));
	ASK(cuCtxSynchronize());
	SAY("%u", word(p));
}

static void parameters(void)
{
	struct {
		CUdeviceptr p;
		unsigned v;
	} packed;
	size_t n = 12, eight = 8;
	void *args[] = {&p, &value};
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &n,
			CU_LAUNCH_PARAM_END};
	void *no_end[] = {(void *)7, &packed, CU_LAUNCH_PARAM_END};
	void *shorter[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &eight,
			CU_LAUNCH_PARAM_END};

	begin();
	store = kernel("store");
	p = zeroed(64);
	packed.p = p + 4;
	packed.v = 6;
	ASK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	ASK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	ASK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, args, extra));
	ASK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, no_end));
	VARY(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, shorter));
	ASK(cuLaunchKernel(kernel("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	ASK(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	ASK(cuCtxSynchronize());
	SAY("%u", word(p));
}

static void extended(void)
{
	CUlaunchConfig c = {.gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1,
			.blockDimZ = 1};
	CUlaunchAttribute a[2];
	CUevent e;
	CUstream s;
	void *args[] = {&p, &value};

	begin();
	store = kernel("store");
	p = zeroed(64);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	c.hStream = s;
	ASK(cuLaunchKernelEx(&c, store, args, NULL));
	ASK(cuLaunchKernelEx(NULL, store, args, NULL));
	ASK(cuLaunchKernelEx(&c, NULL, args, NULL));
	c.attrs = a;
	c.numAttrs = 1;
	memset(a, 0, sizeof(a));
	a[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	a[0].value.cooperative = 1;
	ASK(cuLaunchKernelEx(&c, store, args, NULL));
	c.gridDimX = 1 << 24;
	ASK(cuLaunchKernelEx(&c, store, args, NULL));
	c.gridDimX = 2;
	a[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	a[0].value.priority = 0;
	ASK(cuLaunchKernelEx(&c, store, args, NULL));
	a[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
	ASK(cuLaunchKernelEx(&c, store, args, NULL));
	a[0].id = 999;
	ASK(cuLaunchKernelEx(&c, store, args, NULL));
	c.numAttrs = 0;
	c.gridDimX = 0;
	ASK(cuLaunchKernelEx(&c, store, args, NULL));
	ASK(cuLaunchCooperativeKernel(store, 2, 1, 1, 32, 1, 1, 0, s, args));
	ASK(cuLaunchCooperativeKernel(store, 1 << 24, 1, 1, 32, 1, 1, 0, s, args));
	ASK(cuStreamSynchronize(s));
	SAY("%u", word(p));
}

SECTIONS({"shapes", shapes}, {"shared_memory", shared_memory}, {"parameters", parameters}, {"extended",
		extended})
