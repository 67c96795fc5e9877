/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: instantiation and their end. Launches are in graph_launch.c, changes in graph_update.c.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include "server/soft/condition.h"
#include "server/soft/graph.h"

static void exec_finish(struct object *o)
{
	struct graph_exec *x = (struct graph_exec *)o;
	struct graph *of = object_find((void *)(uintptr_t)x->origin, KIND_GRAPH);
	if (of)
		of->execs--;
	run_unref(x->run);
	object_close(&x->graph->object);
	free(x);
}

#define FLAGS_KNOWN                                                                                          \
	(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |              \
		CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

/* A node that no kernel can launch. */
static struct node *for_the_host(const struct graph *g)
{
	struct node *n = g->first;

	while (n && (n->type == CU_GRAPH_NODE_TYPE_KERNEL || n->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
			    n->type == CU_GRAPH_NODE_TYPE_MEMSET || n->type == CU_GRAPH_NODE_TYPE_GRAPH))
		n = n->next;
	return n;
}

/* For kernels to launch, which none does here; the host may, too. */
static CUresult check_device_launch(const struct graph *g, unsigned long long flags, struct node **fault)
{
	if (!(flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH))
		return CUDA_SUCCESS;
	*fault = for_the_host(g);
	if (!g->first || *fault || flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph h, unsigned long long flags, struct node **fault)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph *graph = object_find(h, KIND_GRAPH);
	if (!out || !graph || flags & ~(unsigned long long)FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = check_device_launch(graph, flags, fault);
	if (r)
		return r;
	/* Memory has one address: one executable graph at a time. */
	if (graph->execs && graph_has(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (conditions_unused(graph))
		return CUDA_ERROR_INVALID_VALUE;
	struct node **order = graph_order(graph);
	if (!order)
		return CUDA_ERROR_INVALID_VALUE; /* a cycle */
	free(order);
	struct graph_exec *x = calloc(1, sizeof *x);
	if (!x)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* as the real driver tells them */
	x->flags = flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	x->id = soft.next_id++;
	x->graph = graph_copy(graph);
	x->run = x->graph ? run_make(x->graph) : NULL;
	if (!x->run || !object_open(&x->object, KIND_EXEC, NULL, exec_finish)) {
		if (x->graph)
			object_close(&x->graph->object);
		run_unref(x->run);
		free(x);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	x->origin = graph->object.handle;
	graph->execs++;
	*out = HANDLE(x);
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph h, unsigned long long flags)
{
	struct node *fault = NULL;

	/* Nobody says in which stream. */
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		return CUDA_ERROR_INVALID_VALUE;
	return instantiate(out, h, flags, &fault);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph h, CUgraphNode *bad, char *log, size_t n)
{
	if (bad)
		*bad = NULL;
	if (log && n)
		*log = 0;
	struct node *fault = NULL;
	return instantiate(out, h, 0, &fault);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph h, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	struct node *fault = NULL;
	CUresult r = instantiate(out, h, p->flags, &fault);
	p->hErrNode_out = fault ? HANDLE(fault) : NULL;
	p->result_out = !r     ? CUDA_GRAPH_INSTANTIATE_SUCCESS
			: fault ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
				: CUDA_GRAPH_INSTANTIATE_ERROR;
	return r;
}

CUresult cuGraphExecDestroy(CUgraphExec h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph_exec *x = object_find(h, KIND_EXEC);
	if (!x)
		return CUDA_ERROR_INVALID_VALUE;
	object_close(&x->object); /* launches under way keep what they need */
	return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec h, cuuint64_t *flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct graph_exec *x = object_find(h, KIND_EXEC);
	if (!x || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = x->flags;
	return CUDA_SUCCESS;
}
