/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs beyond kernels and copies: values, user objects, drawings, attributes, edges with data, results of
 * an instantiation. Memory is in graph_memory.c. */
#include "check.h"

static CUstream s;
static CUfunction log_to, store;
static CUdeviceptr p;
static unsigned one = 1;

static void ready(void)
{
	begin();
	log_to = kernel("log_to");
	store = kernel("store");
	p = zeroed(256);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
}

static void values(void)
{
	CUgraph g;
	CUgraphExec x;
	CUgraphNode n;
	CUstreamBatchMemOpParams ops[2], *more;
	CUDA_BATCH_MEM_OP_NODE_PARAMS b = {0}, got = {0};

	ready();
	memset(ops, 0, sizeof(ops));
	for (unsigned i = 0; i < 2; i++) {
		ops[i].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
		ops[i].writeValue.address = p + 4 * i;
		ops[i].writeValue.value = 40 + i;
	}
	b.ctx = context;
	b.count = 2;
	b.paramArray = ops;
	NEED(cuGraphCreate(&g, 0));
	ASK(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &b));
	ASK(cuGraphBatchMemOpNodeGetParams(n, &got));
	SAY("%u operations, context %d, flags %u", got.count, got.ctx == context, got.flags);
	if (got.count == 2)
		SAY("second: %d %d %u", got.paramArray[1].operation,
				got.paramArray[1].writeValue.address == p + 4,
			got.paramArray[1].writeValue.value);
	ASK(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	SAY("values %u %u", word(p), word(p + 4));
	ops[0].writeValue.value = 50;
	ASK(cuGraphExecBatchMemOpNodeSetParams(x, n, &b));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	SAY("values %u %u", word(p), word(p + 4));
	ops[1].writeValue.value = 60;
	ASK(cuGraphBatchMemOpNodeSetParams(n, &b));
	ASK(cuGraphBatchMemOpNodeGetParams(n, &got));
	SAY("second: %u", got.paramArray[1].writeValue.value);
	b.count = 0;
	ASK(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &b));
	more = calloc(300, sizeof(*more));
	for (unsigned i = 0; i < 300; i++)
		more[i] = ops[0];
	b.count = 300;
	b.paramArray = more;
	ASK(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &b));
	b.count = 1;
	b.flags = 1;
	ASK(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &b));
	ASK(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, NULL));
	free(more);
}

/* ---- user objects: the destructor runs in this process, some time after the last reference is gone */

static sem_t gone;
static pid_t gone_in;
static int gone_number;
static void CUDA_CB destroy(void *n)
{
	gone_in = getpid();
	gone_number = *(int *)n;
	sem_post(&gone);
}

static void await_destruction(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	int r = sem_timedwait(&gone, &end);

	SAY("destroyed %d: object %d, in this process %d", r == 0, gone_number, gone_in == getpid());
}

