/* SPDX-License-Identifier: Apache-2.0 */
/* The capture functions of the API.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include <string.h>
#include "server/soft/capture.h"
#include "server/soft/graph.h"

/* In, with a stream whose capture is asked about or changed. */
static struct guard enter_stream(CUstream h, struct stream **s)
{
	struct guard g = enter_healthy();
	if (g.error)
		return g;
	*s = stream_named(g.context, h, &g.error);
	if (!*s) {
		guard_leave(&g);
		g.held = false;
	}
	return g;
}

static CUresult begin(struct stream *s, struct graph *graph, CUstreamCaptureMode mode)
{
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (s->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	return capture_begin(s, graph, mode) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamBeginCapture_v2(CUstream h, CUstreamCaptureMode mode)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	return g.error ? g.error : begin(s, NULL, mode);
}
CUresult cuStreamBeginCapture(CUstream h)
{
	return cuStreamBeginCapture_v2(h, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* Nodes of one graph, from handles. */
static CUresult nodes_named(
	const struct graph *graph, const CUgraphNode *handles, size_t n, struct node ***out)
{
	if ((n && !handles) || n > GRAPH_NODES)
		return CUDA_ERROR_INVALID_VALUE;
	*out = calloc(n + 1, sizeof **out);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		(*out)[i] = object_find(handles[i], KIND_NODE);
		if (!(*out)[i] || (*out)[i]->graph != graph) {
			free(*out);
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCaptureToGraph(CUstream h, CUgraph graph, const CUgraphNode *deps,
	const CUgraphEdgeData *data, size_t n, CUstreamCaptureMode mode)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	(void)data;
	struct graph *to = object_find(graph, KIND_GRAPH);
	struct node **nodes;
	CUresult r = to ? nodes_named(to, deps, n, &nodes) : CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	r = begin(s, to, mode);
	if (!r && !capture_tips(s, nodes, (unsigned)n, true))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	free(nodes);
	return r;
}

CUresult cuStreamEndCapture(CUstream h, CUgraph *out)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	const struct capture *c = s->capture;
	if (!c)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (c->origin != s) {
		capture_spoil(s);
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != thread_self())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	struct graph *graph;
	CUresult r = capture_end(s, &graph);
	*out = graph ? HANDLE(graph) : NULL;
	return r;
}

CUresult cuStreamIsCapturing(CUstream h, CUstreamCaptureStatus *status)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = s->capture ? CUDA_SUCCESS : capture_check_asking(s);
	if (!r)
		*status = s->capture ? s->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
	return r;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream h, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	const CUgraphNode **deps, const CUgraphEdgeData **data, size_t *n)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	struct capture *c = s->capture;
	CUresult r = c ? CUDA_SUCCESS : capture_check_asking(s);
	if (r)
		return r;
	*status = c ? c->status : CU_STREAM_CAPTURE_STATUS_NONE;
	if (data)
		*data = NULL; /* all edges are plain */
	if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (id)
		*id = c->id;
	if (graph)
		*graph = HANDLE(c->graph);
	if (n)
		*n = s->ntips;
	if (deps) {
		CUgraphNode *told = realloc(c->told, ((size_t)s->ntips + 1) * sizeof *told);
		if (!told)
			return CUDA_ERROR_OUT_OF_MEMORY;
		c->told = told;
		for (unsigned i = 0; i < s->ntips; i++)
			told[i] = HANDLE(s->tips[i]);
		*deps = told;
	}
	return CUDA_SUCCESS;
}
CUresult cuStreamGetCaptureInfo_v2(CUstream h, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	const CUgraphNode **deps, size_t *n)
{
	return cuStreamGetCaptureInfo_v3(h, status, id, graph, deps, NULL, n);
}
CUresult cuStreamGetCaptureInfo(CUstream h, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return cuStreamGetCaptureInfo_v3(h, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies_v2(
	CUstream h, CUgraphNode *deps, const CUgraphEdgeData *data, size_t n, unsigned flags)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	(void)data;
	const struct capture *c = s->capture;
	if (!c)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES && flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		return CUDA_ERROR_INVALID_VALUE;
	struct node **nodes;
	CUresult r = nodes_named(c->graph, deps, n, &nodes);
	if (r)
		return r;
	if (!capture_tips(s, nodes, (unsigned)n, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	free(nodes);
	return r;
}
CUresult cuStreamUpdateCaptureDependencies(CUstream h, CUgraphNode *deps, size_t n, unsigned flags)
{
	return cuStreamUpdateCaptureDependencies_v2(h, deps, NULL, n, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	struct thread *t = thread_self();
	CUstreamCaptureMode was = t->mode;
	t->mode = *mode;
	*mode = was;
	return CUDA_SUCCESS;
}
