/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one record: context, dispatch, and what serve functions use of exec.h.
 *
 * Thread rule: the mirror thread of the record; the handle table has its own lock. */
#include "server/exec.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/mirror.h"
#include "server/nvml.h"
#include "server/state.h"
#include "wire/hops.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "nvml.calls.h"

#define ARENA_MOST (64u << 20)      /* bytes that one record may have */
#define ARENA_KEPT (16u << 10)      /* a chunk of this size is kept for the next record */
#define FAILED_LINES 20             /* log lines of failed posts in one second */

struct arena {
	struct arena *next;
	size_t used, cap;
	_Alignas(16) uint8_t bytes[];
};

/* The first chunk of the list is a kept one; larger ones come behind it. */
void *exec_alloc(struct exec *x, size_t n)
{
	struct arena *a = x->arena;
	size_t total = 0, cap;
	void *p;

	if (n > ARENA_MOST)
		return NULL;
	n = (n + 15) & ~(size_t)15;
	if (!n)
		n = 16;
	for (; a; a = a->next) {
		total += a->cap;
		if (n <= a->cap - a->used) {
			p = a->bytes + a->used;
			a->used += n;
			return memset(p, 0, n);
		}
	}
	cap = n > ARENA_KEPT ? n : ARENA_KEPT;
	if (total + cap > ARENA_MOST + ARENA_KEPT)
		return NULL;
	a = calloc(1, sizeof *a + cap); /* large memory is new pages, which are zeros already */
	if (!a)
		return NULL;
	a->used = n;
	a->cap = cap;
	if (x->arena) {
		a->next = x->arena->next;
		x->arena->next = a;
	} else {
		x->arena = a;
	}
	return a->bytes;
}

static void arena_clear(struct exec *x)
{
	struct arena *a = x->arena, *next;

	if (!a || (!a->next && a->cap == ARENA_KEPT)) {
		if (a)
			a->used = 0;
		return;
	}
	for (; a; a = next) {
		next = a->next;
		free(a);
	}
	x->arena = NULL;
}

bool exec_bulk(struct exec *x, void *p, size_t n)
{
	if (n > x->bulk_left)
		return false;
	if (!n)
		return true;
	if (x->aside) {
		memcpy(p, x->aside, n);
		x->aside += n;
		x->bulk_left -= n;
		return true;
	}
	input_bulk(x->session, &x->frame, x->frame.bulk_len - x->bulk_left, p, n);
	x->bulk_left -= n;
	if (!x->bulk_left)
		baton_bulk_taken(x);
	return true;
}

void *exec_bulk_all(struct exec *x, size_t max)
{
	void *p;

	if (x->bulk_left > max)
		return NULL;
	p = exec_alloc(x, x->bulk_left);
	return p && exec_bulk(x, p, x->bulk_left) ? p : NULL;
}

/* ---- contexts ---- */

/* What the program calls a device's primary context. */
static uint64_t primary_id(CUdevice device)
{
	return HANDLE_ID(HANDLE_CUcontext, HANDLE_FIRST + (uint32_t)device);
}

/* The primary context of a device, when it is active. */
static CUcontext primary(CUdevice device)
{
	CUcontext c = NULL;
	unsigned flags;
	int active = 0;

	/* Retain tells the handle; it is given back at once, the program's own count is what keeps the
	 * context. */
	if (drv.cuDevicePrimaryCtxGetState(device, &flags, &active) || !active ||
			drv.cuDevicePrimaryCtxRetain(&c, device))
		return NULL;
	drv.cuDevicePrimaryCtxRelease_v2(device);
	return c;
}

CUcontext context_real(struct session *s, uint64_t id)
{
	CUcontext c = handle_real(s->handles, HANDLE_CUcontext, id);
	CUdevice device = (CUdevice)(HANDLE_NUMBER(id) - HANDLE_FIRST);

	if (c || device < 0 || device >= LIMIT_DEVICES || id != primary_id(device))
		return c;
	c = primary(device);
	if (c)
		handle_bind(s->handles, HANDLE_CUcontext, id, c);
	return c;
}

uint64_t context_id(struct session *s, CUcontext real)
{
	uint64_t id = handle_id(s->handles, HANDLE_CUcontext, real);
	int devices = 0;

	if (id || drv.cuDeviceGetCount(&devices))
		return id;
	for (int d = 0; d < devices && d < LIMIT_DEVICES; d++) {
		if (primary(d) != real)
			continue;
		/* An earlier context of this device had the id: it is gone. */
		handle_drop(s->handles, primary_id(d));
		if (handle_bind(s->handles, HANDLE_CUcontext, primary_id(d), real))
			return primary_id(d);
	}
	return handle_add(s->handles, HANDLE_CUcontext, real, 0);
}

static void set_context(struct exec *x)
{
	CUcontext now = NULL, wanted = x->frame.ctx ? context_real(x->session, x->frame.ctx) : NULL;

	if (drv.cuCtxGetCurrent(&now) || now != wanted)
		drv.cuCtxSetCurrent(wanted);
}

/* ---- handles ---- */

