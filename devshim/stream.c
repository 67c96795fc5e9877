/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: creating, destroying, asking, waiting, and what else is put into one. A wait for a stream that
 * has nothing to do is answered here.
 *
 * Thread rule: any thread; what is known of a stream is in work.h. */
#include <limits.h>
#include <stdlib.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/event.h"
#include "devshim/graph.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "devshim/upcall.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

#define FLAGS_KNOWN CU_STREAM_NON_BLOCKING

static CUresult noted(CUstream *s, CUresult r, unsigned flags, int priority)
{
	if (r)
		return r;
	if (work_create(*s, flags, priority))
		return r;
	handle_drop(HANDLE_CUstream, *s);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	CUresult r = process_check();

	if (r)
		return r;
	if (Flags & ~FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	return noted(phStream, remote_cuStreamCreate(phStream, Flags), Flags, INT_MIN);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	int least, greatest;
	CUresult r = cuCtxGetStreamPriorityRange(&least, &greatest);

	if (r)
		return r;
	if (flags & ~FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	/* The driver clamps, and tells the clamped value. */
	priority = priority > least ? least : priority < greatest ? greatest : priority;
	return noted(phStream, remote_cuStreamCreateWithPriority(phStream, flags, priority), flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
	struct call c;
	CUresult r;

	/* Even before cuInit. */
	if (!hStream)
		return CUDA_ERROR_INVALID_HANDLE;
	/* The driver's own answer to a default stream; and a stream in a capture may refuse to die. */
	if ((uintptr_t)hStream <= 2 || work_capturing()) {
		r = remote_cuStreamDestroy_v2(hStream);
	} else {
		r = call_begin(&c, CALL_cuStreamDestroy_v2);
		if (r)
			return r;
		if (!put_handle(&c, HANDLE_CUstream, hStream))
			return handle_error(HANDLE_CUstream);
		r = call_post(&c);
	}
	if (!r)
		handle_drop(HANDLE_CUstream, hStream);
	return r;
}

/* The stream of a call that needs a context which is not lost. */
static CUresult find(CUstream h, struct work **w)
{
	struct context *c;
	CUresult r = context_check(&c);

	if (r)
		return r;
	*w = work_of(h);
	return *w ? CUDA_SUCCESS : handle_error(HANDLE_CUstream);
}

CUresult cuStreamQuery(CUstream hStream)
{
	struct work *w;
	CUresult r = find(hStream, &w);
	uint64_t mark = work_mark();

	if (r || !work_is_busy(w))
		return r;
	r = remote_cuStreamQuery(hStream);
	if (!r)
		work_done(w, mark);
	return r;
}

static CUresult post_synchronize(CUstream hStream)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuStreamSynchronize);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUstream, hStream))
		return handle_error(HANDLE_CUstream);
	return call_post(&c);
}

/* A framework that moves a model to its device waits behind the copy of each of its hundreds of tensors. */
CUresult cuStreamSynchronize(CUstream hStream)
{
	struct work *w;
	CUresult r = find(hStream, &w);
	uint64_t mark = work_mark();

	if (r || !work_is_busy(w))
		return r;
	if (!work_is_foreign(hStream) && work_only_copied(w)) {
		r = post_synchronize(hStream);
		if (!r)
			work_done(w, mark);
		return r;
	}
	r = mirror_send(false);
	if (!r)
		r = remote_cuStreamSynchronize(hStream);
	if (!r)
		work_done(w, mark);
	return r;
}

CUresult cuCtxSynchronize(void)
{
	struct context *c;
	CUresult r = context_check(&c);
	uint64_t mark = work_mark();

	if (r || !work_context_busy(c))
		return r;
	r = mirror_send(false);
	if (!r)
		r = remote_cuCtxSynchronize();
	if (!r)
		work_context_done(c, mark);
	return r;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	struct context *c = ctx ? context_find(ctx) : context_current();
	uint64_t mark = work_mark();
	CUresult r = process_check();

	if (r)
		return r;
	if (c && c == context_current())
		return cuCtxSynchronize();
	r = remote_cuCtxSynchronize_v2(ctx);
	if (!r && c)
		work_context_done(c, mark);
	return r;
}

/* ---- questions */

CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
	struct work *w;
	CUresult r = find(hStream, &w);

	if (r)
		return r;
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	if (w->priority == INT_MIN) {
		int p = 0;

		r = remote_cuStreamGetPriority(hStream, &p);
		if (r)
			return r;
		w->priority = p;
	}
	*priority = w->priority;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	struct work *w;
	CUresult r = find(hStream, &w);

	if (r)
		return r;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (w->stream == CU_STREAM_LEGACY || w->stream == CU_STREAM_PER_THREAD)
		return remote_cuStreamGetFlags(hStream, flags);
	*flags = w->flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	struct work *w;
	CUresult r = find(hStream, &w);

	if (r)
		return r;
	if (!streamId)
		return CUDA_ERROR_INVALID_VALUE;
	/* A per-thread default stream has an id for each thread. */
	if (w->stream == CU_STREAM_PER_THREAD)
		return remote_cuStreamGetId(hStream, streamId);
	uint64_t id = atomic_load_explicit(&w->id, memory_order_relaxed);

	if (!id) {
		unsigned long long v = 0;

		r = remote_cuStreamGetId(hStream, &v);
		if (r)
			return r;
		atomic_store_explicit(&w->id, id = v, memory_order_relaxed);
	}
	*streamId = id;
	return CUDA_SUCCESS;
}

static struct context *context_of(CUstream h)
{
	return (uintptr_t)h <= 2 ? context_current() : context_find(handle_owner(HANDLE_CUstream, h));
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	struct work *w;
	CUresult r = find(hStream, &w);
	struct context *c = r ? NULL : context_of(hStream);

	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!c)
		return handle_error(HANDLE_CUstream);
	if (c->green)
		return remote_cuStreamGetCtx(hStream, pctx);
	*pctx = c->handle;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	struct work *w;
	CUcontext ctx = NULL;
	CUresult r = find(hStream, &w);
	struct context *c = r ? NULL : context_of(hStream);

	if (!r)
		r = c && c->green ? remote_cuStreamGetCtx_v2(hStream, pCtx, pGreenCtx)
				  : cuStreamGetCtx(hStream, &ctx);
	if (r || c->green)
		return r;
	if (pCtx)
		*pCtx = ctx;
	if (pGreenCtx)
		*pGreenCtx = NULL;
	return r;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	struct work *w;
	CUresult r = find(hStream, &w);
	struct context *c = r ? NULL : context_of(hStream);

	if (r)
		return r;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!c)
		return handle_error(HANDLE_CUstream);
	*device = c->device;
	return CUDA_SUCCESS;
}

/* ---- waits for events and values */

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct work *w;
	struct call c;
	CUresult r = find(hStream, &w);
	struct event *e = event_of(hEvent);

	if (!r)
		r = call_begin(&c, CALL_cuStreamWaitEvent);
	if (r)
		return r;
	put_handle(&c, HANDLE_CUstream, hStream);
	if (!e || !put_handle(&c, HANDLE_CUevent, hEvent))
		return handle_error(HANDLE_CUevent);
	put_u64(&c.out, Flags);
	/* An event that was recorded in a capture cannot be waited for outside of it. */
	bool known = atomic_load(&e->recorded) != UINT64_MAX;

	bool post = Flags == CU_EVENT_WAIT_DEFAULT && known && !e->shared && !work_capturing() &&
			!work_is_full(w);
	/* What the other stream waits for, this one waits for now; of another process nothing is known. */
	bool gates = e->shared || atomic_load(&e->gated);

	if (gates)
		work_gate_lock();
	r = post ? call_post(&c) : call_end(&c, call_wait(&c));
	struct work *from = atomic_load(&e->work);

	if (!r && Flags && work_capturing())
		atomic_store(&work_graphs_gate, true);
	if (!r && gates && (e->shared || !from || atomic_load(&from->done) < atomic_load(&e->recorded)))
		work_gated(w, c.seq);
	else if (!r)
		work_posted(w, c.seq);
	if (gates)
		work_gate_unlock();
	return r;
}

static CUresult post_value(
	unsigned id, CUstream s, CUdeviceptr addr, uint64_t value, unsigned flags, bool gates)
{
	struct work *w;
	struct call c;
	CUresult r = find(s, &w);

	if (!r)
		r = mirror_use(addr);
	if (!r)
		r = mirror_send(false);
	if (!r)
		r = call_begin(&c, id);
	if (r)
		return r;
	put_handle(&c, HANDLE_CUstream, s);
	put_u64(&c.out, addr);
	put_u64(&c.out, value);
	put_u64(&c.out, flags);
	if (gates)
		work_gate_lock();
	r = call_end(&c, call_wait(&c));
	if (!r)
		(gates ? work_gated : work_posted)(w, c.seq);
	if (gates)
		work_gate_unlock();
	return r;
}

CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return post_value(CALL_cuStreamWriteValue32_v2, s, addr, value, flags, false);
}

CUresult cuStreamWriteValue64_v2(CUstream s, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return post_value(CALL_cuStreamWriteValue64_v2, s, addr, value, flags, false);
}

CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return post_value(CALL_cuStreamWaitValue32_v2, s, addr, value, flags, true);
}

