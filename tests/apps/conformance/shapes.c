/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that ask for blocks of one shape or of a most, or that nobody has loaded: what their attributes
 * tell, and which calls refuse what does not fit them. And parameters that come as one buffer which is too
 * short. */
#include "check.h"

static const char texts[] = ".version 7.8\n.target sm_75\n.address_size 64\n"
			    ".visible .entry free_of(.param .u64 p, .param .u32 v) {\n"
			    " .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; ld.param.u32 %r, [v]; "
			    "st.global.u32 [%p], %r; ret; }\n"
			    ".visible .entry limited(.param .u64 p, .param .u32 v) .maxntid 64, 1, 1 {\n"
			    " .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; ld.param.u32 %r, [v]; "
			    "st.global.u32 [%p], %r; ret; }\n"
			    ".visible .entry exact(.param .u64 p, .param .u32 v) .reqntid 64, 1, 1 {\n"
			    " .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; ld.param.u32 %r, [v]; "
			    "st.global.u32 [%p], %r; ret; }\n"
			    ".visible .entry square(.param .u64 p, .param .u32 v) .reqntid 8, 8, 1 {\n"
			    " .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; ld.param.u32 %r, [v]; "
			    "st.global.u32 [%p], %r; ret; }\n"
			    ".visible .entry whole(.param .u64 p, .param .u32 v) .reqntid 1024, 1, 1 {\n"
			    " .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; ld.param.u32 %r, [v]; "
			    "st.global.u32 [%p], %r; ret; }\n"
			    ".visible .entry many(.param .u64 a, .param .u32 b, .param .u8 c, .param .align "
			    "16 .b8 d[20], .param .u16 e) {\n"
			    " .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [a]; ld.param.u32 %r, [b]; "
			    "st.global.u32 [%p], %r; ret; }\n"
			    ".visible .entry none() { ret; }\n";

static const char *const names[] = {"free_of", "limited", "exact", "square", "whole"};
static CUmodule m;
static CUdeviceptr p;

static void ready(void)
{
	begin();
	p = zeroed(64);
	NEED(cuModuleLoadData(&m, texts));
}

static CUfunction named(const char *name)
{
	CUfunction f;

	NEED(cuModuleGetFunction(&f, m, name));
	return f;
}

static void attributes(void)
{
	CUfunction f;
	int v, blocks, size;

	ready();
	for (size_t i = 0; i < COUNT(names); i++) {
		f = named(names[i]);
		SAY("- %s", names[i]);
		v = 77;
		ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
		SAY("threads %d", v);
		ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 32, 0));
		printf("~ blocks of 32: %d\n", blocks);
		SAY("blocks of 32, some %d", blocks > 0);
		ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 64, 0));
		SAY("blocks of 64, some %d", blocks > 0);
		ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 65, 0));
		SAY("blocks of 65, some %d", blocks > 0);
		ASK(cuOccupancyMaxPotentialBlockSize(&blocks, &size, f, NULL, 0, 0));
		SAY("best %d", size);
	}
}

static void launched(void)
{
	static const unsigned shapes[][3] = {{64, 1, 1}, {32, 1, 1}, {1, 1, 1}, {8, 8, 1}, {1, 64, 1},
		{65, 1, 1}, {128, 1, 1}, {1024, 1, 1}};
	CUresult r;
	unsigned v = 1;

	ready();
	for (size_t i = 0; i < COUNT(names); i++) {
		CUfunction f = named(names[i]);

		for (size_t k = 0; k < COUNT(shapes); k++) {
			const unsigned *b = shapes[k];
			CUlaunchConfig c = {.gridDimX = 1,
				.gridDimY = 1,
				.gridDimZ = 1,
				.blockDimX = b[0],
				.blockDimY = b[1],
				.blockDimZ = b[2]};

			r = cuLaunchKernel(f, 1, 1, 1, b[0], b[1], b[2], 0, NULL, (void *[]){&p, &v}, NULL);
			SAY("%s %u %u %u -> %s", names[i], b[0], b[1], b[2], name_of(r));
			r = cuLaunchKernelEx(&c, f, (void *[]){&p, &v}, NULL);
			SAY("the same extended -> %s", name_of(r));
			ASK(cuCtxSynchronize());
		}
	}
}

