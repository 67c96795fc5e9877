/* SPDX-License-Identifier: Apache-2.0 */
/* Copy nodes whose direction is changed in their graph: one that gets or loses a side in the program's memory
 * is a host function instead of a copy, or a copy again, so a new node takes the place of the old one. Thread
 * rule: as exec.h; no state. */
#include "server/serve.h"
#include "server/state.h"

#include "cuda.calls.h"

static bool is_type(CUgraphNode node, CUgraphNodeType type)
{
	CUgraphNodeType is;

	return !drv.cuGraphNodeGetType(node, &is) && is == type;
}

/* The edges of a node on one side of it. */
static CUresult edges_of(struct exec *x, CUgraphNode node,
	CUresult (*list)(CUgraphNode, CUgraphNode *, CUgraphEdgeData *, size_t *), CUgraphNode **nodes,
	CUgraphEdgeData **edges, size_t *n)
{
	CUresult r = list(node, NULL, NULL, n);

	if (r)
		return r;
	*nodes = exec_alloc(x, (*n + 1) * sizeof **nodes);
	*edges = exec_alloc(x, (*n + 1) * sizeof **edges);
	if (!*nodes || !*edges)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return *n ? list(node, *nodes, *edges, n) : CUDA_SUCCESS;
}

/* The new node takes over the edges of the old one and its name. It has no edges yet, and dies when this
 * fails. */
static CUresult take_place(struct exec *x, CUgraph g, CUgraphNode old, CUgraphNode now)
{
	CUgraphNode *before, *after, *same;
	CUgraphEdgeData *into, *out_of;
	size_t n = 0, m = 0;
	CUresult r = edges_of(x, old, drv.cuGraphNodeGetDependencies_v2, &before, &into, &n);

	if (!r)
		r = edges_of(x, old, drv.cuGraphNodeGetDependentNodes_v2, &after, &out_of, &m);
	same = r ? NULL : exec_alloc(x, (n + m + 1) * sizeof *same);
	if (!r && !same)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; !r && i < n + m; i++)
		same[i] = now;
	if (!r && n)
		r = drv.cuGraphAddDependencies_v2(g, before, same, into, n);
	if (!r && m)
		r = drv.cuGraphAddDependencies_v2(g, same, after, out_of, m);
	if (!r)
		r = drv.cuGraphDestroyNode(old);
	if (r)
		drv.cuGraphDestroyNode(now);
	else
		handle_replace(x->session->handles, x->first_id, now);
	return r;
}

/* The graph of the node that the record names first; NULL for one that was never seen in its graph. */
static CUgraph graph_of(struct exec *x)
{
	uint64_t g = handle_parent(x->session->handles, x->first_id);

	return g ? handle_real(x->session->handles, HANDLE_CUgraph, g) : NULL;
}

/* [node, upcall] */
CUresult serve_cuGraphHostNodeSetParams(struct exec *x)
{
	CUgraphNode node = exec_handle(x, HANDLE_CUgraphNode), now;
	CUDA_HOST_NODE_PARAMS p = {.fn = host_upcall, .userData = (void *)(uintptr_t)get_u64(&x->in)};

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	if (!is_type(node, CU_GRAPH_NODE_TYPE_MEMCPY))
		return drv.cuGraphHostNodeSetParams(node, &p);
	CUgraph g = graph_of(x);
	CUresult r = g ? drv.cuGraphAddHostNode(&now, g, NULL, 0, &p) : CUDA_ERROR_NOT_SUPPORTED;

	return r ? r : take_place(x, g, node, now);
}

/* [node, box, context] */
CUresult serve_cuGraphMemcpyNodeSetParams(struct exec *x)
{
	CUgraphNode node = exec_handle(x, HANDLE_CUgraphNode), now;
	CUDA_MEMCPY3D box;

	if (!get_device_box(x, &box))
		return SERVE_BAD;
	CUcontext ctx = exec_handle(x, HANDLE_CUcontext);

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	if (!is_type(node, CU_GRAPH_NODE_TYPE_HOST))
		return drv.cuGraphMemcpyNodeSetParams(node, &box);
	CUgraph g = graph_of(x);
	CUresult r = g ? drv.cuGraphAddMemcpyNode(&now, g, NULL, 0, &box, ctx) : CUDA_ERROR_NOT_SUPPORTED;

	return r ? r : take_place(x, g, node, now);
}
