/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: which one is meant, creation and death, primary contexts. The stacks of threads are in
 * context_stack.c.
 *
 * Thread rule: see state.h. A context's death waits for its work with the lock given away; it is out of reach
 * by then. */
#include "server/soft/context.h"
#include <stdlib.h>
#include <string.h>
#include "devshim/tables.h"
#include "server/soft/allocation.h"
#include "server/soft/engine.h"
#include "server/soft/module.h"
#include "server/soft/stream.h"
#include "wire/log.h"

static struct context primaries[ALLOCATION_DEVICES];

static void context_finish(struct object *o)
{
	free(o);
}

static void context_reset(struct context *c)
{
	c->id = soft.next_id++;
	c->error = CUDA_SUCCESS;
	c->cancel = false;
	c->cache = CU_FUNC_CACHE_PREFER_NONE;
	c->shared = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
	c->limits[CU_LIMIT_STACK_SIZE] = 1024;
	c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
	c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
	c->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
	c->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

bool contexts_init(void)
{
	for (int d = 0; d < soft.devices; d++) {
		struct context *c = &primaries[d];
		if (!object_open(&c->object, KIND_CONTEXT, NULL, NULL))
			return false;
		c->device = d;
		c->primary = true;
		c->flags = CU_CTX_SCHED_AUTO;
	}
	return true;
}

struct context *context_primary(int device)
{
	return device >= 0 && device < soft.devices ? &primaries[device] : NULL;
}

/* For devshim/tables.c: the handle of a primary context that nobody needs to have retained. */
CUcontext tables_primary_context(CUdevice device)
{
	guarded g = enter();
	struct context *c = g.error ? NULL : context_primary(device);
	return c ? HANDLE(c) : NULL;
}

struct context *context_named(CUcontext handle, CUresult *why)
{
	struct context *c = object_find(handle, KIND_CONTEXT);
	if (c && c->active)
		return c;
	*why = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return NULL;
}

struct context *context_current(CUresult *why)
{
	uint64_t h = context_top();
	if (h)
		return context_named((CUcontext)(uintptr_t)h, why);
	*why = CUDA_ERROR_INVALID_CONTEXT;
	return NULL;
}

CUresult context_allowed(void)
{
	return thread_self()->callback ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

struct guard enter_context(void)
{
	struct guard g = enter();
	if (g.error)
		return g;
	g.error = context_allowed();
	if (!g.error)
		g.context = context_current(&g.error);
	if (g.error) {
		guard_leave(&g);
		g.held = false;
	}
	return g;
}

struct guard enter_healthy(void)
{
	struct guard g = enter_context();
	if (!g.error && g.context->error) {
		g.error = g.context->error;
		guard_leave(&g);
		g.held = false;
		/* Here the program hears that its work has ended: what that printed comes first. */
		engine_printf_flush();
	}
	return g;
}

void context_fail(struct context *c, CUresult error)
{
	if (!c->error)
		c->error = error;
}

void soft_ptds_begin(void)
{
	thread_self()->ptds++;
}
void soft_ptds_end(void)
{
	thread_self()->ptds--;
}

/* Ends all that lives in the context. Its work has to end first. */
static void context_empty(struct context *c)
{
	c->active = false;
	context_drain_dying(c);
	libraries_context_died(c);
	streams_close(c);
	static const enum kind mortal[] = {KIND_EVENT, KIND_FUNCTION, KIND_MODULE, KIND_TEXTURE, KIND_SURFACE,
		KIND_MIPMAP, KIND_ARRAY, KIND_LINK};
	for (size_t i = 0; i < sizeof mortal / sizeof *mortal; i++)
		for (struct object *o; (o = object_of(c, mortal[i]));)
			object_close(o);
	for (struct allocation a; allocation_owned(c, &a);)
		allocation_remove(a.base);
}

/* ---- life */

static bool flags_valid(unsigned flags)
{
	unsigned sched = flags & CU_CTX_SCHED_MASK;
	return !(flags & ~CU_CTX_FLAGS_MASK) && !(sched & (sched - 1));
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || !flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct thread *t = thread_self();
	struct context *c = calloc(1, sizeof *c);
	if (!c || t->depth == THREAD_STACK || !object_open(&c->object, KIND_CONTEXT, NULL, context_finish)) {
		free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->device = device;
	c->flags = flags;
	c->retains = 1;
	c->active = true;
	context_reset(c);
	context_push(t, c->object.handle);
	*out = HANDLE(c);
	return CUDA_SUCCESS;
}

/* The first version: with addresses of 64 bits, too. */
CUresult cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device)
{
	return cuCtxCreate_v2(out, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *params, int n, unsigned flags, CUdevice device)
{
	if (n && (n < 0 || !params))
		return CUDA_ERROR_INVALID_VALUE;
	if (n)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return cuCtxCreate_v2(out, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
	if (params && params->cigParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuCtxCreate_v3(out, params ? params->execAffinityParams : NULL,
		params ? params->numExecAffinityParams : 0, flags, device);
}

/* Called with the lock held; gives it back before the program's own destructors run. Not from inside a host
 * function, which would wait for itself: exit() there runs the runtime's destructors. */
static CUresult context_end(struct guard *g, struct context *c)
{
	CUresult r = context_allowed();
	if (r)
		return r;
	CUcontext handle = HANDLE(c);
	object_ref(c);
	struct thread *t = thread_self();
	if (t->depth && t->stack[t->depth - 1] == c->object.handle && !c->primary)
		context_pop(t);
	context_empty(c);
	if (c->primary)
		c->flags = CU_CTX_SCHED_AUTO;
	else
		object_close(&c->object);
	object_unref(c);
	guard_leave(g);
	g->held = false;
	tables_context_died(handle);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *c = object_find(h, KIND_CONTEXT);
	if (!c || (c->primary && !c->active))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (c->primary) /* belongs to all users of the device */
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!c->active)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return context_end(&g, c);
}
/* The first version: not while it is on another thread's stack, or somebody has attached to it. */
static CUresult of_this_thread(CUcontext h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct thread *t = thread_self();
	const struct context *c = object_find(h, KIND_CONTEXT);
	unsigned here = 0;
	for (unsigned i = 0; c && i < t->depth; i++)
		here += t->stack[i] == c->object.handle;
	return c && (c->stacked > here || c->retains > 1) ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}
CUresult cuCtxDestroy(CUcontext h)
{
	CUresult r = of_this_thread(h);
	return r ? r : cuCtxDestroy_v2(h);
}

CUresult cuCtxAttach(CUcontext *out, unsigned flags)
{
	guarded g = enter_context();
	if (g.error)
		return g.error;
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	g.context->retains++;
	*out = HANDLE(g.context);
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext h)
{
	guarded g = enter_context();
	if (g.error)
		return g.error;
	struct context *c = context_named(h, &g.error);
	if (!c || c != g.context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (c->retains)
		c->retains--;
	return c->retains ? CUDA_SUCCESS : context_end(&g, c);
}

/* ---- primary contexts */

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct context *c = context_primary(device);
	if (!out || !c)
		return out ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
	if (!c->active) {
		context_reset(c);
		c->active = true;
	}
	c->retains++;
	*out = HANDLE(c);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct context *c = context_primary(device);
	if (!c)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!c->retains)
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult r = context_allowed();
	if (r)
		return r;
	return --c->retains || !c->active ? CUDA_SUCCESS : context_end(&g, c);
}
/* The first version: of what nobody holds, a release is none. */
CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	CUresult r = cuDevicePrimaryCtxRelease_v2(device);
	return r == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : r;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct context *c = context_primary(device);
	if (!c)
		return CUDA_ERROR_INVALID_DEVICE;
	c->flags = CU_CTX_SCHED_AUTO;
	return c->active ? context_end(&g, c) : CUDA_SUCCESS; /* its users stay */
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct context *c = context_primary(device);
	if (!c)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	c->flags = flags;
	return CUDA_SUCCESS;
}
/* The first version: one user goes, too. */
CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	CUresult r = cuDevicePrimaryCtxReset_v2(device);
	if (r)
		return r;
	guarded g = enter();
	struct context *c = context_primary(device);
	if (!g.error && c->retains)
		c->retains--;
	return r;
}
/* The first version: not while it is active. */
static CUresult inactive(CUdevice device)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct context *c = context_primary(device);
	return c && c->active ? CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE : CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
	CUresult r = inactive(device);
	return r ? r : cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct context *c = context_primary(device);
	if (!c)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags && !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags)
		*flags = c->flags;
	if (active)
		*active = c->active;
	return CUDA_SUCCESS;
}
