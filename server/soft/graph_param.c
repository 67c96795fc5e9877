/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of nodes: telling and changing them, in a graph and in its executable form.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include <string.h>
#include "server/soft/allocation.h"
#include "server/soft/engine.h"
#include "server/soft/event.h"
#include "server/soft/graph.h"
#include "server/soft/module.h"

static struct guard enter_node(CUgraphNode h, CUgraphNodeType type, const void *params, struct node **n)
{
	struct guard g = enter();
	if (g.error)
		return g;
	*n = object_find(h, KIND_NODE);
	if (!*n || !params || (*n)->type != type) {
		guard_leave(&g);
		g = (struct guard){.error = CUDA_ERROR_INVALID_VALUE};
	}
	return g;
}

/* The node of an executable graph that came from `h`. */
static struct guard enter_exec(CUgraphExec x, CUgraphNode h, CUgraphNodeType type, const void *params,
	struct node **n, struct graph_exec **exec)
{
	struct guard g = enter();
	if (g.error)
		return g;
	*exec = object_find(x, KIND_EXEC);
	*n = *exec ? exec_node(*exec, h) : NULL;
	if (!*n || !params || (*n)->type != type) {
		guard_leave(&g);
		g = (struct guard){.error = CUDA_ERROR_INVALID_VALUE};
	}
	return g;
}

/* ---- kernels */

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode h, CUDA_KERNEL_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_KERNEL, p, &n);
	if (g.error)
		return g.error;
	const struct work_kernel *k = &n->work.kernel;
	const struct engine_function_info *info = engine_function_info(k->function->code);
	if (!n->pointers) {
		n->pointers = calloc((size_t)info->nparams + 1, sizeof *n->pointers);
		if (!n->pointers)
			return CUDA_ERROR_OUT_OF_MEMORY;
		for (unsigned i = 0; i < info->nparams; i++)
			n->pointers[i] = (char *)k->params + info->params[i].offset;
	}
	*p = (CUDA_KERNEL_NODE_PARAMS){
		.func = HANDLE(k->function),
		.gridDimX = k->grid[0],
		.gridDimY = k->grid[1],
		.gridDimZ = k->grid[2],
		.blockDimX = k->block[0],
		.blockDimY = k->block[1],
		.blockDimZ = k->block[2],
		.sharedMemBytes = (unsigned)k->shared,
		.kernelParams = n->pointers,
		.kern = k->function->kernel ? HANDLE(k->function->kernel) : NULL,
		.ctx = n->work.context ? HANDLE(n->work.context) : n->context,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode h, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS q;
	CUresult r = p ? cuGraphKernelNodeGetParams_v2(h, &q) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		memcpy(p, &q, sizeof *p);
	return r;
}

/* The new parameters may point into the node's own old ones: work is made before the old is dropped. */
static CUresult kernel_change(struct node *n, const CUDA_KERNEL_NODE_PARAMS *p)
{
	CUresult why = CUDA_SUCCESS;
	struct work w;
	struct context *c = n->work.context ? n->work.context : context_current(&why);
	if (!p->func && !p->kern)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult r = kernel_work(p, c, &w);
	if (r)
		return r;
	w.kernel.cooperative = n->work.kernel.cooperative;
	w.kernel.priority = n->work.kernel.priority;
	node_set(n, &w);
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_KERNEL, p, &n);
	return g.error ? g.error : kernel_change(n, p);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = enter_exec(x, h, CU_GRAPH_NODE_TYPE_KERNEL, p, &n, &exec);
	if (g.error)
		return g.error;
	exec_changed(exec);
	return kernel_change(n, p);
}

static CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS q = {0};
	memcpy(&q, p, sizeof *p);
	return q;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_KERNEL_NODE_PARAMS q = widen(p);
	return cuGraphKernelNodeSetParams_v2(h, &q);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec x, CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_KERNEL_NODE_PARAMS q = widen(p);
	return cuGraphExecKernelNodeSetParams_v2(x, h, &q);
}

/* ---- copies */

