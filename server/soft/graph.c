/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and nodes: making, cloning, order, destruction.
 *
 * Thread rule: see state.h. */
#include "server/soft/graph.h"
#include <stdlib.h>
#include <string.h>
#include "server/soft/allocation.h"
#include "server/soft/capture.h"
#include "server/soft/condition.h"
#include "server/soft/pool.h"

/* ---- memory of graphs */

struct graph_memory *graph_memory_ref(struct graph_memory *m)
{
	m->refs++;
	return m;
}

void graph_memory_unref(struct graph_memory *m)
{
	if (!m || --m->refs)
		return;
	pool_give_graph(m->p);
	free(m);
}

/* ---- nodes */

static void node_finish(struct object *o)
{
	struct node *n = (struct node *)o;
	work_finish(&n->work);
	free(n->deps);
	free(n->edges);
	free(n->pointers);
	free(n->told);
	free(n);
}

bool node_depend(struct node *n, struct node *on, const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;
	for (unsigned i = 0; i < n->ndeps; i++)
		if (n->deps[i] == on)
			return true;
	struct node **d = realloc(n->deps, (n->ndeps + 1) * sizeof *d);
	if (d)
		n->deps = d;
	CUgraphEdgeData *e = realloc(n->edges, (n->ndeps + 1) * sizeof *e);
	if (e)
		n->edges = e;
	if (!d || !e)
		return false;
	n->deps[n->ndeps] = on;
	n->edges[n->ndeps++] = data ? *data : plain;
	return true;
}

bool edge_fits(const struct node *from, const struct node *to, const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;
	if (!data || !memcmp(data, &plain, sizeof plain))
		return true;
	for (size_t i = 0; i < sizeof data->reserved; i++)
		if (data->reserved[i])
			return false;
	bool early = data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
	return from->type == CU_GRAPH_NODE_TYPE_KERNEL && !data->to_port &&
	       (early ? to->type == CU_GRAPH_NODE_TYPE_KERNEL &&
				 (data->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
					 data->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER)
		      : !data->type && !data->from_port);
}

bool graph_has(const struct graph *g, CUgraphNodeType type)
{
	for (const struct node *n = g->first; n; n = n->next) {
		if (n->type == type || (n->work.type == WORK_CHILD && graph_has(n->work.child.graph, type)))
			return true;
		for (unsigned i = 0; n->work.type == WORK_CONDITION && i < n->work.condition.size; i++)
			if (graph_has(n->work.condition.bodies[i], type))
				return true;
	}
	return false;
}

void node_owns(struct node *n)
{
	if (n->work.type == WORK_CHILD)
		n->work.child.graph->owner = n;
	if (n->work.type == WORK_CONDITION)
		for (unsigned i = 0; i < n->work.condition.size; i++)
			n->work.condition.bodies[i]->owner = n;
}

struct node *node_create(
	struct graph *g, CUgraphNodeType type, struct work *w, struct node **deps, unsigned ndeps)
{
	struct node *n = g->count < GRAPH_NODES ? calloc(1, sizeof *n) : NULL;
	if (!n || !object_open(&n->object, KIND_NODE, NULL, node_finish)) {
		free(n);
		work_finish(w);
		return NULL;
	}
	n->graph = g;
	n->type = type;
	n->work = *w;
	n->enabled = true;
	node_owns(n);
	*g->last = n;
	g->last = &n->next;
	g->count++;
	for (unsigned i = 0; i < ndeps; i++)
		if (!node_depend(n, deps[i], NULL)) {
			node_destroy(n);
			return NULL;
		}
	return n;
}

void node_set(struct node *n, struct work *w)
{
	work_finish(&n->work);
	n->work = *w;
	free(n->pointers);
	n->pointers = NULL;
	node_owns(n);
}

void node_undepend(struct node *n, const struct node *on)
{
	for (unsigned i = 0; i < n->ndeps; i++)
		if (n->deps[i] == on) {
			n->deps[i] = n->deps[--n->ndeps];
			n->edges[i] = n->edges[n->ndeps];
			return;
		}
}

void node_destroy(struct node *n)
{
	struct graph *g = n->graph;
	for (struct node **p = &g->first; *p; p = &(*p)->next)
		if (*p == n) {
			*p = n->next;
			if (!*p)
				g->last = p;
			break;
		}
	g->count--;
	for (struct node *m = g->first; m; m = m->next)
		node_undepend(m, n);
	object_close(&n->object);
}

