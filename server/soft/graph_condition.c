/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes: the graphs that they have.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include "server/soft/condition.h"
#include "server/soft/graph.h"

#define BODIES_MOST 4096u

void condition_work_finish(struct work_condition *k)
{
	for (unsigned i = 0; i < k->size; i++) {
		if (k->bodies && k->bodies[i])
			object_close(&k->bodies[i]->object);
		if (k->runs)
			run_unref(k->runs[i]);
	}
	free(k->bodies);
	free(k->runs);
	condition_unref(k->condition);
}

/* Copies of the graphs, without runs. */
bool condition_work_clone(struct work_condition *k)
{
	struct work_condition copy = {.condition = k->condition, .type = k->type, .size = k->size};
	copy.bodies = calloc((size_t)k->size + 1, sizeof *copy.bodies);
	if (!copy.bodies)
		return false;
	condition_ref(copy.condition);
	for (unsigned i = 0; i < k->size; i++)
		if (!(copy.bodies[i] = graph_copy(k->bodies[i]))) {
			condition_work_finish(&copy);
			return false;
		}
	*k = copy;
	return true;
}

static bool right_size(const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	switch (p->type) {
	case CU_GRAPH_COND_TYPE_IF: return p->size == 1 || p->size == 2;
	case CU_GRAPH_COND_TYPE_WHILE: return p->size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH: return p->size && p->size <= BODIES_MOST;
	default: return false;
	}
}

/* The graph that the program made and in which all others are. */
static const struct graph *outermost(const struct graph *g)
{
	while (g->owner)
		g = g->owner->graph;
	return g;
}

CUresult condition_work(const CUDA_CONDITIONAL_NODE_PARAMS *p, struct graph *g, struct work *w)
{
	struct condition *c = condition_find(p->handle);
	if (!c || c->used || !right_size(p) || (c->graph != g && c->graph != outermost(g)))
		return CUDA_ERROR_INVALID_VALUE;
	*w = (struct work){.type = WORK_CONDITION, .condition = {.type = p->type, .size = p->size}};
	w->condition.bodies = calloc((size_t)p->size + 1, sizeof *w->condition.bodies);
	w->condition.condition = condition_ref(c);
	bool good = w->condition.bodies != NULL;
	for (unsigned i = 0; i < p->size && good; i++)
		good = (w->condition.bodies[i] = graph_create());
	if (!good) {
		work_finish(w);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->used = true;
	return CUDA_SUCCESS;
}