CUresult cuStreamWaitValue64_v2(CUstream s, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return post_value(CALL_cuStreamWaitValue64_v2, s, addr, value, flags, true);
}

CUresult cuStreamBatchMemOp_v2(
	CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	struct work *w;
	CUresult r = find(stream, &w);

	if (r)
		return r;
	work_gate_lock();
	r = remote_cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
	if (!r)
		work_gated(w, work_mark() + 1);
	work_gate_unlock();
	return r;
}

/* ---- host functions */

struct host_function {
	CUhostFn fn;
	CUstreamCallback callback;
	CUstream stream;
	void *data;
	struct work *work; /* of its stream; NULL in a graph */
	_Atomic uint64_t seq; /* the record that queued it, once known */
	_Atomic int users; /* who queued it and who runs it: the last one frees it; 0 in a graph */
};

static void host_function_release(struct host_function *h)
{
	if (atomic_fetch_sub(&h->users, 1) == 1)
		free(h);
}

/* Copies that are done came with the request to run it. */
static void run_host_function(void *arg)
{
	struct host_function *h = arg;
	struct thread *t = thread_self();

	mirror_fetch_unasked();
	if (t)
		t->host_function = true;
	if (h->fn)
		h->fn(h->data);
	else
		h->callback(h->stream, CUDA_SUCCESS, h->data);
	if (t)
		t->host_function = false;
	/* What stands behind it on the stream finds what it wrote. */
	if (mirror_send(true))
		log_error("what a host function wrote did not reach the server");
	if (!h->work)
		return;
	if (!copy_untold(h->work))
		work_done_until(h->work, atomic_load(&h->seq));
	host_function_release(h);
}

static bool same_in_graph(const void *one, const void *other)
{
	const struct host_function *a = one, *b = other;

	return a->fn == b->fn && a->data == b->data;
}

uint64_t host_function_note(CUhostFn fn, void *data)
{
	uint64_t hash = upcall_hash(upcall_hash(UPCALL_HASH, (uintptr_t)fn), (uintptr_t)data);
	struct host_function *h = malloc(sizeof *h);

	if (h)
		*h = (struct host_function){.fn = fn, .data = data};
	atomic_store(&work_graphs_gate, true);
	return upcall_keep(run_host_function, h, true, hash, same_in_graph);
}

bool host_function_of(void (*run)(void *), const void *arg, CUDA_HOST_NODE_PARAMS *out)
{
	const struct host_function *h = arg;

	if (run != run_host_function || !h->fn)
		return false;
	*out = (CUDA_HOST_NODE_PARAMS){h->fn, h->data};
	return true;
}

/* In a capture it stays for all replays. */
static CUresult add_host_function(
	CUstream stream, struct work *w, bool once, CUhostFn fn, CUstreamCallback callback, void *data)
{
	struct host_function *h = once ? malloc(sizeof *h) : NULL;
	uint64_t id = once ? 0 : host_function_note(fn, data);
	struct call c;
	CUresult r;

	if (h) {
		*h = (struct host_function){.fn = fn,
			.callback = callback,
			.stream = stream,
			.data = data,
			.work = w,
			.users = 2};
		id = upcall_new(run_host_function, h, true, true);
	}
	if (!id) {
		free(h);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = call_begin(&c, CALL_cuLaunchHostFunc);
	if (!r) {
		put_handle(&c, HANDLE_CUstream, stream);
		put_u64(&c.out, id);
		bool post = !work_capturing() && !work_is_full(w);

		work_gate_lock();
		r = post ? call_post(&c) : call_end(&c, call_wait(&c));
		if (!r)
			work_gated(w, c.seq);
		work_gate_unlock();
	}
	if (!once)
		return r;
	if (r) {
		upcall_drop(id);
		free(h);
		return r;
	}
	atomic_store(&h->seq, c.seq);
	host_function_release(h);
	return r;
}

static CUresult is_capturing(CUstream s, bool *yes)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult r = work_capturing() ? cuStreamIsCapturing(s, &status) : CUDA_SUCCESS;

	*yes = status != CU_STREAM_CAPTURE_STATUS_NONE;
	return r;
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct work *w;
	CUresult r = find(hStream, &w);
	bool capturing = false;

	if (!r && !fn)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = is_capturing(hStream, &capturing);
	if (r)
		return r;
	return add_host_function(hStream, w, !capturing, fn, NULL, userData);
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	struct work *w;
	CUresult r = find(hStream, &w);
	bool capturing = false;

	if (!r && (!callback || flags))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = is_capturing(hStream, &capturing);
	if (r)
		return r;
	if (capturing)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return add_host_function(hStream, w, true, NULL, callback, userData);
}
