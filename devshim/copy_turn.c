/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that run when their stream gets there: a host function of ours, on the upcall thread, moves the
 * bytes. So travel large asynchronous copies to pinned memory, those from pinned memory that earlier work may
 * still write, and in graphs all with a side in the program.
 *
 * Thread rule: any thread. `lock` goes with `aside_ended`; `asides` is read without. */
#include "devshim/copy_parts.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "devshim/context.h"
#include "devshim/mirror.h"
#include "devshim/upcall.h"
#include "wire/cuda.h"
#include "wire/deadline.h"
#include "wire/log.h"
#include "wire/uncancelled.h"

struct aside {
	struct copy copy;
	struct context *context;
	struct work *work; /* of its stream; NULL in a graph */
	_Atomic uint64_t seq; /* the record that queued it, once known */
	_Atomic int users; /* who queued it and who runs it: the last one frees it */
	bool once;
};

/* Copies that have been queued to run at their turn and have not run: none is the usual number. */
static _Atomic int asides;
static _Atomic bool in_graphs; /* some are nodes of graphs */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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
		return copy_send_bytes(k, COPY_ASIDE, NULL, false, &seq);
	for (size_t at = 0; !r && at < k->w; at += COPY_ASIDE_PIECE) {
		struct copy part = *k;

		part.src.address += at;
		part.dst.address += at;
		part.w = k->w - at < COPY_ASIDE_PIECE ? k->w - at : COPY_ASIDE_PIECE;
		r = copy_send_bytes(&part, COPY_ASIDE, NULL, false, &seq);
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
			r = copy_fetch_bytes(&a->copy, COPY_ASIDE, NULL);
		}
		t->current = was;
	}
	if (r) {
		log_error("an asynchronous copy of %zu bytes failed: %d", copy_total(&a->copy), r);
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

static uint64_t hash_side(uint64_t h, const struct copy_side *s)
{
	h = upcall_hash(upcall_hash(h, s->address), (uintptr_t)s->array);
	return upcall_hash(upcall_hash(upcall_hash(h, s->x), s->y), s->z);
}

static bool same_side(const struct copy_side *a, const struct copy_side *b)
{
	return a->type == b->type && a->address == b->address && a->array == b->array && a->x == b->x &&
	       a->y == b->y && a->z == b->z && a->lod == b->lod && a->pitch == b->pitch &&
	       a->height == b->height && a->pinned == b->pinned && a->mirrored == b->mirrored &&
	       a->known == b->known;
}

/* A node runs a copy and changes nothing of it. */
static bool same_in_graph(const void *one, const void *other)
{
	const struct aside *a = one, *b = other;

	return a->context == b->context && same_side(&a->copy.src, &b->copy.src) &&
	       same_side(&a->copy.dst, &b->copy.dst) && a->copy.w == b->copy.w && a->copy.h == b->copy.h &&
	       a->copy.d == b->copy.d && a->copy.linear == b->copy.linear;
}

static uint64_t keep_in_graph(const struct copy *k, struct context *context)
{
	uint64_t h = hash_side(hash_side(UPCALL_HASH, &k->src), &k->dst);
	struct aside *a = malloc(sizeof *a);

	if (a)
		*a = (struct aside){.copy = *k, .context = context, .once = false};
	return upcall_keep(run_aside, a, false, upcall_hash(h, k->w), same_in_graph);
}

uint64_t copy_note(const struct copy *k, struct context *context)
{
	uint64_t id = keep_in_graph(k, context);

	if (id) {
		if (context)
			atomic_store(&context->in_graph, true);
		atomic_store(&work_graphs_gate, true);
		atomic_store(&in_graphs, true);
	}
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

CUresult copy_run_later(const struct copy *k, CUstream stream, struct work *w, bool once)
{
	struct aside *a = once ? malloc(sizeof *a) : NULL;
	struct context *context = context_current();
	struct call c;
	uint64_t id = 0;
	CUresult r;

	if (!once) {
		id = keep_in_graph(k, context);
		if (id && context)
			atomic_store(&context->in_graph, true);
		if (id)
			atomic_store(&in_graphs, true);
	} else if (a) {
		*a = (struct aside){.copy = *k, .context = context, .work = w, .users = 2, .once = true};
		id = upcall_new(run_aside, a, true, false);
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
		r = once && !full ? call_post(&c) : copy_wait_for(&c);
		if (!r)
			work_gated(w, c.seq);
		work_gate_unlock();
		if (r && once)
			aside_over();
	}
	if (!once)
		return r;
	if (r) {
		upcall_drop(id);
		free(a);
		return r;
	}
	atomic_store(&a->seq, c.seq);
	aside_release(a);
	return r;
}
