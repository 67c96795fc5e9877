/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts as the application sees them: primary and created ones, and which is current in the calling thread. All of this is the shim's own state; the
 * server learns the current context from each record.
 *
 * Thread rule: the current context is the calling thread's. Contexts are never freed, so a pointer to one stays good; fields that change are atomic
 * or under context.c's lock. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "devshim/process.h"
#include "wire/cuda_types.h"

struct context {
	CUcontext handle;
	CUdevice device;            /* the application's ordinal */
	bool primary;
	_Atomic bool alive;         /* active, when primary */
	_Atomic int sticky;         /* the error that this context is lost to, or 0 */
	_Atomic unsigned flags;
	unsigned api_version;
	unsigned retained;          /* primary: users */
	uint64_t id;                /* of cuCtxGetId; a primary context gets a new one each time it is activated */
	_Atomic uint64_t cached;    /* bits of what is known, see context.c */
	int priority[2];
	size_t limits[16];
};

/* The calling thread's current context, or NULL. */
static inline struct context *context_current(void)
{
	struct thread *t = thread_self();
	return t ? t->current : 0;
}
/* The current context when a call may go on in it: 0, or what the call has to answer (201 none, 709 destroyed, a sticky error). */
CUresult context_check(struct context **out);
/* The context of a handle that the application gave; NULL when there is none. */
struct context *context_find(CUcontext h);
/* Called by call.c when the server answered with an error that ends a context. */
void context_lost(struct context *c, CUresult code);
/* True for errors that a context never recovers from. */
bool context_is_sticky(CUresult code);
/* The primary contexts of `count` devices, before any call is made. */
bool context_init(int count);
/* The handle of a device's primary context, whether active or not; NULL for no device. For tables.c too. */
CUcontext tables_primary_context(CUdevice device);
