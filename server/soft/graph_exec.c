/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: instantiation, launches, updates.
 *
 * Thread rule: see state.h. A queued launch keeps the works that it was made with, whatever is changed
 * afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/allocation.h"
#include "server/soft/condition.h"
#include "server/soft/event.h"
#include "server/soft/graph.h"
#include "server/soft/module.h"
#include "server/soft/pool.h"
#include "wire/log.h"

/* ---- runs */

void run_unref(struct graph_run *r)
{
	if (!r || --r->refs)
		return;
	for (unsigned i = 0; i < r->count; i++)
		work_finish(&r->works[i]);
	free(r->works);
	free(r);
}

static unsigned works_in(const struct graph *g)
{
	unsigned n = 0;
	for (const struct node *m = g->first; m; m = m->next)
		n += m->work.type == WORK_CHILD ? works_in(m->work.child.graph) : 1;
	return n;
}

static struct graph_run *run_make(struct graph *g);

static bool make_bodies(struct work_condition *k)
{
	k->runs = calloc((size_t)k->size + 1, sizeof *k->runs);
	for (unsigned i = 0; k->runs && i < k->size; i++)
		if (!(k->runs[i] = run_make(k->bodies[i])))
			return false;
	return k->runs;
}

/* Appends the works of a graph in order, child graphs in their node's place. */
static bool append(struct graph_run *r, struct graph *g)
{
	struct node **order = graph_order(g);
	if (!order)
		return false;
	bool good = true;
	for (struct node **n = order; *n && good; n++) {
		if (!(*n)->enabled || (*n)->work.type == WORK_EMPTY || (*n)->work.type == WORK_ALLOC)
			continue;
		if ((*n)->work.type == WORK_CHILD)
			good = append(r, (*n)->work.child.graph);
		else if ((good = work_clone(&r->works[r->count], &(*n)->work)) &&
			 r->works[r->count++].type == WORK_CONDITION)
			good = make_bodies(&r->works[r->count - 1].condition);
	}
	free(order);
	return good;
}

static struct graph_run *run_make(struct graph *g)
{
	struct graph_run *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->refs = 1;
	r->works = calloc((size_t)works_in(g) + 1, sizeof *r->works);
	if (!r->works || !append(r, g)) {
		run_unref(r);
		return NULL;
	}
	return r;
}

void exec_changed(struct graph_exec *x)
{
	run_unref(x->run);
	x->run = NULL;
}

/* ---- launches */

void launch_free(struct graph_launch *l)
{
	for (unsigned i = 0; i < l->run->count; i++)
		if (l->marks[i])
			event_fire(l->marks[i]);
	run_unref(l->run);
	free(l->marks);
	free(l);
}

void launch_skip(struct graph_launch *l)
{
	(void)l;
} /* its marks are fired when it is freed */

static void fire(struct graph_launch *l, unsigned i)
{
	pthread_mutex_lock(&soft.lock);
	event_fire(l->marks[i]);
	l->marks[i] = NULL;
	pthread_mutex_unlock(&soft.lock);
}

static void await(struct event *e)
{
	pthread_mutex_lock(&soft.lock);
	if (e->mark)
		mark_wait(e->mark);
	pthread_mutex_unlock(&soft.lock);
}

static void begin_conditions(struct graph_run *run)
{
	for (unsigned i = 0; i < run->count; i++) {
		struct work_condition *k = &run->works[i].condition;
		if (run->works[i].type != WORK_CONDITION)
			continue;
		condition_begin(k->condition);
		for (unsigned b = 0; b < k->size; b++)
			begin_conditions(k->runs[b]);
	}
}

static CUresult run_works(struct graph_run *run, struct graph_launch *l, struct context *c);

static CUresult run_condition(struct work_condition *k, struct context *c)
{
	uint32_t v = condition_value(k->condition);
	CUresult r = CUDA_SUCCESS;
	switch (k->type) {
	case CU_GRAPH_COND_TYPE_IF:
		return v ? run_works(k->runs[0], NULL, c)
			 : k->size > 1 ? run_works(k->runs[1], NULL, c) : CUDA_SUCCESS;
	case CU_GRAPH_COND_TYPE_SWITCH: return v < k->size ? run_works(k->runs[v], NULL, c) : CUDA_SUCCESS;
	default:
		while (!r && !c->cancel && condition_value(k->condition))
			r = run_works(k->runs[0], NULL, c);
		return r;
	}
}

/* Only the works of the launch itself have marks: what records events is in no body. */
static CUresult run_works(struct graph_run *run, struct graph_launch *l, struct context *c)
{
	CUresult r = CUDA_SUCCESS;
	for (unsigned i = 0; i < run->count && !r; i++) {
		struct work *w = &run->works[i];
		if (w->type == WORK_EVENT && l)
			fire(l, i);
		else if (w->type == WORK_WAIT)
			await(w->event.event);
		else if (w->type == WORK_CONDITION)
			r = run_condition(&w->condition, w->context ? w->context : c);
		else
			r = work_run(w, w->context ? w->context : c);
	}
	return r;
}

CUresult launch_run(struct graph_launch *l, struct context *c)
{
	begin_conditions(l->run);
	return run_works(l->run, l, c);
}

/* Memory that an earlier launch has allocated and nobody has freed must not be allocated again. */
static CUresult allocate(struct graph_exec *x)
{
	struct allocation a;
	for (const struct node *n = x->graph->first; n; n = n->next)
		if (n->work.type == WORK_ALLOC && allocation_find(n->work.alloc.p, &a) &&
			a.flags & POOL_LIVE &&
			!(x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
			return CUDA_ERROR_INVALID_VALUE;
	for (const struct node *n = x->graph->first; n; n = n->next) {
		bool frees = n->work.type == WORK_FREE;
		if ((n->work.type != WORK_ALLOC && !frees) || !allocation_find(n->work.alloc.p, &a))
			continue;
		a.flags = frees ? a.flags & ~POOL_LIVE : a.flags | POOL_LIVE;
		allocation_update(&a);
	}
	return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec h, CUstream stream)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct graph_exec *x = object_find(h, KIND_EXEC);
	if (!x)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &r);
	if (!s)
		return r;
	if (s->capture) {
		struct graph *copy = graph_copy(x->graph);
		struct work w = {.type = WORK_CHILD, .child = {copy}};
		return copy ? stream_submit(s, &w, NULL) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = allocate(x);
	if (r)
		return r;
	if (!x->run)
		x->run = run_make(x->graph);
	struct graph_launch *l = x->run ? calloc(1, sizeof *l) : NULL;
	if (l)
		l->marks = calloc((size_t)x->run->count + 1, sizeof *l->marks);
	if (!l || !l->marks) {
		free(l);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	l->run = x->run;
	l->run->refs++;
	for (unsigned i = 0; i < l->run->count; i++)
		if (l->run->works[i].type == WORK_EVENT &&
			!(l->marks[i] = event_arm(l->run->works[i].event.event))) {
			launch_free(l);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	struct work w = {.type = WORK_GRAPH, .graph = {l}};
	return stream_submit(s, &w, NULL);
}

CUresult cuGraphUpload(CUgraphExec h, CUstream stream)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct graph_exec *x = object_find(h, KIND_EXEC);
	if (!x)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = CUDA_SUCCESS;
	return stream_named(g.context, stream, &r) ? CUDA_SUCCESS : r;
}

/* ---- instantiation */

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

/* ---- changes */

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
