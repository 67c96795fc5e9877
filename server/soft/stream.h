/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: a queue of work each, in order, with what each piece has to wait for.
 *
 * A mark tells that a piece of work has ended. It lives on its own, so that events and waits outlive streams
 * and events. Thread rule: see state.h. A stream's work is run by its runner thread, or by a caller who would
 * wait for it anyway. */
#pragma once
#include "server/soft/context.h"
#include "server/soft/work.h"

struct mark {
	unsigned refs;
	bool done;
	uint64_t time; /* now_ns when it was done */
	uint64_t serial; /* order of queueing, process-wide */
};

struct op {
	struct op *next;
	struct work work;
	struct mark *mark;
	struct mark **waits; /* ended before this may start */
	unsigned nwaits;
};

struct capture;
struct stream {
	struct object object;
	struct stream *next; /* of the context */
	struct stream *next_own; /* per-thread streams of the thread */
	struct thread *owner; /* a per-thread stream's thread */
	unsigned flags;
	int priority;
	uint64_t id;
	bool legacy;
	bool blocking; /* ordered against the legacy stream */
	bool running; /* its head is being run */
	bool runner; /* has a thread */
	bool closing;
	pthread_cond_t wake; /* for the runner */
	struct op *head, *tail;
	unsigned pending; /* operations in that list */
	struct mark *last; /* of the newest work; NULL: none yet */
	CUsynchronizationPolicy policy;
	CUaccessPolicyWindow window;
	CUlaunchMemSyncDomain domain;
	CUlaunchMemSyncDomainMap map;
	struct capture *capture; /* capture.h */
	struct node **tips; /* nodes that the next captured one depends on */
	unsigned ntips;
};

#define STREAM_DEPTH 1024 /* operations that a stream holds before a call has to wait */
#define STREAM_PRIORITY_GREATEST (-5) /* the range is 0 (least) to this */

/* The stream that an API argument means, 0, 1 and 2 included. Error: the code in *why. */
struct stream *stream_named(struct context *c, CUstream handle, CUresult *why);
struct stream *stream_legacy(struct context *c);
struct stream *stream_create(struct context *c, unsigned flags, int priority);
/* Queues w, which is the stream's from now on even in case of an error, or captures it. *mark, if asked for,
 * is a new reference (NULL when captured). */
CUresult stream_submit(struct stream *s, struct work *w, struct mark **mark);
/* The same, run by the caller itself when nothing is in its way: for calls that are done on return if they
 * can be. */
CUresult stream_submit_eager(struct stream *s, struct work *w);
/* The same and waits for its end. Not allowed while capturing. */
CUresult stream_submit_wait(struct stream *s, struct work *w);
/* Queues a wait for marks. */
CUresult stream_wait_marks(struct stream *s, struct mark **marks, unsigned n, struct mark **mark);
bool stream_idle(const struct stream *s);
/* Waits for all that is queued now. The stream or context may die meanwhile. Prints what kernels printed. */
void stream_drain(struct stream *s);
void context_drain(struct context *c);
/* For a context's death: the same, but kernels that do not end by themselves are told to. */
void context_drain_dying(struct context *c);
void streams_close(struct context *c);
void stream_thread_ended(struct thread *t);

struct mark *mark_ref(struct mark *m);
void mark_unref(struct mark *m);
/* Gives the lock away until the mark is done. */
void mark_wait(struct mark *m);
/* Prints what kernels printed, without the lock. */
void print_pending(void);
