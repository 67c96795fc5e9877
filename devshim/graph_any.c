/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that add or change a node of any type, as the typed ones do it. What these cannot say travels as
 * itself: conditional nodes, child graphs that are moved. Edges with data are added behind the node.
 *
 * Thread rule: any thread; a node is used by one thread at a time, as the driver demands. */
#include <stdlib.h>
#include <string.h>
#include "devshim/graph.h"
#include "devshim/handle.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"

static CUDA_KERNEL_NODE_PARAMS from_v3(const CUDA_KERNEL_NODE_PARAMS_v3 *p)
{
	return (CUDA_KERNEL_NODE_PARAMS){.func = p->func,
		.gridDimX = p->gridDimX,
		.gridDimY = p->gridDimY,
		.gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX,
		.blockDimY = p->blockDimY,
		.blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
		.kern = p->kern,
		.ctx = p->ctx};
}

static CUDA_MEMSET_NODE_PARAMS memset_v1(const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
	return (CUDA_MEMSET_NODE_PARAMS){p->dst, p->pitch, p->value, p->elementSize, p->width, p->height};
}

static CUcontext or_current(CUcontext h)
{
	struct context *c = context_current();

	return h ? h : c ? c->handle : NULL;
}

static CUDA_BATCH_MEM_OP_NODE_PARAMS memop_v1(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p)
{
	return (CUDA_BATCH_MEM_OP_NODE_PARAMS){p->ctx, p->count, p->paramArray, p->flags};
}

/* What every record of cuGraphAddNode begins with: the graph, what the node depends on, its type. */
static CUresult begin(struct call *c, CUgraph g, const CUgraphNode *before, size_t n, CUgraphNodeType type)
{
	CUresult r = call_begin(c, CALL_cuGraphAddNode_v2);

	if (r)
		return r;
	if (!put_handle(c, HANDLE_CUgraph, g))
		return handle_error(HANDLE_CUgraph);
	r = put_nodes(c, before, n);
	put_i64(&c->out, type);
	return r;
}

