/* SPDX-License-Identifier: Apache-2.0 */
/* Primary contexts: how they are retained, released and reset, and their flags.
 *
 * Thread rule: context.c. */
#include "devshim/call.h"
#include "devshim/context_state.h"
#include "devshim/copy.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

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
		context_born(c, atomic_load(&c->flags), c->users);
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
		context_died(c);
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
		context_died(c);
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