/* A captured copy is told as what it touches. */
static void side(uint64_t p, CUmemorytype *type, const void **host, CUdeviceptr *device)
{
	struct allocation a;
	bool known = allocation_find(p, &a) && a.kind != ALLOCATION_PINNED && a.kind != ALLOCATION_REGISTERED;
	*type = known ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	*host = known ? NULL : (const void *)(uintptr_t)p;
	*device = known ? p : 0;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode h, CUDA_MEMCPY3D *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_MEMCPY, p, &n);
	if (g.error)
		return g.error;
	if (n->has_copy) {
		*p = n->copy;
		return CUDA_SUCCESS;
	}
	const struct work_copy *k = &n->work.copy;
	const void *to = NULL;
	*p = (CUDA_MEMCPY3D){.srcPitch = k->src_pitch,
		.srcHeight = k->src_pitch ? k->src_slice / k->src_pitch : 0,
		.dstPitch = k->dst_pitch,
		.dstHeight = k->dst_pitch ? k->dst_slice / k->dst_pitch : 0,
		.WidthInBytes = k->width,
		.Height = k->height,
		.Depth = k->depth};
	side((uintptr_t)k->src, &p->srcMemoryType, &p->srcHost, &p->srcDevice);
	side((uintptr_t)k->dst, &p->dstMemoryType, &to, &p->dstDevice);
	p->dstHost = (void *)(uintptr_t)to;
	return CUDA_SUCCESS;
}

static CUresult copy_change(struct node *n, const CUDA_MEMCPY3D *p)
{
	struct work w;
	CUresult r = copy_work(p, &w);
	if (r)
		return r;
	node_set(n, &w);
	n->has_copy = true;
	n->copy = *p;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode h, const CUDA_MEMCPY3D *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_MEMCPY, p, &n);
	return g.error ? g.error : copy_change(n, p);
}

static bool from_host(const CUDA_MEMCPY3D *c)
{
	return c->srcMemoryType == CU_MEMORYTYPE_HOST;
}

static bool to_host(const CUDA_MEMCPY3D *c)
{
	return c->dstMemoryType == CU_MEMORYTYPE_HOST;
}

CUresult cuGraphExecMemcpyNodeSetParams(
	CUgraphExec x, CUgraphNode h, const CUDA_MEMCPY3D *p, CUcontext context)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = enter_exec(x, h, CU_GRAPH_NODE_TYPE_MEMCPY, p, &n, &exec);
	if (g.error)
		return g.error;
	(void)context;
	/* Both sides stay on the side of the bus that they were on. */
	CUDA_MEMCPY3D was = n->copy;
	if (n->has_copy && (from_host(&was) != from_host(p) || to_host(&was) != to_host(p)))
		return CUDA_ERROR_INVALID_VALUE;
	exec_changed(exec);
	return copy_change(n, p);
}

/* ---- fills */

CUresult cuGraphMemsetNodeGetParams(CUgraphNode h, CUDA_MEMSET_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_MEMSET, p, &n);
	if (g.error)
		return g.error;
	const struct work_set *k = &n->work.set;
	*p = (CUDA_MEMSET_NODE_PARAMS){
		(uintptr_t)k->dst, k->pitch, k->value, k->element, k->width, k->height};
	return CUDA_SUCCESS;
}

static CUresult set_change(struct node *n, const CUDA_MEMSET_NODE_PARAMS *p)
{
	struct work w;
	CUresult r = set_work(p, &w);
	if (!r)
		node_set(n, &w);
	return r;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode h, const CUDA_MEMSET_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_MEMSET, p, &n);
	return g.error ? g.error : set_change(n, p);
}

CUresult cuGraphExecMemsetNodeSetParams(
	CUgraphExec x, CUgraphNode h, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = enter_exec(x, h, CU_GRAPH_NODE_TYPE_MEMSET, p, &n, &exec);
	if (g.error)
		return g.error;
	(void)context;
	/* In what was made of a graph a fill keeps its dimensions. */
	if ((p->height > 1) != (n->work.set.height > 1))
		return CUDA_ERROR_INVALID_VALUE;
	exec_changed(exec);
	return set_change(n, p);
}

/* ---- host functions */

CUresult cuGraphHostNodeGetParams(CUgraphNode h, CUDA_HOST_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_HOST, p, &n);
	if (!g.error)
		*p = (CUDA_HOST_NODE_PARAMS){n->work.host.fn, n->work.host.data};
	return g.error;
}

static CUresult host_change(struct node *n, const CUDA_HOST_NODE_PARAMS *p)
{
	if (!p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	n->work.host = (struct work_host){p->fn, p->userData};
	return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode h, const CUDA_HOST_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_HOST, p, &n);
	return g.error ? g.error : host_change(n, p);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec x, CUgraphNode h, const CUDA_HOST_NODE_PARAMS *p)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = enter_exec(x, h, CU_GRAPH_NODE_TYPE_HOST, p, &n, &exec);
	if (g.error)
		return g.error;
	exec_changed(exec);
	return host_change(n, p);
}

/* ---- events */

