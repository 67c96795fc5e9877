/* SPDX-License-Identifier: Apache-2.0 */
/* Dependencies between the nodes of a graph: adding and removing edges. Telling them is in graph_query.c.
 *
 * Thread rule: see state.h. */
#include "server/soft/graph.h"

/* Both ends of each edge, all of one graph. */
static CUresult edge(struct graph *g, CUgraphNode from, CUgraphNode to, struct node **a, struct node **b)
{
	*a = object_find(from, KIND_NODE);
	*b = object_find(to, KIND_NODE);
	return *a && *b && (*a)->graph == g && (*b)->graph == g && *a != *b ? CUDA_SUCCESS
									    : CUDA_ERROR_INVALID_VALUE;
}

static bool depends(const struct node *n, const struct node *on)
{
	for (unsigned i = 0; i < n->ndeps; i++)
		if (n->deps[i] == on)
			return true;
	return false;
}

CUresult cuGraphAddDependencies_v2(
	CUgraph h, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph *graph = object_find(h, KIND_GRAPH);
	if (!graph || (n && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	struct node *a, *b;
	for (size_t i = 0; i < n; i++)
		if (edge(graph, from[i], to[i], &a, &b) ||
			depends(b, a) || /* a cycle shows when the graph is instantiated */
			!edge_fits(a, b, data ? &data[i] : NULL))
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		edge(graph, from[i], to[i], &a, &b);
		if (!node_depend(b, a, data ? &data[i] : NULL))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}
CUresult cuGraphAddDependencies(CUgraph h, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return cuGraphAddDependencies_v2(h, from, to, NULL, n);
}

CUresult cuGraphRemoveDependencies_v2(
	CUgraph h, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph *graph = object_find(h, KIND_GRAPH);
	if (!graph || (n && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	(void)data;
	struct node *a, *b;
	for (size_t i = 0; i < n; i++)
		if (edge(graph, from[i], to[i], &a, &b) || !depends(b, a))
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		edge(graph, from[i], to[i], &a, &b);
		node_undepend(b, a);
	}
	return CUDA_SUCCESS;
}
CUresult cuGraphRemoveDependencies(CUgraph h, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return cuGraphRemoveDependencies_v2(h, from, to, NULL, n);
}
