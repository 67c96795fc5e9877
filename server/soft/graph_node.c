/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of each kind: adding them, asking for and changing their parameters.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include <string.h>
#include "server/soft/allocation.h"
#include "server/soft/capture.h"
#include "server/soft/copy.h"
#include "server/soft/engine.h"
#include "server/soft/event.h"
#include "server/soft/graph.h"
#include "server/soft/launch.h"
#include "server/soft/pool.h"
#include "server/soft/set.h"

/* ---- parameters to work */

CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2 *p, struct context *current, struct work *w)
{
	CUresult r = CUDA_SUCCESS;
	struct context *c = p->ctx ? context_named(p->ctx, &r) : current;
	if (!c)
		return r ? r : CUDA_ERROR_INVALID_CONTEXT;
	struct function *f = function_named(p->func ? p->func : (CUfunction)p->kern, c, &r);
	if (!f)
		return r;
	struct launch_shape s = {.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
		.block = {p->blockDimX, p->blockDimY, p->blockDimZ},
		.shared = p->sharedMemBytes};
	r = launch_prepare(f, &s, p->kernelParams, p->extra, w);
	if (!r)
		w->context = c;
	return r;
}

CUresult copy_work(const CUDA_MEMCPY3D *p, struct work *w)
{
	struct copy_sides sides;
	if (!p->WidthInBytes || !p->Height || !p->Depth)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_box(p, w, &sides);
}

CUresult set_work(const CUDA_MEMSET_NODE_PARAMS_v1 *p, struct work *w)
{
	if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	return set_box(p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, w);
}

CUresult memop_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, struct work *w)
{
	if (p->count > 256 || !p->paramArray || p->flags)
		return CUDA_ERROR_INVALID_VALUE;
	*w = (struct work){.type = WORK_MEMOPS, .memops = {.count = p->count}};
	w->memops.ops = malloc(((size_t)p->count + 1) * sizeof *w->memops.ops);
	if (!w->memops.ops)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(w->memops.ops, p->paramArray, p->count * sizeof *w->memops.ops);
	return CUDA_SUCCESS;
}

/* ---- adding */