/* The answer has the graphs to fill: an array that lives with the node. */
static CUresult add_conditional(CUgraphNode *node, CUgraph g, const CUgraphNode *before, size_t n,
	CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	CUcontext ctx = or_current(p->ctx);
	CUgraph *bodies = NULL;
	CUgraphNode made = NULL;
	struct call c;
	CUresult r = begin(&c, g, before, n, CU_GRAPH_NODE_TYPE_CONDITIONAL);

	if (r)
		return r;
	put_u64(&c.out, p->handle);
	put_i64(&c.out, p->type);
	put_u64(&c.out, p->size);
	if (!ctx || !put_handle(&c, HANDLE_CUcontext, ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	r = call_wait(&c);
	if (!r) {
		made = get_handle(&c, HANDLE_CUgraphNode);
		size_t count = get_array(&c.in, LIMIT_BODIES);

		bodies = calloc(count + 1, sizeof *bodies);
		for (size_t i = 0; i < count; i++) {
			CUgraph body = get_handle(&c, HANDLE_CUgraph);

			if (bodies)
				bodies[i] = body;
		}
	}
	r = call_end(&c, r);
	if (!r && (!bodies || !node_keep(made, bodies)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		free(bodies);
		return r;
	}
	p->phGraph_out = bodies;
	*node = made;
	return CUDA_SUCCESS;
}

/* A child graph that becomes the node's own: the typed call makes copies only. */
static CUresult add_child(CUgraphNode *node, CUgraph g, const CUgraphNode *before, size_t n,
	const CUDA_CHILD_GRAPH_NODE_PARAMS *p)
{
	struct call c;
	CUresult r;

	if (p->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
		return cuGraphAddChildGraphNode(node, g, before, n, p->graph);
	r = begin(&c, g, before, n, CU_GRAPH_NODE_TYPE_GRAPH);
	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUgraph, p->graph))
		return handle_error(HANDLE_CUgraph);
	put_i64(&c.out, p->ownership);
	r = call_wait(&c);
	if (!r)
		*node = get_handle(&c, HANDLE_CUgraphNode);
	return call_end(&c, r);
}

CUresult cuGraphAddNode(
	CUgraphNode *node, CUgraph g, const CUgraphNode *before, size_t n, CUgraphNodeParams *p)
{
	CUresult r = process_check();

	if (r)
		return r;
	if (!p || !node)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS k = from_v3(&p->kernel);

		return cuGraphAddKernelNode_v2(node, g, before, n, &k);
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphAddMemcpyNode(node, g, before, n, &p->memcpy.copyParams, p->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		CUDA_MEMSET_NODE_PARAMS m = memset_v1(&p->memset);

		return cuGraphAddMemsetNode(node, g, before, n, &m, or_current(p->memset.ctx));
	}
	case CU_GRAPH_NODE_TYPE_HOST: {
		CUDA_HOST_NODE_PARAMS h = {p->host.fn, p->host.userData};

		return cuGraphAddHostNode(node, g, before, n, &h);
	}
	case CU_GRAPH_NODE_TYPE_GRAPH: return add_child(node, g, before, n, &p->graph);
	case CU_GRAPH_NODE_TYPE_EMPTY: return cuGraphAddEmptyNode(node, g, before, n);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuGraphAddEventRecordNode(node, g, before, n, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuGraphAddEventWaitNode(node, g, before, n, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
		CUDA_MEM_ALLOC_NODE_PARAMS m;

		memcpy(&m, &p->alloc, sizeof m);
		r = cuGraphAddMemAllocNode(node, g, before, n, &m);
		p->alloc.dptr = m.dptr;
		return r;
	}
	case CU_GRAPH_NODE_TYPE_MEM_FREE: return cuGraphAddMemFreeNode(node, g, before, n, p->free.dptr);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
		CUDA_BATCH_MEM_OP_NODE_PARAMS b = memop_v1(&p->memOp);

		return cuGraphAddBatchMemOpNode(node, g, before, n, &b);
	}
	case CU_GRAPH_NODE_TYPE_CONDITIONAL: return add_conditional(node, g, before, n, &p->conditional);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		return call_unsupported(CALL_cuGraphAddNode, "external semaphores are not remoted");
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Data of edges is given to the edges, when the node is there. */
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *before,
	const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *p)
{
	static const CUgraphEdgeData plain;
	CUgraphNode *to, made = NULL;
	bool told = false;
	CUresult r;

	for (size_t i = 0; edges && i < n && !told; i++)
		told = memcmp(&edges[i], &plain, sizeof plain);
	if (!told)
		return cuGraphAddNode(node, g, before, n, p);
	if (!node || !before || n > LIMIT_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	to = malloc(n * sizeof *to);
	r = to ? cuGraphAddNode(&made, g, NULL, 0, p) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		for (size_t i = 0; i < n; i++)
			to[i] = made;
		r = cuGraphAddDependencies_v2(g, before, to, edges, n);
		if (r)
			cuGraphDestroyNode(made);
		else
			*node = made;
	}
	free(to);
	return r;
}

/* Nodes without parameters that could change. */
static CUresult unchangeable(unsigned call, CUgraphNodeType type)
{
	switch ((int)type) {
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		return call_unsupported(call, "external semaphores are not remoted");
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return CUDA_ERROR_NOT_SUPPORTED; /* as the driver says */
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *p)
{
	CUresult r = process_check();

	if (r)
		return r;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS k = from_v3(&p->kernel);

		return cuGraphKernelNodeSetParams_v2(node, &k);
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return node_set_copy(NULL, node, &p->memcpy.copyParams, p->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		CUDA_MEMSET_NODE_PARAMS m = memset_v1(&p->memset);

		return cuGraphMemsetNodeSetParams(node, &m);
	}
	case CU_GRAPH_NODE_TYPE_HOST: {
		CUDA_HOST_NODE_PARAMS h = {p->host.fn, p->host.userData};

		return cuGraphHostNodeSetParams(node, &h);
	}
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuGraphEventRecordNodeSetEvent(node, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return cuGraphEventWaitNodeSetEvent(node, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
		CUDA_BATCH_MEM_OP_NODE_PARAMS b = memop_v1(&p->memOp);

		return cuGraphBatchMemOpNodeSetParams(node, &b);
	}
	default: return unchangeable(CALL_cuGraphNodeSetParams, p->type);
	}
}

CUresult cuGraphExecNodeSetParams(CUgraphExec e, CUgraphNode node, CUgraphNodeParams *p)
{
	CUresult r = process_check();

	if (r)
		return r;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS k = from_v3(&p->kernel);

		return cuGraphExecKernelNodeSetParams_v2(e, node, &k);
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphExecMemcpyNodeSetParams(e, node, &p->memcpy.copyParams, p->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		CUDA_MEMSET_NODE_PARAMS m = memset_v1(&p->memset);

		return cuGraphExecMemsetNodeSetParams(e, node, &m, or_current(p->memset.ctx));
	}
	case CU_GRAPH_NODE_TYPE_HOST: {
		CUDA_HOST_NODE_PARAMS h = {p->host.fn, p->host.userData};

		return cuGraphExecHostNodeSetParams(e, node, &h);
	}
	case CU_GRAPH_NODE_TYPE_GRAPH: return cuGraphExecChildGraphNodeSetParams(e, node, p->graph.graph);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuGraphExecEventRecordNodeSetEvent(e, node, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuGraphExecEventWaitNodeSetEvent(e, node, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
		CUDA_BATCH_MEM_OP_NODE_PARAMS b = memop_v1(&p->memOp);

		return cuGraphExecBatchMemOpNodeSetParams(e, node, &b);
	}
	default: return unchangeable(CALL_cuGraphExecNodeSetParams, p->type);
	}
}
