/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that program and GPU use in place, at the server (wire/mirror.h): managed memory as the driver
 * allocates it, and memory of ours at the addresses of the program's pinned memory, mapped over the session's
 * fence and registered with the driver, so that kernels reach it at the same addresses. It is read and
 * written by the CPU like any program's own.
 *
 * Thread rule: the mirror threads of records; mirror_list.h. The driver may wait for the device, and so for a
 * host function of the program's that wants to exchange: the lock is free while it registers memory, of which
 * `making` serialises the calls. */
#include "server/mirror_list.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "server/fence.h"
#include "server/handle.h"
#include "server/serve.h"
#include "server/state.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/mirror.h"
#include "cuda.calls.h"

#define PAGE ((uint64_t)4096)

_Atomic unsigned mirror_count;
pthread_mutex_t mirror_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
struct mirror *mirror_first;
static uint64_t bytes;

/* ---- the list, under the lock */

static struct mirror **place(uint64_t base)
{
	struct mirror **at = &mirror_first;

	while (*at && (*at)->base < base)
		at = &(*at)->next;
	return at;
}

struct mirror *mirror_holder(uint64_t p, uint64_t n)
{
	for (struct mirror *m = mirror_first; m && m->base <= p; m = m->next)
		if (p - m->base < m->size && n <= m->size - (p - m->base))
			return m;
	return NULL;
}

static CUresult add(const struct mirror *made)
{
	struct mirror *m, **at = place(made->base);
	uint64_t end = made->base + made->size;

	for (m = mirror_first; m; m = m->next)
		if (m->base < end && made->base < m->base + m->size)
			return CUDA_ERROR_INVALID_VALUE;
	if (mirror_count >= LIMIT_MIRRORS || made->size > LIMIT_MIRROR || bytes > LIMIT_MIRROR - made->size) {
		log_warning("memory used in place: %llu bytes in %u ranges, and %llu more are refused",
				(unsigned long long)bytes, mirror_count, (unsigned long long)made->size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m = malloc(sizeof *m);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*m = *made;
	/* Zeros: that is what either end begins with. */
	m->agreed = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			-1, 0);
	if (m->agreed == MAP_FAILED) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->next = *at;
	*at = m;
	bytes += m->size;
	mirror_count++;
	return CUDA_SUCCESS;
}

static void unmap(const struct mirror *m)
{
	void *p = (void *)(uintptr_t)m->from;
	size_t n = m->to - m->from;

	if (m->fenced)
		fence_close(m->from, m->to);
	else if (n)
		munmap(p, n);
}

/* Off the list; what it was is given to release, without the lock. */
static struct mirror *take_out(struct mirror **at)
{
	struct mirror *m = *at;

	*at = m->next;
	m->next = NULL;
	bytes -= m->size;
	mirror_count--;
	return m;
}

static void release(struct mirror *m)
{
	if (!m)
		return;
	if (m->to > m->from) {
		/* A context that has died took the registration with it. */
		drv.cuMemHostUnregister((void *)(uintptr_t)m->from);
		unmap(m);
	}
	munmap(m->agreed, m->size);
	free(m);
}

/* ---- making and ending */

static CUresult add_locked(const struct mirror *m)
{
	CUresult r;

	pthread_mutex_lock(&mirror_lock);
	r = add(m);
	pthread_mutex_unlock(&mirror_lock);
	return r;
}

bool mirror_holds(uint64_t p, uint64_t n)
{
	bool known;

	pthread_mutex_lock(&mirror_lock);
	known = mirror_holder(p, n);
	pthread_mutex_unlock(&mirror_lock);
	return known;
}

CUresult mirror_add_managed(uint64_t base, size_t size, uint64_t owner)
{
	struct mirror m = {.base = base, .size = size, .owner = owner};

	return add_locked(&m);
}

/* Pages of ours at the program's addresses. Nothing of this process lies inside the fence; outside of it only
 * what is free is taken. */
static bool map(struct mirror *m)
{
	int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *p;

	m->fenced = fence_open(m->from, m->to);
	if (m->fenced)
		return true;
	p = mmap((void *)(uintptr_t)m->from, m->to - m->from, PROT_READ | PROT_WRITE,
			how | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != MAP_FAILED && (uint64_t)(uintptr_t)p != m->from) {
		munmap(p, m->to - m->from);
		p = MAP_FAILED;
	}
	return p != MAP_FAILED;
}

static CUresult make_alone(uint64_t base, uint64_t size)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct mirror m = {.base = base, .size = size}, *o;
	CUdeviceptr p = 0;
	CUresult r;

	if (!base || !size || size > LIMIT_MIRROR || base >= 1ull << 47 || base + size > 1ull << 47)
		return CUDA_ERROR_INVALID_VALUE;
	m.from = base / PAGE * PAGE;
	m.to = (base + size + PAGE - 1) / PAGE * PAGE;
	pthread_mutex_lock(&mirror_lock);
	for (o = mirror_first; o && (o->from >= m.to || m.from >= o->to); o = o->next)
		;
	pthread_mutex_unlock(&mirror_lock);
	if (o) {
		log_warning("pinned memory of the program at %#llx shares a page with other such memory",
				(unsigned long long)base);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!map(&m)) {
		log_warning("pinned memory of the program at %#llx: the address is in use here",
				(unsigned long long)base);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	drv.cuThreadExchangeStreamCaptureMode(&mode);
	r = drv.cuMemHostRegister_v2((void *)(uintptr_t)m.from, m.to - m.from,
			CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (!r) {
		r = drv.cuMemHostGetDevicePointer_v2(&p, (void *)(uintptr_t)m.from, 0);
		if (!r && p != m.from)
			r = CUDA_ERROR_NOT_SUPPORTED;
		if (!r)
			r = add_locked(&m);
		if (r)
			drv.cuMemHostUnregister((void *)(uintptr_t)m.from);
	}
	drv.cuThreadExchangeStreamCaptureMode(&mode);
	if (r)
		unmap(&m);
	return r;
}

CUresult mirror_make(uint64_t base, uint64_t size)
{
	pthread_mutex_lock(&making);
	CUresult r = make_alone(base, size);

	pthread_mutex_unlock(&making);
	return r;
}

/* True when managed memory is still the driver's. */
static bool lives(const struct mirror *m)
{
	unsigned managed = 0;
	CUresult r;

	if (HANDLE_TYPE(m->owner) == HANDLE_CUlibrary)
		return handle_real(session_self()->handles, HANDLE_CUlibrary, m->owner);
	if (!context_real(session_self(), m->owner))
		return false;
	r = drv.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, m->base);
	return r ? r != CUDA_ERROR_INVALID_VALUE : managed;
}

void mirror_after(void)
{
	pthread_mutex_lock(&mirror_lock);
	for (struct mirror **at = &mirror_first, *m; (m = *at);) {
		if (m->from == m->to && !lives(m))
			release(take_out(at));
		else
			at = &m->next;
	}
	pthread_mutex_unlock(&mirror_lock);
}

CUresult mirror_forget(uint64_t base)
{
	struct mirror **at, *m = NULL;

	pthread_mutex_lock(&making);
	pthread_mutex_lock(&mirror_lock);
	at = place(base);
	if (*at && (*at)->base == base)
		m = take_out(at);
	pthread_mutex_unlock(&mirror_lock);
	release(m);
	pthread_mutex_unlock(&making);
	return CUDA_SUCCESS;
}