bool node_reaches(struct node *from, struct node *on)
{
	struct graph *g = from->graph;
	struct node **stack = malloc(((size_t)g->count + 1) * sizeof *stack);
	if (!stack)
		return false; /* the cautious answer: a capture with it ends as not joined */
	for (struct node *n = g->first; n; n = n->next)
		n->mark = 0;
	size_t depth = 0;
	stack[depth++] = from;
	from->mark = 1;
	bool found = false;
	while (depth && !found) {
		struct node *n = stack[--depth];
		found = n == on;
		for (unsigned i = 0; i < n->ndeps; i++)
			if (!n->deps[i]->mark) {
				n->deps[i]->mark = 1;
				stack[depth++] = n->deps[i];
			}
	}
	free(stack);
	return found;
}

struct node **graph_order(struct graph *g)
{
	struct node **order = malloc(((size_t)g->count + 1) * sizeof *order);
	if (!order)
		return NULL;
	for (struct node *n = g->first; n; n = n->next)
		n->mark = 0;
	unsigned done = 0;
	while (done < g->count) {
		unsigned before = done;
		for (struct node *n = g->first; n; n = n->next) {
			bool ready = !n->mark;
			for (unsigned i = 0; i < n->ndeps && ready; i++)
				ready = n->deps[i]->mark;
			if (ready) {
				n->mark = 1;
				order[done++] = n;
			}
		}
		if (before == done) {
			free(order);
			return NULL;
		}
	}
	order[done] = NULL;
	return order;
}

/* ---- graphs */

static void graph_finish(struct object *o)
{
	struct graph *g = (struct graph *)o;
	user_objects_drop(g);
	conditions_drop(g);
	while (g->first) {
		struct node *n = g->first;
		g->first = n->next;
		object_close(&n->object);
	}
	free(g);
}

struct graph *graph_create(void)
{
	struct graph *g = calloc(1, sizeof *g);
	if (!g || !object_open(&g->object, KIND_GRAPH, NULL, graph_finish)) {
		free(g);
		return NULL;
	}
	g->last = &g->first;
	g->id = soft.next_id++;
	return g;
}

struct graph *graph_copy(struct graph *g)
{
	struct graph *copy = graph_create();
	struct node **map = calloc((size_t)g->count + 1, sizeof *map);
	bool good = copy && map;
	unsigned i = 0;
	for (struct node *n = g->first; n && good; n = n->next, i++) {
		struct work w;
		n->mark = i;
		good = work_clone(&w, &n->work);
		struct node *m = good ? node_create(copy, n->type, &w, NULL, 0) : NULL;
		good = m != NULL;
		if (!good)
			break;
		map[i] = m;
		m->origin = n->object.handle;
		m->enabled = n->enabled;
		m->has_copy = n->has_copy;
		m->copy = n->copy;
		m->context = n->context;
		memcpy(m->attributes, n->attributes, sizeof m->attributes);
		memcpy(m->has_attribute, n->has_attribute, sizeof m->has_attribute);
	}
	i = 0;
	for (struct node *n = g->first; n && good; n = n->next, i++)
		for (unsigned k = 0; k < n->ndeps && good; k++)
			good = node_depend(map[i], map[n->deps[k]->mark], &n->edges[k]);
	free(map);
	if (!good && copy) {
		object_close(&copy->object);
		return NULL;
	}
	if (copy)
		user_objects_move(copy, g);
	return copy;
}

CUresult cuGraphCreate(CUgraph *out, unsigned flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	struct graph *graph = graph_create();
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph *graph = object_find(h, KIND_GRAPH);
	if (!graph || graph->owner || capture_uses(graph))
		return CUDA_ERROR_INVALID_VALUE;
	object_close(&graph->object);
	return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *out, CUgraph h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph *graph = object_find(h, KIND_GRAPH);
	if (!out || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (graph_has(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL))
		return CUDA_ERROR_NOT_SUPPORTED;
	struct graph *copy = graph_copy(graph);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(copy);
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct graph *graph = object_find(clone, KIND_GRAPH);
	if (!out || !graph || !original)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct node *n = graph->first; n; n = n->next)
		if (n->origin == (uintptr_t)original) {
			*out = HANDLE(n);
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct node *n = object_find(h, KIND_NODE);
	if (!n || capture_uses(n->graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return CUDA_ERROR_NOT_SUPPORTED;
	node_destroy(n);
	return CUDA_SUCCESS;
}
