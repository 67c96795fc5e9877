/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts as the application sees them: primary and created ones, and which is current in the calling
 * thread. All of this is the shim's own state; the server learns the current context from each record.
 *
 * Thread rule: the current context is the calling thread's. Contexts are never freed, so a pointer to one
 * stays good; one that has ended and is on no stack serves the next that is made. Fields that change are
 * atomic or under `context_lock`. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "devshim/process.h"
#include "wire/cuda_types.h"

#define CONTEXT_LIMITS 16

struct context {
	CUcontext handle;
	CUdevice device;            /* the application's ordinal */
	bool primary;
	bool green;                 /* of a green context: it dies with that */
	_Atomic bool alive;         /* active, when primary */
	_Atomic int sticky;         /* the error that this context is lost to, or 0 */
	_Atomic unsigned flags;
	_Atomic unsigned stacked;   /* places on the stacks of all threads */
	_Atomic bool in_graph;      /* a graph's copy names it, which stays: it serves no other */
	struct context *next_ended; /* under context_lock */
	/* Retains of a primary, which a reset leaves; attachments of another; under context_lock. */
	unsigned users;
	_Atomic uint64_t id;        /* of cuCtxGetId; 0: not asked; new with each activation */
	/* Asked once; under context_lock, but for `known`, whose bits are set last. */
	_Atomic unsigned known;     /* bit i: limit[i]; CONTEXT_CACHE, CONTEXT_PRIORITY */
	size_t limit[CONTEXT_LIMITS];
	CUfunc_cache cache;
	_Atomic unsigned chosen;    /* the cache configuration that the program chose last, and 1; 0: none */
	int priority[2];            /* least, greatest */
};
#define CONTEXT_CACHE       (1u << 30)
#define CONTEXT_PRIORITY    (1u << 31)

extern pthread_mutex_t context_lock;
/* What the program has set. Natively its threads look for the GPU as long as a wait lasts, unless these flags
 * have them sleep (CU_CTX_SCHED_BLOCKING_SYNC). Any thread. */
void context_set_flags(struct context *c, unsigned flags);

/* The calling thread's current context, or NULL. */
static inline struct context *context_current(void)
{
	struct thread *t = thread_self();
	return t ? t->current : 0;
}
/* What a call that needs a context does first: 0 with the current one, or what it has to answer: not
 * initialised, 201 none, 709 destroyed, the sticky error. */
CUresult context_check(struct context **out);
/* The same without the sticky error. */
CUresult context_check_present(struct context **out);
/* The calling thread ends: its stack goes. */
void context_thread_ends(struct thread *t);
/* The context of a handle that the application gave; NULL when there is none. A primary context is found
 * whether active or not. */
struct context *context_find(CUcontext h);
struct call;
/* Takes what the answer that made it tells of a context; under context_lock. */
void context_facts(struct call *k, struct context *c);
/* Called by call.c when the server answered with an error that ends a context. */
void context_lost(struct context *c, CUresult code);
/* True for errors that a context never recovers from. */
bool context_is_sticky(CUresult code);
/* The primary contexts of `count` devices, before any call is made. */
bool context_init(int count);
/* The primary context of a device of the application; NULL for no device. */
struct context *context_primary(CUdevice device);
/* The context of that handle, which the server has told as a green context's; made when it is new. NULL
 * without memory. */
struct context *context_of_green(CUcontext h, CUdevice device);
/* Its green context has been destroyed. */
void context_end_green(struct context *c);
