/* SPDX-License-Identifier: Apache-2.0 */
/* Which contexts there are, which of them live, and what an error has done to one. Primary contexts have
 * fixed handles, known before they are active: a runtime makes one current first and retains it afterwards.
 *
 * Thread rule: `context_lock` serialises births and deaths; it is held across the server's answer, so that
 * two threads that retain the same primary context see one context. The calling thread's stack needs no
 * lock. */
#include "devshim/context.h"
#include <stdlib.h>
#include "devshim/context_state.h"
#include "devshim/device.h"
#include "devshim/handle.h"
#include "devshim/module.h"
#include "devshim/occupancy.h"
#include "devshim/range.h"
#include "devshim/ring.h"
#include "devshim/tables.h"
#include "devshim/work.h"
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

void context_born(struct context *c, unsigned flags, unsigned users)
{
	c->users = users;
	atomic_store(&c->sticky, 0);
	atomic_store(&c->id, 0);
	atomic_store(&c->known, 0);
	atomic_store(&c->chosen, 0);
	context_set_flags(c, flags);
	atomic_store(&c->alive, true);
}

struct context *context_take_ended(void)
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

void context_give_ended(struct context *c)
{
	c->next_ended = ended;
	ended = c;
}

void context_died(struct context *c)
{
	handle_drop_owner(c->handle);
	range_drop_owner(RANGE_NONE, c->handle);
	work_context_died(c);
	occupancy_context_died();
	library_context_died(c->handle);
	tables_context_died(c->handle);
}
