/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: launching, kernel nodes, lists of nodes, what holds handles in a struct. The other calls of the
 * graph interface are generated, or say why they are not remoted.
 *
 * Thread rule: any thread. */
#include <stdatomic.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/function.h"
#include "devshim/graph.h"
#include "devshim/mirror.h"
#include "devshim/handle.h"
#include "devshim/launch.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

static _Atomic bool memory_in_graphs;

void graph_has_memory(void)
{
	atomic_store(&memory_in_graphs, true);
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);
	struct work *w = r ? NULL : work_of(hStream);

	if (!r)
		r = mirror_send(false);
	if (!r)
		r = call_begin(&c, CALL_cuGraphLaunch);
	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUgraphExec, hGraph))
		return handle_error(HANDLE_CUgraphExec);
	if (!w || !put_handle(&c, HANDLE_CUstream, hStream))
		return handle_error(HANDLE_CUstream);
	/* Memory that was not freed since the last launch is an error of this call. */
	if (work_capturing() || atomic_load(&memory_in_graphs)) {
		r = call_wait(&c);
		r = call_end(&c, r);
	} else {
		r = call_post(&c);
	}
	/* If a graph may hold host functions, what is behind this one is treated as behind one. */
	if (!r)
		(atomic_load(&work_graphs_gate) ? work_gated : work_posted)(w, c.seq);
	return r;
}

CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
	CUresult r = remote_cuGraphUpload(hGraph, hStream);

	if (!r)
		work_posted(work_of(hStream), work_mark() + 1);
	return r;
}

/* The driver may wait for what an executable graph has under way. */
CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	copy_drain();
	return remote_cuGraphExecDestroy(hGraphExec);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH &&
			!(flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) {
		CUDA_GRAPH_INSTANTIATE_PARAMS p = {.flags = flags};

		return cuGraphInstantiateWithParams(phGraphExec, hGraph, &p);
	}
	copy_drain();
	return remote_cuGraphInstantiateWithFlags(phGraphExec, hGraph, flags);
}

/* ---- kernel nodes */

CUresult put_nodes(struct call *c, const CUgraphNode *nodes, size_t n)
{
	if (n > LIMIT_ARRAY || (n && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	put_array(&c->out, n);
	for (size_t i = 0; i < n; i++)
		if (!put_handle(c, HANDLE_CUgraphNode, nodes[i]))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static void *kernel_of(const CUDA_KERNEL_NODE_PARAMS *p)
{
	return p->func ? (void *)p->func : (void *)p->kern;
}

/* Context, function, whether the program has packed the parameters itself, then as a launch without a
 * stream. */
static CUresult put_kernel(struct call *c, const CUDA_KERNEL_NODE_PARAMS *p, struct function *f)
{
	CUlaunchConfig k = {.gridDimX = p->gridDimX,
		.gridDimY = p->gridDimY,
		.gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX,
		.blockDimY = p->blockDimY,
		.blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes,
		.hStream = CU_STREAM_LEGACY};
	CUresult r;

	if (!p->ctx)
		put_u64(&c->out, 0);
	else if (!put_handle(c, HANDLE_CUcontext, p->ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!put_handle(c, HANDLE_CUfunction, kernel_of(p)))
		return CUDA_ERROR_INVALID_HANDLE;
	put_bool(&c->out, p->extra);
	r = put_launch_shape(c, &k, false);
	return r ? r : put_launch_params(c, f, p->kernelParams, p->extra, launch_room());
}

/* A question about the function comes before the call that needs it is begun. */
static CUresult begin(struct call *c, unsigned id, const CUDA_KERNEL_NODE_PARAMS *p, struct function **f)
{
	CUresult r = process_check();

	if (r)
		return r;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	*f = function_of(kernel_of(p));
	if (!*f)
		return CUDA_ERROR_INVALID_HANDLE;
	r = function_ready(*f);
	if (!r)
		r = mirror_launch(*f, p->kernelParams, p->extra);
	return r ? r : call_begin(c, id);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct function *f;
	struct call c;
	CUresult r = begin(&c, CALL_cuGraphAddKernelNode_v2, nodeParams, &f);

	if (r)
		return r;
	if (!phGraphNode)
		return CUDA_ERROR_INVALID_VALUE;
	if (!put_handle(&c, HANDLE_CUgraph, hGraph))
		return handle_error(HANDLE_CUgraph);
	r = put_nodes(&c, dependencies, numDependencies);
	if (!r)
		r = put_kernel(&c, nodeParams, f);
	if (r)
		return r;
	r = call_wait(&c);
	if (!r)
		*phGraphNode = get_handle(&c, HANDLE_CUgraphNode);
	return call_end(&c, r);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct function *f;
	struct call c;
	CUresult r = begin(&c, CALL_cuGraphKernelNodeSetParams_v2, nodeParams, &f);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUgraphNode, hNode))
		return CUDA_ERROR_INVALID_VALUE;
	r = put_kernel(&c, nodeParams, f);
	if (r)
		return r;
	r = call_wait(&c);
	return call_end(&c, r);
}

CUresult cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct function *f;
	struct call c;
	CUresult r = begin(&c, CALL_cuGraphExecKernelNodeSetParams_v2, nodeParams, &f);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUgraphExec, hGraphExec) || !put_handle(&c, HANDLE_CUgraphNode, hNode))
		return CUDA_ERROR_INVALID_VALUE;
	r = put_kernel(&c, nodeParams, f);
	if (r)
		return r;
	r = call_wait(&c);
	return call_end(&c, r);
}

