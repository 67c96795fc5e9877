/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of executable graphs: the works of a graph in order, made once and shared by its launches, and
 * what a launch does with them in its stream.
 *
 * Thread rule: see state.h. A queued launch keeps the works that it was made with, whatever is changed
 * afterwards. */
#include <stdlib.h>
#include "server/soft/allocation.h"
#include "server/soft/condition.h"
#include "server/soft/event.h"
#include "server/soft/graph.h"
#include "server/soft/pool.h"

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

struct graph_run *run_make(struct graph *g)
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