static void user_objects(void)
{
	static int number[4] = {0, 1, 2, 3};
	CUuserObject o = NULL;
	CUgraph g, c;
	CUgraphExec x;
	CUgraphNode n;

	ready();
	sem_init(&gone, 0, 0);
	ASK(cuUserObjectCreate(&o, &number[0], destroy, 1, 0));
	ASK(cuUserObjectCreate(&o, &number[0], destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	ASK(cuUserObjectCreate(&o, &number[0], NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	ASK(cuUserObjectCreate(NULL, &number[0], destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	ASK(cuUserObjectCreate(&o, &number[1], destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	ASK(cuUserObjectRetain(o, 2));
	ASK(cuUserObjectRetain(o, 0));
	ASK(cuUserObjectRelease(o, 2));
	ASK(cuUserObjectRelease(o, 1));
	await_destruction();

	ASK(cuUserObjectCreate(&o, &number[2], destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	NEED(cuGraphCreate(&g, 0));
	NEED(cuGraphAddEmptyNode(&n, g, NULL, 0));
	ASK(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
	ASK(cuGraphRetainUserObject(g, o, 1, 8));
	ASK(cuGraphRetainUserObject(g, o, 0, 0));
	ASK(cuGraphRetainUserObject(g, NULL, 1, 0));
	ASK(cuGraphClone(&c, g));
	ASK(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphDestroy(g));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	ASK(cuGraphDestroy(c));
	SAY("gone before the executable %d", sem_trywait(&gone) == 0);
	ASK(cuGraphExecDestroy(x));
	await_destruction();

	ASK(cuUserObjectCreate(&o, &number[3], destroy, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	NEED(cuGraphCreate(&g, 0));
	ASK(cuGraphRetainUserObject(g, o, 2, 0));
	ASK(cuGraphReleaseUserObject(g, o, 1));
	ASK(cuGraphReleaseUserObject(g, o, 1));
	ASK(cuUserObjectRelease(o, 2));
	await_destruction();
}

/* ---- drawings */

static void drawing(void)
{
	CUgraph g;
	CUgraphNode k, e;
	CUDA_KERNEL_NODE_PARAMS kp = one_thread(NULL, NULL);
	char path[64], text[1 << 16];
	FILE *f;
	size_t n = 0;

	ready();
	NEED(cuGraphCreate(&g, 0));
	kp = one_thread(store, (void *[]){&p, &one});
	NEED(cuGraphAddKernelNode(&k, g, NULL, 0, &kp));
	NEED(cuGraphAddEmptyNode(&e, g, &k, 1));
	snprintf(path, sizeof(path), "/tmp/drawing.%d", (int)getpid());
	unlink(path);
	SAY("drawn -> %s", name_of(cuGraphDebugDotPrint(g, path, 0)));
	f = fopen(path, "r");
	SAY("a file %d", f != NULL);
	if (f) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[n] = 0;
	SAY("a graph %d, an edge %d, the kernel %d", strncmp(text, "digraph", 7) == 0,
			strstr(text, "->") != NULL,
		strstr(text, "store") != NULL || strstr(text, "KERNEL") != NULL);
	SAY("again -> %s", name_of(cuGraphDebugDotPrint(g, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)));
	unlink(path);
	ASK(cuGraphDebugDotPrint(g, "/nowhere/at/all", 0));
	ASK(cuGraphDebugDotPrint(g, NULL, 0));
	ASK(cuGraphDebugDotPrint(NULL, path, 0));
	SAY("a file %d", access(path, F_OK) == 0);
}

/* ---- attributes, edges with data, results of an instantiation */

static void attributes(void)
{
	CUgraph g;
	CUgraphNode a, b, e;
	CUDA_KERNEL_NODE_PARAMS kp;
	CUlaunchAttributeValue v, got;

	ready();
	NEED(cuGraphCreate(&g, 0));
	kp = one_thread(store, (void *[]){&p, &one});
	NEED(cuGraphAddKernelNode(&a, g, NULL, 0, &kp));
	NEED(cuGraphAddKernelNode(&b, g, &a, 1, &kp));
	NEED(cuGraphAddEmptyNode(&e, g, NULL, 0));
	memset(&got, 0, sizeof(got));
	ASK(cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
	SAY("cooperative %d", got.cooperative);
	memset(&v, 0, sizeof(v));
	v.cooperative = 1;
	ASK(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
	ASK(cuGraphKernelNodeCopyAttributes(b, a));
	ASK(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
	SAY("cooperative %d", got.cooperative);
	ASK(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
	SAY("priority %d", got.priority);
	v.priority = -1;
	ASK(cuGraphKernelNodeSetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
	ASK(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
	SAY("priority %d", got.priority);
	ASK(cuGraphKernelNodeCopyAttributes(b, e));
	ASK(cuGraphKernelNodeGetAttribute(e, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
}

static void any_nodes(void)
{
	CUgraph g, c, in;
	CUgraphExec x;
	CUgraphNode a, b, d, m;
	CUgraphNodeParams n;
	CUgraphEdgeData edge = {0}, told[2];
	CUgraphNode from[2];
	CUDA_GRAPH_INSTANTIATE_PARAMS ip = {0};
	size_t count = 2;
	void *args[] = {&p, &one};

	ready();
	NEED(cuGraphCreate(&g, 0));
	memset(&n, 0, sizeof(n));
	n.type = CU_GRAPH_NODE_TYPE_KERNEL;
	n.kernel.func = log_to;
	n.kernel.gridDimX = n.kernel.gridDimY = n.kernel.gridDimZ = 1;
	n.kernel.blockDimX = n.kernel.blockDimY = n.kernel.blockDimZ = 1;
	n.kernel.kernelParams = args;
	ASK(cuGraphAddNode(&a, g, NULL, NULL, 0, &n));
	edge.type = 7;
	ASK(cuGraphAddNode(&b, g, &a, &edge, 1, &n));
	memset(&edge, 0, sizeof(edge));
	edge.from_port = 9;
	ASK(cuGraphAddNode(&b, g, &a, &edge, 1, &n));
	memset(&edge, 0, sizeof(edge));
	edge.reserved[2] = 1;
	ASK(cuGraphAddNode(&b, g, &a, &edge, 1, &n));
	memset(&edge, 0, sizeof(edge));
	edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
	edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
	ASK(cuGraphAddNode(&b, g, &a, &edge, 1, &n));
	ASK(cuGraphNodeGetDependencies(b, from, told, &count));
	SAY("%zu dependencies, from port %d, type %d", count, told[0].from_port, told[0].type);
	memset(&n, 0, sizeof(n));
	n.type = CU_GRAPH_NODE_TYPE_EMPTY;
	ASK(cuGraphAddNode(&d, g, &b, NULL, 1, &n));
	ASK(cuGraphAddNode(&d, g, &b, NULL, 0, &n));
	n.type = 40;
	ASK(cuGraphAddNode(&d, g, NULL, NULL, 0, &n));
	ASK(cuGraphAddNode(&d, g, NULL, NULL, 0, NULL));
	memset(&n, 0, sizeof(n));
	n.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	n.alloc.bytesize = 64;
	n.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	n.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	ASK(cuGraphAddNode(&m, g, NULL, NULL, 0, &n));
	SAY("an address %d", n.alloc.dptr != 0);
	CUdeviceptr q = n.alloc.dptr;
	memset(&n, 0, sizeof(n));
	n.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
	n.free.dptr = q;
	ASK(cuGraphAddNode(&d, g, &m, NULL, 1, &n));
	ASK(cuGraphNodeSetParams(d, &n));
	ASK(cuGraphInstantiateWithParams(&x, g, &ip));
	SAY("result %d", ip.result_out);
	ASK(cuGraphUpload(x, s));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	SAY("entries %u", word(p));
	ip.flags = 1 << 20;
	ASK(cuGraphInstantiateWithParams(&x, g, &ip));
	SAY("result %d", ip.result_out);
	ip.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	ip.hUploadStream = s;
	ASK(cuGraphInstantiateWithParams(&x, g, &ip));
	SAY("result %d", ip.result_out);

	/* A child graph that is given away. */
	NEED(cuGraphCreate(&g, 0));
	NEED(cuGraphCreate(&c, 0));
	NEED(cuGraphAddEmptyNode(&a, c, NULL, 0));
	memset(&n, 0, sizeof(n));
	n.type = CU_GRAPH_NODE_TYPE_GRAPH;
	n.graph.graph = c;
	n.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	ASK(cuGraphAddNode(&d, g, NULL, NULL, 0, &n));
	ASK(cuGraphChildGraphNodeGetGraph(d, &in));
	SAY("the same %d", in == c);
	ASK(cuGraphDestroy(c));
	ASK(cuGraphAddEmptyNode(&b, c, &a, 1));
	ASK(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	ASK(cuGraphDestroy(g));
}

SECTIONS({"values", values}, {"user_objects", user_objects}, {"drawing", drawing},
	{"attributes", attributes}, {"any_nodes", any_nodes})