/* ---- lists of nodes and edges */

/* Asks for a list: nodes or, with `from`, edges between two nodes. */
static CUresult list(unsigned id, unsigned type, void *of, CUgraphNode *from, CUgraphNode *nodes,
	CUgraphEdgeData *edges, bool pairs, size_t *n)
{
	struct call c;
	CUresult r = call_begin(&c, id);
	size_t room, got;

	if (r)
		return r;
	if (!n || (pairs && !from != !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	room = *n < LIMIT_ARRAY ? *n : LIMIT_ARRAY;
	if (!put_handle(&c, type, of))
		return handle_error(type);
	if (nodes)
		put_u64(&c.out, room);
	else
		put_nil(&c.out);
	r = call_wait(&c);
	if (!r) {
		*n = get_u64(&c.in);
		got = get_array(&c.in, nodes ? room : 0);
		for (size_t i = 0; i < got; i++) {
			CUgraphEdgeData edge = {0};

			if (pairs)
				from[i] = get_handle(&c, HANDLE_CUgraphNode);
			nodes[i] = get_handle(&c, HANDLE_CUgraphNode);
			get_bytes(&c.in, &edge, sizeof edge);
			if (edges)
				edges[i] = edge;
		}
		/* The driver clears what it leaves over. */
		for (size_t i = got; nodes && i < room; i++) {
			nodes[i] = NULL;
			if (pairs)
				from[i] = NULL;
		}
	}
	return call_end(&c, r);
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	return list(CALL_cuGraphGetNodes, HANDLE_CUgraph, hGraph, NULL, nodes, NULL, false, numNodes);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	return list(
		CALL_cuGraphGetRootNodes, HANDLE_CUgraph, hGraph, NULL, rootNodes, NULL, false, numRootNodes);
}

CUresult cuGraphNodeGetDependencies_v2(
	CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData, size_t *numDependencies)
{
	return list(CALL_cuGraphNodeGetDependencies_v2, HANDLE_CUgraphNode, hNode, NULL, dependencies,
		edgeData, false, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(
	CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
	return list(CALL_cuGraphNodeGetDependentNodes_v2, HANDLE_CUgraphNode, hNode, NULL, dependentNodes,
		edgeData, false, numDependentNodes);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
	return cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes(
	CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
	return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

CUresult cuGraphGetEdges_v2(
	CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData, size_t *numEdges)
{
	return list(CALL_cuGraphGetEdges_v2, HANDLE_CUgraph, hGraph, from, to, edgeData, true, numEdges);
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	return cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

/* ---- instantiation and update with results in structs */

CUresult cuGraphInstantiateWithParams(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	struct call c;

	copy_drain();
	CUresult r = call_begin(&c, CALL_cuGraphInstantiateWithParams);

	if (r)
		return r;
	if (!phGraphExec || !p)
		return CUDA_ERROR_INVALID_VALUE;
	if (!put_handle(&c, HANDLE_CUgraph, hGraph))
		return handle_error(HANDLE_CUgraph);
	put_u64(&c.out, p->flags);
	if (!put_handle(&c, HANDLE_CUstream, p->hUploadStream))
		return handle_error(HANDLE_CUstream);
	r = call_wait(&c);
	if (c.in.len < c.in.cap) {
		CUgraphExec e = get_handle(&c, HANDLE_CUgraphExec);

		p->result_out = (CUgraphInstantiateResult)get_i64(&c.in);
		p->hErrNode_out = get_handle(&c, HANDLE_CUgraphNode);
		uint64_t device = get_u64(&c.in);

		/* Kernels launch it by the driver's own handle, which the program passes to them: that is its
		 * name here, too. */
		if (!r && device) {
			if (!handle_rename(HANDLE_CUgraphExec, e, (void *)(uintptr_t)device))
				r = CUDA_ERROR_OUT_OF_MEMORY;
			e = (void *)(uintptr_t)device;
		}
		if (!r)
			*phGraphExec = e;
	}
	return call_end(&c, r);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuGraphExecUpdate_v2);

	if (r)
		return r;
	if (!resultInfo)
		return CUDA_ERROR_INVALID_VALUE;
	/* As a driver leaves it when there is nothing to update. */
	resultInfo->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	if (!put_handle(&c, HANDLE_CUgraphExec, hGraphExec) || !put_handle(&c, HANDLE_CUgraph, hGraph))
		return CUDA_ERROR_INVALID_VALUE;
	r = call_wait(&c);
	if (c.in.len < c.in.cap) {
		resultInfo->result = (CUgraphExecUpdateResult)get_i64(&c.in);
		resultInfo->errorNode = get_handle(&c, HANDLE_CUgraphNode);
		resultInfo->errorFromNode = get_handle(&c, HANDLE_CUgraphNode);
	}
	return call_end(&c, r);
}
