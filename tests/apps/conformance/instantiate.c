/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs made ready with every flag, for the host and for the device, uploaded, launched, updated; and what
 * is refused. */
#include "check.h"

static CUgraphNode added(CUgraph g, CUfunction f, void **params, CUgraphNode *behind)
{
	CUDA_KERNEL_NODE_PARAMS k = {.func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
			.blockDimY = 1,
		.blockDimZ = 1, .kernelParams = params};
	CUgraphNode n;

	NEED(cuGraphAddKernelNode(&n, g, behind, behind ? 1 : 0, &k));
	return n;
}

static void flags(void)
{
	static const unsigned long long all[] = {0, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
			CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
		CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
		CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
		1 << 10};
	CUdeviceptr p;
	CUgraph g;
	CUgraphExec x;
	CUstream s;
	cuuint64_t got = 77;
	unsigned v = 1;

	begin();
	CUfunction store = kernel("store");
	p = zeroed(64);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuGraphCreate(&g, 0));
	added(g, store, (void *[]){&p, &v}, NULL);
	for (unsigned i = 0; i < COUNT(all); i++) {
		CUresult r = cuGraphInstantiate(&x, g, all[i]);

		SAY("flags %#llx -> %s", all[i], name_of(r));
		if (r)
			continue;
		NEED(cuMemsetD32(p, 0, 1));
		ASK(cuGraphExecGetFlags(x, &got));
		SAY("got %#llx", (unsigned long long)got);
		ASK(cuGraphUpload(x, s));
		ASK(cuGraphLaunch(x, s));
		ASK(cuStreamSynchronize(s));
		SAY("value %u", word(p));
		ASK(cuGraphExecDestroy(x));
	}
	for (unsigned i = 0; i < COUNT(all); i++) {
		CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = all[i], .hUploadStream = s,
				.result_out = 99};
		CUresult r = cuGraphInstantiateWithParams(&x, g, &params);

		SAY("flags %#llx -> %s, result %d, none at fault %d", all[i], name_of(r), params.result_out,
				!params.hErrNode_out);
		if (r)
			continue;
		ASK(cuGraphLaunch(x, s));
		ASK(cuStreamSynchronize(s));
		ASK(cuGraphExecDestroy(x));
	}
	ASK(cuGraphInstantiate(NULL, g, 0));
	ASK(cuGraphInstantiate(&x, NULL, 0));
	ASK(cuGraphInstantiateWithParams(&x, g, NULL));
	ASK(cuGraphLaunch(NULL, s));
	ASK(cuGraphUpload(NULL, s));
}

static void CUDA_CB nobody(void *p)
{
	(void)p;
}

/* What a graph for the device may not hold. */
static void for_the_device(void)
{
	CUDA_HOST_NODE_PARAMS h = {.fn = nobody};
	CUDA_MEMSET_NODE_PARAMS set = {.elementSize = 4, .width = 4, .height = 1};
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.WidthInBytes = 16, .Height = 1,
		.Depth = 1};
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH};
	CUdeviceptr p;
	CUgraph g;
	CUgraphNode n, k;
	CUgraphExec x = NULL, y = NULL;
	CUstream s, t;
	CUevent e;
	unsigned v = 1;

	begin();
	CUfunction store = kernel("store");
	p = zeroed(64);
	void *args[] = {&p, &v};
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, 0));
	set.dst = p;
	copy.srcDevice = p;
	copy.dstDevice = p + 16;
	NEED(cuGraphCreate(&g, 0));
	ASK(cuGraphInstantiateWithParams(&x, g, &params));
	SAY("result %d", params.result_out);
	NEED(cuGraphAddHostNode(&n, g, NULL, 0, &h));
	ASK(cuGraphInstantiateWithParams(&x, g, &params));
	SAY("result %d, at fault %d", params.result_out, params.hErrNode_out == n);
	NEED(cuGraphDestroyNode(n));
	NEED(cuGraphAddMemsetNode(&n, g, NULL, 0, &set, context));
	ASK(cuGraphInstantiateWithParams(&x, g, &params));
	SAY("result %d, at fault %d", params.result_out, params.hErrNode_out == n);
	k = added(g, store, args, &n);
	ASK(cuGraphInstantiateWithParams(&x, g, &params));
	SAY("result %d", params.result_out);
	NEED(cuGraphAddMemcpyNode(&n, g, &k, 1, &copy, context));
	ASK(cuGraphInstantiateWithParams(&x, g, &params));
	SAY("result %d", params.result_out);
	/* Twice from one graph; updates; two streams; from a graph of another context. */
	ASK(cuGraphInstantiateWithParams(&y, g, &params));
	ASK(cuGraphUpload(x, s));
	ASK(cuGraphUpload(x, t));
	ASK(cuGraphLaunch(x, s));
	ASK(cuGraphLaunch(x, t));
	ASK(cuCtxSynchronize());
	SAY("values %u %u", word(p), word(p + 16));
	CUgraphExecUpdateResultInfo info = {0};
	ASK(cuGraphExecUpdate(x, g, &info));
	SAY("result %d", info.result);
	CUDA_KERNEL_NODE_PARAMS kp = {0};
	ASK(cuGraphKernelNodeGetParams(k, &kp));
	ASK(cuGraphExecKernelNodeSetParams(x, k, &kp));
	NEED(cuGraphAddEventRecordNode(&n, g, NULL, 0, e));
	ASK(cuGraphInstantiateWithParams(&y, g, &params));
	SAY("result %d, at fault %d", params.result_out, params.hErrNode_out == n);
	ASK(cuGraphExecDestroy(x));
	ASK(cuGraphDestroy(g));
}

SECTIONS({"flags", flags}, {"for_the_device", for_the_device})
