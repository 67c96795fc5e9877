/* SPDX-License-Identifier: Apache-2.0 */
/* Events. Recording is posted; a question about an event whose record is known to be done is answered here.
 *
 * Thread rule: any thread. A struct event is never unmapped: that of a destroyed event serves a later one. */
#include "devshim/event.h"

#include <pthread.h>
#include <stdlib.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

#define FLAGS_KNOWN (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event *spare;

static void event_dropped(const void *h, void *data)
{
	struct event *e = data;

	(void)h;
	pthread_mutex_lock(&lock);
	e->next = spare;
	spare = e;
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_events(void)
{
	handle_on_drop(HANDLE_CUevent, event_dropped);
}

static struct event *event_create(void)
{
	struct event *e;

	pthread_mutex_lock(&lock);
	e = spare;
	if (e)
		spare = e->next;
	pthread_mutex_unlock(&lock);
	if (!e)
		return calloc(1, sizeof *e);
	atomic_store(&e->work, NULL);
	atomic_store(&e->recorded, 0);
	atomic_store(&e->done, 0);
	atomic_store(&e->gated, false);
	e->shared = false;
	return e;
}

struct event *event_of(CUevent e)
{
	return handle_data(HANDLE_CUevent, e);
}

void event_recorded_elsewhere(CUevent h)
{
	struct event *e = event_of(h);

	if (!e)
		return;
	atomic_store(&e->work, NULL);
	atomic_store(&e->gated, true);
	atomic_store(&e->recorded, UINT64_MAX);
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	CUresult r = process_check();

	if (r)
		return r;
	if ((Flags & ~FLAGS_KNOWN) || ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	r = remote_cuEventCreate(phEvent, Flags);
	if (r)
		return r;
	struct event *e = event_create();

	if (e)
		e->shared = Flags & CU_EVENT_INTERPROCESS;
	if (e && handle_set_data(HANDLE_CUevent, *phEvent, e))
		return r;
	free(e);
	handle_drop(HANDLE_CUevent, *phEvent);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

bool event_adopt(CUevent h)
{
	struct event *e = event_create();

	if (e)
		e->shared = true;
	if (e && handle_set_data(HANDLE_CUevent, h, e))
		return true;
	free(e);
	return false;
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
	struct call c;
	/* No event at all is told even before cuInit. */
	CUresult r = hEvent ? call_begin(&c, CALL_cuEventDestroy_v2) : handle_error(HANDLE_CUevent);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUevent, hEvent))
		return handle_error(HANDLE_CUevent);
	r = call_post(&c);
	if (!r)
		handle_drop(HANDLE_CUevent, hEvent);
	return r;
}

static CUresult record(unsigned id, CUevent hEvent, CUstream hStream, unsigned flags)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);
	struct event *e = event_of(hEvent);

	if (!r)
		r = call_begin(&c, id);
	if (r)
		return r;
	if (!e || !put_handle(&c, HANDLE_CUevent, hEvent))
		return handle_error(HANDLE_CUevent);
	struct work *w = work_of(hStream);

	if (!w || !put_handle(&c, HANDLE_CUstream, hStream))
		return handle_error(HANDLE_CUstream);
	if (id == CALL_cuEventRecordWithFlags)
		put_u64(&c.out, flags);
	/* An event is recorded in streams of its own context only. */
	CUcontext of = (uintptr_t)hStream <= 2 ? ctx->handle : handle_owner(HANDLE_CUstream, hStream);

	/* When the call returns another process may wait for it. */
	if (flags == CU_EVENT_RECORD_DEFAULT && !e->shared && !work_capturing() && !work_is_full(w) &&
		handle_owner(HANDLE_CUevent, hEvent) == of) {
		r = call_post(&c);
	} else {
		r = call_wait(&c);
		r = call_end(&c, r);
	}
	if (r)
		return r;
	atomic_store(&e->gated, work_is_gated(w));
	atomic_store(&e->work, work_capturing() ? NULL : w);
	atomic_store(&e->recorded, work_capturing() ? UINT64_MAX : c.seq);
	work_posted(w, c.seq);
	return r;
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return record(CALL_cuEventRecord, hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	return record(CALL_cuEventRecordWithFlags, hEvent, hStream, flags);
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	CUresult r = remote_cuCtxRecordEvent(hCtx, hEvent);

	if (!r)
		event_recorded_elsewhere(hEvent);
	return r;
}

/* True when the event's last record is known to be done. */
static bool is_done(struct event *e, uint64_t *recorded)
{
	struct work *w = atomic_load(&e->work);

	*recorded = atomic_load(&e->recorded);
	if (work_capturing() || e->shared)
		return false;
	if (!*recorded || atomic_load(&e->done) == *recorded)
		return true;
	return w && w->stream != CU_STREAM_PER_THREAD && atomic_load(&w->done) >= *recorded;
}

static void note_done(struct event *e, uint64_t recorded)
{
	struct work *w = atomic_load(&e->work);

	if (!recorded || recorded == UINT64_MAX || recorded != atomic_load(&e->recorded))
		return;
	atomic_store(&e->done, recorded);
	/* All threads share the entry of the per-thread default streams. */
	if (w && w->stream != CU_STREAM_PER_THREAD)
		work_done_until(w, recorded);
}

static CUresult ask(CUevent hEvent, CUresult (*remote)(CUevent))
{
	struct context *ctx;
	uint64_t recorded;
	CUresult r = hEvent ? context_check(&ctx) : handle_error(HANDLE_CUevent);

	/* A wait for an event works without a current context. */
	if (r && r != CUDA_ERROR_INVALID_CONTEXT)
		return r;
	struct event *e = event_of(hEvent);

	if (!e)
		return handle_error(HANDLE_CUevent);
	if (is_done(e, &recorded))
		return CUDA_SUCCESS;
	r = mirror_send(false);
	if (!r)
		r = remote(hEvent);
	if (!r) {
		mirror_fetch();
		note_done(e, recorded);
	}
	return r;
}

CUresult cuEventQuery(CUevent hEvent)
{
	return ask(hEvent, remote_cuEventQuery);
}
CUresult cuEventSynchronize(CUevent hEvent)
{
	return ask(hEvent, remote_cuEventSynchronize);
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	float ms = 0;
	CUresult r = process_check();

	if (r)
		return r;
	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_HANDLE;
	r = remote_cuEventElapsedTime_v2(&ms, hStart, hEnd);
	if (!r)
		*pMilliseconds = ms;
	return r;
}
