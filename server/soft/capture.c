/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to streams, events and other calls while captures go on.
 *
 * Thread rule: see capture.h. */
#include "server/soft/capture.h"
#include <stdlib.h>
#include <string.h>
#include "server/soft/event.h"
#include "server/soft/graph.h"

static struct capture *going_on; /* linked by next */

static void capture_unref(struct capture *c)
{
	if (c && !--c->refs) {
		free(c->told);
		free(c);
	}
}

static void invalidate(struct capture *c)
{
	if (c->status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
		c->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

/* ---- checks */

/* A capture in which a stream of c takes part that the legacy stream would wait for. */
static struct capture *disturbed(const struct context *c)
{
	for (const struct stream *s = c->streams; s; s = s->next)
		if (s->capture && s->blocking)
			return s->capture;
	return NULL;
}

CUresult capture_check(struct stream *s)
{
	struct capture *c = going_on && s->legacy ? disturbed(s->object.context) : NULL;
	if (!c)
		return CUDA_SUCCESS;
	invalidate(c);
	return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult capture_check_asking(const struct stream *s)
{
	return going_on && s->legacy && disturbed(s->object.context) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
								     : CUDA_SUCCESS;
}

CUresult capture_spoil(struct stream *s)
{
	bool was = s->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	invalidate(s->capture);
	return was ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_query(struct stream *s)
{
	return s->capture ? capture_spoil(s) : capture_check(s);
}

CUresult capture_blocks_sync(struct context *c)
{
	bool any = false;
	for (struct stream *s = going_on ? c->streams : NULL; s; s = s->next)
		if (s->capture) {
			invalidate(s->capture);
			any = true;
		}
	return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult capture_unsafe(void)
{
	const struct thread *t = thread_self();
	if (!going_on || t->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	for (struct capture *c = going_on; c; c = c->next) {
		bool own = c->thread == t && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
		if (!own && (t->mode != CU_STREAM_CAPTURE_MODE_GLOBAL ||
				    c->mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
			continue;
		invalidate(c);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return CUDA_SUCCESS;
}

bool capture_uses(const struct graph *g)
{
	for (const struct capture *c = going_on; c; c = c->next)
		if (c->graph == g)
			return true;
	return false;
}

/* ---- nodes */

bool capture_tips(struct stream *s, struct node *const *nodes, unsigned n, bool replace)
{
	unsigned keep = replace ? 0 : s->ntips;
	struct node **tips = malloc(((size_t)keep + n + 1) * sizeof *tips);
	if (!tips)
		return false;
	for (unsigned i = 0; i < keep; i++)
		tips[i] = s->tips[i];
	for (unsigned i = 0; i < n; i++) {
		bool known = false;
		for (unsigned k = 0; k < keep && !known; k++)
			known = tips[k] == nodes[i];
		if (!known)
			tips[keep++] = nodes[i];
	}
	free(s->tips);
	s->tips = tips;
	s->ntips = keep;
	return true;
}

static CUgraphNodeType node_type(enum work_type t)
{
	switch (t) {
	case WORK_KERNEL: return CU_GRAPH_NODE_TYPE_KERNEL;
	case WORK_COPY: return CU_GRAPH_NODE_TYPE_MEMCPY;
	case WORK_SET: return CU_GRAPH_NODE_TYPE_MEMSET;
	case WORK_HOST: return CU_GRAPH_NODE_TYPE_HOST;
	case WORK_CHILD: return CU_GRAPH_NODE_TYPE_GRAPH;
	case WORK_EVENT: return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
	case WORK_WAIT: return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
	case WORK_ALLOC: return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	case WORK_FREE: return CU_GRAPH_NODE_TYPE_MEM_FREE;
	case WORK_MEMOPS: return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	default: return CU_GRAPH_NODE_TYPE_EMPTY;
	}
}

CUresult capture_add(struct stream *s, struct work *w)
{
	struct capture *c = s->capture;
	if (c->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
		work_finish(w);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	if (w->type == WORK_FAULT || w->type == WORK_CALLBACK) {
		work_finish(w);
		return capture_spoil(s);
	}
	if (!w->context)
		w->context = s->object.context;
	struct node *n = node_create(c->graph, node_type(w->type), w, s->tips, s->ntips);
	if (!n || !capture_tips(s, &n, 1, true)) {
		invalidate(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* ---- events */

void event_uncapture(struct event *e)
{
	capture_unref(e->capture);
	e->capture = NULL;
	free(e->tips);
	e->tips = NULL;
	e->ntips = 0;
}

CUresult capture_record(struct event *e, struct stream *s, bool *taken)
{
	struct capture *c = s->capture;
	if (!c)
		return CUDA_SUCCESS;
	if (c->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	struct node **tips = malloc(((size_t)s->ntips + 1) * sizeof *tips);
	if (!tips)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (s->ntips)
		memcpy(tips, s->tips, s->ntips * sizeof *tips);
	event_uncapture(e);
	c->refs++;
	e->capture = c;
	e->tips = tips;
	e->ntips = s->ntips;
	*taken = true;
	return CUDA_SUCCESS;
}

CUresult capture_asked(struct event *e)
{
	/* Of a capture that has ended, the real driver finds the question itself wrong. */
	if (!e->capture->graph)
		return CUDA_ERROR_INVALID_VALUE;
	invalidate(e->capture);
	return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult capture_wait(struct event *e, struct stream *s, bool *taken)
{
	struct capture *c = e->capture;
	if (!c) {
		if (!s->capture)
			return CUDA_SUCCESS;
		if (s->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
			return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		*taken = true;
		if (!e->mark)
			return CUDA_SUCCESS;
		invalidate(s->capture);
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	*taken = true;
	if (!c->graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (c->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (s->legacy) {
		invalidate(c);
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (s->capture && s->capture != c) {
		invalidate(c);
		invalidate(s->capture);
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	bool joins = !s->capture;
	s->capture = c;
	if (!capture_tips(s, e->tips, e->ntips, joins)) {
		invalidate(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* ---- life */

static void forget(struct stream *s)
{
	s->capture = NULL;
	free(s->tips);
	s->tips = NULL;
	s->ntips = 0;
}

struct capture *capture_begin(struct stream *s, struct graph *g, CUstreamCaptureMode mode)
{
	struct capture *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->borrowed = g != NULL;
	c->graph = g ? g : graph_create();
	if (!c->graph) {
		free(c);
		return NULL;
	}
	c->refs = 1;
	c->id = soft.next_id++;
	c->mode = mode;
	c->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	c->origin = s;
	c->thread = thread_self();
	c->next = going_on;
	going_on = c;
	s->capture = c;
	return c;
}

/* The streams that took part must have led back into the one that began. */
static bool joined(const struct capture *c, const struct stream *other)
{
	for (unsigned i = 0; i < other->ntips; i++) {
		bool found = false;
		for (unsigned k = 0; k < c->origin->ntips && !found; k++)
			found = node_reaches(c->origin->tips[k], other->tips[i]);
		if (!found)
			return false;
	}
	return true;
}

CUresult capture_end(struct stream *s, struct graph **graph)
{
	struct capture *c = s->capture;
	struct context *context = s->object.context;
	CUresult r = c->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
								       : CUDA_SUCCESS;
	for (struct stream *t = context->streams; t && !r; t = t->next)
		if (t->capture == c && t != s && !joined(c, t))
			r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	for (struct stream *t = context->streams; t; t = t->next)
		if (t->capture == c)
			forget(t);
	for (struct capture **p = &going_on; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	*graph = r ? NULL : c->graph;
	if (r && !c->borrowed)
		object_close((struct object *)c->graph);
	c->graph = NULL;
	c->status = CU_STREAM_CAPTURE_STATUS_NONE;
	capture_unref(c);
	return r;
}

void capture_stream_gone(struct stream *s)
{
	struct capture *c = s->capture;
	if (!c)
		return;
	invalidate(c);
	if (c->origin == s) {
		struct graph *none;
		capture_end(s, &none);
	} else {
		forget(s);
	}
}
