/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of graph nodes, told and changed: copies of every direction, host functions, kernels and
 * memsets, in a graph and in what was made of it; what a captured node tells of itself. */
#include "check.h"

static CUstream s;
static CUfunction store, log_to;
static CUdeviceptr p, q;
static unsigned one = 1, two = 2;

static void ready(void)
{
	begin();
	store = kernel("store");
	log_to = kernel("log_to");
	p = zeroed(4096);
	q = zeroed(4096);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
}

static CUDA_MEMCPY3D copy_of(CUmemorytype to, const void *dst, CUmemorytype from, const void *src, size_t n)
{
	CUDA_MEMCPY3D c = {.srcMemoryType = from, .dstMemoryType = to, .WidthInBytes = n, .Height = 1,
			.Depth = 1};

	if (from == CU_MEMORYTYPE_HOST)
		c.srcHost = src;
	else
		c.srcDevice = ADDRESS(src);
	if (to == CU_MEMORYTYPE_HOST)
		c.dstHost = (void *)(uintptr_t)dst;
	else
		c.dstDevice = ADDRESS(dst);
	return c;
}

static const void *at(CUdeviceptr d)
{
	return (const void *)(uintptr_t)d;
}

static void tell_type(CUgraphNode n)
{
	CUgraphNodeType type = 99;
	CUresult r = cuGraphNodeGetType(n, &type);

	SAY("type -> %s %d", name_of(r), type);
}

static void tell_copy(CUgraphNode n)
{
	CUDA_MEMCPY3D c;
	CUresult r;

	memset(&c, 0, sizeof(c));
	r = cuGraphMemcpyNodeGetParams(n, &c);
	SAY("copy -> %s: from %d to %d, %zu %zu %zu", name_of(r), c.srcMemoryType, c.dstMemoryType,
			c.WidthInBytes,
		c.Height, c.Depth);
	if (r == CUDA_SUCCESS)
		SAY("places %d %d", c.srcMemoryType == CU_MEMORYTYPE_HOST ? c.srcHost != NULL :
				c.srcDevice == p || c.srcDevice == q,
			c.dstMemoryType == CU_MEMORYTYPE_HOST ? c.dstHost != NULL :
			c.dstDevice == p || c.dstDevice == q);
}

static void run(CUgraphExec x)
{
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
}

static size_t count_edges(CUgraph g)
{
	size_t n = 0;

	return cuGraphGetEdges(g, NULL, NULL, NULL, &n) ? 999 : n;
}

/* up -> across -> down, whose directions change in the graph and back. */
static void sides_changed(CUgraph g, CUgraphNode up, CUgraphNode across, CUgraphNode down, unsigned *in,
		unsigned *out)
{
	CUDA_MEMCPY3D c;
	CUgraphExec x;
	CUgraphNode after[4];
	size_t n = 4;

	for (unsigned i = 0; i < 64; i++)
		in[i] = 200 + i, out[i] = 0;
	NEED(cuMemcpyHtoD(q, in, 256));
	tell_type(up);
	tell_copy(up);
	SAY("edges %zu", count_edges(g));
	/* p = q; in the middle from the program: q = in + 8; down: out = q. */
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(q), CU_MEMORYTYPE_HOST, in + 8, 64);
	ASK(cuGraphMemcpyNodeSetParams(across, &c));
	tell_type(across);
	tell_copy(across);
	SAY("edges %zu", count_edges(g));
	ASK(cuGraphNodeGetDependentNodes(up, after, NULL, &n));
	SAY("behind it %zu, the one that was %d", n, n >= 1 && after[0] == across);
	ASK(cuGraphInstantiate(&x, g, 0));
	run(x);
	SAY("values %u %u, %u", out[0], out[15], word(p));
	ASK(cuGraphExecDestroy(x));
	c = copy_of(CU_MEMORYTYPE_HOST, out, CU_MEMORYTYPE_DEVICE, at(p), 64);
	ASK(cuGraphMemcpyNodeSetParams(across, &c));
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(p), CU_MEMORYTYPE_HOST, in + 16, 64);
	ASK(cuGraphMemcpyNodeSetParams(up, &c));
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(q), CU_MEMORYTYPE_DEVICE, at(p), 64);
	ASK(cuGraphMemcpyNodeSetParams(down, &c));
	ASK(cuGraphInstantiate(&x, g, 0));
	run(x);
	SAY("values %u %u, %u", out[0], out[15], word(q));
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(p), CU_MEMORYTYPE_HOST, in + 32, 64);
	ASK(cuGraphExecMemcpyNodeSetParams(x, up, &c, context));
	run(x);
	/* An H200 was seen to copy the old bytes to the program. */
	printf("~ values %u %u\n", out[0], out[15]);
	SAY("value %u", word(q));
	ASK(cuGraphExecDestroy(x));
}

