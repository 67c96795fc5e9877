/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that graphs allocate and free: by nodes, captured, told of and trimmed. Threads: none. */
#include "check.h"

static CUstream s;
static CUfunction store;
static CUdeviceptr p;
static unsigned one = 1, two = 2;

static void ready(void)
{
	begin();
	store = kernel("store");
	p = zeroed(256);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
}

static CUDA_MEM_ALLOC_NODE_PARAMS memory_node(size_t n)
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = {.bytesize = n};

	a.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	a.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	a.poolProps.location.id = device;
	return a;
}

static void tell_memory(void)
{
	static const CUgraphMem_attribute which[] = {CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
		CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
		CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH};

	for (size_t i = 0; i < COUNT(which); i++) {
		cuuint64_t v = 77;
		CUresult r = cuDeviceGetGraphMemAttribute(device, which[i], &v);

		SAY("attribute %d -> %s, some %d", which[i], name_of(r), v != 0);
		SAY("~ %llu bytes", (unsigned long long)v);
	}
}

/* Allocated, used, freed in one graph; then allocated in one and freed outside. */
static void memory(void)
{
	CUgraph g;
	CUgraphExec x;
	CUgraphNode a, k, f, again;
	CUDA_MEM_ALLOC_NODE_PARAMS m, got;
	CUDA_KERNEL_NODE_PARAMS kp;
	CUgraphNodeType type = 99;
	CUmemAccessDesc access;
	CUdeviceptr q = 0;
	cuuint64_t zero = 0, nine = 9;

	ready();
	tell_memory();
	NEED(cuGraphCreate(&g, 0));
	m = memory_node(1 << 20);
	ASK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &m));
	SAY("an address %d", m.dptr != 0);
	kp = one_thread(store, (void *[]){&m.dptr, &one});
	ASK(cuGraphAddKernelNode(&k, g, &a, 1, &kp));
	ASK(cuGraphAddMemFreeNode(&f, g, &k, 1, m.dptr));
	ASK(cuGraphAddMemFreeNode(&again, g, &f, 1, m.dptr));
	ASK(cuGraphAddMemFreeNode(&again, g, NULL, 0, 0));
	ASK(cuGraphAddMemFreeNode(&again, g, NULL, 0, p));
	ASK(cuGraphNodeGetType(a, &type));
	SAY("type %d", type);
	ASK(cuGraphNodeGetType(f, &type));
	SAY("type %d", type);
	memset(&got, 0, sizeof(got));
	ASK(cuGraphMemAllocNodeGetParams(a, &got));
	SAY("same %d, %zu bytes, pool %d %d %d, access %zu", got.dptr == m.dptr, got.bytesize,
			got.poolProps.allocType,
		got.poolProps.location.type, got.poolProps.location.id, got.accessDescCount);
	ASK(cuGraphMemAllocNodeGetParams(f, &got));
	ASK(cuGraphMemFreeNodeGetParams(f, &q));
	SAY("same %d", q == m.dptr);
	ASK(cuGraphMemFreeNodeGetParams(a, &q));
	ASK(cuGraphDestroyNode(a));
	ASK(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphLaunch(x, s));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	tell_memory();
	ASK(cuGraphExecDestroy(x));
	ASK(cuGraphDestroy(g));
	ASK(cuDeviceGraphMemTrim(device));
	tell_memory();
	ASK(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
	ASK(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &nine));
	ASK(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero));
	ASK(cuDeviceGetGraphMemAttribute(device, 9, &zero));
	ASK(cuDeviceGetGraphMemAttribute(99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));

	NEED(cuGraphCreate(&g, 0));
	m = memory_node(4096);
	access.location = m.poolProps.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	m.accessDescs = &access;
	m.accessDescCount = 1;
	ASK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &m));
	kp = one_thread(store, (void *[]){&m.dptr, &two});
	ASK(cuGraphAddKernelNode(&k, g, &a, 1, &kp));
	ASK(cuGraphInstantiate(&x, g, 0));
	for (int i = 0; i < 2; i++) {
		ASK(cuGraphLaunch(x, s));
		ASK(cuStreamSynchronize(s));
		SAY("value %u", word(m.dptr));
		ASK(cuGraphLaunch(x, s));
		ASK(i ? cuMemFree(m.dptr) : cuMemFreeAsync(m.dptr, s));
		ASK(cuStreamSynchronize(s));
	}
	ASK(cuGraphExecDestroy(x));
	ASK(cuGraphInstantiate(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	cuuint64_t flags = 0;
	ASK(cuGraphExecGetFlags(x, &flags));
	SAY("flags %llu", (unsigned long long)flags);
	ASK(cuGraphLaunch(x, s));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	SAY("value %u", word(m.dptr));
	ASK(cuGraphExecDestroy(x));
	ASK(cuGraphDestroy(g));
	m = memory_node(0);
	NEED(cuGraphCreate(&g, 0));
	ASK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &m));
	m = memory_node(64);
	m.poolProps.location.id = 99;
	ASK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &m));
	m = memory_node(64);
	m.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
	ASK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &m));
	ASK(cuGraphAddMemAllocNode(&a, g, NULL, 0, NULL));
	ASK(cuGraphClone(NULL, g));
}

static void captured_memory(void)
{
	CUgraph g;
	CUgraphExec x;
	CUgraphNode nodes[8];
	CUgraphNodeType type;
	CUdeviceptr q = 0, outside;
	size_t n = COUNT(nodes);
	int count[16] = {0};

	ready();
	NEED(cuMemAllocAsync(&outside, 64, s));
	NEED(cuStreamSynchronize(s));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(cuMemAllocAsync(&q, 4096, s));
	ASK(LAUNCH(store, s, &q, &two));
	ASK(cuMemcpyDtoDAsync(p, q, 4, s));
	ASK(cuMemFreeAsync(q, s));
	ASK(cuStreamEndCapture(s, &g));
	NEED(cuGraphGetNodes(g, nodes, &n));
	for (size_t i = 0; i < n; i++) {
		NEED(cuGraphNodeGetType(nodes[i], &type));
		count[type]++;
	}
	SAY("%zu nodes: %d kernels, %d copies, %d allocations, %d frees", n, count[CU_GRAPH_NODE_TYPE_KERNEL],
		count[CU_GRAPH_NODE_TYPE_MEMCPY], count[CU_GRAPH_NODE_TYPE_MEM_ALLOC],
		count[CU_GRAPH_NODE_TYPE_MEM_FREE]);
	ASK(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphLaunch(x, s));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	SAY("value %u", word(p));
	NEED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(cuMemFreeAsync(outside, s));
	ASK(cuStreamEndCapture(s, &g));
	ASK(cuMemFreeAsync(outside, s));
	ASK(cuStreamSynchronize(s));
}

SECTIONS({"memory", memory}, {"captured_memory", captured_memory})