void *exec_handle_of(struct exec *x, unsigned type, uint64_t id)
{
	void *real;

	if (!id || (type == HANDLE_CUstream && id <= 2))
		return (void *)id;
	if (type == HANDLE_CUcontext)
		real = context_real(x->session, id);
	else
		real = handle_real(x->session->handles, type, id);
	if (!real && type == HANDLE_CUfunction)
		real = handle_real(x->session->handles, HANDLE_CUkernel, id);
	if (!real && !x->bad_handle) {
		x->bad_handle = true;
		x->handle_code = type == HANDLE_CUcontext ? CUDA_ERROR_INVALID_CONTEXT :
				type > NVML_HANDLE_NONE ? (CUresult)NVML_ERROR_INVALID_ARGUMENT :
				CUDA_ERROR_INVALID_HANDLE;
	}
	if (!x->first_id) {
		x->first_id = id;
		if (x->effects & EFFECT_DROPS)
			handle_ending(x->session->handles, id, true);
	}
	if (!x->parent && (type == HANDLE_CUmodule || type == HANDLE_CUlibrary || type == HANDLE_CUkernel ||
			type == HANDLE_CUgraph))
		x->parent = id;
	return real;
}

void *exec_handle(struct exec *x, unsigned type)
{
	return exec_handle_of(x, type, get_u64(&x->in));
}

/* It ends with the module, library, kernel or graph that it is of. */
static bool belongs(unsigned type)
{
	return type == HANDLE_CUfunction || type == HANDLE_CUkernel || type == HANDLE_CUgraphNode;
}

uint64_t exec_id_of(struct exec *x, unsigned type, void *real)
{
	uint64_t id;

	if (!real || (type == HANDLE_CUstream && (uintptr_t)real <= 2))
		return (uintptr_t)real;
	if (type == HANDLE_CUcontext)
		id = context_id(x->session, real);
	else
		id = handle_add(x->session->handles, type, real, belongs(type) ? x->parent : 0);
	if (!id)
		x->out.bad = true;
	return id;
}

void exec_put_handle(struct exec *x, unsigned type, void *real)
{
	put_u64(&x->out, exec_id_of(x, type, real));
}

bool exec_may_change(const struct exec *x)
{
	return x->session->start->may_change;
}

uint64_t exec_new_id(struct exec *x)
{
	return get_u64(&x->in);
}

void exec_bind(struct exec *x, unsigned type, uint64_t id, void *real)
{
	struct handles *h = x->session->handles;

	bool ok = belongs(type) ? handle_bind_child(h, type, id, real, x->parent)
				: handle_bind(h, type, id, real);

	if (!ok)
		session_end(x->session, CUDA_ERROR_MPS_CLIENT_TERMINATED,
				"%s: handle %#llx is not one to choose, or there are more than %u",
				x->name, (unsigned long long)id, LIMIT_HANDLES);
}

void exec_drop(struct exec *x, unsigned type, void *real)
{
	uint64_t id = handle_id(x->session->handles, type, real);

	if (id)
		handle_drop(x->session->handles, id);
}

/* ---- running ---- */

void exec_failed(struct exec *x, CUresult r)
{
	static _Atomic int64_t second;
	static _Atomic unsigned lines;
	uint64_t none = 0, failed = (uint64_t)r << 48 | (x->frame.seq & (((uint64_t)1 << 48) - 1));
	int64_t now = time(NULL);

	atomic_compare_exchange_strong(&x->session->failed, &none, failed);
	if (atomic_exchange(&second, now) != now)
		atomic_store(&lines, 0);
	if (atomic_fetch_add(&lines, 1) < FAILED_LINES)
		log_info("%s failed with %d, record %llu", x->name, (int)r, (unsigned long long)x->frame.seq);
}

/* Behind the call: what its words say of its first handle and of memory. */
static void settle(struct exec *x, CUresult r)
{
	struct handles *h = x->session->handles;

	if (x->first_id && x->effects & EFFECT_DROPS) {
		if (r)
			handle_ending(h, x->first_id, false);
		else
			handle_drop(h, x->first_id);
	}
	if (x->first_id && x->effects & EFFECT_ALTERS && !r)
		handle_change(h, x->first_id);
	if (x->effects & EFFECT_CONFIGURES && !r)
		atomic_store(&x->session->configured, true);
	if (__builtin_expect(mirror_count != 0, 0) && x->effects & EFFECT_FREES)
		mirror_after();
}

CUresult exec_run(struct exec *x)
{
	struct session *s = x->session;
	uint16_t id = s->call[x->frame.call];
	const struct serve_entry *e = call_entry(id);
	bool nvml_call = call_is_nvml(id);
	CUresult r = CUDA_ERROR_NOT_SUPPORTED;

	x->gathered = NULL;
	x->effects = 0;
	if (x->frame.flags & FRAME_PACE) {
		x->name = "pace";
		return CUDA_SUCCESS;
	}
	x->name = e ? e->name : "unknown call";
	x->bad_handle = false;
	x->handle_code = 0;
	x->parent = x->first_id = 0;
	if (nvml_call)
		session_wait_nvml(s);
	else
		session_wait_driver(s);
	if (e && e->serve) {
		if (!nvml_call)
			set_context(x);
		x->effects = e->effects;
		hop(HOP_SERVE, x->frame.seq);
		r = e->serve(x);
		hop(HOP_SERVED, x->frame.seq);
		if (x->effects)
			settle(x, r);
	}
	if (r == SERVE_BAD)
		session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "malformed call of %s", x->name);
	if (x->out.bad || x->bulk_len > LIMIT_REPLY) {
		log_warning("%s: the answer is larger than a reply may be", x->name);
		x->out.bad = false;
		x->out.len = x->bulk_len = 0;
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	log_debug("%llu: thread %u %s: %d", (unsigned long long)x->frame.seq, x->frame.thread, x->name,
			(int)r);
	return r;
}

void exec_finish(struct exec *x)
{
	arena_clear(x);
}