static void copies(void)
{
	CUgraph g;
	CUgraphExec x;
	CUgraphNode up, across, down, n;
	CUDA_MEMCPY3D c;
	unsigned *in, *out, *other;

	ready();
	NEED(cuMemHostAlloc((void **)&in, 256, 0));
	NEED(cuMemHostAlloc((void **)&out, 256, 0));
	NEED(cuMemHostAlloc((void **)&other, 256, 0));
	for (unsigned i = 0; i < 64; i++)
		in[i] = i, out[i] = 0, other[i] = 100 + i;
	NEED(cuGraphCreate(&g, 0));
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(p), CU_MEMORYTYPE_HOST, in, 64);
	ASK(cuGraphAddMemcpyNode(&up, g, NULL, 0, &c, context));
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(q), CU_MEMORYTYPE_DEVICE, at(p), 64);
	ASK(cuGraphAddMemcpyNode(&across, g, &up, 1, &c, context));
	c = copy_of(CU_MEMORYTYPE_HOST, out, CU_MEMORYTYPE_DEVICE, at(q), 64);
	ASK(cuGraphAddMemcpyNode(&down, g, &across, 1, &c, context));
	tell_type(up);
	tell_type(across);
	tell_type(down);
	tell_copy(up);
	tell_copy(across);
	tell_copy(down);
	c.WidthInBytes = 0;
	ASK(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, context));
	c.WidthInBytes = 64;
	c.srcPitch = 32;
	c.Height = 2;
	ASK(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, context));
	ASK(cuGraphAddMemcpyNode(&n, g, NULL, 0, NULL, context));
	c = copy_of(CU_MEMORYTYPE_HOST, out, CU_MEMORYTYPE_DEVICE, at(q), 64);
	ASK(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, (CUcontext)(uintptr_t)0));
	ASK(cuGraphInstantiate(&x, g, 0));
	run(x);
	SAY("values %u %u %u", out[0], out[15], out[16]);
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(p), CU_MEMORYTYPE_HOST, other, 64);
	ASK(cuGraphExecMemcpyNodeSetParams(x, up, &c, context));
	run(x);
	SAY("values %u %u %u", out[0], out[15], out[16]);
	tell_copy(up);
	/* Another direction, another size. */
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(p), CU_MEMORYTYPE_DEVICE, at(q), 64);
	ASK(cuGraphExecMemcpyNodeSetParams(x, up, &c, context));
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(p), CU_MEMORYTYPE_HOST, in, 32);
	ASK(cuGraphExecMemcpyNodeSetParams(x, up, &c, context));
	run(x);
	SAY("values %u %u %u", out[0], out[7], out[8]);
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(p), CU_MEMORYTYPE_HOST, in, 128);
	ASK(cuGraphMemcpyNodeSetParams(up, &c));
	tell_copy(up);
	/* Through a mount a copy with a side in the program is another kind of node than one without. */
	c = copy_of(CU_MEMORYTYPE_DEVICE, at(p), CU_MEMORYTYPE_DEVICE, at(q), 128);
	ASK(cuGraphMemcpyNodeSetParams(up, &c));
	sides_changed(g, up, across, down, in, out);
	ASK(cuGraphMemcpyNodeSetParams(up, NULL));
	ASK(cuGraphMemcpyNodeSetParams(NULL, &c));
	ASK(cuGraphMemcpyNodeGetParams(up, NULL));
	ASK(cuGraphMemcpyNodeGetParams(NULL, &c));
	ASK(cuGraphExecMemcpyNodeSetParams(x, NULL, &c, context));
}

