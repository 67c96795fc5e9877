/* SPDX-License-Identifier: Apache-2.0 */
/* The table of conditions, which kernels look into at any time: a condition stays while a node needs it,
 * and a node while its launch is under way.
 *
 * Thread rule: see condition.h. */
#include "server/soft/condition.h"
#include <stdlib.h>
#include "server/soft/context.h"
#include "server/soft/engine.h"
#include "server/soft/graph.h"

#define CONDITIONS_MOST 65536

static struct condition *table[CONDITIONS_MOST]; /* read by kernels without a lock */
static uint32_t generation, highest = 1;

struct condition *condition_find(uint64_t handle)
{
	struct condition *c = __atomic_load_n(&table[handle & 0xffff], __ATOMIC_ACQUIRE);
	return handle && c && c->handle == handle ? c : NULL;
}

/* By a kernel, at any time. */
static bool set(uint64_t handle, uint32_t value)
{
	struct condition *c = condition_find(handle);
	if (c)
		__atomic_store_n(&c->value, value, __ATOMIC_RELEASE);
	return c;
}

struct condition *condition_create(struct graph *g, uint32_t initial, bool assign)
{
	uint32_t at = 1;
	while (at < highest && table[at])
		at++;
	struct condition *c = at < CONDITIONS_MOST ? calloc(1, sizeof *c) : NULL;
	if (!c)
		return NULL;
	if (at == highest)
		highest++;
	engine_on_condition(set);
	*c = (struct condition){.handle = (uint64_t)++generation << 16 | at,
		.refs = 1,
		.graph = g,
		.next = g->conditions,
		.initial = initial,
		.assign = assign};
	g->conditions = c;
	__atomic_store_n(&table[at], c, __ATOMIC_RELEASE);
	return c;
}

struct condition *condition_ref(struct condition *c)
{
	c->refs++;
	return c;
}

void condition_unref(struct condition *c)
{
	if (!c || --c->refs)
		return;
	__atomic_store_n(&table[c->handle & 0xffff], NULL, __ATOMIC_RELEASE);
	free(c);
}

bool conditions_unused(const struct graph *g)
{
	for (const struct condition *c = g->conditions; c; c = c->next)
		if (!c->used)
			return true;
	return false;
}

void conditions_drop(struct graph *g)
{
	while (g->conditions) {
		struct condition *c = g->conditions;
		g->conditions = c->next;
		c->graph = NULL;
		condition_unref(c);
	}
}

CUresult cuGraphConditionalHandleCreate(
	CUgraphConditionalHandle *out, CUgraph h, CUcontext context, unsigned initial, unsigned flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	CUresult r = CUDA_SUCCESS;
	struct graph *graph = object_find(h, KIND_GRAPH);
	if (!out || !graph || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_named(context, &r))
		return r;
	struct condition *c = condition_create(graph, initial, flags & CU_GRAPH_COND_ASSIGN_DEFAULT);
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = c->handle;
	return CUDA_SUCCESS;
}
