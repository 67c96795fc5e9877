/* SPDX-License-Identifier: Apache-2.0 */
/* Capture of several streams: forks and joins through events, into a graph that is there, what may not be
 * done meanwhile, who else is disturbed by it, and what becomes of a stream whose capture went wrong. */
#include "check.h"

static size_t nodes_of(CUgraph g)
{
	size_t n = 0;

	return cuGraphGetNodes(g, NULL, &n) ? 999 : n;
}

static size_t edges_of(CUgraph g)
{
	size_t n = 0;

	return cuGraphGetEdges(g, NULL, NULL, NULL, &n) ? 999 : n;
}

static int status_of(CUstream s)
{
	CUstreamCaptureStatus v = 99;

	return cuStreamIsCapturing(s, &v) ? 98 : (int)v;
}

static void forked(void)
{
	CUstream a, b, c;
	CUevent fork, join, other;
	CUgraph g;
	CUgraphExec x;
	CUdeviceptr p;
	unsigned v[3] = {1, 2, 3};

	begin();
	CUfunction store = kernel("store");
	p = zeroed(64);
	CUdeviceptr at[3] = {p, p + 4, p + 8};
	NEED(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
	ASK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ASK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ASK(LAUNCH(store, a, &at[0], &v[0]));
	ASK(cuEventRecord(fork, a));
	SAY("status %d %d %d", status_of(a), status_of(b), status_of(c));
	ASK(cuStreamWaitEvent(b, fork, 0));
	ASK(cuStreamWaitEvent(c, fork, 0));
	SAY("status %d %d %d", status_of(a), status_of(b), status_of(c));
	ASK(LAUNCH(store, b, &at[1], &v[1]));
	ASK(LAUNCH(store, c, &at[2], &v[2]));
	ASK(cuStreamEndCapture(b, &g));
	ASK(cuEventRecord(join, b));
	ASK(cuStreamWaitEvent(a, join, 0));
	ASK(cuEventRecord(join, c));
	ASK(cuStreamWaitEvent(a, join, 0));
	ASK(cuEventQuery(join));
	ASK(cuStreamEndCapture(a, &g));
	SAY("status %d %d %d", status_of(a), status_of(b), status_of(c));
	ASK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(LAUNCH(store, a, &at[0], &v[0]));
	ASK(cuEventRecord(fork, a));
	ASK(cuStreamWaitEvent(b, fork, 0));
	ASK(cuStreamWaitEvent(c, fork, 0));
	ASK(LAUNCH(store, b, &at[1], &v[1]));
	ASK(LAUNCH(store, c, &at[2], &v[2]));
	ASK(cuEventRecord(join, b));
	ASK(cuEventRecord(other, c));
	ASK(cuStreamWaitEvent(a, join, 0));
	ASK(cuStreamWaitEvent(a, other, 0));
	ASK(cuStreamEndCapture(a, &g));
	SAY("%zu nodes, %zu edges", nodes_of(g), edges_of(g));
	SAY("status %d %d %d", status_of(a), status_of(b), status_of(c));
	ASK(cuGraphInstantiate(&x, g, 0));
	SAY("values %u %u %u", word(p), word(p + 4), word(p + 8));
	ASK(cuGraphLaunch(x, a));
	ASK(cuStreamSynchronize(a));
	SAY("values %u %u %u", word(p), word(p + 4), word(p + 8));
	ASK(cuEventSynchronize(join));
	ASK(cuStreamWaitEvent(a, join, 0));
	ASK(cuStreamSynchronize(a));
}

static void unjoined(void)
{
	CUstream a, b;
	CUevent fork;
	CUgraph g = (CUgraph)7;
	CUdeviceptr p;
	unsigned v = 1;

	begin();
	CUfunction store = kernel("store");
	p = zeroed(64);
	NEED(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	ASK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	ASK(cuEventRecord(fork, a));
	ASK(cuStreamWaitEvent(b, fork, 0));
	ASK(LAUNCH(store, b, &p, &v));
	ASK(cuStreamEndCapture(a, &g));
	SAY("none %d", g == NULL);
	SAY("status %d %d", status_of(a), status_of(b));
	ASK(LAUNCH(store, b, &p, &v));
	ASK(cuStreamSynchronize(b));
	SAY("value %u", word(p));
	ASK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	ASK(cuStreamDestroy(a));
	ASK(cuEventDestroy(fork));
	ASK(cuStreamEndCapture(b, &g));
	ASK(cuStreamEndCapture(NULL, &g));
	ASK(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ASK(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ASK(cuStreamEndCapture(CU_STREAM_PER_THREAD, &g));
	SAY("%zu nodes", nodes_of(g));
	ASK(cuStreamBeginCapture(b, 77));
}

static void forbidden(void)
{
	static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
			CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
		CU_STREAM_CAPTURE_MODE_RELAXED};
	CUstream a, b;
	CUevent e;
	CUgraph g;
	CUdeviceptr p, q = 0;
	CUmodule m;
	void *pin;
	unsigned v = 1;

	begin();
	p = zeroed(4096);
	NEED(cuMemAllocHost(&pin, 4096));
	NEED(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, 0));
	for (unsigned i = 0; i < COUNT(modes); i++) {
		SAY("mode %d", modes[i]);
#define WHILE(call) \
	do { \
		NEED(cuStreamBeginCapture(a, modes[i])); \
		answer("", #call, (call)); \
		v = (unsigned)status_of(a); \
		SAY("status %u, end %s", v, name_of(cuStreamEndCapture(a, &g))); \
	} while (0)
		WHILE(cuStreamSynchronize(a));
		WHILE(cuStreamQuery(a));
		WHILE(cuStreamSynchronize(b));
		WHILE(cuStreamQuery(b));
		WHILE(cuCtxSynchronize());
		WHILE(cuMemcpyHtoD(p, &v, 4));
		WHILE(cuMemcpyDtoH(&v, p, 4));
		WHILE(cuMemsetD8(p, 0, 4));
		WHILE(cuMemcpyHtoDAsync(p, pin, 4, a));
		WHILE(cuMemcpyHtoDAsync(p, pin, 4, b));
		WHILE(cuEventSynchronize(e));
		WHILE(cuEventQuery(e));
		WHILE(cuMemAlloc(&q, 4096));
		WHILE(cuMemFree(q));
		WHILE(cuModuleLoadData(&m, kernels));
		WHILE(cuMemAllocHost(&(void *){NULL}, 4096));
		WHILE(cuEventCreate(&(CUevent){NULL}, 0));
		WHILE(cuStreamCreate(&(CUstream){NULL}, 0));
		WHILE(cuMemsetD8Async(p, 0, 4, NULL));
		WHILE(cuEventRecord(e, NULL));
		q = 0;
	}
}

static void into(void)
{
	CUstream a;
	CUgraph g, h = NULL;
	CUgraphNode first, set[4];
	CUgraphExec x;
	CUdeviceptr p;
	CUstreamCaptureStatus status;
	cuuint64_t id;
	const CUgraphNode *deps;
	const CUgraphEdgeData *data;
	size_t n = 77;
	unsigned v = 5, w = 6;

	begin();
	CUfunction store = kernel("store");
	p = zeroed(64);
	NEED(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	NEED(cuGraphCreate(&g, 0));
	NEED(cuGraphAddEmptyNode(&first, g, NULL, 0));
	ASK(cuStreamBeginCaptureToGraph(a, g, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ASK(cuStreamGetCaptureInfo(a, &status, &id, &h, &deps, &data, &n));
	SAY("status %d, the graph %d, %zu dependencies, the first %d", status, h == g, n,
			n == 1 && deps[0] == first);
	ASK(LAUNCH(store, a, &p, &v));
	ASK(cuStreamGetCaptureInfo(a, &status, NULL, NULL, &deps, NULL, &n));
	set[0] = n == 1 ? deps[0] : NULL;
	ASK(cuStreamUpdateCaptureDependencies(a, &first, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	ASK(cuStreamGetCaptureInfo(a, &status, NULL, NULL, &deps, NULL, &n));
	SAY("%zu dependencies", n);
	ASK(cuStreamUpdateCaptureDependencies(a, set, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	ASK(cuStreamGetCaptureInfo(a, &status, NULL, NULL, &deps, NULL, &n));
	SAY("%zu dependencies", n);
	ASK(cuStreamUpdateCaptureDependencies(a, set, NULL, 1, 77));
	p += 4;
	ASK(LAUNCH(store, a, &p, &w));
	ASK(cuStreamEndCapture(a, &h));
	SAY("the graph %d, %zu nodes, %zu edges", h == g, nodes_of(g), edges_of(g));
	ASK(cuGraphInstantiate(&x, g, 0));
	ASK(cuGraphLaunch(x, a));
	ASK(cuStreamSynchronize(a));
	SAY("values %u %u", word(p - 4), word(p));
	ASK(cuStreamBeginCaptureToGraph(a, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ASK(cuStreamBeginCaptureToGraph(a, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ASK(cuStreamEndCapture(a, &h));
	ASK(cuStreamUpdateCaptureDependencies(a, set, NULL, 1, 0));
	ASK(cuStreamGetCaptureInfo(a, &status, &id, &h, &deps, &data, &n));
	SAY("status %d", status);
}

/* Another thread while this one captures. */
struct other {
	CUstream s;
	CUstreamCaptureMode mode;
	CUresult answers[5];
};

static void *elsewhere(void *arg)
{
	struct other *o = arg;
	CUdeviceptr p = 0;

	NEED(cuCtxSetCurrent(context));
	o->answers[0] = cuStreamQuery(o->s);
	o->answers[1] = cuMemAlloc(&p, 4096);
	o->answers[2] = cuThreadExchangeStreamCaptureMode(&o->mode);
	o->answers[3] = cuMemAlloc(&p, 4096);
	o->answers[4] = cuCtxSynchronize();
	return NULL;
}

static void threads(void)
{
	static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
			CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
		CU_STREAM_CAPTURE_MODE_RELAXED};
	CUstream a, b;
	CUgraph g;

	begin();
	NEED(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < COUNT(modes); i++)
		for (unsigned k = 0; k < COUNT(modes); k++) {
			struct other o = {.s = b, .mode = modes[k]};
			pthread_t t;

			NEED(cuStreamBeginCapture(a, modes[i]));
			pthread_create(&t, NULL, elsewhere, &o);
			pthread_join(t, NULL);
			SAY("capture %d, other %d, was %d:", modes[i], modes[k], o.mode);
			for (unsigned n = 0; n < COUNT(o.answers); n++)
				SAY("  %s", name_of(o.answers[n]));
			SAY("status %d", status_of(a));
			ASK(cuStreamEndCapture(a, &g));
		}
}

SECTIONS({"forked", forked}, {"unjoined", unjoined}, {"forbidden", forbidden}, {"into", into},
		{"threads", threads})
