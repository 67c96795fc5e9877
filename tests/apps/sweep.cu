// SPDX-License-Identifier: Apache-2.0
// One call each of the runtime functions that the other programs do not use: limits, configurations, stream
// attributes, capture information, driver entry points, libraries at run time, graph node getters, memory
// advice of pools, batches. Each must answer what a GPU's driver answers, and tell the same when asked back.
#include "app.h"
#include <cuda.h>
#include <cuda_profiler_api.h>

__global__ void twice(int *p)
{
	p[threadIdx.x] *= 2;
}

static const char ptx[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 cell = 3;\n"
	".visible .entry thrice(.param .u64 p) { .reg .b64 %p; .reg .b32 %r<2>; ld.param.u64 %p,[p];\n"
	" ld.global.u32 %r0,[%p]; mul.lo.u32 %r1,%r0,3; st.global.u32 [%p],%r1; ret; }\n";

static int *d;

static void is(const char *what, long long got, long long want)
{
	if (got != want)
		fail("%s is %lld, expected %lld", what, got, want);
}

static void device_state(void)
{
	size_t v = 0;
	cudaFuncCache cache;
	unsigned flags = 99;
	char bus[32];
	int again = -1, chosen = -1;
	cudaDeviceProp p;
	cudaUUID_t u = {};

	CK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
	CK(cudaDeviceGetLimit(&v, cudaLimitStackSize));
	if (v < 4096)
		fail("stack limit is %zu", v);
	CK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2 << 20));
	CK(cudaDeviceGetLimit(&v, cudaLimitPrintfFifoSize));
	if (v < 2 << 20)
		fail("printf limit is %zu", v);
	CK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
	CK(cudaDeviceGetCacheConfig(&cache));
	is("cache configuration", cache, cudaFuncCachePreferL1);
	CK(cudaFuncSetCacheConfig(twice, cudaFuncCachePreferShared));
	CK(cudaGetDeviceFlags(&flags));
	CK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
	CK(cudaDeviceGetByPCIBusId(&again, bus));
	is("device of its bus id", again, 0);
	CK(cudaGetDeviceProperties(&p, 0));
	CK(cudaChooseDevice(&chosen, &p));
	is("device of its properties", chosen, 0);
	if (!memcmp(&p.uuid, &u, sizeof(u)))
		fail("the device has no uuid");
	CK(cudaProfilerStart());
	CK(cudaProfilerStop());
}

static void stream_state(void)
{
	cudaStream_t s, t;
	cudaEvent_t e;
	cudaStreamAttrValue a = {}, b = {};
	unsigned long long one = 0, two = 0;
	cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	int device = -1;

	CK(cudaStreamCreate(&s));
	CK(cudaStreamCreate(&t));
	CK(cudaEventCreateWithFlags(&e, cudaEventBlockingSync));
	CK(cudaStreamGetId(s, &one));
	CK(cudaStreamGetId(t, &two));
	if (one == two)
		fail("two streams have one id");
	CK(cudaStreamGetDevice(s, &device));
	is("the stream's device", device, 0);
	a.syncPolicy = cudaSyncPolicyYield;
	CK(cudaStreamSetAttribute(s, cudaStreamAttributeSynchronizationPolicy, &a));
	CK(cudaStreamCopyAttributes(t, s));
	CK(cudaStreamGetAttribute(t, cudaStreamAttributeSynchronizationPolicy, &b));
	is("synchronization policy", b.syncPolicy, cudaSyncPolicyYield);
	CK(cudaEventRecordWithFlags(e, s, cudaEventRecordDefault));
	CK(cudaStreamWaitEvent(t, e, cudaEventWaitDefault));
	CK(cudaEventSynchronize(e));
	CK(cudaThreadExchangeStreamCaptureMode(&mode));
	is("capture mode", mode, cudaStreamCaptureModeGlobal);
	CK(cudaThreadExchangeStreamCaptureMode(&mode));
	CK(cudaEventDestroy(e));
	CK(cudaStreamDestroy(s));
	CK(cudaStreamDestroy(t));
}

