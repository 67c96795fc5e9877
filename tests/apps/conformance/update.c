/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes an executable graph takes: cuGraphExecUpdate from a graph that differs in one thing, for each
 * kind of node and of difference, and the calls that change one node. A graph that was refused goes on as it
 * was. */
#include "check.h"

static CUstream s;
static CUfunction store, log_to, exact;
static CUmodule other;
static CUdeviceptr p, q;
static unsigned one = 1, two = 2;
static unsigned *pinned;
static CUevent e1, e2;
static CUarray array;

static void CUDA_CB add(void *n)
{
	++*(unsigned *)n;
}
static void CUDA_CB subtract(void *n)
{
	--*(unsigned *)n;
}

static void ready(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {
		.Width = 16, .Height = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};

	begin();
	store = kernel("store");
	log_to = kernel("log_to");
	NEED(cuModuleLoadData(&other, kernels));
	NEED(cuModuleGetFunction(&exact, other, "store"));
	p = zeroed(4096);
	q = zeroed(4096);
	NEED(cuMemAllocHost((void **)&pinned, 4096));
	memset(pinned, 0, 4096);
	NEED(cuEventCreate(&e1, 0));
	NEED(cuEventCreate(&e2, 0));
	NEED(cuArrayCreate(&array, &d));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
}

/* ---- nodes, by a kind and a variant; 0 is what the executable graph was made of */

static CUgraphNode kernel_node(CUgraph g, const CUgraphNode *after, size_t n, int variant)
{
	void *params[] = {variant == 1 ? &q : &p, variant == 1 ? &two : &one};
	CUDA_KERNEL_NODE_PARAMS k = {.func = store,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params};
	CUgraphNode node;

	switch (variant) {
	case 2: k.gridDimX = 7; break;
	case 3: k.blockDimX = 64; break;
	case 4: k.sharedMemBytes = 1024; break;
	case 5: k.func = log_to; break;
	case 6: k.func = exact; break;
	default: break;
	}
	NEED(cuGraphAddKernelNode(&node, g, after, n, &k));
	return node;
}

static CUgraphNode memset_node(CUgraph g, int variant)
{
	CUDA_MEMSET_NODE_PARAMS m = {.dst = p, .elementSize = 4, .width = 16, .height = 1, .value = 3};
	CUgraphNode node;

	switch (variant) {
	case 1: m.value = 9; break;
	case 2: m.dst = q; break;
	case 3: m.width = 32; break;
	case 4: m.elementSize = 1; break;
	case 5:
		m.height = 4;
		m.pitch = 256;
		break;
	default: break;
	}
	NEED(cuGraphAddMemsetNode(&node, g, NULL, 0, &m, context));
	return node;
}

static CUgraphNode copy_node(CUgraph g, int variant)
{
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = p,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = q,
		.WidthInBytes = 64,
		.Height = 1,
		.Depth = 1};
	CUgraphNode node;

	switch (variant) {
	case 1: c.dstDevice = q + 256; break;
	case 2: c.WidthInBytes = 128; break;
	case 3:
		c.srcMemoryType = CU_MEMORYTYPE_HOST;
		c.srcHost = pinned;
		break;
	case 4:
		c.dstMemoryType = CU_MEMORYTYPE_HOST;
		c.dstHost = pinned;
		break;
	case 5:
		c.Height = 2;
		c.srcPitch = c.dstPitch = 256;
		break;
	case 6:
		c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		c.dstArray = array;
		break;
	default: break;
	}
	NEED(cuGraphAddMemcpyNode(&node, g, NULL, 0, &c, context));
	return node;
}

static CUgraphNode host_node(CUgraph g, int variant)
{
	static unsigned counts[2];
	CUDA_HOST_NODE_PARAMS h = {.fn = variant == 1 ? subtract : add, .userData = &counts[variant == 2]};
	CUgraphNode node;

	NEED(cuGraphAddHostNode(&node, g, NULL, 0, &h));
	return node;
}

static CUgraphNode event_node(CUgraph g, int variant)
{
	CUgraphNode node;

	if (variant == 2)
		NEED(cuGraphAddEventWaitNode(&node, g, NULL, 0, e1));
	else
		NEED(cuGraphAddEventRecordNode(&node, g, NULL, 0, variant == 1 ? e2 : e1));
	return node;
}

