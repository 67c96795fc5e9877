/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of nodes: telling and changing them, in a graph and in its executable form, by kind. Kernels'
 * are in graph_param_kernel.c, those of copies and fills in graph_param_copy.c.
 *
 * Thread rule: see state.h. */
#include <string.h>
#include "server/soft/event.h"
#include "server/soft/graph.h"

struct guard node_enter(CUgraphNode h, CUgraphNodeType type, const void *params, struct node **n)
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

struct guard exec_enter(CUgraphExec x, CUgraphNode h, CUgraphNodeType type, const void *params,
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

/* ---- host functions */

CUresult cuGraphHostNodeGetParams(CUgraphNode h, CUDA_HOST_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_HOST, p, &n);
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
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_HOST, p, &n);
	return g.error ? g.error : host_change(n, p);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec x, CUgraphNode h, const CUDA_HOST_NODE_PARAMS *p)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = exec_enter(x, h, CU_GRAPH_NODE_TYPE_HOST, p, &n, &exec);
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
	guarded g = node_enter(h, type, out, &n);
	if (!g.error)
		*out = HANDLE(n->work.event.event);
	return g.error;
}

static CUresult event_give(CUgraphNode h, CUgraphNodeType type, CUevent event)
{
	struct node *n;
	guarded g = node_enter(h, type, &event, &n);
	return g.error ? g.error : event_change(n, event);
}

static CUresult event_exec(CUgraphExec x, CUgraphNode h, CUgraphNodeType type, CUevent event)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = exec_enter(x, h, type, &event, &n, &exec);
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
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p, &n);
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
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p, &n);
	return g.error ? g.error : memop_change(n, p);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(
	CUgraphExec x, CUgraphNode h, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = exec_enter(x, h, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p, &n, &exec);
	if (g.error)
		return g.error;
	exec_changed(exec);
	return memop_change(n, p);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode h, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_MEM_ALLOC, p, &n);
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
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_MEM_FREE, p, &n);
	if (!g.error)
		*p = n->work.alloc.p;
	return g.error;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode h, CUgraph *out)
{
	struct node *n;
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_GRAPH, out, &n);
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