static void captures(void)
{
	cudaStream_t s;
	cudaGraph_t g, seen = NULL;
	cudaGraphExec_t x;
	cudaStreamCaptureStatus status;
	unsigned long long id = 0;
	const cudaGraphNode_t *deps;
	cudaGraphNode_t node, nodes[4];
	cudaGraphNodeType type;
	cudaMemsetParams m = {}, back = {};
	size_t n = 0;
	int h = 0;

	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	CK(cudaMemsetAsync(d, 0, 4, s));
	CK(cudaStreamGetCaptureInfo(s, &status, &id, &seen, &deps, NULL, &n));
	is("capture status", status, cudaStreamCaptureStatusActive);
	is("dependencies", n, 1);
	m.dst = d;
	m.elementSize = 4;
	m.value = 11;
	m.width = 1;
	m.height = 1;
	CK(cudaGraphAddMemsetNode(&node, seen, deps, 1, &m));
	CK(cudaStreamUpdateCaptureDependencies(s, &node, NULL, 1, cudaStreamSetCaptureDependencies));
	twice<<<1, 1, 0, s>>>(d);
	CK(cudaStreamEndCapture(s, &g));
	n = 4;
	CK(cudaGraphGetNodes(g, nodes, &n));
	is("nodes", n, 3);
	CK(cudaGraphNodeGetType(node, &type));
	is("type", type, cudaGraphNodeTypeMemset);
	CK(cudaGraphMemsetNodeGetParams(node, &back));
	is("value", back.value, 11);
	CK(cudaGraphInstantiate(&x, g, 0));
	CK(cudaGraphUpload(x, s));
	CK(cudaGraphLaunch(x, s));
	CK(cudaStreamSynchronize(s));
	CK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	is("twice eleven", h, 22);
	m.value = 12;
	CK(cudaGraphExecMemsetNodeSetParams(x, node, &m));
	CK(cudaGraphLaunch(x, s));
	CK(cudaStreamSynchronize(s));
	CK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	is("twice twelve", h, 24);
	CK(cudaGraphExecDestroy(x));
	CK(cudaGraphDestroy(g));
	CK(cudaStreamDestroy(s));
}

static void entry_points(void)
{
	typedef CUresult (*count_function)(int *);
	void *f = NULL;
	cudaDriverEntryPointQueryResult q;
	cudaFunction_t function;
	int n = 0;

	CK(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &f, 12000, cudaEnableDefault, &q));
	is("query", q, cudaDriverEntryPointSuccess);
	is("through the entry point", ((count_function)f)(&n), CUDA_SUCCESS);
	if (n < 1)
		fail("no device through the entry point");
	f = NULL;
	q = cudaDriverEntryPointSuccess;
	cudaGetDriverEntryPointByVersion("cuNoSuchThing", &f, 12000, cudaEnableDefault, &q);
	is("query of nothing", q, cudaDriverEntryPointSymbolNotFound);
	cudaGetLastError();
	CK(cudaGetFuncBySymbol(&function, (const void *)twice));
}

static void libraries(void)
{
	cudaLibrary_t lib;
	cudaKernel_t k;
	void *p = NULL, *args[] = {&d};
	size_t n = 0;
	unsigned count = 0;
	int h = 7;

	CK(cudaLibraryLoadData(&lib, ptx, NULL, NULL, 0, NULL, NULL, 0));
	CK(cudaLibraryGetKernelCount(&count, lib));
	is("kernels", count, 1);
	CK(cudaLibraryGetKernel(&k, lib, "thrice"));
	CK(cudaLibraryGetGlobal(&p, &n, lib, "cell"));
	is("size of the variable", n, 4);
	CK(cudaMemcpy(d, &h, 4, cudaMemcpyHostToDevice));
	CK(cudaLaunchKernel((const void *)k, dim3(1), dim3(1), args, 0, 0));
	CK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	is("thrice seven", h, 21);
	CK(cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost));
	is("the library's variable", h, 3);
	CK(cudaLibraryUnload(lib));
}

static void batches(void)
{
	int a[4] = {1, 2, 3, 4}, b[4] = {0};
	void *dst[2] = {d, d + 8}, *dst2[2] = {b, b + 2};
	const void *src[2] = {a, a + 2}, *src2[2] = {d, d + 8};
	size_t sizes[2] = {8, 8}, at[1] = {0};
	cudaMemcpyAttributes attr = {};
	cudaStream_t s;

	attr.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CK(cudaStreamCreate(&s));
	CK(cudaMemcpyBatchAsync(dst, src, sizes, 2, &attr, at, 1, s));
	CK(cudaMemcpyBatchAsync(dst2, src2, sizes, 2, &attr, at, 1, s));
	CK(cudaStreamSynchronize(s));
	for (int i = 0; i < 4; i++)
		is("word of the batch", b[i], a[i]);
	CK(cudaStreamDestroy(s));
}

int main(void)
{
	CK(cudaMalloc(&d, 4096));
	device_state();
	stream_state();
	captures();
	entry_points();
	libraries();
	batches();
	CK(cudaFree(d));
	return pass();
}
