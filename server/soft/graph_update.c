/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of executable graphs: another graph of the same shape in place of theirs, a node switched off, a
 * child graph exchanged. Parameters of single nodes are in graph_param*.c.
 *
 * Thread rule: see state.h. */
#include "server/soft/graph.h"
#include "server/soft/module.h"

struct node *exec_node(struct graph_exec *x, CUgraphNode original)
{
	for (struct node *n = x->graph->first; n; n = n->next)
		if (original && n->origin == (uintptr_t)original)
			return n;
	return NULL;
}

static bool switchable(const struct node *n)
{
	return n->type == CU_GRAPH_NODE_TYPE_KERNEL || n->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
	       n->type == CU_GRAPH_NODE_TYPE_MEMSET;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec h, CUgraphNode node, unsigned enabled)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph_exec *x = object_find(h, KIND_EXEC);
	struct node *n = x ? exec_node(x, node) : NULL;
	if (!n || !switchable(n))
		return CUDA_ERROR_INVALID_VALUE;
	n->enabled = enabled != 0;
	exec_changed(x);
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec h, CUgraphNode node, unsigned *enabled)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph_exec *x = object_find(h, KIND_EXEC);
	const struct node *n = x ? exec_node(x, node) : NULL;
	if (!n || !enabled || !switchable(n))
		return CUDA_ERROR_INVALID_VALUE;
	*enabled = n->enabled;
	return CUDA_SUCCESS;
}

static CUgraphExecUpdateResult same_shape(struct graph *a, struct graph *b, struct node **bad);

static CUgraphExecUpdateResult same_condition(
	struct work_condition *a, struct work_condition *b, struct node **bad)
{
	if (a->condition != b->condition || a->type != b->type || a->size != b->size)
		return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
	CUgraphExecUpdateResult r = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	for (unsigned i = 0; i < a->size && !r; i++)
		r = same_shape(a->bodies[i], b->bodies[i], bad);
	return r;
}

/* A fill keeps its dimensions, a copy those and the kinds of memory at its ends. */
static bool same_box(const struct node *n, const struct node *m)
{
	const CUDA_MEMCPY3D *a = &n->copy, *b = &m->copy;
	if (n->work.type == WORK_SET && m->work.type == WORK_SET)
		return (n->work.set.height > 1) == (m->work.set.height > 1);
	return !n->has_copy || !m->has_copy ||
	       (a->srcMemoryType == b->srcMemoryType && a->dstMemoryType == b->dstMemoryType &&
		       (a->Height > 1) == (b->Height > 1) && (a->Depth > 1) == (b->Depth > 1));
}

/* Is b the same graph as a but for parameters? Nodes are paired in order of creation. */
static CUgraphExecUpdateResult same_shape(struct graph *a, struct graph *b, struct node **bad)
{
	struct node *n = a->first, *m = b->first;
	*bad = NULL;
	if (a->count != b->count)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	unsigned i = 0;
	for (struct node *x = a->first; x; x = x->next)
		x->mark = i++;
	i = 0;
	for (struct node *x = b->first; x; x = x->next)
		x->mark = i++;
	for (; n; n = n->next, m = m->next) {
		*bad = m;
		if (n->type != m->type)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (n->ndeps != m->ndeps)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		for (unsigned k = 0; k < n->ndeps; k++) {
			bool found = false;
			for (unsigned j = 0; j < m->ndeps && !found; j++)
				found = m->deps[j]->mark == n->deps[k]->mark;
			if (!found) {
				*bad = NULL;
				return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
			}
		}
		if (n->work.type == WORK_KERNEL &&
			n->work.kernel.function->object.context != m->work.kernel.function->object.context)
			return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
		if (!same_box(n, m))
			return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
		CUgraphExecUpdateResult r = CU_GRAPH_EXEC_UPDATE_SUCCESS;
		if (n->work.type == WORK_CHILD)
			r = same_shape(n->work.child.graph, m->work.child.graph, bad);
		if (n->work.type == WORK_CONDITION)
			r = same_condition(&n->work.condition, &m->work.condition, bad);
		if (r)
			return r;
	}
	*bad = NULL;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec h, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph_exec *x = object_find(h, KIND_EXEC);
	struct graph *to = object_find(graph, KIND_GRAPH);
	if (info)
		info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	if (!x || !to || !info)
		return CUDA_ERROR_INVALID_VALUE;
	struct node *bad;
	*info = (CUgraphExecUpdateResultInfo){.result = same_shape(x->graph, to, &bad)};
	if (info->result) {
		info->errorNode = bad ? HANDLE(bad) : NULL;
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	struct graph *copy = graph_copy(to);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* the nodes by which the program knows this executable graph stay the ones it was made from */
	for (struct node *n = x->graph->first, *m = copy->first; n && m; n = n->next, m = m->next) {
		m->origin = n->origin;
		m->enabled = n->enabled;
	}
	object_close(&x->graph->object);
	x->graph = copy;
	exec_changed(x);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec h, CUgraph graph, CUgraphNode *bad, CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info = {0};
	CUresult r = cuGraphExecUpdate_v2(h, graph, &info);
	if (bad)
		*bad = info.errorNode;
	if (result)
		*result = info.result;
	return r;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec h, CUgraphNode node, CUgraph child)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph_exec *x = object_find(h, KIND_EXEC);
	struct node *n = x ? exec_node(x, node) : NULL, *bad;
	struct graph *to = object_find(child, KIND_GRAPH);
	if (!n || !to || n->work.type != WORK_CHILD)
		return CUDA_ERROR_INVALID_VALUE;
	if (same_shape(n->work.child.graph, to, &bad))
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	struct graph *copy = graph_copy(to);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct work w = {.type = WORK_CHILD, .child = {copy}};
	node_set(n, &w);
	exec_changed(x);
	return CUDA_SUCCESS;
}
