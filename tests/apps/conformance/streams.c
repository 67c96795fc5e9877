/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events: flags, priorities, codes of wrong use, what a held stream holds, order across
 * streams, elapsed time, host functions. */
#include "check.h"

static void create(void)
{
	static const unsigned flags[] = {CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING, 2, 0x100};
	CUstream s, t;
	CUcontext c;
	CUdevice d;
	unsigned f = 99;
	unsigned long long a = 0, b = 0;
	int least = 5, greatest = 5, p = 99;

	begin();
	for (size_t i = 0; i < COUNT(flags); i++) {
		CUresult r = cuStreamCreate(&s, flags[i]);

		SAY("flags %#x -> %s", flags[i], name_of(r));
		if (r)
			continue;
		ASK(cuStreamGetFlags(s, &f));
		SAY("flags are %#x", f);
		ASK(cuStreamDestroy(s));
	}
	ASK(cuStreamCreate(NULL, 0));
	ASK(cuStreamDestroy(NULL));
	ASK(cuStreamDestroy(CU_STREAM_LEGACY));
	ASK(cuStreamGetFlags(NULL, &f));
	SAY("flags are %#x", f);
	ASK(cuStreamGetFlags(CU_STREAM_PER_THREAD, &f));
	SAY("flags are %#x", f);
	ASK(cuCtxGetStreamPriorityRange(&least, &greatest));
	SAY("least %d, greatest below it %d", least, greatest < 0);
	ASK(cuCtxGetStreamPriorityRange(NULL, NULL));
	ASK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -1));
	ASK(cuStreamGetPriority(s, &p));
	SAY("priority %d", p);
	ASK(cuStreamCreateWithPriority(&t, CU_STREAM_NON_BLOCKING, 77));
	ASK(cuStreamGetPriority(t, &p));
	SAY("priority %d", p);
	ASK(cuStreamCreateWithPriority(&t, 0x80, 0));
	ASK(cuStreamGetId(s, &a));
	ASK(cuStreamGetId(t, &b));
	SAY("ids differ %d", a != b);
	ASK(cuStreamGetCtx(s, &c));
	SAY("context %d", c == context);
	ASK(cuStreamGetDevice(s, &d));
	SAY("device %d", d == device);
	ASK(cuStreamQuery(s));
	ASK(cuStreamQuery(NULL));
	ASK(cuStreamQuery(CU_STREAM_LEGACY));
	ASK(cuStreamQuery(CU_STREAM_PER_THREAD));
	ASK(cuStreamSynchronize(s));
	ASK(cuStreamWaitEvent(s, NULL, 0));
	ASK(cuStreamDestroy(s));
}

