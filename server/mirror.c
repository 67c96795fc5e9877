/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that program and GPU use in place, at the server (wire/mirror.h): managed memory as the driver
 * allocates it, and memory of ours at the addresses of the program's pinned memory, mapped over the session's
 * fence and registered with the driver, so that kernels reach it at the same addresses. It is read and
 * written by the CPU like any program's own.
 *
 * Thread rule: the mirror threads of records; `lock` guards the list and all that hangs on it. The driver may
 * wait for the device, and so for a host function of the program's that wants to exchange: `lock` is free
 * while it registers memory, of which `making` serialises the calls. */
#include "server/mirror.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

#include "server/fence.h"
#include "server/handle.h"
#include "server/serve.h"
#include "server/state.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/mirror.h"
#include "cuda.calls.h"

#define PAGE ((uint64_t)4096)

struct mirror {
	struct mirror *next;        /* by address */
	uint64_t base, size;
	uint8_t *agreed;
	uint64_t owner;             /* of managed memory */
	uint64_t from, to;          /* pages that we have mapped; none of managed memory */
	bool fenced;                /* over the fence */
	bool touched;               /* the CPU has been able to */
};

_Atomic unsigned mirror_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, making = PTHREAD_MUTEX_INITIALIZER;
static struct mirror *first;
static uint64_t bytes;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static uint64_t exchanged; /* the number of the last exchange that is through */

static uint8_t *memory(const struct mirror *m)
{
	return (uint8_t *)(uintptr_t)m->base;
}

/* ---- the list, under the lock */

static struct mirror **place(uint64_t base)
{
	struct mirror **at = &first;

	while (*at && (*at)->base < base)
		at = &(*at)->next;
	return at;
}

static struct mirror *holder(uint64_t p, uint64_t n)
{
	for (struct mirror *m = first; m && m->base <= p; m = m->next)
		if (p - m->base < m->size && n <= m->size - (p - m->base))
			return m;
	return NULL;
}

static CUresult add(const struct mirror *made)
{
	struct mirror *m, **at = place(made->base);
	uint64_t end = made->base + made->size;

	for (m = first; m; m = m->next)
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

	pthread_mutex_lock(&lock);
	r = add(m);
	pthread_mutex_unlock(&lock);
	return r;
}