static void captured(void)
{
	CUgraph g;
	CUgraphNode n[8];
	CUgraphNodeType type;
	CUDA_MEMSET_NODE_PARAMS m = {0};
	CUDA_KERNEL_NODE_PARAMS k = {0};
	unsigned *in, *out;
	size_t count = COUNT(n);

	ready();
	NEED(cuMemHostAlloc((void **)&in, 256, 0));
	NEED(cuMemHostAlloc((void **)&out, 256, 0));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(cuMemcpyHtoDAsync(p, in, 64, s));
	ASK(LAUNCH(store, s, &p, &two));
	ASK(cuMemcpyDtoDAsync(q, p, 64, s));
	ASK(cuMemsetD32Async(p, 7, 8, s));
	ASK(cuMemcpyDtoHAsync(out, q, 64, s));
	ASK(cuStreamEndCapture(s, &g));
	NEED(cuGraphGetNodes(g, n, &count));
	SAY("%zu nodes", count);
	for (size_t i = 0; i < count; i++) {
		tell_type(n[i]);
		NEED(cuGraphNodeGetType(n[i], &type));
		if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
			tell_copy(n[i]);
		if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
			ASK(cuGraphMemsetNodeGetParams(n[i], &m));
			SAY("place %d, value %u, element %u, %zu x %zu", m.dst == p, m.value, m.elementSize,
					m.width,
				m.height);
		}
		if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
			ASK(cuGraphKernelNodeGetParams(n[i], &k));
			SAY("function %d, grid %u %u %u, value %u", k.func == store, k.gridDimX, k.gridDimY,
					k.gridDimZ,
				k.kernelParams ? *(unsigned *)k.kernelParams[1] : 0);
		}
	}
}

static int called;
static void CUDA_CB add(void *n)
{
	called += *(int *)n;
}

static void CUDA_CB subtract(void *n)
{
	called -= *(int *)n;
}

static void host_functions(void)
{
	CUgraph g;
	CUgraphExec x;
	CUgraphNode n, e;
	static int five = 5, six = 6;
	CUDA_HOST_NODE_PARAMS h = {add, &five}, got = {0};
	CUgraphNodeParams any;
	size_t count = 1;

	ready();
	NEED(cuGraphCreate(&g, 0));
	ASK(cuGraphAddHostNode(&n, g, NULL, 0, &h));
	NEED(cuGraphAddEmptyNode(&e, g, NULL, 0));
	tell_type(n);
	ASK(cuGraphHostNodeGetParams(n, &got));
	SAY("same %d %d", got.fn == add, got.userData == &five);
	ASK(cuGraphInstantiate(&x, g, 0));
	run(x);
	SAY("called %d", called);
	h.userData = &six;
	ASK(cuGraphExecHostNodeSetParams(x, n, &h));
	run(x);
	SAY("called %d", called);
	h.fn = subtract;
	ASK(cuGraphHostNodeSetParams(n, &h));
	ASK(cuGraphHostNodeGetParams(n, &got));
	SAY("same %d %d", got.fn == subtract, got.userData == &six);
	run(x);
	SAY("called %d", called);
	memset(&any, 0, sizeof(any));
	any.type = CU_GRAPH_NODE_TYPE_HOST;
	any.host.fn = subtract;
	any.host.userData = &five;
	ASK(cuGraphExecNodeSetParams(x, n, &any));
	run(x);
	SAY("called %d", called);
	h.fn = NULL;
	ASK(cuGraphAddHostNode(&e, g, NULL, 0, &h));
	ASK(cuGraphHostNodeSetParams(n, &h));
	ASK(cuGraphHostNodeSetParams(e, &got));
	ASK(cuGraphHostNodeGetParams(e, &got));
	ASK(cuGraphHostNodeGetParams(n, NULL));
	/* A captured one. */
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	NEED(cuLaunchHostFunc(s, add, &five));
	NEED(cuStreamEndCapture(s, &g));
	NEED(cuGraphGetNodes(g, &n, &count));
	tell_type(n);
	memset(&got, 0, sizeof(got));
	ASK(cuGraphHostNodeGetParams(n, &got));
	SAY("same %d %d", got.fn == add, got.userData == &five);
	h.fn = subtract;
	ASK(cuGraphHostNodeSetParams(n, &h));
	ASK(cuGraphInstantiate(&x, g, 0));
	run(x);
	SAY("called %d", called);
}

