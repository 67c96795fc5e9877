/* SPDX-License-Identifier: Apache-2.0 */
/* How copies travel (docs/protocol.md, wire/copy.h):
 *
 *   to the device    the bytes go with the record, which is posted when the address is known and nothing
 *                    can hold it up. Pinned memory that earlier work of the stream may still write is read
 *                    when the stream gets there: a host function of ours fetches it.
 *   to the host      a wait that brings the bytes; asynchronous and to pinned memory: small ones are told
 *                    by a later answer, large ones fetched by a host function of ours at their turn, so
 *                    that nothing has to be kept and the stream's order holds by itself.
 *   on the device    posted.
 *   in the program   by memcpy, once the stream has nothing to do.
 *
 * In a capture, copies with a side in the program become host functions that run at each replay.
 *
 * This file decides; copy_bytes.c, copy_untold.c and copy_turn.c do it.
 *
 * Thread rule: any thread. What is held of the server's slots is guarded by the lock of gates (work.h). */
#include "devshim/copy.h"
#include "devshim/context.h"
#include "devshim/copy_parts.h"
#include "devshim/mirror.h"
#include "devshim/upcall.h"
#include "wire/cuda.h"
#include "wire/limits.h"

#define TURN_TRIES 16 /* others may gate the stream again and again */

/* Slots of the server that copies behind a host function have: `seq` is the record that took it, of the
 * stream of `work`. Guarded by the lock of gates. */
static struct {
	struct work *work;
	uint64_t seq;
} slot_held[COPY_HELD_SLOTS];

static size_t slots_of(const struct copy *k)
{
	/* Of a box a slot holds whole rows, so it may need more. */
	return k->linear || copy_total(k) <= COPY_SLOT ? (copy_total(k) + COPY_SLOT - 1) / COPY_SLOT :
							 COPY_HELD_SLOTS + 1;
}

static bool slot_is_free(unsigned i)
{
	return !slot_held[i].work || work_is_done(slot_held[i].work, slot_held[i].seq);
}

static bool may_be_held(const struct copy *k, const struct work *w)
{
	size_t free = 0;

	for (unsigned i = 0; i < COPY_HELD_SLOTS; i++)
		free += slot_is_free(i);
	/* When those of a per-thread stream are done is not known here. */
	return slots_of(k) <= free && w->stream != CU_STREAM_PER_THREAD;
}

static void note_held(const struct copy *k, struct work *w, uint64_t seq)
{
	size_t n = slots_of(k);

	for (unsigned i = 0; i < COPY_HELD_SLOTS && n; i++)
		if (slot_is_free(i)) {
			slot_held[i].work = w;
			slot_held[i].seq = seq;
			n--;
		}
}

/* How a copy to the device is sent. Bytes that stand behind what ends only when the program lets it would
 * hold up the connection, and what the program asks meanwhile is behind them: so few of them as the server
 * has room for go ahead, the others wait here until their turn is near. *held: the lock of gates, until the
 * record is sent, so that what was found here stays so. */
static CUresult await_turn(
	const struct copy *k, bool async, CUstream stream, struct work *w, enum copy_mode *mode, bool *held)
{
	CUresult r = CUDA_SUCCESS;

	*mode = async ? COPY_ASYNC : COPY_SYNC;
	/* So few have no need of a slot. */
	*held = !(k->linear && copy_total(k) <= COPY_SMALL) && !work_capturing() && !upcall_inside();
	if (!*held)
		return r;
	work_gate_lock();
	/* Of per-thread streams all threads' are gated when one is; ours is then done. */
	int most = w->stream == CU_STREAM_PER_THREAD ? 1 : TURN_TRIES;
	for (int tries = 0; !r && tries < most && work_is_gated(w); tries++) {
		if (async && may_be_held(k, w)) {
			*mode = COPY_HELD;
			return r;
		}
		work_gate_unlock();
		r = cuStreamSynchronize(stream);
		work_gate_lock();
	}
	if (r) {
		work_gate_unlock();
		*held = false;
	}
	return r;
}