static CUgraphNode child_node(CUgraph g, int variant)
{
	CUgraph child;
	CUgraphNode node, first;

	NEED(cuGraphCreate(&child, 0));
	first = kernel_node(child, NULL, 0, variant == 1);
	if (variant == 2)
		kernel_node(child, &first, 1, 0);
	if (variant == 3)
		memset_node(child, 0);
	NEED(cuGraphAddChildGraphNode(&node, g, NULL, 0, child));
	NEED(cuGraphDestroy(child));
	return node;
}

static CUgraphNode memory_node(CUgraph g, int variant)
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
						.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = variant == 1 ? 8192 : 4096};
	CUgraphNode node, end;

	NEED(cuGraphAddMemAllocNode(&node, g, NULL, 0, &a));
	NEED(cuGraphAddMemFreeNode(&end, g, &node, 1, a.dptr));
	return node;
}

/* Several kernels: their order and edges. */
static CUgraphNode shape_node(CUgraph g, int variant)
{
	CUgraphNode n[4];

	switch (variant) {
	default: /* 0 -> 1, 0 -> 2 */
		n[0] = kernel_node(g, NULL, 0, 0);
		n[1] = kernel_node(g, n, 1, 0);
		n[2] = kernel_node(g, n, 1, 0);
		break;
	case 1: /* 0 -> 1 -> 2 */
		n[0] = kernel_node(g, NULL, 0, 0);
		n[1] = kernel_node(g, n, 1, 0);
		n[2] = kernel_node(g, n + 1, 1, 0);
		break;
	case 2: /* one more */
		n[0] = kernel_node(g, NULL, 0, 0);
		n[1] = kernel_node(g, n, 1, 0);
		n[2] = kernel_node(g, n, 1, 0);
		n[3] = kernel_node(g, NULL, 0, 0);
		break;
	case 3: /* one less */
		n[0] = kernel_node(g, NULL, 0, 0);
		n[1] = kernel_node(g, n, 1, 0);
		break;
	case 4: /* the same, in another order */
		n[0] = kernel_node(g, NULL, 0, 0);
		n[2] = kernel_node(g, n, 1, 1);
		n[1] = kernel_node(g, n, 1, 0);
		break;
	case 5: /* a memset where a kernel was */
		n[0] = memset_node(g, 0);
		n[1] = kernel_node(g, n, 1, 0);
		n[2] = kernel_node(g, n, 1, 0);
		break;
	case 6: /* an empty node where a kernel was */
		NEED(cuGraphAddEmptyNode(&n[0], g, NULL, 0));
		n[1] = kernel_node(g, n, 1, 0);
		n[2] = kernel_node(g, n, 1, 0);
		break;
	case 7: /* without an edge */
		n[0] = kernel_node(g, NULL, 0, 0);
		n[1] = kernel_node(g, n, 1, 0);
		n[2] = kernel_node(g, NULL, 0, 0);
		break;
	}
	return n[0];
}

static CUgraphNode simple_kernel(CUgraph g, int variant)
{
	return kernel_node(g, NULL, 0, variant);
}

static void tell(const char *kind, int variant, CUgraphExec x, CUgraph g, CUgraph from)
{
	CUgraphExecUpdateResultInfo info = {.result = (CUgraphExecUpdateResult)99,
		.errorNode = (CUgraphNode)7,
		.errorFromNode = (CUgraphNode)7};
	CUgraphNode nodes[8], olds[8];
	size_t n = 8, m = 8;
	CUresult r = cuGraphExecUpdate(x, g, &info);
	int at = -1, was = -1;

	NEED(cuGraphGetNodes(g, nodes, &n));
	NEED(cuGraphGetNodes(from, olds, &m));
	for (size_t i = 0; i < n; i++)
		if (nodes[i] == info.errorNode)
			at = (int)i;
	for (size_t i = 0; i < m; i++)
		if (olds[i] == info.errorFromNode)
			was = (int)i;
	/* Between the program's memory and the device a copy is a host function through the mount: the result
	 * of a change of direction is another kind of node there (3), where a driver says other parameters
	 * (5). */
	bool turned = !strcmp(kind, "copy") && (variant == 3 || variant == 4);

	if (turned)
		SAY("%s %d -> %s", kind, variant, name_of(r));
	SAY("%s%s %d -> %s, result %d, node %s %d, from %s %d", turned ? "~ " : "", kind, variant, name_of(r),
		info.result, info.errorNode ? "of" : "none", at, info.errorFromNode ? "of" : "none", was);
}