static void others(void)
{
	CUgraph g, clone;
	CUgraphExec x;
	CUgraphNode k, m, found, e;
	CUDA_KERNEL_NODE_PARAMS kp = {0}, got;
	CUDA_MEMSET_NODE_PARAMS mp = {0};
	CUgraphNodeParams any;
	unsigned on = 9;
	void *args[] = {&p, &one};

	ready();
	NEED(cuGraphCreate(&g, 0));
	kp.func = store;
	kp.gridDimX = kp.gridDimY = kp.gridDimZ = kp.blockDimX = kp.blockDimY = kp.blockDimZ = 1;
	kp.kernelParams = args;
	ASK(cuGraphAddKernelNode(&k, g, NULL, 0, &kp));
	mp.dst = q;
	mp.elementSize = 4;
	mp.value = 5;
	mp.width = 4;
	mp.height = 1;
	ASK(cuGraphAddMemsetNode(&m, g, NULL, 0, &mp, context));
	NEED(cuGraphAddEmptyNode(&e, g, NULL, 0));
	ASK(cuGraphInstantiate(&x, g, 0));
	run(x);
	SAY("values %u %u", word(p), word(q));
	mp.value = 6;
	ASK(cuGraphExecMemsetNodeSetParams(x, m, &mp, context));
	args[1] = &two;
	ASK(cuGraphExecKernelNodeSetParams(x, k, &kp));
	run(x);
	SAY("values %u %u", word(p), word(q));
	ASK(cuGraphKernelNodeGetParams(k, &got));
	SAY("still %u", *(unsigned *)got.kernelParams[1]);
	ASK(cuGraphKernelNodeSetParams(k, &kp));
	ASK(cuGraphKernelNodeGetParams(k, &got));
	SAY("now %u, context %d", *(unsigned *)got.kernelParams[1], got.ctx == context);
	ASK(cuGraphMemsetNodeSetParams(m, &mp));
	mp.elementSize = 3;
	ASK(cuGraphMemsetNodeSetParams(m, &mp));
	mp.elementSize = 4;
	memset(&any, 0, sizeof(any));
	any.type = CU_GRAPH_NODE_TYPE_MEMSET;
	any.memset.dst = q;
	any.memset.elementSize = 4;
	any.memset.value = 8;
	any.memset.width = 4;
	any.memset.height = 1;
	any.memset.ctx = context;
	ASK(cuGraphNodeSetParams(m, &any));
	ASK(cuGraphMemsetNodeGetParams(m, &mp));
	SAY("value %u", mp.value);
	ASK(cuGraphNodeSetParams(k, &any));
	ASK(cuGraphNodeSetParams(e, &any));
	any.type = CU_GRAPH_NODE_TYPE_EMPTY;
	ASK(cuGraphNodeSetParams(e, &any));
	ASK(cuGraphNodeSetEnabled(x, k, 0));
	ASK(cuGraphNodeGetEnabled(x, k, &on));
	SAY("enabled %u", on);
	NEED(cuMemsetD32(p, 77, 1));
	run(x);
	SAY("value %u", word(p));
	ASK(cuGraphNodeSetEnabled(x, e, 0));
	ASK(cuGraphNodeGetEnabled(x, e, &on));
	ASK(cuGraphClone(&clone, g));
	ASK(cuGraphNodeFindInClone(&found, k, clone));
	SAY("another %d", found != k);
	ASK(cuGraphNodeFindInClone(&found, k, g));
	ASK(cuGraphKernelNodeSetParams(e, &kp));
	ASK(cuGraphExecKernelNodeSetParams(x, e, &kp));
	kp.gridDimX = 0;
	ASK(cuGraphExecKernelNodeSetParams(x, k, &kp));
	kp.gridDimX = 1;
	kp.func = log_to;
	ASK(cuGraphExecKernelNodeSetParams(x, k, &kp));
}

SECTIONS({"copies", copies}, {"captured", captured}, {"host_functions", host_functions}, {"others", others})
