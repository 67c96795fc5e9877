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
 * Thread rule: any thread. `lock` guards the list of copies that wait to be told. */
#include "devshim/copy.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/call.h"
#include "devshim/channel.h"
#include "devshim/context.h"
#include "devshim/mirror.h"
#include "devshim/range.h"
#include "devshim/transfer.h"
#include "devshim/upcall.h"
#include "devshim/work.h"
#include "wire/copy.h"
#include "wire/cuda.h"
#include "wire/deadline.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/uncancelled.h"
#include "cuda.calls.h"


/* Copies to pinned memory whose bytes have not been told. */
struct untold {
	struct untold *next;
	uintptr_t to;
	size_t n; /* bytes from the first to behind the last in memory */
	size_t bytes;
	struct work *work;
	uint64_t transfer;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct untold *untold;

/* A copy that runs when its stream gets there, on the upcall thread. */
struct aside {
	struct copy copy;
	struct context *context;
	struct work *work; /* of its stream; NULL in a graph */
	_Atomic uint64_t seq; /* the record that queued it, once known */
	_Atomic int users; /* who queued it and who runs it: the last one frees it */
	bool once;
};

static uint8_t *host_base(const struct copy_side *s)
{
	return (uint8_t *)(uintptr_t)s->address + s->z * s->pitch * s->height + s->y * s->pitch + s->x;
}

static struct transfer place_of(const struct copy *k, const struct copy_side *s)
{
	return (struct transfer){.to = host_base(s),
		.width = k->w,
		.height = k->h,
		.depth = k->d,
		.pitch = s->pitch,
		.slice = s->pitch * s->height};
}

static size_t total(const struct copy *k)
{
	return k->w * k->h * k->d;
}

/* From the first to behind the last byte in memory. */
static size_t span(const struct copy *k, const struct copy_side *s)
{
	return (k->d - 1) * s->pitch * s->height + (k->h - 1) * s->pitch + k->w;
}

static bool contiguous(const struct copy *k, const struct copy_side *s)
{
	return (k->h == 1 || s->pitch == k->w) && (k->d == 1 || s->pitch * s->height == k->w * k->h);
}

/* Bytes that wait to be told, and of how many copies; forgets those that have come. */
static size_t untold_bytes(uintptr_t from, size_t n, bool *overlap, unsigned *copies)
{
	size_t bytes = 0;

	*overlap = false;
	*copies = 0;
	if (!__atomic_load_n(&untold, __ATOMIC_RELAXED))
		return 0;
	pthread_mutex_lock(&lock);
	for (struct untold **u = &untold; *u;) {
		struct untold *c = *u;

		if (!transfer_pending(c->transfer)) {
			__atomic_store_n(u, c->next, __ATOMIC_RELAXED);
			free(c);
			continue;
		}
		bytes += c->bytes;
		++*copies;
		*overlap |= from < c->to + c->n && c->to < from + n;
		u = &c->next;
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}

bool copy_untold(const struct work *w)
{
	bool overlap, found = false;
	unsigned copies;

	if (!untold_bytes(0, 0, &overlap, &copies))
		return false;
	pthread_mutex_lock(&lock);
	for (struct untold *u = untold; u && !found; u = u->next)
		found = u->work == w;
	pthread_mutex_unlock(&lock);
	return found;
}

static void note_untold(struct untold *u)
{
	pthread_mutex_lock(&lock);
	u->next = untold;
	__atomic_store_n(&untold, u, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

/* ---- encoding */

static bool put_side(struct call *c, const struct copy_side *s)
{
	put_u64(&c->out, s->type);
	put_u64(&c->out, s->type == CU_MEMORYTYPE_DEVICE ? s->address : 0);
	if (s->type != CU_MEMORYTYPE_ARRAY)
		put_u64(&c->out, 0);
	else if (!put_handle(c, HANDLE_CUarray, s->array))
		return false;
	put_u64(&c->out, s->x);
	put_u64(&c->out, s->y);
	put_u64(&c->out, s->z);
	put_u64(&c->out, s->lod);
	put_u64(&c->out, s->pitch);
	put_u64(&c->out, s->height);
	return true;
}

static unsigned call_of(const struct copy *k, bool async)
{
	if (!k->linear)
		return async ? CALL_cuMemcpy3DAsync_v2 : CALL_cuMemcpy3D_v2;
	if (k->src.type == CU_MEMORYTYPE_HOST)
		return async ? CALL_cuMemcpyHtoDAsync_v2 : CALL_cuMemcpyHtoD_v2;
	if (k->dst.type == CU_MEMORYTYPE_HOST)
		return async ? CALL_cuMemcpyDtoHAsync_v2 : CALL_cuMemcpyDtoH_v2;
	return async ? CALL_cuMemcpyDtoDAsync_v2 : CALL_cuMemcpyDtoD_v2;
}

CUresult copy_put(struct call *c, const struct copy *k)
{
	if (!put_side(c, &k->src) || !put_side(c, &k->dst))
		return handle_error(HANDLE_CUarray);
	put_u64(&c->out, k->w);
	put_u64(&c->out, k->h);
	put_u64(&c->out, k->d);
	return CUDA_SUCCESS;
}

static CUresult encode(
	struct call *c, const struct copy *k, enum copy_mode mode, CUstream stream, uint64_t transfer)
{
	CUresult r = call_begin(c, call_of(k, mode == COPY_ASYNC || mode == COPY_HELD));

	if (r)
		return r;
	put_u64(&c->out, mode);
	if (mode != COPY_ASYNC && mode != COPY_HELD)
		put_u64(&c->out, 0);
	else if (!put_handle(c, HANDLE_CUstream, stream))
		return handle_error(HANDLE_CUstream);
	if (!k->linear) {
		r = copy_put(c, k);
		put_u64(&c->out, transfer);
		return r;
	}
	if (k->dst.type == CU_MEMORYTYPE_DEVICE)
		put_u64(&c->out, k->dst.address);
	if (k->src.type == CU_MEMORYTYPE_DEVICE)
		put_u64(&c->out, k->src.address);
	put_u64(&c->out, k->w);
	if (k->dst.type == CU_MEMORYTYPE_HOST)
		put_u64(&c->out, transfer);
	return CUDA_SUCCESS;
}

static CUresult wait_for(struct call *c)
{
	CUresult r = call_wait(c);

	return call_end(c, r);
}

/* ---- the ways */

/* Sends the bytes along. */
static CUresult send_bytes(
	const struct copy *k, enum copy_mode mode, CUstream stream, bool post, uint64_t *seq)
{
	struct call c;
	void *packed = NULL;
	CUresult r = encode(&c, k, mode, stream, 0);

	if (r)
		return r;
	c.bulk = host_base(&k->src);
	c.bulk_len = total(k);
	if (!contiguous(k, &k->src)) {
		uint8_t *p = packed = malloc(total(k));

		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		for (size_t z = 0; z < k->d; z++)
			for (size_t y = 0; y < k->h; y++, p += k->w)
				memcpy(p,
					(const uint8_t *)c.bulk + z * k->src.pitch * k->src.height +
						y * k->src.pitch,
					k->w);
		c.bulk = packed;
	}
	/* Pinned memory may be where the mount sees it; natively, too, an asynchronous copy reads it later.
	 * */
	c.bulk_at = packed ? 0 : range_arena((uintptr_t)c.bulk, c.bulk_len);
	c.bulk_held = mode == COPY_ASYNC || mode == COPY_HELD;
	r = post ? call_post(&c) : wait_for(&c);
	free(packed);
	*seq = c.seq;
	return r;
}

/* Waits for the bytes: small ones are in the answer, others come as data. */
static CUresult fetch_bytes(const struct copy *k, enum copy_mode mode, CUstream stream)
{
	struct transfer t = place_of(k, &k->dst);
	size_t n = total(k);
	struct call c;
	CUresult r;

	/* Inside the answer: fewer requests to the mount. */
	if (n <= channel_answer_room()) {
		bool direct = contiguous(k, &k->dst);
		void *p = direct ? t.to : malloc(n);

		r = p ? encode(&c, k, mode, stream, 0) : CUDA_ERROR_OUT_OF_MEMORY;
		if (!r) {
			c.bulk_out = p;
			c.bulk_out_len = n;
			r = wait_for(&c);
			if (!r && !direct)
				transfer_place(&t, 0, p, n);
		}
		if (!direct)
			free(p);
		return r;
	}
	uint64_t id = transfer_new(&t);

	if (!id)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = encode(&c, k, mode, stream, id);
	if (r) {
		transfer_drop(id);
		return r;
	}
	r = call_wait_transfer(&c, id);
	return call_end(&c, r);
}

static void copy_in_program(const struct copy *k)
{
	const uint8_t *from = host_base(&k->src);
	uint8_t *to = host_base(&k->dst);

	for (size_t z = 0; z < k->d; z++)
		for (size_t y = 0; y < k->h; y++)
			memmove(to + z * k->dst.pitch * k->dst.height + y * k->dst.pitch,
				from + z * k->src.pitch * k->src.height + y * k->src.pitch, k->w);
}

/* ---- at the stream's turn */

/* Copies that have been queued to run at their turn and have not run: none is the usual number. */
static _Atomic int asides;
static _Atomic bool in_graphs; /* some are nodes of graphs */
static pthread_cond_t aside_ended = PTHREAD_COND_INITIALIZER;

static void aside_over(void)
{
	pthread_mutex_lock(&lock);
	atomic_fetch_sub(&asides, 1);
	pthread_cond_broadcast(&aside_ended);
	pthread_mutex_unlock(&lock);
}

void copy_drain(void)
{
	struct context *c = context_current();
	int saved = errno;

	if (upcall_inside())
		return;
	/* A graph's copies are not counted: whatever is under way may be one. */
	if (__builtin_expect(atomic_load(&in_graphs), 0) && c && !work_capturing() && work_context_busy(c))
		cuCtxSynchronize();
	if (__builtin_expect(!atomic_load(&asides), 1))
		return;
	uncancelled state = uncancelled_begin();
	pthread_mutex_lock(&lock);
	while (atomic_load(&asides) && !process_check()) {
		/* A session that dies wakes nobody here: look again now and then. */
		struct timespec end = deadline_in(1000);

		pthread_cond_clockwait(&aside_ended, &lock, CLOCK_MONOTONIC, &end);
	}
	pthread_mutex_unlock(&lock);
	errno = saved;
}

static void aside_release(struct aside *a)
{
	if (atomic_fetch_sub(&a->users, 1) == 1)
		free(a);
}

/* In pieces that the server can take out of the bytes that wait, when a post is stuck in its driver
 * (docs/protocol.md, section 3). */
static CUresult send_aside(const struct copy *k)
{
	CUresult r = CUDA_SUCCESS;
	uint64_t seq;

	if (!k->linear || k->w <= COPY_ASIDE_PIECE)
		return send_bytes(k, COPY_ASIDE, NULL, false, &seq);
	for (size_t at = 0; !r && at < k->w; at += COPY_ASIDE_PIECE) {
		struct copy part = *k;

		part.src.address += at;
		part.dst.address += at;
		part.w = k->w - at < COPY_ASIDE_PIECE ? k->w - at : COPY_ASIDE_PIECE;
		r = send_bytes(&part, COPY_ASIDE, NULL, false, &seq);
	}
	return r;
}

static void run_aside(void *arg)
{
	struct aside *a = arg;
	struct thread *t = thread_self();
	struct context *was = t ? t->current : NULL;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (t) {
		t->current = a->context;
		if (a->copy.src.type == CU_MEMORYTYPE_HOST && a->copy.dst.type == CU_MEMORYTYPE_HOST) {
			copy_in_program(&a->copy);
			r = CUDA_SUCCESS;
		} else if (a->copy.src.type == CU_MEMORYTYPE_HOST) {
			r = send_aside(&a->copy);
		} else {
			r = fetch_bytes(&a->copy, COPY_ASIDE, NULL);
		}
		t->current = was;
	}
	if (r) {
		log_error("an asynchronous copy of %zu bytes failed: %d", total(&a->copy), r);
		call_failed_aside(r);
	}
	if (!a->once)
		return;
	/* Its turn had come, so all before it on the stream is done. */
	mirror_fetch_unasked();
	if (!copy_untold(a->work))
		work_done_until(a->work, atomic_load(&a->seq));
	aside_release(a);
	aside_over();
}

uint64_t copy_note(const struct copy *k, struct context *context)
{
	struct aside *a = malloc(sizeof *a);
	uint64_t id = 0;

	if (a) {
		*a = (struct aside){.copy = *k, .context = context, .once = false};
		id = upcall_new(run_aside, a, false, false);
		if (context)
			atomic_store(&context->in_graph, true);
		atomic_store(&work_graphs_gate, true);
		atomic_store(&in_graphs, true);
	}
	if (!id)
		free(a);
	return id;
}

bool copy_of_upcall(void (*run)(void *), const void *arg, CUDA_MEMCPY3D *out)
{
	if (run != run_aside)
		return false;
	const struct copy *k = &((const struct aside *)arg)->copy;
	const struct copy_side *from = &k->src, *to = &k->dst;

	*out = (CUDA_MEMCPY3D){.srcXInBytes = from->x,
		.srcY = from->y,
		.srcZ = from->z,
		.srcLOD = from->lod,
		.srcMemoryType = from->type,
		.srcArray = from->array,
		.srcPitch = from->pitch,
		.srcHeight = from->height,
		.dstXInBytes = to->x,
		.dstY = to->y,
		.dstZ = to->z,
		.dstLOD = to->lod,
		.dstMemoryType = to->type,
		.dstArray = to->array,
		.dstPitch = to->pitch,
		.dstHeight = to->height,
		.WidthInBytes = k->w,
		.Height = k->h,
		.Depth = k->d};
	if (from->type == CU_MEMORYTYPE_HOST)
		out->srcHost = (const void *)(uintptr_t)from->address;
	else
		out->srcDevice = from->address;
	if (to->type == CU_MEMORYTYPE_HOST)
		out->dstHost = (void *)(uintptr_t)to->address;
	else
		out->dstDevice = to->address;
	return true;
}

/* Queues it as a host function. In a capture it stays for all replays: graphs do not tell when the last
 * one is over. */
static CUresult run_later(const struct copy *k, CUstream stream, struct work *w, bool once)
{
	struct aside *a = malloc(sizeof *a);
	struct call c;
	uint64_t id = 0;
	CUresult r;

	if (a) {
		*a = (struct aside){
			.copy = *k, .context = context_current(), .work = w, .users = 2, .once = once};
		id = upcall_new(run_aside, a, once, false);
		if (!once && a->context)
			atomic_store(&a->context->in_graph, true);
		if (!once)
			atomic_store(&in_graphs, true);
	}
	if (!id) {
		free(a);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = call_begin(&c, CALL_cuLaunchHostFunc);
	if (!r && !put_handle(&c, HANDLE_CUstream, stream))
		r = handle_error(HANDLE_CUstream);
	if (!r) {
		put_u64(&c.out, id);
		atomic_fetch_add(&asides, once);
		bool full = work_is_full(w);
		work_gate_lock();
		r = once && !full ? call_post(&c) : wait_for(&c);
		if (!r)
			work_gated(w, c.seq);
		work_gate_unlock();
		if (r && once)
			aside_over();
	}
	if (r) {
		upcall_drop(id);
		free(a);
		return r;
	}
	atomic_store(&a->seq, c.seq);
	if (once)
		aside_release(a);
	return r;
}

/* ---- which way */

#define TURN_TRIES 16 /* others may gate the stream again and again */

/* Slots of the server that copies behind a host function have: `seq` is the record that took it, of the stream
 * of `work`. Guarded by the lock of gates. */
static struct {
	struct work *work;
	uint64_t seq;
} slot_held[COPY_HELD_SLOTS];

static size_t slots_of(const struct copy *k)
{
	/* Of a box a slot holds whole rows, so it may need more. */
	return k->linear || total(k) <= COPY_SLOT ? (total(k) + COPY_SLOT - 1) / COPY_SLOT : COPY_HELD_SLOTS + 1;
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

/* How a copy to the device is sent. Bytes that stand behind what ends only when the program lets it would hold
 * up the connection, and what the program asks meanwhile is behind them: so few of them as the server has room
 * for go ahead, the others wait here until their turn is near. *held: the lock of gates, until the record is
 * sent, so that what was found here stays so. */
static CUresult await_turn(
	const struct copy *k, bool async, CUstream stream, struct work *w, enum copy_mode *mode, bool *held)
{
	CUresult r = CUDA_SUCCESS;

	*mode = async ? COPY_ASYNC : COPY_SYNC;
	/* So few have no need of a slot. */
	*held = !(k->linear && total(k) <= COPY_SMALL) && !work_capturing() && !upcall_inside();
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

	untold_bytes((uintptr_t)host_base(&k->src), span(k, &k->src), &overlap, &copies);
	if (!async) {
		if (overlap && (r = cuCtxSynchronize()))
			return r;
		r = await_turn(k, false, ptds_active() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY, w, &mode, &held);
		if (r)
			return r;
		bool post = known && !work_is_busy(w);

		r = send_bytes(k, mode, NULL, post, &seq);
		if (held)
			work_gate_unlock();
		if (!r && !post)
			work_done(w, mark);
		return r;
	}
	if (k->src.pinned && work_is_gated(w))
		return run_later(k, stream, w, true);
	if ((overlap && (r = cuCtxSynchronize())) || (r = await_turn(k, true, stream, w, &mode, &held)))
		return r;
	bool post = known && !work_is_foreign(stream) && !work_is_full(w) &&
		    ((k->linear && k->w <= COPY_SMALL) || !work_is_gated(w));

	r = send_bytes(k, mode, stream, post, &seq);
	if (!r && mode == COPY_HELD)
		note_held(k, w, seq);
	if (held)
		work_gate_unlock();
	if (r)
		return r;
	/* Pinned memory may be read later, when its turn has come. */
	if (post && !k->src.pinned)
		work_copied(w, seq, total(k));
	else
		work_posted(w, seq);
	return r;
}

/* A small copy to pinned memory, told by a later answer. */
static CUresult to_host_told(const struct copy *k, CUstream stream, struct work *w)
{
	struct transfer t = place_of(k, &k->dst);
	struct untold *u = malloc(sizeof *u);
	uint64_t id = u ? transfer_new(&t) : 0;
	struct call c;
	CUresult r = id ? encode(&c, k, COPY_ASYNC, stream, id) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r)
		r = call_post(&c);
	if (r) {
		if (id)
			transfer_drop(id);
		free(u);
		return r;
	}
	*u = (struct untold){
		.to = (uintptr_t)t.to, .n = span(k, &k->dst), .bytes = total(k), .work = w, .transfer = id};
	work_posted(w, c.seq);
	note_untold(u);
	return r;
}

/* Whether an answer has room for one more copy that it tells. */
static bool may_be_told(const struct copy *k)
{
	bool overlap;
	unsigned copies;

	return total(k) <= COPY_DELIVERY &&
	       untold_bytes(0, 0, &overlap, &copies) + total(k) <= COPY_DELIVERIES &&
	       copies < COPY_DELIVERIES_MOST;
}

static CUresult to_host(const struct copy *k, bool async, CUstream stream, struct work *w)
{
	uint64_t mark = work_mark();
	bool known = k->src.type == CU_MEMORYTYPE_DEVICE && k->src.known;
	CUresult r;

	if (async && k->dst.pinned && known && !work_is_foreign(stream)) {
		if (!process_blocking && !work_is_full(w) && may_be_told(k))
			return to_host_told(k, stream, w);
		return run_later(k, stream, w, true);
	}
	/* It is over when its turn has come and gone: until then it takes none of the server's slots. */
	r = CUDA_SUCCESS;
	if (total(k) > COPY_SMALL && !work_capturing() && !upcall_inside() && work_is_gated(w))
		r = cuStreamSynchronize(async ? stream : ptds_active() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
	r = r ? r : fetch_bytes(k, async ? COPY_ASYNC : COPY_SYNC, stream);
	if (!r)
		work_done(w, mark);
	return r;
}

static CUresult on_device(const struct copy *k, bool async, CUstream stream, struct work *w)
{
	bool known = (k->src.type != CU_MEMORYTYPE_DEVICE || k->src.known) &&
		     (k->dst.type != CU_MEMORYTYPE_DEVICE || k->dst.known);
	struct call c;
	CUresult r = encode(&c, k, async ? COPY_ASYNC : COPY_SYNC, stream, 0);

	if (r)
		return r;
	/* From pinned memory to pinned memory the driver copies itself, in its call, once the stream is there
	 * (seen on an H200): a post would hold up the server's other records, a host function's among them.
	 * */
	bool blocks = k->src.mirrored && k->dst.mirrored;
	bool post = known && k->linear && !blocks && !work_capturing() &&
		    (async ? !work_is_foreign(stream) && !work_is_full(w) : !work_is_gated(w));

	r = post ? call_post(&c) : wait_for(&c);
	if (!r)
		work_posted(w, c.seq);
	return r;
}

static CUresult in_program(const struct copy *k, bool async, CUstream stream, struct work *w)
{
	CUresult r = CUDA_SUCCESS;

	if (async && work_is_gated(w))
		return run_later(k, stream, w, true);
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
			return run_later(k, stream, w, false);
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
