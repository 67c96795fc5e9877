/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes an executable graph takes: cuGraphExecUpdate from a graph that differs in one thing, for each
 * kind of node and of difference. A graph that was refused goes on as it was. Changes of one node are in
 * node_changes.c. */
#include "nodes.h"

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

/* A section for each kind, since a driver may crash. */
#define OF(section, name, build, variants)                                                                   \
	static void of_##section(void)                                                                       \
	{                                                                                                    \
		ready();                                                                                     \
		kind(name, build, variants);                                                                 \
	}
OF(kernels, "kernel", simple_kernel, 6)
OF(memsets, "memset", memset_node, 5)
OF(copies, "copy", copy_node, 6)
OF(hosts, "host", host_node, 2)
OF(events, "event", event_node, 2)
OF(children, "child", child_node, 3)
OF(memory, "memory", memory_node, 1)
OF(shapes, "shape", shape_node, 7)

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
	{"of_memory", of_memory}, {"of_shapes", of_shapes}, {"wrongly", wrongly})
