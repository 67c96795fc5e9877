/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that change one node of an executable graph: what is taken and what is refused. */
#include "nodes.h"

static void alone(void)
{
	CUDA_KERNEL_NODE_PARAMS k = one_thread(NULL, (void *[]){&p, &two}); /* of no kernel at first */
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
	CUDA_KERNEL_NODE_PARAMS k = one_thread(NULL, NULL);
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

SECTIONS({"alone", alone}, {"no_kernel", no_kernel}, {"no_host", no_host}, {"no_event", no_event})
