/* SPDX-License-Identifier: Apache-2.0 */
/* What the shim knows about unfinished work, so that it asks the server only when there is something to
 * wait for: per stream the number of the last record that gave it work, and up to which record its work is
 * known to be done.
 *
 * Thread rule: all functions may be called from any thread. The numbers only grow; one that is seen late
 * makes a call ask the server once more. A struct work is never unmapped: that of a destroyed stream
 * serves a later one. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "devshim/context.h"
#include "wire/cuda_types.h"

/* Bytes copied from the program's memory for whose end it is not made to wait: more take longer to go than an
 * answer to come. */
#define WORK_COPIED (1u << 20)
/* Records of a stream with host functions that may be unfinished; the driver's own queue is deeper. */
#define WORK_BEHIND_GATE 256

struct stream_set;
struct work {
	_Atomic uint64_t last; /* the last record that gave work */
	_Atomic uint64_t done; /* work of records up to this one is done */
	/* the last record whose work ends only when the program does something: host functions */
	_Atomic uint64_t gate;
	_Atomic uint64_t other; /* the last record that gave work, but for those of work_copied */
	_Atomic uint64_t copied; /* bytes of those since the stream was known to be done */
	struct stream_set *set; /* of its context */
	struct work *next; /* in the set */
	CUstream stream; /* NULL in a free one */
	unsigned flags; /* as cuStreamCreate's */
	int priority; /* as cuStreamGetPriority answers; INT_MIN: not known */
	_Atomic uint64_t id; /* of cuStreamGetId; 0: not known */
	_Atomic uint64_t stuck; /* `done` when a wait for room was in vain */
};

/* That of a stream value as the application gave it (0 follows the flavour of the call), in the current
 * context where it is a default stream. NULL when there is none: the stream is unknown, or no context is
 * current. */
struct work *work_of(CUstream s);
/* That of a context's legacy default stream; NULL without memory. */
struct work *work_legacy(struct context *c);
/* A new stream of the current context, noted with its handle. */
bool work_create(CUstream s, unsigned flags, int priority);

/* True when the stream belongs to another context than the current one: the driver says what may be put
 * into it. */
bool work_is_foreign(CUstream s);

/* The record `seq` gave the stream work. */
void work_posted(struct work *w, uint64_t seq);
/* The same, and the work is to copy bytes, which have been taken from the program, to a place in device
 * memory that is known to be there. */
void work_copied(struct work *w, uint64_t seq, uint64_t bytes);
/* True when nothing but few such bytes may be unfinished in the stream's context. Then the server alone may
 * wait for them, ahead of all that the program does next: nobody sees whether the program waited, and nothing
 * can fail. */
bool work_only_copied(struct work *w);
/* Other programs see this one's device memory, or this one theirs. */
void work_seen_outside(void);
/* The same, and the work ends only when the program lets it. */
void work_gated(struct work *w, uint64_t seq);
/* Who gates a stream holds the lock from ahead of its record until that is noted. So who has found a stream
 * free of gates under the lock, and holds it until its own record is on its way, is ahead of any gate. */
void work_gate_lock(void);
void work_gate_unlock(void);
/* Some graph may hold what ends only when the program lets it: a host function, a copy of the program's
 * memory, a wait. What gates a stream while a capture is under way is taken for such a one. */
extern _Atomic bool work_graphs_gate;
/* True when an earlier host function may hold the stream. */
bool work_is_gated(struct work *w);

/* True when so much stands behind a host function that the driver's queue may be full, which would hold up
 * the server: then a call has to wait. Gives the host functions a moment to go on before it says so. */
bool work_wait_room(struct work *w);
static inline bool work_is_full(struct work *w)
{
	uint64_t done = atomic_load_explicit(&w->done, memory_order_relaxed);

	return __builtin_expect(atomic_load_explicit(&w->gate, memory_order_relaxed) > done, 0) &&
	       atomic_load_explicit(&w->last, memory_order_relaxed) - done > WORK_BEHIND_GATE &&
	       !work_wait_room(w);
}

/* From now on nothing is answered from here: contexts share work in ways that only the driver knows. */
void work_share(void);

/* True when the record `seq`, which gave the stream work, is known to be done. */
bool work_is_done(struct work *w, uint64_t seq);
/* True when the stream, or one that it waits for by the rules of the default stream, may have unfinished
 * work. */
bool work_is_busy(struct work *w);
/* True when any stream of the context may. */
bool work_context_busy(struct context *c);
/* What a wait for the stream, or the context, will cover: read before it, given to work_done after it has
 * succeeded. */
uint64_t work_mark(void);
void work_done(struct work *w, uint64_t mark);
void work_context_done(struct context *c, uint64_t mark);
/* The context has died, and its work with it. */
void work_context_died(struct context *c);
/* The work of one record and of those before it on its stream is done; what kernels wrote into memory that
 * the program has, too, was fetched. Says nothing about a per-thread default stream, which several threads
 * share. */
void work_done_until(struct work *w, uint64_t seq);

/* Captures under way in the process: while there are any, nothing is answered from here. */
extern _Atomic int captures;
static inline bool work_capturing(void)
{
	return atomic_load_explicit(&captures, memory_order_relaxed) > 0;
}
