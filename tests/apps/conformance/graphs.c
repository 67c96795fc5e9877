/* SPDX-License-Identifier: Apache-2.0 */
/* Captures and graphs: status, modes, what breaks a capture and how it is told, node lists, parameters,
 * updates. */
#include "check.h"

static CUstream s, t;
static CUfunction log_to;
static CUdeviceptr p;
static unsigned one = 1, two = 2;

static void ready(void)
{
	begin();
	log_to = kernel("log_to");
	p = zeroed(256);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
}

static void capture(void)
{
	CUgraph g = NULL;
	CUgraphExec x;
	CUgraphNode nodes[8];
	CUgraphNodeType type;
	CUstreamCaptureStatus status = 9;
	CUevent e, back;
	size_t n = 0;
	unsigned got[5], kernels_found = 0;

	ready();
	NEED(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	ASK(cuStreamIsCapturing(s, &status));
	SAY("status %d", status);
	ASK(cuStreamEndCapture(s, &g));
	ASK(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(cuStreamBeginCapture(s, 99));
	ASK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(cuStreamIsCapturing(s, &status));
	SAY("status %d", status);
	ASK(LAUNCH(log_to, s, &p, &one));
	ASK(cuEventRecord(e, s));
	ASK(cuStreamWaitEvent(t, e, 0));
	ASK(cuStreamIsCapturing(t, &status));
	SAY("status %d", status);
	ASK(LAUNCH(log_to, t, &p, &two));
	NEED(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
	ASK(cuEventRecord(back, t));
	ASK(cuStreamWaitEvent(s, back, 0));
	ASK(cuMemsetD32Async(p + 64, 7, 4, s));
	ASK(cuStreamEndCapture(s, &g));
	ASK(cuGraphGetNodes(g, NULL, &n));
	SAY("%zu nodes", n);
	n = COUNT(nodes);
	ASK(cuGraphGetNodes(g, nodes, &n));
	for (size_t i = 0; i < n; i++) {
		NEED(cuGraphNodeGetType(nodes[i], &type));
		kernels_found += type == CU_GRAPH_NODE_TYPE_KERNEL;
	}
	SAY("%u kernels", kernels_found);
	ASK(cuGraphGetRootNodes(g, NULL, &n));
	SAY("%zu roots", n);
	ASK(cuGraphGetEdges(g, NULL, NULL, NULL, &n));
	SAY("~ %zu edges", n);
	SAY("not run yet %u", word(p));
	ASK(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphLaunch(x, s));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	NEED(cuMemcpyDtoH(got, p, sizeof(got)));
	SAY("%u entries: %u %u %u %u", got[0], got[1], got[2], got[3], got[4]);
	ASK(cuGraphUpload(x, s));
	ASK(cuGraphExecDestroy(x));
	ASK(cuEventQuery(e));
	ASK(cuGraphDestroy(g));
	ASK(cuGraphDestroy(NULL));
	ASK(cuGraphExecDestroy(NULL));
	ASK(cuGraphLaunch(NULL, s));
	ASK(cuGraphInstantiate(&x, NULL, 0));
}

static void broken(void)
{
	static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
			CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
						    CU_STREAM_CAPTURE_MODE_RELAXED};
	CUgraph g;
	CUdeviceptr q = 0;
	CUstreamCaptureStatus status;
	CUevent e;

	ready();
	NEED(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	for (size_t i = 0; i < COUNT(modes); i++) {
		CUresult r = cuStreamBeginCapture(s, modes[i]);

		SAY("mode %d -> %s", modes[i], name_of(r));
		ASK(cuStreamQuery(s));
		ASK(cuStreamIsCapturing(s, &status));
		SAY("status %d", status);
		ASK(LAUNCH(log_to, s, &p, &one));
		g = (CUgraph)(uintptr_t)8;
		ASK(cuStreamEndCapture(s, &g));
		SAY("graph given %d", g != NULL);

		r = cuStreamBeginCapture(s, modes[i]);
		SAY("mode %d -> %s", modes[i], name_of(r));
		r = cuMemAlloc(&q, 64);
		SAY("allocation in mode %d -> %s", modes[i], name_of(r));
		ASK(cuStreamEndCapture(s, &g));

		r = cuStreamBeginCapture(s, modes[i]);
		SAY("mode %d -> %s", modes[i], name_of(r));
		ASK(cuStreamSynchronize(s));
		ASK(cuStreamEndCapture(s, &g));

		r = cuStreamBeginCapture(s, modes[i]);
		SAY("mode %d -> %s", modes[i], name_of(r));
		r = cuCtxSynchronize();
		SAY("cuCtxSynchronize in mode %d -> %s", modes[i], name_of(r));
		ASK(cuStreamEndCapture(s, &g));
	}
	/* A question about an event that stands for captured work. */
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	NEED(cuEventRecord(e, s));
	ASK(cuEventQuery(e));
	ASK(LAUNCH(log_to, s, &p, &one));
	ASK(cuStreamEndCapture(s, &g));
	NEED(cuEventDestroy(e));
	NEED(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	/* A branch that does not come back. */
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	NEED(cuEventRecord(e, s));
	NEED(cuStreamWaitEvent(t, e, 0));
	ASK(LAUNCH(log_to, t, &p, &one));
	ASK(cuStreamEndCapture(t, &g));
	ASK(cuStreamEndCapture(s, &g));
	/* A blocking stream's capture and the legacy stream. */
	CUstream b;
	NEED(cuStreamCreate(&b, CU_STREAM_DEFAULT));
	NEED(cuStreamBeginCapture(b, CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(LAUNCH(log_to, NULL, &p, &one));
	ASK(cuStreamEndCapture(b, &g));
	ASK(cuCtxSynchronize());
	SAY("entries %u", word(p));
}

static void CUDA_CB count(void *n)
{
	++*(int *)n;
}

static void explicit_nodes(void)
{
	CUgraph g, c;
	CUgraphExec x;
	CUgraphNode k, m, h, empty, k2;
	CUDA_KERNEL_NODE_PARAMS kp = {0}, got;
	CUDA_MEMSET_NODE_PARAMS mp = {0};
	static int called;
	CUDA_HOST_NODE_PARAMS hp = {count, &called};
	CUgraphExecUpdateResultInfo info;
	void *args[] = {&p, &one};
	size_t n;
	unsigned w[8];

	ready();
	ASK(cuGraphCreate(&g, 0));
	ASK(cuGraphCreate(&c, 5));
	ASK(cuGraphCreate(NULL, 0));
	mp.dst = p;
	mp.elementSize = 4;
	mp.value = 0;
	mp.width = 16;
	mp.height = 1;
	ASK(cuGraphAddMemsetNode(&m, g, NULL, 0, &mp, context));
	kp.func = log_to;
	kp.gridDimX = kp.gridDimY = kp.gridDimZ = kp.blockDimX = kp.blockDimY = kp.blockDimZ = 1;
	kp.kernelParams = args;
	ASK(cuGraphAddKernelNode(&k, g, &m, 1, &kp));
	ASK(cuGraphAddEmptyNode(&empty, g, &k, 1));
	ASK(cuGraphAddHostNode(&h, g, &empty, 1, &hp));
	ASK(cuGraphAddKernelNode(&k2, g, &h, 1, &kp));
	ASK(cuGraphAddDependencies(g, &k2, &m, NULL, 1));
	ASK(cuGraphRemoveDependencies(g, &k2, &m, NULL, 1));
	kp.gridDimX = 0;
	ASK(cuGraphAddKernelNode(&k2, g, NULL, 0, &kp));
	kp.gridDimX = 1;
	kp.func = NULL;
	ASK(cuGraphAddKernelNode(&k2, g, NULL, 0, &kp));
	kp.func = log_to;
	ASK(cuGraphGetNodes(g, NULL, &n));
	SAY("%zu nodes", n);
	ASK(cuGraphNodeGetDependencies(h, NULL, NULL, &n));
	SAY("%zu dependencies", n);
	ASK(cuGraphNodeGetDependentNodes(m, NULL, NULL, &n));
	SAY("%zu dependents", n);
	ASK(cuGraphKernelNodeGetParams(k, &got));
	SAY("same function %d, value %u", got.func == log_to, *(unsigned *)got.kernelParams[1]);
	ASK(cuGraphKernelNodeGetParams(m, &got));
	ASK(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	NEED(cuMemcpyDtoH(w, p, sizeof(w)));
	SAY("%u entries: %u %u, called %d", w[0], w[1], w[2], called);
	two = 8;
	args[1] = &two;
	ASK(cuGraphExecKernelNodeSetParams(x, k, &kp));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	NEED(cuMemcpyDtoH(w, p, sizeof(w)));
	SAY("%u entries: %u %u, called %d", w[0], w[1], w[2], called);
	ASK(cuGraphClone(&c, g));
	ASK(cuGraphExecUpdate(x, c, &info));
	SAY("update result %d", info.result);
	ASK(cuGraphDestroyNode(k2));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	NEED(cuMemcpyDtoH(w, p, sizeof(w)));
	SAY("%u entries: %u %u, called %d", w[0], w[1], w[2], called);
	ASK(cuGraphExecUpdate(x, g, &info));
	SAY("update result %d", info.result);
	ASK(cuGraphExecDestroy(x));
	ASK(cuGraphDestroy(c));
	ASK(cuGraphDestroy(g));
}

SECTIONS({"capture", capture}, {"broken", broken}, {"explicit_nodes", explicit_nodes})