static CUresult event_change(struct node *n, CUevent event)
{
	struct event *e = object_find(event, KIND_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_VALUE;
	object_ref(e);
	object_unref(n->work.event.event);
	n->work.event.event = e;
	return CUDA_SUCCESS;
}

static CUresult event_tell(CUgraphNode h, CUgraphNodeType type, CUevent *out)
{
	struct node *n;
	guarded g = enter_node(h, type, out, &n);
	if (!g.error)
		*out = HANDLE(n->work.event.event);
	return g.error;
}

static CUresult event_give(CUgraphNode h, CUgraphNodeType type, CUevent event)
{
	struct node *n;
	guarded g = enter_node(h, type, &event, &n);
	return g.error ? g.error : event_change(n, event);
}

static CUresult event_exec(CUgraphExec x, CUgraphNode h, CUgraphNodeType type, CUevent event)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = enter_exec(x, h, type, &event, &n, &exec);
	if (g.error)
		return g.error;
	exec_changed(exec);
	return event_change(n, event);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode h, CUevent *out)
{
	return event_tell(h, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out);
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode h, CUevent e)
{
	return event_give(h, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e);
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode h, CUevent *out)
{
	return event_tell(h, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out);
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode h, CUevent e)
{
	return event_give(h, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec x, CUgraphNode h, CUevent e)
{
	return event_exec(x, h, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e);
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec x, CUgraphNode h, CUevent e)
{
	return event_exec(x, h, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
}

/* ---- memory operations, memory, child graphs */

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode h, CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p, &n);
	if (!g.error)
		*p = (CUDA_BATCH_MEM_OP_NODE_PARAMS){n->context, n->work.memops.count, n->work.memops.ops, 0};
	return g.error;
}

static CUresult memop_change(struct node *n, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	struct work w;
	CUresult r = memop_work(p, &w);
	if (!r) {
		node_set(n, &w);
		n->context = p->ctx;
	}
	return r;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode h, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p, &n);
	return g.error ? g.error : memop_change(n, p);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(
	CUgraphExec x, CUgraphNode h, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = enter_exec(x, h, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p, &n, &exec);
	if (g.error)
		return g.error;
	exec_changed(exec);
	return memop_change(n, p);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode h, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_MEM_ALLOC, p, &n);
	if (g.error)
		return g.error;
	*p = (CUDA_MEM_ALLOC_NODE_PARAMS){.bytesize = n->work.alloc.bytes, .dptr = n->work.alloc.p};
	p->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	p->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode h, CUdeviceptr *p)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_MEM_FREE, p, &n);
	if (!g.error)
		*p = n->work.alloc.p;
	return g.error;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode h, CUgraph *out)
{
	struct node *n;
	guarded g = enter_node(h, CU_GRAPH_NODE_TYPE_GRAPH, out, &n);
	if (!g.error)
		*out = HANDLE(n->work.child.graph);
	return g.error;
}

/* ---- by kind */

CUresult cuGraphNodeSetParams(CUgraphNode h, CUgraphNodeParams *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS q;
		memcpy(&q, &p->kernel, sizeof q);
		return cuGraphKernelNodeSetParams_v2(h, &q);
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY: return cuGraphMemcpyNodeSetParams(h, &p->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		CUDA_MEMSET_NODE_PARAMS q;
		memcpy(&q, &p->memset, sizeof q);
		return cuGraphMemsetNodeSetParams(h, &q);
	}
	case CU_GRAPH_NODE_TYPE_HOST: {
		CUDA_HOST_NODE_PARAMS q = {p->host.fn, p->host.userData};
		return cuGraphHostNodeSetParams(h, &q);
	}
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return cuGraphEventRecordNodeSetEvent(h, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return cuGraphEventWaitNodeSetEvent(h, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuGraphExecNodeSetParams(CUgraphExec x, CUgraphNode h, CUgraphNodeParams *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS q;
		memcpy(&q, &p->kernel, sizeof q);
		return cuGraphExecKernelNodeSetParams_v2(x, h, &q);
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphExecMemcpyNodeSetParams(x, h, &p->memcpy.copyParams, p->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		CUDA_MEMSET_NODE_PARAMS q;
		memcpy(&q, &p->memset, sizeof q);
		return cuGraphExecMemsetNodeSetParams(x, h, &q, p->memset.ctx);
	}
	case CU_GRAPH_NODE_TYPE_HOST: {
		CUDA_HOST_NODE_PARAMS q = {p->host.fn, p->host.userData};
		return cuGraphExecHostNodeSetParams(x, h, &q);
	}
	case CU_GRAPH_NODE_TYPE_GRAPH: return cuGraphExecChildGraphNodeSetParams(x, h, p->graph.graph);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuGraphExecEventRecordNodeSetEvent(x, h, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return cuGraphExecEventWaitNodeSetEvent(x, h, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}