static void kind(const char *name, CUgraphNode (*build)(CUgraph, int), int variants)
{
	for (int i = 0; i <= variants; i++) {
		CUgraph from, g;
		CUgraphExec x;
		CUresult r;

		NEED(cuGraphCreate(&from, 0));
		build(from, 0);
		NEED(cuGraphInstantiate(&x, from, 0));
		NEED(cuGraphCreate(&g, 0));
		build(g, i);
		tell(name, i, x, g, from);
		r = cuGraphLaunch(x, s);
		if (!r)
			r = cuStreamSynchronize(s);
		SAY("launched -> %s", name_of(r));
		NEED(cuGraphExecDestroy(x));
		NEED(cuGraphDestroy(g));
		NEED(cuGraphDestroy(from));
	}
}

static void of_kernels(void)
{
	ready();
	kind("kernel", simple_kernel, 6);
}
static void of_memsets(void)
{
	ready();
	kind("memset", memset_node, 5);
}
static void of_copies(void)
{
	ready();
	kind("copy", copy_node, 6);
}
static void of_hosts(void)
{
	ready();
	kind("host", host_node, 2);
}
static void of_events(void)
{
	ready();
	kind("event", event_node, 2);
}
static void of_children(void)
{
	ready();
	kind("child", child_node, 3);
}
static void of_memory(void)
{
	ready();
	kind("memory", memory_node, 1);
}
static void of_shapes(void)
{
	ready();
	kind("shape", shape_node, 7);
}

/* The calls that change one node of an executable graph. */
static void alone(void)
{
	CUDA_KERNEL_NODE_PARAMS k = {.func = store,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
	CUDA_MEMSET_NODE_PARAMS m = {.elementSize = 4, .width = 16, .height = 1, .value = 3};
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.WidthInBytes = 64,
		.Height = 1,
		.Depth = 1};
	CUDA_HOST_NODE_PARAMS h = {.fn = add};
	CUgraph g, child;
	CUgraphNode kn, mn, cn, hn, en, wn, child_n;
	CUgraphExec x;
	unsigned enabled = 7;

	ready();
	h.userData = pinned;
	k.kernelParams = (void *[]){&p, &two};
	m.dst = c.srcDevice = p;
	c.dstDevice = q;
	NEED(cuGraphCreate(&g, 0));
	kn = simple_kernel(g, 0);
	mn = memset_node(g, 0);
	cn = copy_node(g, 0);
	hn = host_node(g, 0);
	en = event_node(g, 0);
	wn = event_node(g, 2);
	child_n = child_node(g, 0);
	NEED(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphExecKernelNodeSetParams(x, kn, &k));
	k.func = log_to;
	ASK(cuGraphExecKernelNodeSetParams(x, kn, &k));
	k.func = exact;
	ASK(cuGraphExecKernelNodeSetParams(x, kn, &k));
	k.func = store;
	k.blockDimX = 2000;
	ASK(cuGraphExecKernelNodeSetParams(x, kn, &k));
	k.blockDimX = 0;
	ASK(cuGraphExecKernelNodeSetParams(x, kn, &k));
	ASK(cuGraphExecKernelNodeSetParams(x, mn, &k));
	m.value = 4;
	ASK(cuGraphExecMemsetNodeSetParams(x, mn, &m, context));
	m.width = 32;
	ASK(cuGraphExecMemsetNodeSetParams(x, mn, &m, context));
	m.width = 16;
	m.elementSize = 1;
	ASK(cuGraphExecMemsetNodeSetParams(x, mn, &m, context));
	m.elementSize = 3;
	ASK(cuGraphExecMemsetNodeSetParams(x, mn, &m, context));
	m.elementSize = 4;
	m.height = 2;
	m.pitch = 256;
	ASK(cuGraphExecMemsetNodeSetParams(x, mn, &m, context));
	c.WidthInBytes = 32;
	ASK(cuGraphExecMemcpyNodeSetParams(x, cn, &c, context));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = pinned;
	ASK(cuGraphExecMemcpyNodeSetParams(x, cn, &c, context));
	c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c.WidthInBytes = 0;
	ASK(cuGraphExecMemcpyNodeSetParams(x, cn, &c, context));
	ASK(cuGraphExecHostNodeSetParams(x, hn, &h));
	ASK(cuGraphExecEventRecordNodeSetEvent(x, en, e2));
	ASK(cuGraphExecEventRecordNodeSetEvent(x, wn, e2));
	ASK(cuGraphExecEventWaitNodeSetEvent(x, wn, e2));
	NEED(cuGraphCreate(&child, 0));
	simple_kernel(child, 1);
	ASK(cuGraphExecChildGraphNodeSetParams(x, child_n, child));
	simple_kernel(child, 1);
	ASK(cuGraphExecChildGraphNodeSetParams(x, child_n, child));
	ASK(cuGraphNodeSetEnabled(x, kn, 0));
	ASK(cuGraphNodeGetEnabled(x, kn, &enabled));
	SAY("enabled %u", enabled);
	ASK(cuGraphNodeSetEnabled(x, mn, 0));
	ASK(cuGraphNodeSetEnabled(x, cn, 0));
	ASK(cuGraphNodeSetEnabled(x, hn, 0));
	ASK(cuGraphNodeSetEnabled(x, en, 0));
	ASK(cuGraphNodeSetEnabled(x, child_n, 0));
	ASK(cuGraphNodeSetEnabled(x, kn, 7));
	ASK(cuGraphNodeGetEnabled(x, kn, &enabled));
	SAY("enabled %u", enabled);
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
}

