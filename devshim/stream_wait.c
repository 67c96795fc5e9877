/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a stream wait, for an event or for a value in memory, and what writes such values: the stream is
 * then gated (work.h), for somebody has to let it go on.
 *
 * Thread rule: any thread; who gates a stream does it under the lock of gates. */
#include "devshim/event.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "devshim/stream.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct work *w;
	struct call c;
	CUresult r = stream_find(hStream, &w);
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
	CUresult r = stream_find(s, &w);

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
	CUresult r = stream_find(stream, &w);

	if (r)
		return r;
	work_gate_lock();
	r = remote_cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
	if (!r)
		work_gated(w, work_mark() + 1);
	work_gate_unlock();
	return r;
}
