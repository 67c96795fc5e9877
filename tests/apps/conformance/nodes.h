/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes for the programs that change executable graphs, by a kind and a variant; 0 is what an executable
 * graph is made of. Threads: none. */
#pragma once
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

static inline void ready(void)
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

static inline CUgraphNode kernel_node(CUgraph g, const CUgraphNode *after, size_t n, int variant)
{
	void *params[] = {variant == 1 ? &q : &p, variant == 1 ? &two : &one};
	CUDA_KERNEL_NODE_PARAMS k = one_thread(store, params);
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

static inline CUgraphNode memset_node(CUgraph g, int variant)
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

static inline CUgraphNode copy_node(CUgraph g, int variant)
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

static inline CUgraphNode host_node(CUgraph g, int variant)
{
	static unsigned counts[2];
	CUDA_HOST_NODE_PARAMS h = {.fn = variant == 1 ? subtract : add, .userData = &counts[variant == 2]};
	CUgraphNode node;

	NEED(cuGraphAddHostNode(&node, g, NULL, 0, &h));
	return node;
}

static inline CUgraphNode event_node(CUgraph g, int variant)
{
	CUgraphNode node;

	if (variant == 2)
		NEED(cuGraphAddEventWaitNode(&node, g, NULL, 0, e1));
	else
		NEED(cuGraphAddEventRecordNode(&node, g, NULL, 0, variant == 1 ? e2 : e1));
	return node;
}

static inline CUgraphNode child_node(CUgraph g, int variant)
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

static inline CUgraphNode simple_kernel(CUgraph g, int variant)
{
	return kernel_node(g, NULL, 0, variant);
}
