/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture. The server's driver captures; the shim counts how many captures are under way, because
 * while there is one it answers nothing about streams from its own knowledge. The capture mode of a thread
 * is known here: it starts as the driver's default, and only this thread changes it.
 *
 * Thread rule: any thread; the mode is the thread's. */
#include <stdlib.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/handle.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

static _Thread_local CUstreamCaptureMode mode __attribute__((tls_model("initial-exec")));
/* What the last question about dependencies was answered with: valid until the thread asks again. */
static _Thread_local CUgraphNode *nodes __attribute__((tls_model("initial-exec")));
static _Thread_local CUgraphEdgeData *edges __attribute__((tls_model("initial-exec")));

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *m)
{
	CUresult r = process_check();
	struct call c;

	if (r)
		return r;
	if (!m || (unsigned)*m > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode was = mode;

	if (*m != was) {
		r = call_begin(&c, CALL_cuThreadExchangeStreamCaptureMode);
		if (r)
			return r;
		put_i64(&c.out, *m);
		r = call_post(&c);
		if (r)
			return r;
	}
	mode = *m;
	*m = was;
	return CUDA_SUCCESS;
}

static CUresult begun(CUresult r)
{
	if (r)
		atomic_fetch_sub(&captures, 1);
	return r;
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode m)
{
	/* Counted before, so that no other thread takes a shortcut between the driver's yes and our
	 * noticing it. */
	atomic_fetch_add(&captures, 1);
	return begun(remote_cuStreamBeginCapture_v2(hStream, m));
}

CUresult cuStreamBeginCapture(CUstream hStream)
{
	atomic_fetch_add(&captures, 1);
	return begun(remote_cuStreamBeginCapture(hStream));
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
	const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode m)
{
	atomic_fetch_add(&captures, 1);
	return begun(remote_cuStreamBeginCaptureToGraph(
		hStream, hGraph, dependencies, dependencyData, numDependencies, m));
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	CUresult r = remote_cuStreamEndCapture(hStream, phGraph);

	/* These errors end the capture, too. */
	if (!r || r == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED || r == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) {
		int n = atomic_load(&captures);

		while (n > 0 && !atomic_compare_exchange_weak(&captures, &n, n - 1)) {
		}
		if (r && phGraph)
			*phGraph = NULL;
	}
	return r;
}

static CUresult find(CUstream h)
{
	struct context *c;
	CUresult r = context_check(&c);

	if (r)
		return r;
	return work_of(h) ? CUDA_SUCCESS : handle_error(HANDLE_CUstream);
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	CUresult r = find(hStream);

	if (r)
		return r;
	if (!captureStatus)
		return CUDA_ERROR_INVALID_VALUE;
	*captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
	return work_capturing() ? remote_cuStreamIsCapturing(hStream, captureStatus) : CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(
	CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
	CUresult r = find(hStream);

	if (r)
		return r;
	if (!captureStatus_out)
		return CUDA_ERROR_INVALID_VALUE;
	*captureStatus_out = CU_STREAM_CAPTURE_STATUS_NONE;
	return work_capturing() ? remote_cuStreamGetCaptureInfo(hStream, captureStatus_out, id_out)
				: CUDA_SUCCESS;
}

static bool get_dependencies(struct call *c, size_t *count)
{
	size_t n = get_array(&c->in, LIMIT_ARRAY);
	CUgraphNode *list = realloc(nodes, (n + 1) * sizeof *list);
	CUgraphEdgeData *data = realloc(edges, (n + 1) * sizeof *data);

	nodes = list ? list : nodes;
	edges = data ? data : edges;
	if (!list || !data)
		return false;
	for (size_t i = 0; i < n; i++) {
		list[i] = get_handle(c, HANDLE_CUgraphNode);
		get_bytes(&c->in, &data[i], sizeof data[i]);
	}
	*count = n;
	return true;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
	cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
	const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
	CUresult r = find(hStream);
	size_t n = 0;
	struct call c;

	if (r)
		return r;
	if (!captureStatus_out)
		return CUDA_ERROR_INVALID_VALUE;
	*captureStatus_out = CU_STREAM_CAPTURE_STATUS_NONE;
	if (!work_capturing())
		return CUDA_SUCCESS;
	r = call_begin(&c, CALL_cuStreamGetCaptureInfo_v3);
	if (r)
		return r;
	put_handle(&c, HANDLE_CUstream, hStream);
	r = call_wait(&c);
	if (!r) {
		CUstreamCaptureStatus status = (CUstreamCaptureStatus)get_i64(&c.in);
		uint64_t id = get_u64(&c.in);
		CUgraph graph = get_handle(&c, HANDLE_CUgraph);
		bool ok = get_dependencies(&c, &n);

		*captureStatus_out = status;
		if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
			if (id_out)
				*id_out = id;
			if (graph_out)
				*graph_out = graph;
			if (dependencies_out)
				*dependencies_out = nodes;
			if (edgeData_out)
				*edgeData_out = edges;
			if (numDependencies_out)
				*numDependencies_out = n;
		}
		if (!ok)
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return call_end(&c, r);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
	cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
	size_t *numDependencies_out)
{
	return cuStreamGetCaptureInfo_v3(
		hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL, numDependencies_out);
}