/* Finds the graph and the dependencies, which the caller frees. */
static CUresult where(
	CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, struct graph **g, struct node ***list)
{
	*g = object_find(h, KIND_GRAPH);
	*list = NULL;
	if (!out || !*g || (n && !deps) || n > GRAPH_NODES)
		return CUDA_ERROR_INVALID_VALUE;
	*list = calloc(n + 1, sizeof **list);
	if (!*list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		struct node *d = (*list)[i] = object_find(deps[i], KIND_NODE);
		bool twice = false;
		for (size_t k = 0; k < i && !twice; k++)
			twice = (*list)[k] == d;
		if (!d || d->graph != *g || twice)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* What a node is made of, before its work is known. */
typedef CUresult (*make_work)(const void *params, struct context *current, struct work *w);

static CUresult add(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, CUgraphNodeType type,
	const void *params, make_work make, struct node **made)
{
	CUresult why = CUDA_SUCCESS;
	struct graph *g;
	struct node **list;
	CUresult r = where(out, h, deps, n, &g, &list);
	struct work w = {.type = WORK_EMPTY};
	if (!r && make)
		r = make(params, context_current(&why), &w);
	if (!r) {
		*made = node_create(g, type, &w, list, (unsigned)n);
		if (*made)
			*out = HANDLE(*made);
		else
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	free(list);
	return r;
}

static CUresult make_kernel(const void *p, struct context *c, struct work *w)
{
	return kernel_work(p, c, w);
}
static CUresult make_copy(const void *p, struct context *c, struct work *w)
{
	(void)c;
	return copy_work(p, w);
}
static CUresult make_set(const void *p, struct context *c, struct work *w)
{
	(void)c;
	return set_work(p, w);
}
static CUresult make_memop(const void *p, struct context *c, struct work *w)
{
	(void)c;
	return memop_work(p, w);
}
static CUresult make_host(const void *p, struct context *c, struct work *w)
{
	(void)c;
	const CUDA_HOST_NODE_PARAMS *h = p;
	*w = (struct work){.type = WORK_HOST, .host = {h->fn, h->userData}};
	return h->fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult make_child(const void *p, struct context *c, struct work *w)
{
	(void)c;
	const CUDA_CHILD_GRAPH_NODE_PARAMS *child = p;
	struct graph *g = object_find(child->graph, KIND_GRAPH);
	bool move = child->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	if (!g || (move && (g->owner || capture_uses(g))) ||
		(!move && child->ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE))
		return CUDA_ERROR_INVALID_VALUE;
	if (move) {
		*w = (struct work){.type = WORK_CHILD, .child = {g}};
		return CUDA_SUCCESS;
	}
	for (const struct node *n = g->first; n; n = n->next)
		if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			return CUDA_ERROR_NOT_SUPPORTED;
	*w = (struct work){.type = WORK_CHILD, .child = {graph_copy(g)}};
	return w->child.graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult event_work(const void *p, enum work_type type, struct work *w)
{
	struct event *e = object_find(*(const CUevent *)p, KIND_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_VALUE;
	*w = (struct work){.type = type, .event = {object_ref(e)}};
	return CUDA_SUCCESS;
}
static CUresult make_record(const void *p, struct context *c, struct work *w)
{
	(void)c;
	return event_work(p, WORK_EVENT, w);
}
static CUresult make_wait(const void *p, struct context *c, struct work *w)
{
	(void)c;
	return event_work(p, WORK_WAIT, w);
}
static CUresult make_free(const void *p, struct context *c, struct work *w)
{
	(void)c;
	struct allocation a;
	CUdeviceptr d = *(const CUdeviceptr *)p;
	if (!allocation_find(d, &a) || a.base != d || a.kind != ALLOCATION_POOL)
		return CUDA_ERROR_INVALID_VALUE;
	*w = (struct work){.type = WORK_FREE, .alloc = {.p = d}};
	return CUDA_SUCCESS;
}
static CUresult make_alloc(const void *p, struct context *c, struct work *w)
{
	const CUDA_MEM_ALLOC_NODE_PARAMS *a = p;
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!a->bytesize || a->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
		a->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		!context_primary(a->poolProps.location.id))
		return CUDA_ERROR_INVALID_VALUE;
	return pool_graph_work(pool_current(a->poolProps.location.id), a->bytesize, c, w);
}

/* What else a new node keeps, or tells. */
struct extra {
	CUcontext context;
	const CUDA_MEMCPY3D *copy;
	CUdeviceptr *address;
};

/* Does the graph free that memory already? */
static bool frees(const struct graph *g, CUdeviceptr p)
{
	for (const struct node *n = g ? g->first : NULL; n; n = n->next)
		if (n->work.type == WORK_FREE && n->work.alloc.p == p)
			return true;
	return false;
}

static CUresult add_node(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, CUgraphNodeType type,
	const void *params, make_work make, struct extra extra)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct node *node;
	if (type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
		frees(object_find(h, KIND_GRAPH), *(const CUdeviceptr *)params))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = params ? add(out, h, deps, n, type, params, make, &node) : CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	node->context = extra.context;
	node->has_copy = extra.copy != NULL;
	if (extra.copy)
		node->copy = *extra.copy;
	if (extra.address)
		*extra.address = node->work.alloc.p;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(
	CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct extra extra = {.context = p ? p->ctx : NULL};
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_KERNEL, p, make_kernel, extra);
}

static CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS q = {0};
	memcpy(&q, p, sizeof *p); /* the newer struct begins with the older one */
	return q;
}

CUresult cuGraphAddKernelNode(
	CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_KERNEL_NODE_PARAMS q = widen(p);
	return cuGraphAddKernelNode_v2(out, h, deps, n, &q);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n,
	const CUDA_MEMCPY3D *p, CUcontext context)
{
	struct extra extra = {.context = context, .copy = p};
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_MEMCPY, p, make_copy, extra);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n,
	const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
	struct extra extra = {.context = context};
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_MEMSET, p, make_set, extra);
}

CUresult cuGraphAddHostNode(
	CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, const CUDA_HOST_NODE_PARAMS *p)
{
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_HOST, p, make_host, (struct extra){0});
}

CUresult cuGraphAddChildGraphNode(
	CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, CUgraph child)
{
	CUDA_CHILD_GRAPH_NODE_PARAMS p = {child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE};
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_GRAPH, &p, make_child, (struct extra){0});
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n)
{
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_EMPTY, &n, NULL, (struct extra){0});
}

CUresult cuGraphAddEventRecordNode(
	CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, CUevent event)
{
	return add_node(
		out, h, deps, n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event, make_record, (struct extra){0});
}

CUresult cuGraphAddEventWaitNode(
	CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, CUevent event)
{
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event, make_wait, (struct extra){0});
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	struct extra extra = {.context = p ? p->ctx : NULL};
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p, make_memop, extra);
}

CUresult cuGraphAddMemAllocNode(
	CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct extra extra = {.address = p ? &p->dptr : NULL};
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_MEM_ALLOC, p, make_alloc, extra);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, CUdeviceptr p)
{
	return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_MEM_FREE, &p, make_free, (struct extra){0});
}

