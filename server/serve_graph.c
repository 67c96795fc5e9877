/* SPDX-License-Identifier: Apache-2.0 */
/* Capture and the nodes of graphs that hold functions or handles. Thread rule: as exec.h; no state. */
#include "server/exec.h"
#include "server/serve.h"
#include "wire/limits.h"
#include "cuda.calls.h"

/* [stream] -> [status, id, graph, dependencies: node and edge in turn] */
CUresult serve_cuStreamGetCaptureInfo_v3(struct exec *x)
{
	CUstream s = exec_handle(x, HANDLE_CUstream);
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	const CUgraphEdgeData *edges = NULL;
	const CUgraphNode *nodes = NULL;
	CUgraph graph = NULL;
	cuuint64_t id = 0;
	size_t n = 0;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuStreamGetCaptureInfo_v3(s, &status, &id, &graph, &nodes, &edges, &n);

	if (r)
		return r;
	if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || !nodes)
		n = 0;
	put_i64(&x->out, status);
	put_u64(&x->out, id);
	exec_put_handle(x, HANDLE_CUgraph, status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? graph : NULL);
	put_array(&x->out, n);
	for (size_t i = 0; i < n; i++) {
		CUgraphEdgeData none = {0};

		exec_put_handle(x, HANDLE_CUgraphNode, nodes[i]);
		put_bytes(&x->out, edges ? &edges[i] : &none, sizeof none);
	}
	return r;
}

/* The nodes that another depends on, as in a record: an array of handles. */
static bool get_nodes(struct exec *x, CUgraphNode **nodes, size_t *n)
{
	*n = get_array(&x->in, LIMIT_ARRAY);
	*nodes = exec_alloc(x, (*n + 1) * sizeof **nodes);
	for (size_t i = 0; *nodes && i < *n; i++)
		(*nodes)[i] = exec_handle(x, HANDLE_CUgraphNode);
	return *nodes && !x->in.bad;
}

/* [graph, dependencies, kernel] */
CUresult serve_cuGraphAddKernelNode_v2(struct exec *x)
{
	CUgraph g = exec_handle(x, HANDLE_CUgraph);
	CUDA_KERNEL_NODE_PARAMS p;
	CUgraphNode *nodes, node = NULL;
	size_t n;

	if (!get_nodes(x, &nodes, &n) || !get_kernel_node(x, &p))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuGraphAddKernelNode_v2(&node, g, n ? nodes : NULL, n, &p);

	if (!r)
		exec_put_handle(x, HANDLE_CUgraphNode, node);
	return r;
}

/* [node, kernel] */
CUresult serve_cuGraphKernelNodeSetParams_v2(struct exec *x)
{
	CUgraphNode node = exec_handle(x, HANDLE_CUgraphNode);
	CUDA_KERNEL_NODE_PARAMS p;

	if (!get_kernel_node(x, &p))
		return SERVE_BAD;
	return x->bad_handle ? x->handle_code : drv.cuGraphKernelNodeSetParams_v2(node, &p);
}

/* [executable, node, kernel] */
CUresult serve_cuGraphExecKernelNodeSetParams_v2(struct exec *x)
{
	CUgraphExec e = exec_handle(x, HANDLE_CUgraphExec);
	CUgraphNode node = exec_handle(x, HANDLE_CUgraphNode);
	CUDA_KERNEL_NODE_PARAMS p;

	if (!get_kernel_node(x, &p))
		return SERVE_BAD;
	return x->bad_handle ? x->handle_code : drv.cuGraphExecKernelNodeSetParams_v2(e, node, &p);
}

/* A list of nodes that the driver fills: [graph or node, room or nil] -> [how many, nodes]. Without room only the number is asked for. */
static CUresult serve_list(struct exec *x, unsigned type, CUresult (*list)(void *, CUgraphNode *, size_t *))
{
	void *of = exec_handle(x, type);
	bool count_only = get_nil(&x->in);
	size_t n = count_only ? 0 : get_u64(&x->in), room = n;
	CUgraphNode *nodes = NULL;

	if (!get_end(&x->in) || n > LIMIT_ARRAY)
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	if (!count_only && !(nodes = exec_alloc(x, (room + 1) * sizeof *nodes)))
		return SERVE_BAD;
	CUresult r = list(of, nodes, &n);

	if (r)
		return r;
	put_u64(&x->out, n);
	n = nodes ? (n < room ? n : room) : 0;
	put_array(&x->out, n);
	for (size_t i = 0; i < n; i++)
		exec_put_handle(x, HANDLE_CUgraphNode, nodes[i]);
	return r;
}

static CUresult list_nodes(void *g, CUgraphNode *nodes, size_t *n) { return drv.cuGraphGetNodes(g, nodes, n); }
static CUresult list_roots(void *g, CUgraphNode *nodes, size_t *n) { return drv.cuGraphGetRootNodes(g, nodes, n); }
static CUresult list_before(void *v, CUgraphNode *nodes, size_t *n) { return drv.cuGraphNodeGetDependencies(v, nodes, n); }
static CUresult list_after(void *v, CUgraphNode *nodes, size_t *n) { return drv.cuGraphNodeGetDependentNodes(v, nodes, n); }

CUresult serve_cuGraphGetNodes(struct exec *x) { return serve_list(x, HANDLE_CUgraph, list_nodes); }
CUresult serve_cuGraphGetRootNodes(struct exec *x) { return serve_list(x, HANDLE_CUgraph, list_roots); }
CUresult serve_cuGraphNodeGetDependencies(struct exec *x) { return serve_list(x, HANDLE_CUgraphNode, list_before); }
CUresult serve_cuGraphNodeGetDependentNodes(struct exec *x) { return serve_list(x, HANDLE_CUgraphNode, list_after); }

/* [graph, flags, upload stream] -> [executable, result, error node] */
CUresult serve_cuGraphInstantiateWithParams(struct exec *x)
{
	CUgraph g = exec_handle(x, HANDLE_CUgraph);
	CUDA_GRAPH_INSTANTIATE_PARAMS p = {.flags = get_u64(&x->in)};
	CUgraphExec e = NULL;

	p.hUploadStream = exec_handle(x, HANDLE_CUstream);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuGraphInstantiateWithParams(&e, g, &p);

	exec_put_handle(x, HANDLE_CUgraphExec, r ? NULL : e);
	put_i64(&x->out, p.result_out);
	exec_put_handle(x, HANDLE_CUgraphNode, p.hErrNode_out);
	return r;
}

/* [executable, graph] -> [result, node, node it came from] */
CUresult serve_cuGraphExecUpdate_v2(struct exec *x)
{
	CUgraphExec e = exec_handle(x, HANDLE_CUgraphExec);
	CUgraph g = exec_handle(x, HANDLE_CUgraph);
	CUgraphExecUpdateResultInfo info = {0};

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuGraphExecUpdate_v2(e, g, &info);

	put_i64(&x->out, info.result);
	exec_put_handle(x, HANDLE_CUgraphNode, info.errorNode);
	exec_put_handle(x, HANDLE_CUgraphNode, info.errorFromNode);
	return r;
}