static CUresult to_device(const struct copy *k, bool async, CUstream stream, struct work *w)
{
	uint64_t mark = work_mark(), seq;
	unsigned copies;
	bool overlap, held, known = k->dst.type == CU_MEMORYTYPE_DEVICE && k->dst.known;
	enum copy_mode mode;
	CUresult r;

	copy_untold_bytes((uintptr_t)copy_host_base(&k->src), copy_span(k, &k->src), &overlap, &copies);
	if (!async) {
		if (overlap && (r = cuCtxSynchronize()))
			return r;
		r = await_turn(k, false, ptds_active() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY, w, &mode,
			&held);
		if (r)
			return r;
		bool post = known && !work_is_busy(w);

		r = copy_send_bytes(k, mode, NULL, post, &seq);
		if (held)
			work_gate_unlock();
		if (!r && !post)
			work_done(w, mark);
		return r;
	}
	if (k->src.pinned && work_is_gated(w))
		return copy_run_later(k, stream, w, true);
	if ((overlap && (r = cuCtxSynchronize())) || (r = await_turn(k, true, stream, w, &mode, &held)))
		return r;
	bool post = known && !work_is_foreign(stream) && !work_is_full(w) &&
		    ((k->linear && k->w <= COPY_SMALL) || !work_is_gated(w));

	r = copy_send_bytes(k, mode, stream, post, &seq);
	if (!r && mode == COPY_HELD)
		note_held(k, w, seq);
	if (held)
		work_gate_unlock();
	if (r)
		return r;
	/* Pinned memory may be read later, when its turn has come. */
	if (post && !k->src.pinned)
		work_copied(w, seq, copy_total(k));
	else
		work_posted(w, seq);
	return r;
}

static CUresult to_host(const struct copy *k, bool async, CUstream stream, struct work *w)
{
	uint64_t mark = work_mark();
	bool known = k->src.type == CU_MEMORYTYPE_DEVICE && k->src.known;
	CUresult r;

	if (async && k->dst.pinned && known && !work_is_foreign(stream)) {
		if (!process_blocking && !work_is_full(w) && copy_may_be_told(k))
			return copy_to_host_told(k, stream, w);
		return copy_run_later(k, stream, w, true);
	}
	/* It is over when its turn has come and gone: until then it takes none of the server's slots. */
	r = CUDA_SUCCESS;
	if (copy_total(k) > COPY_SMALL && !work_capturing() && !upcall_inside() && work_is_gated(w))
		r = cuStreamSynchronize(
			async ? stream : ptds_active() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
	r = r ? r : copy_fetch_bytes(k, async ? COPY_ASYNC : COPY_SYNC, stream);
	if (!r)
		work_done(w, mark);
	return r;
}

static CUresult on_device(const struct copy *k, bool async, CUstream stream, struct work *w)
{
	bool known = (k->src.type != CU_MEMORYTYPE_DEVICE || k->src.known) &&
		     (k->dst.type != CU_MEMORYTYPE_DEVICE || k->dst.known);
	struct call c;
	CUresult r = copy_encode(&c, k, async ? COPY_ASYNC : COPY_SYNC, stream, 0);

	if (r)
		return r;
	/* From pinned memory to pinned memory the driver copies itself, in its call, once the stream is there
	 * (seen on an H200): a post would hold up the server's other records, a host function's among them.
	 * */
	bool blocks = k->src.mirrored && k->dst.mirrored;
	bool post = known && k->linear && !blocks && !work_capturing() &&
		    (async ? !work_is_foreign(stream) && !work_is_full(w) : !work_is_gated(w));

	r = post ? call_post(&c) : copy_wait_for(&c);
	if (!r)
		work_posted(w, c.seq);
	return r;
}

static CUresult in_program(const struct copy *k, bool async, CUstream stream, struct work *w)
{
	CUresult r = CUDA_SUCCESS;

	if (async && work_is_gated(w))
		return copy_run_later(k, stream, w, true);
	if (work_is_busy(w))
		r = async ? cuStreamSynchronize(stream) : cuCtxSynchronize();
	if (!r)
		copy_in_program(k);
	return r;
}

static CUresult run(const struct copy *k, bool async, CUstream stream)
{
	struct work *w = work_of(async ? stream : NULL);
	bool from = k->src.type == CU_MEMORYTYPE_HOST, to = k->dst.type == CU_MEMORYTYPE_HOST;

	if (!w)
		return async ? handle_error(HANDLE_CUstream) : CUDA_ERROR_INVALID_CONTEXT;
	if (async && (from || to) && work_capturing()) {
		CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
		CUresult r = cuStreamIsCapturing(stream, &status);

		if (r)
			return r;
		if (status != CU_STREAM_CAPTURE_STATUS_NONE)
			return copy_run_later(k, stream, w, false);
	}
	if (from && to)
		return in_program(k, async, stream, w);
	if (from)
		return to_device(k, async, stream, w);
	return to ? to_host(k, async, stream, w) : on_device(k, async, stream, w);
}

CUresult copy_run(const struct copy *k, bool async, CUstream stream)
{
	if (__builtin_expect(!k->src.mirrored && !k->dst.mirrored, 1))
		return run(k, async, stream);
	CUresult r = mirror_send(false);

	if (!r)
		r = run(k, async, stream);
	/* The program may read what came, or write over what goes, at once. */
	if (!r && !async) {
		r = cuStreamSynchronize(NULL);
		mirror_fetch_unasked();
	}
	return r;
}