static CUresult add_condition(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n,
	CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	CUresult r = CUDA_SUCCESS;
	struct context *c = context_named(p->ctx, &r);
	struct graph *graph;
	struct node **list = NULL, *node;
	struct work w;
	if (!c)
		return r;
	r = where(out, h, deps, n, &graph, &list);
	if (!r)
		r = condition_work(p, graph, &w);
	if (!r) {
		w.context = c;
		node = node_create(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL, &w, list, (unsigned)n);
		CUgraph *told = node ? calloc((size_t)p->size + 1, sizeof *told) : NULL;
		if (node && !told)
			node_destroy(node);
		if (told) {
			for (unsigned i = 0; i < p->size; i++)
				told[i] = HANDLE(node->work.condition.bodies[i]);
			node->told = p->phGraph_out = told;
			*out = HANDLE(node);
		} else {
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	free(list);
	return r;
}

/* The edges are made when both their ends are there. */
static CUresult add_with_edges(CUgraphNode *out, CUgraph h, const CUgraphNode *deps,
	const CUgraphEdgeData *data, size_t n, CUgraphNodeParams *p)
{
	CUgraphNode made, *to = out && deps ? malloc(n * sizeof *to) : NULL;
	CUresult r = !out || !deps ? CUDA_ERROR_INVALID_VALUE : !to ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
	if (!r)
		r = cuGraphAddNode_v2(&made, h, NULL, NULL, 0, p);
	if (!r) {
		for (size_t i = 0; i < n; i++)
			to[i] = made;
		r = cuGraphAddDependencies_v2(h, deps, to, data, n);
		if (r)
			cuGraphDestroyNode(made);
		else
			*out = made;
	}
	free(to);
	return r;
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, const CUgraphEdgeData *data,
	size_t n, CUgraphNodeParams *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	static const CUgraphEdgeData plain;
	for (size_t i = 0; data && i < n; i++)
		if (memcmp(&data[i], &plain, sizeof plain))
			return add_with_edges(out, h, deps, data, n, p);
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS q;
		memcpy(&q, &p->kernel, sizeof q);
		return cuGraphAddKernelNode_v2(out, h, deps, n, &q);
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphAddMemcpyNode(out, h, deps, n, &p->memcpy.copyParams, p->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		CUDA_MEMSET_NODE_PARAMS q;
		memcpy(&q, &p->memset, sizeof q);
		return cuGraphAddMemsetNode(out, h, deps, n, &q, p->memset.ctx);
	}
	case CU_GRAPH_NODE_TYPE_HOST: {
		CUDA_HOST_NODE_PARAMS q = {p->host.fn, p->host.userData};
		return cuGraphAddHostNode(out, h, deps, n, &q);
	}
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return add_node(out, h, deps, n, CU_GRAPH_NODE_TYPE_GRAPH, &p->graph, make_child,
			(struct extra){0});
	case CU_GRAPH_NODE_TYPE_CONDITIONAL: return add_condition(out, h, deps, n, &p->conditional);
	case CU_GRAPH_NODE_TYPE_EMPTY: return cuGraphAddEmptyNode(out, h, deps, n);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuGraphAddEventRecordNode(out, h, deps, n, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuGraphAddEventWaitNode(out, h, deps, n, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
		CUDA_BATCH_MEM_OP_NODE_PARAMS q = {
			p->memOp.ctx, p->memOp.count, p->memOp.paramArray, p->memOp.flags};
		return cuGraphAddBatchMemOpNode(out, h, deps, n, &q);
	}
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
		CUDA_MEM_ALLOC_NODE_PARAMS q;
		memcpy(&q, &p->alloc, sizeof q);
		CUresult r = cuGraphAddMemAllocNode(out, h, deps, n, &q);
		p->alloc.dptr = q.dptr;
		return r;
	}
	case CU_GRAPH_NODE_TYPE_MEM_FREE: return cuGraphAddMemFreeNode(out, h, deps, n, p->free.dptr);
	default:
		return (unsigned)p->type > CU_GRAPH_NODE_TYPE_CONDITIONAL ? CUDA_ERROR_INVALID_VALUE
									  : CUDA_ERROR_NOT_SUPPORTED;
	}
}
CUresult cuGraphAddNode(CUgraphNode *out, CUgraph h, const CUgraphNode *deps, size_t n, CUgraphNodeParams *p)
{
	return cuGraphAddNode_v2(out, h, deps, NULL, n, p);
}
