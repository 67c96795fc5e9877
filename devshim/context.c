/* SPDX-License-Identifier: Apache-2.0 */
/* The life of contexts and the stack of each thread. Primary contexts have fixed handles, known before they
 * are active: a runtime makes one current first and retains it afterwards.
 *
 * Thread rule: `context_lock` serialises births and deaths; it is held across the server's answer, so that
 * two threads that retain the same primary context see one context. The calling thread's stack needs no
 * lock. */
#include "devshim/context.h"
#include <errno.h>
#include <stdlib.h>
#include "cuda.calls.h"
#include "cuda.remote.h"
#include "devshim/call.h"
#include "devshim/device.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "devshim/copy.h"
#include "devshim/module.h"
#include "devshim/occupancy.h"
#include "devshim/range.h"
#include "devshim/ring.h"
#include "devshim/work.h"
#include "devshim/tables.h"
#include "wire/cuda.h"
#include "wire/limits.h"

/* Recursive for a callback of the driver's log, which may run while a thread waits for an answer with the
 * lock held, and whose own calls are refused. */
pthread_mutex_t context_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct context primary[LIMIT_DEVICES];
static struct context *ended; /* made ones that are gone; under the lock */

bool context_is_sticky(CUresult code)
{
	switch (code) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_TENSOR_MEMORY_LEAK:
		return true;
	default:
		return false;
	}
}

void context_lost(struct context *c, CUresult code)
{
	int none = 0;
	atomic_compare_exchange_strong(&c->sticky, &none, (int)code);
}

struct context *context_find(CUcontext h) { return handle_data(HANDLE_CUcontext, h); }

struct context *context_primary(CUdevice device) { return device_get(device) ? &primary[device] : NULL; }

CUcontext tables_primary_context(CUdevice device)
{
	struct context *c = process_check() ? NULL : context_primary(device);
	return c ? c->handle : NULL;
}

bool context_init(int count)
{
	for (int i = 0; i < count; i++) {
		struct context *c = &primary[i];
		c->handle = handle_value(HANDLE_CUcontext, HANDLE_FIRST + (uint32_t)device_to_server(i));
		c->device = i;
		c->primary = true;
		if (!handle_note(HANDLE_CUcontext, c->handle, NULL) ||
				!handle_set_data(HANDLE_CUcontext, c->handle, c))
			return false;
	}
	return true;
}