/* No function, no event: each in a section of its own, for a driver may crash. */
static void no_kernel(void)
{
	CUDA_KERNEL_NODE_PARAMS k = {
		.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
	CUgraph g;
	CUgraphNode n;
	CUgraphExec x;

	ready();
	NEED(cuGraphCreate(&g, 0));
	n = simple_kernel(g, 0);
	NEED(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphExecKernelNodeSetParams(x, n, &k));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
}

static void no_host(void)
{
	CUDA_HOST_NODE_PARAMS h = {0};
	CUgraph g;
	CUgraphNode n;
	CUgraphExec x;

	ready();
	NEED(cuGraphCreate(&g, 0));
	n = host_node(g, 0);
	NEED(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphExecHostNodeSetParams(x, n, &h));
}

static void no_event(void)
{
	CUgraph g;
	CUgraphNode n, w;
	CUgraphExec x;

	ready();
	NEED(cuGraphCreate(&g, 0));
	n = event_node(g, 0);
	w = event_node(g, 2);
	NEED(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphExecEventRecordNodeSetEvent(x, n, NULL));
	ASK(cuGraphExecEventWaitNodeSetEvent(x, w, NULL));
}

/* Handles that are none, and a graph that goes before its update. */
static void wrongly(void)
{
	CUgraphExecUpdateResultInfo info = {.result = (CUgraphExecUpdateResult)99};
	CUgraph g, empty;
	CUgraphExec x;

	ready();
	NEED(cuGraphCreate(&g, 0));
	simple_kernel(g, 0);
	NEED(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphExecUpdate(x, NULL, &info));
	SAY("result %d", info.result);
	ASK(cuGraphExecUpdate(NULL, g, &info));
	SAY("result %d", info.result);
	NEED(cuGraphCreate(&empty, 0));
	ASK(cuGraphExecUpdate(x, empty, &info));
	SAY("result %d", info.result);
	NEED(cuGraphDestroy(g));
	NEED(cuGraphCreate(&g, 0));
	simple_kernel(g, 1);
	ASK(cuGraphExecUpdate(x, g, &info));
	SAY("result %d", info.result);
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	SAY("value %u", word(q));
}

SECTIONS({"of_kernels", of_kernels}, {"of_memsets", of_memsets}, {"of_copies", of_copies},
	{"of_hosts", of_hosts}, {"of_events", of_events}, {"of_children", of_children},
	{"of_memory", of_memory}, {"of_shapes", of_shapes}, {"alone", alone}, {"no_kernel", no_kernel},
	{"no_host", no_host}, {"no_event", no_event}, {"wrongly", wrongly})
