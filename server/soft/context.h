/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: current one of each thread, primary ones, limits, the sticky error.
 *
 * Thread rule: see state.h; the soft_ptds functions touch the calling thread's own state only. */
#pragma once
#include "server/soft/state.h"
#include "cuda.flavours.h"

struct context {
	struct object object; /* a primary context keeps its handle for the life of the process */
	int device;
	bool primary;
	bool active; /* exists: a primary one that is not retained does not */
	unsigned retains; /* of the primary context, or attachments of another */
	unsigned flags;
	uint64_t id;
	CUresult error; /* sticky: what a kernel did; every later call that may report it does */
	volatile bool cancel; /* the context dies: kernels should end */
	CUfunc_cache cache;
	unsigned stacked; /* places on the stacks of all threads */
	CUsharedconfig shared;
	size_t limits[CU_LIMIT_MAX];
	struct stream *legacy; /* the default stream, made on first use */
	struct stream *streams; /* all, the default ones included, linked by next */
};

/* Ways into an API function. enter_context: a live context is current. enter_healthy: and it has no sticky
 * error. */
struct guard enter_context(void);
struct guard enter_healthy(void);
/* The live current context, NULL with the reason in *why. */
struct context *context_current(CUresult *why);
/* The live context of that handle, NULL: the current one. */
struct context *context_named(CUcontext handle, CUresult *why);
/* Checks what enter_healthy checks, for calls that may do without a context. Inside a host function nothing
 * but 800 is answered. */
CUresult context_allowed(void);

/* The handle on top of the calling thread's stack, 0: none. It may be of a context that is gone. */
static inline uint64_t context_top(void)
{
	const struct thread *t = thread_self();
	return t->depth ? t->stack[t->depth - 1] : 0;
}
/* There must be room on that stack, or something. Under the lock. */
void context_push(struct thread *t, uint64_t h);
uint64_t context_pop(struct thread *t);
/* The calling thread ends: its stack goes. Under the lock. */
void context_thread_ended(struct thread *t);

bool contexts_init(void);
struct context *context_primary(int device);
/* Work of the context failed: remembered when it is the first. */
void context_fail(struct context *c, CUresult error);

/* Around a _ptsz or _ptds function: stream 0 means the calling thread's own default stream. */
void soft_ptds_begin(void);
void soft_ptds_end(void);