CUresult context_check_present(struct context **out)
{
	CUresult r = process_check();
	if (r)
		return r;
	struct context *c = context_current();
	if (!c)
		return thread_cached && thread_cached->host_function ? CUDA_ERROR_NOT_PERMITTED :
				CUDA_ERROR_INVALID_CONTEXT;
	if (!atomic_load_explicit(&c->alive, memory_order_relaxed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*out = c;
	return CUDA_SUCCESS;
}

CUresult context_check(struct context **out)
{
	CUresult r = context_check_present(out);
	return r ? r : (CUresult)atomic_load_explicit(&(*out)->sticky, memory_order_relaxed);
}

void context_set_flags(struct context *c, unsigned flags)
{
	atomic_store(&c->flags, flags);
	if ((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC)
		ring_wait_asleep();
}

/* Under the lock: the context lives from here on. */
static void born(struct context *c, unsigned flags, unsigned users)
{
	c->users = users;
	atomic_store(&c->sticky, 0);
	atomic_store(&c->id, 0);
	atomic_store(&c->known, 0);
	atomic_store(&c->chosen, 0);
	context_set_flags(c, flags);
	atomic_store(&c->alive, true);
}

/* Under the lock: one for a context that is made: one that has ended and that no thread has on its stack, so
 * that a program that makes contexts for ever does not grow. NULL without memory. */
static struct context *take_ended(void)
{
	struct context **at = &ended;
	struct context *c;

	while ((c = *at) && (atomic_load(&c->stacked) || atomic_load(&c->in_graph)))
		at = &c->next_ended;
	if (!c)
		return calloc(1, sizeof *c);
	*at = c->next_ended;
	return c;
}

/* Under the lock: it is nobody's but for the stacks that it is on. */
static void give_ended(struct context *c)
{
	c->next_ended = ended;
	ended = c;
}

/* Without the lock: what belonged to it goes. */
static void died(struct context *c)
{
	handle_drop_owner(c->handle);
	range_drop_owner(RANGE_NONE, c->handle);
	work_context_died(c);
	occupancy_context_died();
	library_context_died(c->handle);
	tables_context_died(c->handle);
}

/* ---- the stack of the calling thread */

static CUresult push(struct thread *t, struct context *c)
{
	if (t->current) {
		if (t->depth == t->room) {
			unsigned room = t->room ? 2 * t->room : 8;
			void *p = realloc(t->stack, room * sizeof *t->stack);
			if (!p)
				return CUDA_ERROR_OUT_OF_MEMORY;
			t->stack = p;
			t->room = room;
		}
		t->stack[t->depth++] = t->current;
	}
	t->current = c;
	atomic_fetch_add(&c->stacked, 1);
	return CUDA_SUCCESS;
}

static void pop(struct thread *t)
{
	atomic_fetch_sub(&t->current->stacked, 1);
	t->current = t->depth ? t->stack[--t->depth] : NULL;
}

void context_thread_ends(struct thread *t)
{
	while (t->current)
		pop(t);
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *c = context_current();
	*pctx = c ? c->handle : NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	struct thread *t = thread_self();
	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (t->current && t->current->handle == ctx)
		return CUDA_SUCCESS;
	if (!ctx) {
		if (t->current)
			pop(t);
		return CUDA_SUCCESS;
	}
	struct context *c = context_find(ctx);
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (t->current)
		atomic_fetch_sub(&t->current->stacked, 1);
	atomic_fetch_add(&c->stacked, 1);
	t->current = c;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *c = context_find(ctx);
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct thread *t = thread_self();
	return t ? push(t, c) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The first version is of a time when a context was one thread's at a time. */
CUresult cuCtxPushCurrent(CUcontext ctx)
{
	struct context *c = process_check() ? NULL : context_find(ctx);
	return c && atomic_load(&c->stacked) ? CUDA_ERROR_INVALID_CONTEXT : cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	struct thread *t = thread_self();
	if (!t || !t->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (pctx)
		*pctx = t->current->handle;
	pop(t);
	return CUDA_SUCCESS;
}

/* The first version leaves a context that somebody has attached to. */
CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	struct context *c = process_check() ? NULL : context_current();
	if (!c || c->primary || c->users < 2)
		return cuCtxPopCurrent_v2(pctx);
	if (pctx)
		*pctx = c->handle;
	return CUDA_SUCCESS;
}

/* ---- primary contexts */

static CUresult primary_of(CUdevice dev, struct context **out)
{
	CUresult r = process_check();
	if (r)
		return r;
	*out = context_primary(dev);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult activate(struct context *c)
{
	struct call k;
	CUresult r = call_begin(&k, CALL_cuDevicePrimaryCtxRetain);
	if (r)
		return r;
	put_device(&k, c->device);
	r = call_wait(&k);
	if (!r) {
		k.in.bad |= get_handle(&k, HANDLE_CUcontext) != c->handle;
		born(c, atomic_load(&c->flags), c->users);
		context_facts(&k, c);
	}
	r = call_end(&k, r);
	if (r)
		atomic_store(&c->alive, false);
	return r;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct context *c;
	CUresult r = primary_of(dev, &c);
	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context_lock);
	if (!c->alive)
		r = activate(c);
	if (!r) {
		c->users++;
		*pctx = c->handle;
	}
	pthread_mutex_unlock(&context_lock);
	return r;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct context *c;
	CUresult r = primary_of(dev, &c);
	if (r)
		return r;
	copy_drain();
	bool last = false;
	pthread_mutex_lock(&context_lock);
	if (!c->users) {
		r = CUDA_ERROR_INVALID_CONTEXT;
	} else if (--c->users == 0 && c->alive) {
		last = true;
		mirror_drop_owner(c->handle);
		r = remote_cuDevicePrimaryCtxRelease_v2(dev);
		atomic_store(&c->alive, false);
		atomic_store(&c->flags, 0); /* a driver forgets them, too */
	}
	pthread_mutex_unlock(&context_lock);
	if (last)
		died(c);
	return r;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct context *c;
	CUresult r = primary_of(dev, &c);
	if (r)
		return r;
	copy_drain();
	bool was = false;
	pthread_mutex_lock(&context_lock);
	/* The users stay, as with a driver. At the server they are one, us: a release is the end there,
	 * and the next retain begins anew. */
	if (c->alive) {
		mirror_drop_owner(c->handle);
		r = remote_cuDevicePrimaryCtxRelease_v2(dev);
		was = r == CUDA_SUCCESS;
		if (was) {
			atomic_store(&c->alive, false);
			atomic_store(&c->flags, 0);
		}
	} else if (atomic_load(&c->flags)) {
		r = remote_cuDevicePrimaryCtxSetFlags_v2(dev, 0);
		atomic_store(&c->flags, 0);
	}
	pthread_mutex_unlock(&context_lock);
	if (was)
		died(c);
	return r;
}

/* The first versions: a release of what nobody holds is none, a reset is a user's, too, and flags are not set
 * of an active one. */
CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	CUresult r = cuDevicePrimaryCtxRelease_v2(dev);
	return r == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : r;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	CUresult r = cuDevicePrimaryCtxReset_v2(dev);
	if (r)
		return r;
	pthread_mutex_lock(&context_lock);
	struct context *c = context_primary(dev);
	if (c->users)
		c->users--;
	pthread_mutex_unlock(&context_lock);
	return r;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	struct context *c;
	CUresult r = primary_of(dev, &c);
	if (!r && atomic_load(&c->alive))
		r = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
	return r ? r : cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct context *c;
	CUresult r = primary_of(dev, &c);
	if (r)
		return r;
	pthread_mutex_lock(&context_lock);
	if (atomic_load(&c->flags) != flags)
		r = remote_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
	if (!r)
		context_set_flags(c, flags);
	pthread_mutex_unlock(&context_lock);
	return r;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct context *c;
	CUresult r = primary_of(dev, &c);
	if (r)
		return r;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = atomic_load_explicit(&c->flags, memory_order_relaxed);
	*active = atomic_load_explicit(&c->alive, memory_order_relaxed);
	return CUDA_SUCCESS;
}

/* ---- created contexts */

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	struct thread *t = thread_self();
	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&context_lock);
	struct context *c = take_ended();
	r = c ? remote_cuCtxCreate_v2(&c->handle, flags, dev) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		c->device = dev;
		c->green = false;
		born(c, flags, 1);
		if (!handle_set_data(HANDLE_CUcontext, c->handle, c))
			r = process_die(-EPROTO, "cuCtxCreate");
	} else if (c) {
		give_ended(c);
	}
	pthread_mutex_unlock(&context_lock);
	if (!r)
		r = push(t, c);
	if (r)
		return r;
	*pctx = c->handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
		CUdevice dev)
{
	if (numParams > 0 || paramsArray)
		return call_unsupported(CALL_cuCtxCreate_v3, "contexts with a part of the device");
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	if (ctxCreateParams && (ctxCreateParams->numExecAffinityParams || ctxCreateParams->cigParams))
		return call_unsupported(CALL_cuCtxCreate_v4, "contexts with a part of the device");
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *c = context_find(ctx);
	if (!c || c->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (c->green)
		return remote_cuCtxDestroy_v2(ctx);
	copy_drain();
	pthread_mutex_lock(&context_lock);
	bool was = atomic_load(&c->alive) && c->handle == ctx;

	if (was)
		mirror_drop_owner(ctx);
	r = was ? remote_cuCtxDestroy_v2(ctx) : CUDA_ERROR_INVALID_CONTEXT;
	/* A context that is lost to an error goes all the same. */
	was = was && (!r || context_is_sticky(r));
	if (was)
		atomic_store(&c->alive, false);
	pthread_mutex_unlock(&context_lock);
	if (!was)
		return r;
	handle_drop(HANDLE_CUcontext, ctx);
	struct thread *t = thread_self();
	if (t && t->current == c)
		pop(t);
	died(c);
	pthread_mutex_lock(&context_lock);
	give_ended(c);
	pthread_mutex_unlock(&context_lock);
	return r;
}

/* The first version: not while it is on another thread's stack, or somebody has attached to it. */
CUresult cuCtxDestroy(CUcontext ctx)
{
	struct thread *t = process_check() ? NULL : thread_self();
	struct context *c = t ? context_find(ctx) : NULL;
	unsigned here = c && t->current == c;
	for (unsigned i = 0; c && i < t->depth; i++)
		here += t->stack[i] == c;
	if (c && (atomic_load(&c->stacked) > here || c->users > 1))
		return CUDA_ERROR_INVALID_CONTEXT;
	return cuCtxDestroy_v2(ctx);
}

struct context *context_of_green(CUcontext h, CUdevice device)
{
	struct context *c;

	pthread_mutex_lock(&context_lock);
	c = context_find(h);
	if (!c && (c = take_ended())) {
		c->handle = h;
		c->device = device;
		c->green = true;
		born(c, 0, 1);
		if (!handle_set_data(HANDLE_CUcontext, h, c)) {
			atomic_store(&c->alive, false);
			give_ended(c);
			c = NULL;
		}
	}
	pthread_mutex_unlock(&context_lock);
	return c;
}

void context_end_green(struct context *c)
{
	pthread_mutex_lock(&context_lock);
	bool was = atomic_exchange(&c->alive, false);

	pthread_mutex_unlock(&context_lock);
	if (!was)
		return;
	handle_drop(HANDLE_CUcontext, c->handle);
	died(c);
	pthread_mutex_lock(&context_lock);
	give_ended(c);
	pthread_mutex_unlock(&context_lock);
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct context *c;
	CUresult r = context_check_present(&c);
	if (r)
		return r;
	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context_lock);
	c->users++;
	pthread_mutex_unlock(&context_lock);
	*pctx = c->handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
	struct context *c;
	CUresult r = context_check_present(&c);
	if (r)
		return r;
	if (c->handle != ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&context_lock);
	bool last = c->users && --c->users == 0;
	pthread_mutex_unlock(&context_lock);
	if (!last)
		return CUDA_SUCCESS;
	if (!c->primary)
		return cuCtxDestroy_v2(ctx);
	pthread_mutex_lock(&context_lock);
	c->users++;
	pthread_mutex_unlock(&context_lock);
	return cuDevicePrimaryCtxRelease_v2(c->device);
}
