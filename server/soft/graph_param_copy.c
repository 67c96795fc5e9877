/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of nodes that copy or fill: telling and changing them, in a graph and in its executable form.
 *
 * Thread rule: see state.h. */
#include "server/soft/allocation.h"
#include "server/soft/graph.h"

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
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_MEMCPY, p, &n);
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
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_MEMCPY, p, &n);
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
	guarded g = exec_enter(x, h, CU_GRAPH_NODE_TYPE_MEMCPY, p, &n, &exec);
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
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_MEMSET, p, &n);
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
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_MEMSET, p, &n);
	return g.error ? g.error : set_change(n, p);
}

CUresult cuGraphExecMemsetNodeSetParams(
	CUgraphExec x, CUgraphNode h, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = exec_enter(x, h, CU_GRAPH_NODE_TYPE_MEMSET, p, &n, &exec);
	if (g.error)
		return g.error;
	(void)context;
	/* In what was made of a graph a fill keeps its dimensions. */
	if ((p->height > 1) != (n->work.set.height > 1))
		return CUDA_ERROR_INVALID_VALUE;
	exec_changed(exec);
	return set_change(n, p);
}
