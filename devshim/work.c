/* SPDX-License-Identifier: Apache-2.0 */
/* Streams are listed per context. A blocking stream and the legacy default stream wait for each other, so
 * each asks about the other too; the per-thread default streams of a context share one entry.
 *
 * Thread rule: see work.h. `lock` guards the lists; entries are read without it. */
#include "devshim/work.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cuda.calls.h"
#include "devshim/call.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "wire/deadline.h"
#include "wire/uncancelled.h"

#define ROOM_MS 50 /* for host functions to go on */

struct stream_set {
	struct stream_set *next;
	const struct context *context;
	struct work legacy, per_thread;
	struct work *_Atomic first; /* created streams; entries stay in the list */
	_Atomic uint64_t last, done; /* of all of them together */
};

_Atomic int captures;
_Atomic bool work_graphs_gate;
static struct stream_set *_Atomic sets;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t newest; /* number of the newest record that gave any stream work */
static _Thread_local struct stream_set *recent;
static pthread_mutex_t room_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;
static _Atomic int waiting;
static _Atomic bool shared; /* see work_share */
static _Atomic bool seen_outside; /* see work_seen_outside */

static void raise_to(_Atomic uint64_t *v, uint64_t to)
{
	uint64_t old = atomic_load_explicit(v, memory_order_relaxed);

	while (old < to && !atomic_compare_exchange_weak(v, &old, to)) {
	}
}

static uint64_t get(_Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_acquire);
}

static struct stream_set *set_find(const struct context *c)
{
	struct stream_set *s = recent;

	if (s && s->context == c)
		return s;
	for (s = atomic_load_explicit(&sets, memory_order_acquire); s && s->context != c; s = s->next) {
	}
	return recent = s;
}

static struct stream_set *set_of(struct context *c)
{
	struct stream_set *s = set_find(c);

