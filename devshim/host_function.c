/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions and callbacks: the server asks when a stream gets to one (upcall.h), and what it wrote
 * reaches the server before the stream goes on.
 *
 * Thread rule: any thread; a function is freed by the last of who queued it and who ran it. */
#include <stdlib.h>
#include "devshim/copy.h"
#include "devshim/graph.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "devshim/stream.h"
#include "devshim/upcall.h"
#include "wire/cuda.h"
#include "wire/log.h"
#include "cuda.calls.h"

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
	CUresult r = stream_find(hStream, &w);
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
	CUresult r = stream_find(hStream, &w);
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
