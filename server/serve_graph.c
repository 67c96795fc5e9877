/* SPDX-License-Identifier: Apache-2.0 */
/* Capture and the nodes of graphs that hold functions or handles. Thread rule: as exec.h; no state. */
#include <string.h>
#include "server/exec.h"
#include "server/serve.h"
#include "wire/limits.h"
#include "cuda.calls.h"

#define LIMIT_NODE_PARAMS (64u << 10)

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

bool get_nodes(struct exec *x, CUgraphNode **nodes, size_t *n)
{
	*n = get_array(&x->in, LIMIT_ARRAY);
	*nodes = exec_alloc(x, (*n + 1) * sizeof **nodes);
	for (size_t i = 0; *nodes && i < *n; i++)
		(*nodes)[i] = exec_handle(x, HANDLE_CUgraphNode);
	return *nodes && !x->in.bad;
}

/* [graph, dependencies, kernel: context, function, shape] */
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

/* [node] -> [function, shape, context], bulk: the packed parameters */
CUresult serve_cuGraphKernelNodeGetParams_v2(struct exec *x)
{
	CUgraphNode node = exec_handle(x, HANDLE_CUgraphNode);
	CUDA_KERNEL_NODE_PARAMS p = {0};
	size_t n = 0;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuGraphKernelNodeGetParams_v2(node, &p);

	if (r)
		return r;
	uint8_t *bytes = exec_alloc(x, LIMIT_NODE_PARAMS);

	if (!bytes)
		return SERVE_BAD;
	if (p.extra) {
		for (void **e = p.extra; e[0] != CU_LAUNCH_PARAM_END; e += 2)
			if (e[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
				n = *(size_t *)e[1];
		for (void **e = p.extra; n <= LIMIT_NODE_PARAMS && e[0] != CU_LAUNCH_PARAM_END; e += 2)
			if (e[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
				memcpy(bytes, e[1], n);
	} else {
		size_t off, size;

		for (size_t i = 0; p.kernelParams; i++) {
			r = p.func ? drv.cuFuncGetParamInfo(p.func, i, &off, &size)
				   : drv.cuKernelGetParamInfo(p.kern, i, &off, &size);
			if (r || off > LIMIT_NODE_PARAMS || size > LIMIT_NODE_PARAMS - off)
				break;
			memcpy(bytes + off, p.kernelParams[i], size);
			n = off + size > n ? off + size : n;
		}
	}
	if (n > LIMIT_NODE_PARAMS)
		return CUDA_ERROR_NOT_SUPPORTED;
	exec_put_handle(
		x, p.func ? HANDLE_CUfunction : HANDLE_CUkernel, p.func ? (void *)p.func : (void *)p.kern);
	put_u64(&x->out, p.gridDimX);
	put_u64(&x->out, p.gridDimY);
	put_u64(&x->out, p.gridDimZ);
	put_u64(&x->out, p.blockDimX);
	put_u64(&x->out, p.blockDimY);
	put_u64(&x->out, p.blockDimZ);
	put_u64(&x->out, p.sharedMemBytes);
	exec_put_handle(x, HANDLE_CUcontext, p.ctx);
	x->bulk = bytes;
	x->bulk_len = n;
	return CUDA_SUCCESS;
}

/* A host node: [upcall]. */
void exec_get_host_node(struct exec *x, CUDA_HOST_NODE_PARAMS *p)
{
	p->fn = host_upcall;
	p->userData = (void *)(uintptr_t)get_u64(&x->in);
}

/* Any other function of ours is none of the program's. */
void exec_put_host_node(struct exec *x, const CUDA_HOST_NODE_PARAMS *p)
{
	put_u64(&x->out, p->fn == host_upcall ? (uintptr_t)p->userData : 0);
}

/* [node] -> [the struct's bytes, arrays of both sides] */
CUresult serve_cuGraphMemcpyNodeGetParams(struct exec *x)
{
	CUgraphNode node = exec_handle(x, HANDLE_CUgraphNode);
	CUDA_MEMCPY3D p = {0};

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuGraphMemcpyNodeGetParams(node, &p);

	if (r)
		return r;
	CUarray src = p.srcMemoryType == CU_MEMORYTYPE_ARRAY ? p.srcArray : NULL;
	CUarray dst = p.dstMemoryType == CU_MEMORYTYPE_ARRAY ? p.dstArray : NULL;

	p.srcArray = p.dstArray = NULL;
	put_bytes(&x->out, &p, sizeof p);
	exec_put_handle(x, HANDLE_CUarray, src);
	exec_put_handle(x, HANDLE_CUarray, dst);
	return r;
}

/* [graph, dependencies, box, context] */
CUresult serve_cuGraphAddMemcpyNode(struct exec *x)
{
	CUgraph g = exec_handle(x, HANDLE_CUgraph);
	CUgraphNode *nodes, node = NULL;
	CUDA_MEMCPY3D box;
	size_t n;

	if (!get_nodes(x, &nodes, &n) || !get_device_box(x, &box))
		return SERVE_BAD;
	CUcontext ctx = exec_handle(x, HANDLE_CUcontext);

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuGraphAddMemcpyNode(&node, g, n ? nodes : NULL, n, &box, ctx);

	if (!r)
		exec_put_handle(x, HANDLE_CUgraphNode, node);
	return r;
}

/* [executable, node, box, context] */
CUresult serve_cuGraphExecMemcpyNodeSetParams(struct exec *x)
{
	CUgraphExec e = exec_handle(x, HANDLE_CUgraphExec);
	CUgraphNode node = exec_handle(x, HANDLE_CUgraphNode);
	CUDA_MEMCPY3D box;

	if (!get_device_box(x, &box))
		return SERVE_BAD;
	CUcontext ctx = exec_handle(x, HANDLE_CUcontext);

	if (!get_end(&x->in))
		return SERVE_BAD;
	return x->bad_handle ? x->handle_code : drv.cuGraphExecMemcpyNodeSetParams(e, node, &box, ctx);
}

/* What a list call of the driver fills: nodes, or edges from and to nodes; all NULL to ask for the number
 * only. */
typedef CUresult list_call(
	void *of, CUgraphNode *from, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n);

/* [graph or node, room or nil] -> [how many, an array of [from,] node and edge in turn] */
static CUresult serve_list(struct exec *x, unsigned type, bool pairs, list_call *list)
{
	void *of = exec_handle(x, type);
	bool count_only = get_nil(&x->in);
	size_t n = count_only ? 0 : get_u64(&x->in), room = n;
	CUgraphNode *from = NULL, *nodes = NULL;
	CUgraphEdgeData *edges = NULL;

	if (!get_end(&x->in) || n > LIMIT_ARRAY)
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	if (!count_only) {
		from = exec_alloc(x, (room + 1) * sizeof *from);
		nodes = exec_alloc(x, (room + 1) * sizeof *nodes);
		edges = exec_alloc(x, (room + 1) * sizeof *edges);
		if (!from || !nodes || !edges)
			return SERVE_BAD;
	}
	CUresult r = list(of, from, nodes, edges, &n);

	if (r)
		return r;
	put_u64(&x->out, n);
	n = nodes ? (n < room ? n : room) : 0;
	put_array(&x->out, n);
	for (size_t i = 0; i < n; i++) {
		if (pairs)
			exec_put_handle(x, HANDLE_CUgraphNode, from[i]);
		exec_put_handle(x, HANDLE_CUgraphNode, nodes[i]);
		put_bytes(&x->out, &edges[i], sizeof edges[i]);
	}
	return r;
}

static CUresult list_nodes(void *g, CUgraphNode *from, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)
{
	(void)from;
	(void)edges;
	return drv.cuGraphGetNodes(g, nodes, n);
}

static CUresult list_roots(void *g, CUgraphNode *from, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)
{
	(void)from;
	(void)edges;
	return drv.cuGraphGetRootNodes(g, nodes, n);
}

static CUresult list_before(void *v, CUgraphNode *from, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)
{
	(void)from;
	return drv.cuGraphNodeGetDependencies_v2(v, nodes, edges, n);
}

static CUresult list_after(void *v, CUgraphNode *from, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)
{
	(void)from;
	return drv.cuGraphNodeGetDependentNodes_v2(v, nodes, edges, n);
}

static CUresult list_edges(void *g, CUgraphNode *from, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)
{
	return drv.cuGraphGetEdges_v2(g, from, nodes, edges, n);
}

CUresult serve_cuGraphGetNodes(struct exec *x)
{
	return serve_list(x, HANDLE_CUgraph, false, list_nodes);
}
CUresult serve_cuGraphGetRootNodes(struct exec *x)
{
	return serve_list(x, HANDLE_CUgraph, false, list_roots);
}
CUresult serve_cuGraphNodeGetDependencies_v2(struct exec *x)
{
	return serve_list(x, HANDLE_CUgraphNode, false, list_before);
}
CUresult serve_cuGraphNodeGetDependentNodes_v2(struct exec *x)
{
	return serve_list(x, HANDLE_CUgraphNode, false, list_after);
}
CUresult serve_cuGraphGetEdges_v2(struct exec *x)
{
	return serve_list(x, HANDLE_CUgraph, true, list_edges);
}

/* [graph, flags, upload stream] -> [executable, result, error node, the driver's handle when kernels may
 * launch it] */
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
	put_u64(&x->out, !r && p.flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH ? (uintptr_t)e : 0);
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
