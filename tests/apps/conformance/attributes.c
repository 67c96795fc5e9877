/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of launches and streams: programmatic dependent launch, priorities, domains; parameters of 4 and
 * 32 KiB; grids as large as they may be; what refuses a launch. */
#include "check.h"

#define HEAD ".version 8.1\n.target sm_90\n.address_size 64\n"

/* first: *p = v. second: waits for those in front, then *p = *p * 2 + v. */
static const char hopper[] =
	HEAD
	".visible .entry first(.param .u64 p, .param .u32 v) {\n"
	" .reg .b64 %p; .reg .b32 %r<3>; ld.param.u64 %p, [p]; ld.param.u32 %r0, [v]; "
	"griddepcontrol.launch_dependents;\n"
	" st.global.u32 [%p], %r0; ret; }\n"
	".visible .entry second(.param .u64 p, .param .u32 v) {\n"
	" .reg .b64 %p; .reg .b32 %r<4>; ld.param.u64 %p, [p]; ld.param.u32 %r0, [v]; griddepcontrol.wait;\n"
	" ld.global.u32 %r1, [%p]; mad.lo.u32 %r2, %r1, 2, %r0; st.global.u32 [%p], %r2; ret; }\n"
	".visible .entry limited(.param .u64 p) .maxntid 64, 1, 1 { ret; }\n"
	".visible .entry exact(.param .u64 p) .reqntid 64, 1, 1 { ret; }\n";

/* last: *p = the last word of the parameters; count: atomic of all blocks. */
static const char large[] =
	HEAD ".visible .entry last4(.param .u64 p, .param .align 4 .b8 b[4088]) {\n"
	" .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; ld.param.u32 %r, [b+4084]; st.global.u32 [%p], "
	"%r; ret; }\n"
	".visible .entry last32(.param .u64 p, .param .align 4 .b8 b[32756]) {\n"
	" .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; ld.param.u32 %r, [b+32752]; st.global.u32 [%p], "
	"%r; ret; }\n"
	".visible .entry count(.param .u64 p) {\n"
	" .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; red.global.add.u32 [%p], 1; ret; }\n";

static void dependent(void)
{
	CUmodule m;
	CUfunction one, two;
	CUdeviceptr p;
	CUstream s;
	CUgraph g;
	CUgraphExec x;
	CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION},
			e = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT};
	CUlaunchConfig c;
	CUevent event;
	unsigned v = 3, w = 1;
	size_t n = 0;

	begin();
	NEED(cuModuleLoadData(&m, hopper));
	NEED(cuModuleGetFunction(&one, m, "first"));
	NEED(cuModuleGetFunction(&two, m, "second"));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	p = zeroed(64);
	void *first[] = {&p, &v}, *second[] = {&p, &w};
	a.value.programmaticStreamSerializationAllowed = 1;
	for (unsigned i = 0; i < 3; i++) {
		c = config(1, s, NULL, 0);
		ASK(cuLaunchKernelEx(&c, one, first, NULL));
		c = config(1, s, &a, 1);
		ASK(cuLaunchKernelEx(&c, two, second, NULL));
		v++;
	}
	ASK(cuStreamSynchronize(s));
	SAY("value %u", word(p));
	ASK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	c = config(1, s, NULL, 0);
	ASK(cuLaunchKernelEx(&c, one, first, NULL));
	c = config(1, s, &a, 1);
	ASK(cuLaunchKernelEx(&c, two, second, NULL));
	ASK(cuStreamEndCapture(s, &g));
	n = 1;
	CUgraphNode from, to;
	CUgraphEdgeData d = {0};
	ASK(cuGraphGetEdges(g, &from, &to, &d, &n));
	/* The software device has the kernels one after the other. */
	printf("~ %zu edges, port %u to %u, type %u\n", n, d.from_port, d.to_port, d.type);
	ASK(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	SAY("value %u", word(p));
	e.value.programmaticEvent.event = event;
	c = config(1, s, &e, 1);
	ASK(cuLaunchKernelEx(&c, one, first, NULL));
	ASK(cuEventSynchronize(event));
	ASK(cuStreamSynchronize(s));
	e.value.programmaticEvent.event = NULL;
	ASK(cuLaunchKernelEx(&c, one, first, NULL));
	e = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT};
	e.value.launchCompletionEvent.event = event;
	ASK(cuLaunchKernelEx(&c, one, first, NULL));
	ASK(cuEventSynchronize(event));
	ASK(cuStreamSynchronize(s));
}