/* Nodes of graphs with such blocks: at which call they are refused. */
static void in_graphs(void)
{
	unsigned v = 1;

	ready();
	for (size_t i = 0; i < COUNT(names); i++) {
		CUfunction f = named(names[i]);
		CUDA_KERNEL_NODE_PARAMS k = {.func = f,
			.gridDimX = 1,
			.gridDimY = 1,
			.gridDimZ = 1,
			.blockDimX = 32,
			.blockDimY = 1,
			.blockDimZ = 1,
			.kernelParams = (void *[]){&p, &v}};
		CUgraph g;
		CUgraphNode n;
		CUgraphExec x;
		CUstream s;
		CUresult r;

		SAY("- %s", names[i]);
		NEED(cuGraphCreate(&g, 0));
		r = ASK(cuGraphAddKernelNode(&n, g, NULL, 0, &k));
		if (r) {
			k.blockDimX = 64;
			r = ASK(cuGraphAddKernelNode(&n, g, NULL, 0, &k));
		}
		k.blockDimX = 65;
		if (!r)
			ASK(cuGraphKernelNodeSetParams(n, &k));
		if (!ASK(cuGraphInstantiate(&x, g, 0))) {
			if (!r)
				ASK(cuGraphExecKernelNodeSetParams(x, n, &k));
			ASK(cuGraphLaunch(x, NULL));
			ASK(cuCtxSynchronize());
		}
		NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
		NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
		ASK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, k.kernelParams, NULL));
		ASK(cuStreamEndCapture(s, &g));
	}
}

/* What a driver tells of a function that nobody has taken by its name. */
static void unloaded(void)
{
	CUfunction f[8] = {0};
	CUfunctionLoadingState state;
	CUresult r;
	const char *name;
	size_t at, size;
	int v, i;

	ready();
	NEED(cuModuleEnumerateFunctions(f, 7, m));
	for (i = 0; i < 7; i++)
		if (!cuFuncGetName(&name, f[i]) && !strcmp(name, "free_of"))
			break;
	if (i == 7)
		exit(5);
	for (int a = 0; a < 17; a++) {
		r = cuFuncGetAttribute(&v, (CUfunction_attribute)a, f[i]);
		SAY("attribute %d -> %s", a, name_of(r));
	}
	ASK(cuFuncGetParamInfo(f[i], 0, &at, &size));
	ASK(cuFuncGetParamInfo(f[i], 2, &at, &size));
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f[i], 32, 0));
	ASK(cuFuncIsLoaded(&state, f[i]));
	SAY("loaded %d", state == CU_FUNCTION_LOADING_STATE_LOADED);
	ASK(cuFuncSetAttribute(f[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
	ASK(cuFuncSetCacheConfig(f[i], CU_FUNC_CACHE_PREFER_L1));
	ASK(cuFuncIsLoaded(&state, f[i]));
	SAY("loaded %d", state == CU_FUNCTION_LOADING_STATE_LOADED);
	ASK(LAUNCH(f[i], NULL, &p, &v));
	ASK(cuFuncIsLoaded(&state, f[i]));
	SAY("loaded %d", state == CU_FUNCTION_LOADING_STATE_LOADED);
	ASK(cuCtxSynchronize());
}

static CUresult packed(CUfunction f, void *bytes, size_t n)
{
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &n, CU_LAUNCH_PARAM_END};

	return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
}

/* Every length of the buffer, for parameters with holes between and behind. The room behind it is zero. */
static void short_buffers(void)
{
	_Alignas(16) unsigned char bytes[128] = {0};
	CUfunction f;
	CUresult r, last = 999;
	unsigned v = 5;
	size_t at, size;

	ready();
	f = named("many");
	for (size_t i = 0; !cuFuncGetParamInfo(f, i, &at, &size); i++)
		SAY("parameter %zu at %zu, %zu bytes", i, at, size);
	memcpy(bytes, &p, sizeof p);
	memcpy(bytes + 8, &v, sizeof v);
	for (size_t n = 12; n <= sizeof bytes; n++) {
		r = packed(f, bytes, n);
		if (r != last)
			SAY("from %zu bytes on -> %s", n, name_of(r));
		last = r;
	}
	ASK(cuCtxSynchronize());
	f = named("free_of");
	last = 999;
	for (size_t n = 8; n <= 20; n++) {
		r = packed(f, bytes, n);
		if (r != last)
			SAY("from %zu bytes on -> %s", n, name_of(r));
		last = r;
	}
	ASK(cuCtxSynchronize());
	SAY("value %u", word(p));
	f = named("none");
	ASK(packed(f, bytes, 0));
	ASK(packed(f, bytes, 8));
	ASK(packed(f, NULL, 0));
	ASK(packed(named("free_of"), NULL, 16));
	ASK(cuCtxSynchronize());
}

SECTIONS({"attributes", attributes}, {"launched", launched}, {"in_graphs", in_graphs}, {"unloaded", unloaded},
	{"short_buffers", short_buffers})