bool mirror_holds(uint64_t p, uint64_t n)
{
	bool known;

	pthread_mutex_lock(&lock);
	known = holder(p, n);
	pthread_mutex_unlock(&lock);
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

/* [MAKE, address, bytes] */
static CUresult make(uint64_t base, uint64_t size)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct mirror m = {.base = base, .size = size}, *o;
	CUdeviceptr p = 0;
	CUresult r;

	if (!base || !size || size > LIMIT_MIRROR || base >= 1ull << 47 || base + size > 1ull << 47)
		return CUDA_ERROR_INVALID_VALUE;
	m.from = base / PAGE * PAGE;
	m.to = (base + size + PAGE - 1) / PAGE * PAGE;
	pthread_mutex_lock(&lock);
	for (o = first; o && (o->from >= m.to || m.from >= o->to); o = o->next)
		;
	pthread_mutex_unlock(&lock);
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
	pthread_mutex_lock(&lock);
	for (struct mirror **at = &first, *m; (m = *at);) {
		if (m->from == m->to && !lives(m))
			release(take_out(at));
		else
			at = &m->next;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- exchanging */

/* A variable's memory is asked for before there is a context. Whether the CPU may read it already the kernel
 * says, by an error instead of a signal. */
static bool touchable(struct mirror *m)
{
	static int probe[2] = {-1, -1};
	char byte;

	if (m->touched)
		return true;
	if (probe[0] < 0 && pipe2(probe, O_CLOEXEC | O_NONBLOCK))
		return false;
	m->touched = write(probe[1], memory(m), 1) == 1;
	if (m->touched && read(probe[0], &byte, 1) != 1)
		log_error("the pipe that probes memory: %m");
	if (!m->touched)
		log_info("managed memory at %#llx cannot be read yet", (unsigned long long)m->base);
	return m->touched;
}

/* Where a record's bytes and an answer's are: a session has few threads that exchange. */
static uint8_t *room(void)
{
	static _Thread_local uint8_t *bytes_of_thread;

	if (!bytes_of_thread)
		bytes_of_thread = malloc(MIRROR_PIECE);
	return bytes_of_thread;
}

bool mirror_has_news(void)
{
	bool news = false;
	size_t n;

	pthread_mutex_lock(&lock);
	for (struct mirror *m = first; m && !news; m = m->next)
		news = touchable(m) &&
		       mirror_changed(memory(m), m->agreed, m->size, 0, MIRROR_BLOCK, &n) < m->size;
	pthread_mutex_unlock(&lock);
	return news;
}

/* [SEND, address, number, bytes], bulk */
static CUresult take(const uint8_t *fresh, uint64_t p, uint64_t n)
{
	struct mirror *m = holder(p, n);

	if (!m)
		return SERVE_BAD;
	if (!touchable(m))
		return CUDA_ERROR_NOT_PERMITTED;
	mirror_merge(memory(m) + (p - m->base), m->agreed + (p - m->base), fresh, n);
	return CUDA_SUCCESS;
}

struct run {
	struct mirror *m;
	size_t at, n;
};

/* [FETCH, address, number] */
static CUresult give(struct exec *x, uint64_t from)
{
	struct run *run = exec_alloc(x, MIRROR_RUNS * sizeof *run);
	size_t count = 0, total = 0, n, at;
	uint64_t next = 0;
	uint8_t *p = room();

	if (!run || !p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (struct mirror *m = first; m && !next; m = m->next) {
		if (m->base + m->size <= from || !touchable(m))
			continue;
		at = from > m->base ? (from - m->base) / MIRROR_BLOCK * MIRROR_BLOCK : 0;
		for (; at < m->size; at += n) {
			if (count == MIRROR_RUNS || total + MIRROR_BLOCK > MIRROR_PIECE) {
				next = m->base + at;
				break;
			}
			at = mirror_changed(memory(m), m->agreed, m->size, at, MIRROR_PIECE - total, &n);
			if (!n)
				continue;
			/* A kernel may go on writing: what is taken here is agreed, whatever follows. */
			memcpy(m->agreed + at, memory(m) + at, n);
			run[count++] = (struct run){m, at, n};
			total += n;
		}
	}
	x->bulk = p;
	x->bulk_len = total;
	put_u64(&x->out, next);
	put_array(&x->out, count * 2);
	for (size_t i = 0; i < count; i++) {
		put_u64(&x->out, run[i].m->base + run[i].at);
		put_u64(&x->out, run[i].n);
		memcpy(p, run[i].m->agreed + run[i].at, run[i].n);
		p += run[i].n;
	}
	return CUDA_SUCCESS;
}

/* [DROP, address] */
static CUresult forget(uint64_t base)
{
	struct mirror **at, *m = NULL;

	pthread_mutex_lock(&making);
	pthread_mutex_lock(&lock);
	at = place(base);
	if (*at && (*at)->base == base)
		m = take_out(at);
	pthread_mutex_unlock(&lock);
	release(m);
	pthread_mutex_unlock(&making);
	return CUDA_SUCCESS;
}

/* [SEND or FETCH, address, number ...]: in the order of their numbers. Of two that crossed, the earlier one
 * would undo what the later one brought. Those before it were sent before it: they are through, or under way
 * in another thread (aside.c), but where a program has made up a number, and waits for its own end then. */
static CUresult exchange(struct exec *x, enum mirror_op op, uint64_t p, uint64_t number, uint64_t n)
{
	uint8_t *fresh = op == MIRROR_SEND ? room() : NULL;
	CUresult r = op == MIRROR_SEND && !fresh ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;

	if (fresh && !exec_bulk(x, fresh, n))
		return SERVE_BAD;
	pthread_mutex_lock(&lock);
	while (number > exchanged + 1)
		pthread_cond_wait(&turn, &lock);
	if (number <= exchanged)
		r = SERVE_BAD;
	else if (!r && op == MIRROR_SEND)
		r = take(fresh, p, n);
	else if (!r)
		r = give(x, p);
	if (number > exchanged)
		exchanged = number;
	pthread_cond_broadcast(&turn);
	pthread_mutex_unlock(&lock);
	return r;
}

/* wire/mirror.h */
CUresult serve_cuMemHostGetDevicePointer_v2(struct exec *x)
{
	uint64_t op = get_u64(&x->in), p = get_u64(&x->in);
	uint64_t number = op == MIRROR_SEND || op == MIRROR_FETCH ? get_u64(&x->in) : 0;
	uint64_t n = op == MIRROR_MAKE || op == MIRROR_SEND ? get_u64(&x->in) : 0;
	CUresult r;

	if (!get_end(&x->in) || (op == MIRROR_SEND && (!n || n > MIRROR_PIECE || n != x->frame.bulk_len)))
		return SERVE_BAD;
	switch (op) {
	case MIRROR_MAKE:
		pthread_mutex_lock(&making);
		r = make(p, n);
		pthread_mutex_unlock(&making);
		return r;
	case MIRROR_DROP: return forget(p);
	case MIRROR_SEND:
	case MIRROR_FETCH: return exchange(x, (enum mirror_op)op, p, number, n);
	default: return SERVE_BAD;
	}
}