static void stream_attributes(void)
{
	CUlaunchAttributeValue v, w;
	CUstream a, b;

	begin();
	NEED(cuStreamCreateWithPriority(&a, CU_STREAM_NON_BLOCKING, -2));
	NEED(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	memset(&v, 0, sizeof v);
	ASK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
	SAY("priority %d", v.priority);
	ASK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	printf("~ policy %d\n", v.syncPolicy);
	v.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
	ASK(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	ASK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &w));
	SAY("policy %d", w.syncPolicy);
	v.syncPolicy = 77;
	ASK(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
	ASK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &v));
	SAY("domain %d", v.memSyncDomain);
	v.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	ASK(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &v));
	ASK(cuStreamCopyAttributes(b, a));
	ASK(cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &w));
	SAY("domain %d", w.memSyncDomain);
	ASK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &v));
	SAY("map %u %u", v.memSyncDomainMap.default_, v.memSyncDomainMap.remote);
	memset(&v, 0, sizeof v);
	ASK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v));
	SAY("window %zu", v.accessPolicyWindow.num_bytes);
	v.accessPolicyWindow.hitRatio = 2;
	v.accessPolicyWindow.num_bytes = 64;
	ASK(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v));
	ASK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &v));
	ASK(cuStreamGetAttribute(a, 9999, &v));
	v.priority = -1;
	VARY(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
	VARY(cuStreamSetAttribute(a, 9999, &v));
	ASK(cuStreamSynchronize(a));
}

static void parameters(void)
{
	static unsigned char block[32768];
	CUmodule m;
	CUfunction four, thirty, f;
	CUdeviceptr p;
	size_t at = 0, size = 0;
	void *params[] = {&p, block};

	begin();
	ASK(cuModuleLoadData(&m, large));
	NEED(cuModuleGetFunction(&four, m, "last4"));
	NEED(cuModuleGetFunction(&thirty, m, "last32"));
	NEED(cuModuleGetFunction(&f, m, "count"));
	p = zeroed(64);
	memcpy(block + 4084, (unsigned[]){4321}, 4);
	memcpy(block + 32752, (unsigned[]){87654}, 4);
	ASK(cuLaunchKernel(four, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	SAY("value %u", word(p));
	ASK(cuLaunchKernel(thirty, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	SAY("value %u", word(p));
	ASK(cuFuncGetParamInfo(thirty, 1, &at, &size));
	SAY("at %zu, %zu bytes", at, size);
	static struct {
		CUdeviceptr p;
		unsigned char b[32756];
	} packed;
	packed.p = p;
	memcpy(packed.b + 32752, (unsigned[]){777}, 4);
	size = 8 + 32756;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			CU_LAUNCH_PARAM_END};
	ASK(cuLaunchKernel(thirty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	SAY("value %u", word(p));
	ASK(cuLaunchKernel(thirty, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra));
	ASK(cuCtxSynchronize());
	ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	ASK(cuLaunchKernel(f, 65535, 2, 1, 1, 1, 1, 0, NULL, (void *[]){&(CUdeviceptr){zeroed(4)}}, NULL));
	ASK(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL));
	ASK(cuLaunchKernel(f, 1, 1, 65536, 1, 1, 1, 0, NULL, params, NULL));
	ASK(cuLaunchKernel(f, 0x80000000u, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	ASK(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	ASK(cuCtxSynchronize());
}

static void refused(void)
{
	CUmodule m;
	CUfunction limited, exact, store;
	CUlaunchAttribute a = {.id = 9999};
	CUlaunchConfig c;
	CUdeviceptr p;

	begin();
	NEED(cuModuleLoadData(&m, hopper));
	NEED(cuModuleGetFunction(&limited, m, "limited"));
	NEED(cuModuleGetFunction(&exact, m, "exact"));
	store = kernel("store");
	p = zeroed(64);
	void *params[] = {&p, &(unsigned){7}};
	ASK(cuLaunchKernel(limited, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	ASK(cuLaunchKernel(limited, 1, 1, 1, 65, 1, 1, 0, NULL, params, NULL));
	ASK(cuLaunchKernel(exact, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	ASK(cuLaunchKernel(exact, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	ASK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 49152, NULL, params, NULL));
	ASK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 49153, NULL, params, NULL));
	ASK(cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
	ASK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 65536, NULL, params, NULL));
	ASK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 65537, NULL, params, NULL));
	c = config(1, NULL, &a, 1);
	ASK(cuLaunchKernelEx(&c, store, params, NULL));
	c = config(1, NULL, NULL, 1);
	ASK(cuLaunchKernelEx(&c, store, params, NULL));
	ASK(cuLaunchKernelEx(NULL, store, params, NULL));
	a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	a.value.cooperative = 1;
	c = config(100000, NULL, &a, 1);
	ASK(cuLaunchKernelEx(&c, store, params, NULL));
	a = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN};
	a.value.memSyncDomain = 1;
	c = config(1, NULL, &a, 1);
	ASK(cuLaunchKernelEx(&c, store, params, NULL));
	a.value.memSyncDomain = 77;
	ASK(cuLaunchKernelEx(&c, store, params, NULL));
	a = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};
	a.value.sharedMemCarveout = 50;
	ASK(cuLaunchKernelEx(&c, store, params, NULL));
	a.value.sharedMemCarveout = 500;
	ASK(cuLaunchKernelEx(&c, store, params, NULL));
	ASK(cuCtxSynchronize());
	SAY("value %u", word(p));
}

SECTIONS({"dependent", dependent}, {"stream_attributes", stream_attributes}, {"parameters", parameters},
	{"refused", refused})