static void events(void)
{
	static const unsigned flags[] = {0, 1, 2, 3, 4, 6, 8, 16};
	CUevent e, f;
	CUstream s;
	float ms = 5;

	begin();
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (size_t i = 0; i < COUNT(flags); i++) {
		CUresult r = cuEventCreate(&e, flags[i]);

		SAY("flags %#x -> %s", flags[i], name_of(r));
		if (!r)
			NEED(cuEventDestroy(e));
	}
	ASK(cuEventCreate(NULL, 0));
	ASK(cuEventRecord(NULL, s));
	ASK(cuEventQuery(NULL));
	ASK(cuEventSynchronize(NULL));
	ASK(cuEventDestroy(NULL));
	NEED(cuEventCreate(&e, 0));
	NEED(cuEventCreate(&f, 0));
	ASK(cuEventQuery(e));
	ASK(cuEventSynchronize(e));
	ASK(cuEventElapsedTime(&ms, e, f));
	ASK(cuStreamWaitEvent(s, e, 0));
	ASK(cuStreamWaitEvent(s, e, 2));
	ASK(cuEventRecord(e, s));
	ASK(cuEventElapsedTime(&ms, e, f));
	ASK(cuEventRecordWithFlags(f, s, 4));
	ASK(cuEventRecordWithFlags(f, s, CU_EVENT_RECORD_EXTERNAL));
	ASK(cuEventRecord(f, s));
	ASK(cuEventSynchronize(f));
	ASK(cuEventElapsedTime(&ms, e, f));
	SAY("not negative, under a second %d", ms >= 0 && ms < 1000);
	ASK(cuEventElapsedTime(&ms, e, e));
	SAY("zero %d", ms == 0);
	ASK(cuEventElapsedTime(NULL, e, f));
	ASK(cuEventElapsedTime(&ms, e, NULL));
	ASK(cuEventDestroy(f));
	NEED(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
	ASK(cuEventRecord(f, s));
	ASK(cuEventSynchronize(f));
	ASK(cuEventElapsedTime(&ms, e, f));
	ASK(cuEventDestroy(e));
	ASK(cuEventDestroy(f));
	ASK(cuStreamDestroy(s));
}

static void held(void)
{
	CUstream s, t, u;
	CUevent e, late;
	CUfunction log;
	CUdeviceptr p;
	unsigned one = 1, two = 2, three = 3, got[4];
	float ms;

	begin();
	log = kernel("log_to");
	p = zeroed(64);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&u, CU_STREAM_DEFAULT));
	NEED(cuEventCreate(&e, 0));
	NEED(cuEventCreate(&late, 0));
	NEED(cuEventRecord(late, s));
	ASK(close_gate(s));
	ASK(LAUNCH(log, s, &p, &one));
	ASK(cuEventRecord(e, s));
	ASK(cuStreamWaitEvent(t, e, 0));
	ASK(LAUNCH(log, t, &p, &two));
	ASK(LAUNCH(log, u, &p, &three));
	ASK(cuStreamSynchronize(u));
	ASK(cuStreamQuery(s));
	ASK(cuStreamQuery(t));
	ASK(cuStreamQuery(u));
	ASK(cuEventQuery(e));
	ASK(cuEventQuery(late));
	ASK(cuEventElapsedTime(&ms, late, e));
	open_gate();
	ASK(cuStreamSynchronize(t));
	ASK(cuEventQuery(e));
	NEED(cuMemcpyDtoH(got, p, sizeof(got)));
	SAY("%u entries: %u %u %u", got[0], got[1], got[2], got[3]);

	/* The legacy default stream waits for blocking streams and they for it; a non-blocking one is
	 * free. */
	NEED(cuMemsetD8(p, 0, 64));
	NEED(cuCtxSynchronize());
	ASK(close_gate(u));
	ASK(LAUNCH(log, u, &p, &one));
	ASK(LAUNCH(log, NULL, &p, &two));
	ASK(LAUNCH(log, s, &p, &three));
	ASK(cuStreamSynchronize(s));
	ASK(cuStreamQuery(NULL));
	ASK(cuStreamQuery(u));
	open_gate();
	ASK(cuStreamSynchronize(NULL));
	NEED(cuMemcpyDtoH(got, p, sizeof(got)));
	SAY("%u entries: %u %u %u", got[0], got[1], got[2], got[3]);

	/* A stream that is destroyed finishes its work; an event that is destroyed still counts where it
	 * was waited for. */
	NEED(cuMemsetD8(p, 0, 64));
	NEED(cuCtxSynchronize());
	ASK(close_gate(s));
	ASK(LAUNCH(log, s, &p, &one));
	ASK(cuEventRecord(e, s));
	ASK(cuStreamWaitEvent(t, e, 0));
	ASK(LAUNCH(log, t, &p, &two));
	ASK(cuEventDestroy(e));
	ASK(cuStreamDestroy(s));
	open_gate();
	ASK(cuStreamSynchronize(t));
	NEED(cuMemcpyDtoH(got, p, sizeof(got)));
	SAY("%u entries: %u %u", got[0], got[1], got[2]);
}

static int calls[3];
static void CUDA_CB count(void *p)
{
	++*(int *)p;
}

static void CUDA_CB callback(CUstream s, CUresult r, void *p)
{
	(void)s;
	*(int *)p += r == CUDA_SUCCESS ? 10 : 1000;
}

static CUresult inside = CUDA_ERROR_UNKNOWN;
static void CUDA_CB calls_cuda(void *p)
{
	size_t n;

	(void)p;
	inside = cuMemGetInfo(&n, &n);
}

static void host_functions(void)
{
	CUstream s;

	begin();
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ASK(cuLaunchHostFunc(s, NULL, NULL));
	ASK(cuLaunchHostFunc(s, count, &calls[0]));
	ASK(cuLaunchHostFunc(NULL, count, &calls[0]));
	ASK(cuStreamAddCallback(s, callback, &calls[1], 0));
	ASK(cuStreamAddCallback(s, callback, &calls[1], 1));
	ASK(cuStreamAddCallback(s, NULL, NULL, 0));
	ASK(cuCtxSynchronize());
	SAY("called %d %d", calls[0], calls[1]);
	ASK(cuLaunchHostFunc(s, calls_cuda, NULL));
	ASK(cuStreamSynchronize(s));
	SAY("inside a host function -> %s", name_of(inside));
}

SECTIONS({"create", create}, {"events", events}, {"held", held}, {"host_functions", host_functions})
