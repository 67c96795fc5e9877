/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that copy. One with a side in the program's memory is a host function of ours for the driver, which
 * moves the bytes at each replay.
 *
 * Thread rule: graph_node.c. */
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/graph.h"
#include "devshim/graph_node.h"
#include "devshim/handle.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

static CUresult added(struct call *c, CUgraphNode *node, struct node **n)
{
	CUresult r = call_wait(c);

	if (!r)
		*node = get_handle(c, HANDLE_CUgraphNode);
	r = call_end(c, r);
	*n = r ? NULL : graph_node_of(*node);
	return r || *n ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult done(struct call *c)
{
	CUresult r = call_wait(c);

	return call_end(c, r);
}

static CUresult read_copy(const CUDA_MEMCPY3D *p, struct copy *k)
{
	CUresult r = process_check();

	if (r)
		return r;
	return p ? copy_of_3d(p, k) : CUDA_ERROR_INVALID_VALUE;
}

/* The context in which a copy node runs: NULL means the current one. */
static CUresult find_context(CUcontext h, struct context **c)
{
	*c = h ? context_find(h) : context_current();
	return *c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	struct context *context;
	struct node *n = NULL;
	struct copy k;
	struct call c;
	CUresult r = read_copy(copyParams, &k);

	if (!r && (!phGraphNode || !handle_live(HANDLE_CUgraph, hGraph)))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = find_context(ctx, &context);
	if (r)
		return r;
	if (copy_is_host(&k)) {
		uint64_t id = copy_note(&k, context);

		r = id ? graph_node_add_upcall(phGraphNode, hGraph, dependencies, numDependencies, id, &n)
		       : CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		r = call_begin(&c, CALL_cuGraphAddMemcpyNode);
		if (r)
			return r;
		put_handle(&c, HANDLE_CUgraph, hGraph);
		r = put_nodes(&c, dependencies, numDependencies);
		if (!r)
			r = copy_put(&c, &k);
		if (!r && !put_handle(&c, HANDLE_CUcontext, context->handle))
			r = CUDA_ERROR_INVALID_CONTEXT;
		if (!r)
			r = added(&c, phGraphNode, &n);
	}
	if (!r) {
		n->copy = *copyParams;
		n->copy_is_host = copy_is_host(&k);
	}
	return r;
}

/* [node] -> [the struct's bytes, arrays of both sides] */
static CUresult ask_copy(CUgraphNode h, CUDA_MEMCPY3D *p)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuGraphMemcpyNodeGetParams);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUgraphNode, h))
		return handle_error(HANDLE_CUgraphNode);
	r = call_wait(&c);
	if (!r) {
		get_bytes(&c.in, p, sizeof *p);
		p->srcArray = get_handle(&c, HANDLE_CUarray);
		p->dstArray = get_handle(&c, HANDLE_CUarray);
	}
	return call_end(&c, r);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	struct node *n;
	CUresult r = graph_node_know(hNode, &n);

	if (r)
		return r;
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	if (!n->copy.Depth)
		return ask_copy(hNode, nodeParams);
	*nodeParams = n->copy;
	return CUDA_SUCCESS;
}

CUresult node_set_copy(CUgraphExec e, CUgraphNode hNode, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
	struct node *n;
	struct context *context;
	struct copy k;
	struct call c;
	CUresult r = read_copy(p, &k);

	if (!r)
		r = find_context(ctx, &context);
	if (!r)
		r = graph_node_know(hNode, &n);
	if (r)
		return r;
	/* In what was made of a graph a copy keeps its direction, as natively; in the graph it becomes
	 * another kind of node. */
	if (n->host.fn || (e && n->copy_is_host != copy_is_host(&k)))
		return CUDA_ERROR_INVALID_VALUE;
	if (copy_is_host(&k)) {
		uint64_t id = copy_note(&k, context);

		r = id ? graph_node_set_upcall(e, hNode, id) : CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		r = call_begin(&c, e ? CALL_cuGraphExecMemcpyNodeSetParams : CALL_cuGraphMemcpyNodeSetParams);
		if (r)
			return r;
		if ((e && !put_handle(&c, HANDLE_CUgraphExec, e)) ||
			!put_handle(&c, HANDLE_CUgraphNode, hNode))
			return CUDA_ERROR_INVALID_VALUE;
		r = copy_put(&c, &k);
		if (!r && !put_handle(&c, HANDLE_CUcontext, context->handle))
			r = CUDA_ERROR_INVALID_CONTEXT;
		if (!r)
			r = done(&c);
	}
	if (!r && !e) {
		n->copy = *p;
		n->copy_is_host = copy_is_host(&k);
	}
	return r;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	return node_set_copy(NULL, hNode, nodeParams, NULL);
}

CUresult cuGraphExecMemcpyNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	return hGraphExec ? node_set_copy(hGraphExec, hNode, copyParams, ctx) : CUDA_ERROR_INVALID_VALUE;
}