	if (s || !c)
		return s;
	pthread_mutex_lock(&lock);
	s = set_find(c);
	if (!s && (s = calloc(1, sizeof *s))) {
		s->context = c;
		s->legacy.set = s->per_thread.set = s;
		s->legacy.stream = CU_STREAM_LEGACY;
		s->per_thread.stream = CU_STREAM_PER_THREAD;
		s->legacy.priority = s->per_thread.priority = INT_MIN;
		s->next = atomic_load(&sets);
		atomic_store_explicit(&sets, s, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return recent = s;
}

struct work *work_of(CUstream h)
{
	if (h == NULL)
		h = ptds_active() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
	if (h == CU_STREAM_LEGACY || h == CU_STREAM_PER_THREAD) {
		struct stream_set *s = set_of(context_current());

		return !s ? NULL : h == CU_STREAM_LEGACY ? &s->legacy : &s->per_thread;
	}
	return handle_data(HANDLE_CUstream, h);
}

struct work *work_legacy(struct context *c)
{
	struct stream_set *s = set_of(c);

	return s ? &s->legacy : NULL;
}

bool work_is_foreign(CUstream h)
{
	struct context *c = context_current();

	return (uintptr_t)h > 2 && c && handle_owner(HANDLE_CUstream, h) != c->handle;
}

bool work_create(CUstream h, unsigned flags, int priority)
{
	struct stream_set *s = set_of(context_current());
	struct work *w;

	if (!s)
		return false;
	pthread_mutex_lock(&lock);
	/* An entry serves again when its old work is done: events may still ask about that. */
	for (w = atomic_load(&s->first); w && (w->stream || get(&w->last) > get(&w->done)); w = w->next) {
	}
	if (!w && (w = calloc(1, sizeof *w))) {
		w->set = s;
		w->next = atomic_load(&s->first);
		atomic_store_explicit(&s->first, w, memory_order_release);
	}
	if (w) {
		w->flags = flags;
		w->priority = priority;
		atomic_store(&w->id, 0);
		w->stream = h;
	}
	pthread_mutex_unlock(&lock);
	return w && handle_set_data(HANDLE_CUstream, h, w);
}

/* The stream is gone; work that it had may still run, which the numbers keep telling. */
static void stream_dropped(const void *h, void *data)
{
	struct work *w = data;

	(void)h;
	pthread_mutex_lock(&lock);
	w->stream = NULL;
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_streams(void)
{
	handle_on_drop(HANDLE_CUstream, stream_dropped);
}

void work_share(void)
{
	atomic_store(&shared, true);
}

static void gave_work(struct work *w, uint64_t seq)
{
	raise_to(&w->last, seq);
	raise_to(&w->set->last, seq);
	raise_to(&newest, seq);
}

void work_posted(struct work *w, uint64_t seq)
{
	if (!w)
		return;
	raise_to(&w->other, seq);
	gave_work(w, seq);
}

void work_copied(struct work *w, uint64_t seq, uint64_t bytes)
{
	if (!w)
		return;
	if (get(&w->last) <= get(&w->done))
		atomic_store(&w->copied, 0);
	atomic_fetch_add(&w->copied, bytes);
	gave_work(w, seq);
}

void work_seen_outside(void)
{
	atomic_store(&seen_outside, true);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

void work_gate_lock(void) { pthread_mutex_lock(&gate); }
void work_gate_unlock(void) { pthread_mutex_unlock(&gate); }

void work_gated(struct work *w, uint64_t seq)
{
	if (work_capturing())
		atomic_store_explicit(&work_graphs_gate, true, memory_order_relaxed);
	if (!w)
		return;
	raise_to(&w->gate, seq);
	work_posted(w, seq);
}

static bool busy(struct work *w)
{
	return get(&w->last) > get(&w->done);
}
static bool gated(struct work *w)
{
	return get(&w->gate) > get(&w->done);
}
static bool blocking(const struct work *w)
{
	return !(w->flags & CU_STREAM_NON_BLOCKING);
}

/* Whether `is` holds for the stream or for one that the rules of the default stream make it wait for. */
static bool any_before(struct work *w, bool (*is)(struct work *))
{
	struct stream_set *s = w->set;

	if (is(w))
		return true;
	if (!blocking(w) || get(&s->last) <= get(&s->done))
		return false;
	if (w != &s->legacy)
		return is(&s->legacy);
	if (is(&s->per_thread))
		return true;
	for (struct work *o = atomic_load_explicit(&s->first, memory_order_acquire); o; o = o->next)
		if (blocking(o) && is(o))
			return true;
	return false;
}

bool work_is_done(struct work *w, uint64_t seq)
{
	return get(&w->done) >= seq;
}
bool work_is_gated(struct work *w)
{
	return !w || any_before(w, gated);
}
bool work_is_busy(struct work *w)
{
	return !w || work_capturing() || atomic_load_explicit(&shared, memory_order_relaxed) ||
	       any_before(w, busy);
}

bool work_context_busy(struct context *c)
{
	struct stream_set *s = set_find(c);
	bool any;

	if (work_capturing() || atomic_load_explicit(&shared, memory_order_relaxed))
		return true;
	if (!s)
		return false;
	uint64_t last = get(&s->last);

	if (last <= get(&s->done))
		return false;
	any = busy(&s->legacy) || busy(&s->per_thread);
	for (struct work *o = atomic_load_explicit(&s->first, memory_order_acquire); o && !any; o = o->next)
		any = busy(o);
	if (!any)
		raise_to(&s->done, last);
	return any;
}

static bool has_other(struct work *w)
{
	return get(&w->other) > get(&w->done);
}

bool work_only_copied(struct work *w)
{
	struct stream_set *s = w->set;
	bool other = has_other(&s->legacy) || has_other(&s->per_thread);

	if (work_capturing() || mirror_any() || atomic_load_explicit(&shared, memory_order_relaxed) ||
		atomic_load_explicit(&seen_outside, memory_order_relaxed) || w == &s->per_thread)
		return false;
	uint64_t bytes = busy(&s->legacy) ? atomic_load(&s->legacy.copied) : 0;

	struct work *o = atomic_load_explicit(&s->first, memory_order_acquire);

	for (; o && !other; o = o->next) {
		other = has_other(o);
		bytes += busy(o) ? atomic_load(&o->copied) : 0;
	}
	return !other && !busy(&s->per_thread) && bytes <= WORK_COPIED;
}

uint64_t work_mark(void)
{
	return get(&newest);
}

void work_done_until(struct work *w, uint64_t seq)
{
	if (!w || !seq || w == &w->set->per_thread)
		return;
	raise_to(&w->done, seq);
	if (!atomic_load(&waiting))
		return;
	pthread_mutex_lock(&room_lock);
	pthread_cond_broadcast(&room);
	pthread_mutex_unlock(&room_lock);
}

bool work_wait_room(struct work *w)
{
	uint64_t done = get(&w->done);
	int saved = errno, r = 0;

	uncancelled state = uncancelled_begin();
	/* Held by something that does not move: the program itself, perhaps this very thread. */
	if (atomic_load(&w->stuck) == done)
		return false;
	struct timespec end = deadline_in(ROOM_MS);
	atomic_fetch_add(&waiting, 1);
	pthread_mutex_lock(&room_lock);
	while (!r && get(&w->done) == done)
		r = pthread_cond_clockwait(&room, &room_lock, CLOCK_MONOTONIC, &end);
	pthread_mutex_unlock(&room_lock);
	atomic_fetch_sub(&waiting, 1);
	errno = saved;
	if (get(&w->done) != done)
		return get(&w->last) - get(&w->done) <= WORK_BEHIND_GATE;
	atomic_store(&w->stuck, done);
	return false;
}

/* Whoever reads of these numbers that work is done finds in memory what kernels wrote there. */
void work_done(struct work *w, uint64_t mark)
{
	mirror_fetch();
	if (!w)
		return;
	/* Waiting for one thread's default stream says nothing about the others that share the entry. */
	if (w == &w->set->per_thread)
		return;
	raise_to(&w->done, mark);
	if (w != &w->set->legacy)
		return;
	for (struct work *o = atomic_load_explicit(&w->set->first, memory_order_acquire); o; o = o->next)
		if (blocking(o))
			raise_to(&o->done, mark);
	raise_to(&w->set->per_thread.done, mark);
}

static void context_done(struct context *c, uint64_t mark)
{
	struct stream_set *s = set_find(c);

	if (!s)
		return;
	raise_to(&s->legacy.done, mark);
	raise_to(&s->per_thread.done, mark);
	for (struct work *o = atomic_load_explicit(&s->first, memory_order_acquire); o; o = o->next)
		raise_to(&o->done, mark);
	raise_to(&s->done, mark);
}

void work_context_done(struct context *c, uint64_t mark)
{
	mirror_fetch();
	context_done(c, mark);
}

void work_context_died(struct context *c)
{
	struct stream_set *s = set_find(c);

	context_done(c, work_mark());
	if (!s)
		return;
	/* Default streams of the context that follows are others. */
	atomic_store(&s->legacy.id, 0);
	atomic_store(&s->per_thread.id, 0);
}
