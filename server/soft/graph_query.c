/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a graph: nodes, edges, and a drawing of it.
 *
 * Thread rule: see state.h. */
#include <stdio.h>
#include <string.h>
#include "server/soft/engine.h"
#include "server/soft/graph.h"
#include "server/soft/module.h"

/* An answer that the caller may ask in two steps: without room it learns how much there is. */
struct list {
	CUgraphNode *to;
	size_t room, n;
};

static void list_add(struct list *l, struct node *n)
{
	if (l->to && l->n < l->room)
		l->to[l->n] = HANDLE(n);
	l->n++;
}

/* What the edge that is added next says. */
static void list_tell(const struct list *l, CUgraphEdgeData *data, const CUgraphEdgeData *edge)
{
	if (l->to && data && l->n < l->room)
		data[l->n] = *edge;
}

static void list_end(struct list *l, size_t *count)
{
	if (!l->to) {
		*count = l->n;
		return;
	}
	for (size_t i = l->n; i < l->room; i++)
		l->to[i] = NULL;
	*count = l->n < l->room ? l->n : l->room;
}

static CUresult nodes_of(CUgraph h, CUgraphNode *out, size_t *count, bool roots)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct graph *graph = object_find(h, KIND_GRAPH);
	if (!graph || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list l = {out, *count, 0};
	for (struct node *n = graph->first; n; n = n->next)
		if (!roots || !n->ndeps)
			list_add(&l, n);
	list_end(&l, count);
	return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph h, CUgraphNode *out, size_t *count)
{
	return nodes_of(h, out, count, false);
}
CUresult cuGraphGetRootNodes(CUgraph h, CUgraphNode *out, size_t *count)
{
	return nodes_of(h, out, count, true);
}

CUresult cuGraphGetEdges_v2(
	CUgraph h, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct graph *graph = object_find(h, KIND_GRAPH);
	if (!graph || !count || !from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	struct list a = {from, *count, 0}, b = {to, *count, 0};
	if (data)
		memset(data, 0, *count * sizeof *data);
	for (struct node *n = graph->first; n; n = n->next)
		for (unsigned i = 0; i < n->ndeps; i++) {
			list_tell(&b, data, &n->edges[i]);
			list_add(&a, n->deps[i]);
			list_add(&b, n);
		}
	size_t same = 0;
	list_end(&a, &same);
	list_end(&b, count);
	return CUDA_SUCCESS;
}
CUresult cuGraphGetEdges(CUgraph h, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	return cuGraphGetEdges_v2(h, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode h, CUgraphNode *out, CUgraphEdgeData *data, size_t *count)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct node *n = object_find(h, KIND_NODE);
	if (!n || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list l = {out, *count, 0};
	if (data)
		memset(data, 0, *count * sizeof *data);
	for (unsigned i = 0; i < n->ndeps; i++) {
		list_tell(&l, data, &n->edges[i]);
		list_add(&l, n->deps[i]);
	}
	list_end(&l, count);
	return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetDependencies(CUgraphNode h, CUgraphNode *out, size_t *count)
{
	return cuGraphNodeGetDependencies_v2(h, out, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(
	CUgraphNode h, CUgraphNode *out, CUgraphEdgeData *data, size_t *count)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct node *n = object_find(h, KIND_NODE);
	if (!n || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list l = {out, *count, 0};
	if (data)
		memset(data, 0, *count * sizeof *data);
	for (struct node *m = n->graph->first; m; m = m->next)
		for (unsigned i = 0; i < m->ndeps; i++)
			if (m->deps[i] == n) {
				list_tell(&l, data, &m->edges[i]);
				list_add(&l, m);
			}
	list_end(&l, count);
	return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode h, CUgraphNode *out, size_t *count)
{
	return cuGraphNodeGetDependentNodes_v2(h, out, NULL, count);
}

CUresult cuGraphNodeGetType(CUgraphNode h, CUgraphNodeType *type)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct node *n = object_find(h, KIND_NODE);
	if (!n || !type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = n->type;
	return CUDA_SUCCESS;
}

/* ---- drawing */

static const char *const type_names[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY", "EVENT_WAIT",
	"EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE", "BATCH_MEM_OP",
	"CONDITIONAL"};

static void draw(FILE *f, const struct graph *g)
{
	fprintf(f, "subgraph cluster_%llu {\nlabel=\"graph_%llu\"\n", (unsigned long long)g->id,
		(unsigned long long)g->id);
	for (const struct node *n = g->first; n; n = n->next) {
		const char *what = n->work.type == WORK_KERNEL
					   ? engine_function_info(n->work.kernel.function->code)->name
					   : "";
		fprintf(f, "\"node_%llx\" [shape=\"record\" label=\"%s %s\"]\n",
			(unsigned long long)n->object.handle, type_names[n->type], what);
	}
	for (const struct node *n = g->first; n; n = n->next)
		for (unsigned i = 0; i < n->ndeps; i++)
			fprintf(f, "\"node_%llx\" -> \"node_%llx\"\n",
				(unsigned long long)n->deps[i]->object.handle,
				(unsigned long long)n->object.handle);
	for (const struct node *n = g->first; n; n = n->next) {
		if (n->work.type == WORK_CHILD)
			draw(f, n->work.child.graph);
		for (unsigned i = 0; n->work.type == WORK_CONDITION && i < n->work.condition.size; i++)
			draw(f, n->work.condition.bodies[i]);
	}
	fprintf(f, "}\n");
}

CUresult cuGraphDebugDotPrint(CUgraph h, const char *path, unsigned flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	(void)flags; /* all that is drawn is drawn always */
	const struct graph *graph = object_find(h, KIND_GRAPH);
	if (!graph || !path)
		return CUDA_ERROR_INVALID_VALUE;
	FILE *f = fopen(path, "we");
	if (!f)
		return CUDA_ERROR_OPERATING_SYSTEM;
	fprintf(f, "digraph dot {\n");
	draw(f, graph);
	fprintf(f, "}\n");
	bool bad = ferror(f);
	return fclose(f) || bad ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
