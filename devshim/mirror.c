/* SPDX-License-Identifier: Apache-2.0 */
/* The program's side of memory that it shares with the GPU (wire/mirror.h). Before work is
 * sent, what the program may have written (watch.h) is compared with what was last agreed on; after work is
 * known to be done the server compares its own.
 *
 * Thread rule: `lock` guards the list, and is held over an exchange, so that exchanges of several threads
 * reach the server in the order in which they change what is agreed on. A thread that holds it calls nothing
 * here again. Making a range may wait for the device, and so for host functions, which exchange: `making`
 * serialises that, and `lock` is free meanwhile. */
#include "devshim/mirror.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/function.h"
#include "devshim/process.h"
#include "devshim/watch.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/mirror.h"
#include "cuda.calls.h"

#define PAGE ((uint64_t)4096)

struct mirror {
	struct mirror *next;
	uint64_t base;
	size_t size;
	uint8_t *agreed;
	bool managed;
	bool ours; /* pinned memory that nobody else can have mapped */
	const void *owner; /* of managed memory: its context or library */
	struct watch watch;
};

_Atomic unsigned mirror_count, mirror_told, mirror_seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static struct mirror *first;
static size_t bytes;
static uint64_t exchanges; /* that were sent */
static uint64_t posted; /* the last one that no answer was awaited of */
static uint64_t made; /* the last one of which the server has said that it is made */
static uint8_t *piece; /* what is being sent: memory itself may change meanwhile */
static CUresult kept; /* an error of an earlier post that an exchange learned of: the next work tells it */

static uint8_t *memory(const struct mirror *m)
{
	return (uint8_t *)(uintptr_t)m->base;
}

/* ---- the list, under the lock */

static struct mirror *at(uint64_t base)
{
	struct mirror *m = first;

	while (m && m->base != base)
		m = m->next;
	return m;
}

static struct mirror *holder(uint64_t p, uint64_t n)
{
	for (struct mirror *m = first; m; m = m->next)
		if (p >= m->base && p - m->base < m->size && n <= m->size - (p - m->base))
			return m;
	return NULL;
}

static CUresult add(const struct mirror *made)
{
	struct mirror *m = malloc(sizeof *m);
	void *p = MAP_FAILED;

	if (bytes > LIMIT_MIRROR || made->size > LIMIT_MIRROR - bytes || mirror_count >= LIMIT_MIRRORS) {
		log_warning("memory that program and GPU use in place: %zu bytes more are past the limit",
			made->size);
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (m && !piece)
		piece = malloc(MIRROR_PIECE);
	if (m && piece)
		p = mmap(NULL, made->size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*m = *made;
	m->agreed = p;
	if (m->managed || m->ours)
		watch_open(&m->watch, m->base, m->size, !m->managed);
	else
		watch_none(&m->watch, m->base, m->size);
	m->next = first;
	first = m;
	bytes += m->size;
	atomic_fetch_add(&mirror_count, 1);
	return CUDA_SUCCESS;
}

/* True when another range of managed memory lies in the page. */
static bool shared(uint64_t page, const struct mirror *except)
{
	for (struct mirror *m = first; m; m = m->next)
		if (m != except && m->managed && m->base < page + PAGE && page < m->base + m->size)
			return true;
	return false;
}

/* The pages of a range that no other has. */
static void own_pages(const struct mirror *m, uint64_t *from, uint64_t *to)
{
	*from = m->base / PAGE * PAGE;
	*to = (m->base + m->size + PAGE - 1) / PAGE * PAGE;
	if (shared(*from, m))
		*from += PAGE;
	if (*to > *from && shared(*to - PAGE, m))
		*to -= PAGE;
}

static void forget(struct mirror *m)
{
	struct mirror **l = &first;
	uint64_t from, to;

	while (*l != m)
		l = &(*l)->next;
	*l = m->next;
	if (m->managed) {
		own_pages(m, &from, &to);
		if (from < to)
			range_unmap(from, to - from);
	}
	watch_close(&m->watch);
	munmap(m->agreed, m->size);
	bytes -= m->size;
	atomic_fetch_sub(&mirror_count, 1);
	free(m);
}

/* ---- records */

static CUresult begin(struct call *c, enum mirror_op op, uint64_t p)
{
	CUresult r = call_begin(c, CALL_cuMemHostGetDevicePointer_v2);

	if (r)
		return r;
	put_u64(&c->out, op);
	put_u64(&c->out, p);
	return CUDA_SUCCESS;
}

/* A SEND or FETCH, under the lock: with the next number, which is used up when the record goes out. */
static CUresult begin_exchange(struct call *c, enum mirror_op op, uint64_t p)
{
	CUresult r = begin(c, op, p);

	if (r)
		return r;
	put_u64(&c->out, exchanges + 1);
	c->aside = true;
	c->seq = 0;
	return CUDA_SUCCESS;
}

static void end_exchange(const struct call *c, bool waited)
{
	exchanges += c->seq != 0;
	/* They are made in the order of their numbers. */
	*(waited ? &made : &posted) = exchanges;
}

/* An answer may tell of an earlier post that failed, and be right all the same. */
static CUresult wait_for(struct call *c)
{
	return call_end(c, call_wait(c));
}

static CUresult tell_drop(uint64_t base)
{
	struct call c;
	CUresult r = begin(&c, MIRROR_DROP, base);

	return r ? r : wait_for(&c);
}

/* ---- making and ending */

CUresult mirror_use(uint64_t p)
{
	struct range range;
	struct mirror m = {0};
	struct call c;
	CUresult r = CUDA_SUCCESS;
	int saved = errno;

	if (!range_find(p, &range) || !range_is_host(&range) || range.mirrored)
		return r;
	/* The server's driver may wait for the device. */
	copy_drain();
	m.base = range.base;
	m.size = range.size;
	m.ours = range.kind == RANGE_HOST && !range.shared;
	pthread_mutex_lock(&making);
	if (range_find(p, &range) && !range.mirrored) {
		r = begin(&c, MIRROR_MAKE, m.base);
		if (!r) {
			put_u64(&c.out, m.size);
			r = wait_for(&c);
		}
		if (!r) {
			pthread_mutex_lock(&lock);
			r = add(&m);
			if (r)
				tell_drop(m.base);
			else
				range_set_mirrored(m.base, true);
			pthread_mutex_unlock(&lock);
		}
	}
	pthread_mutex_unlock(&making);
	errno = saved;
	return r;
}

static void fetch(void);

CUresult mirror_managed(uint64_t base, size_t size, const void *owner)
{
	struct context *ctx = context_current();
	struct mirror m = {.base = base, .size = size, .managed = true};
	struct range range = {.base = base, .size = size, .kind = RANGE_MANAGED, .mirrored = true};
	uint64_t from, to;
	CUresult r = CUDA_SUCCESS;
	int saved = errno;

	if (ctx)
		range.device = ctx->device;
	if (!owner && ctx)
		range.ctx = ctx->handle;
	m.owner = owner ? owner : (const void *)range.ctx;
	pthread_mutex_lock(&lock);
	if (at(base))
		goto out;
	own_pages(&m, &from, &to);
	if (from < to && !range_map(from, to - from)) {
		log_warning("managed memory at %#llx: the address is in use in this program",
			(unsigned long long)base);
		r = CUDA_ERROR_OUT_OF_MEMORY;
		goto out;
	}
	/* What an earlier range left in a page that others have, too. */
	memset(memory(&m), 0, size < 2 * PAGE ? size : 0);
	r = add(&m);
	if (!r && !range_add(&range)) {
		forget(at(base));
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (r && from < to) {
		range_unmap(from, to - from);
	}
	/* A variable has a value. */
	if (!r && owner)
		fetch();
out:
	pthread_mutex_unlock(&lock);
	errno = saved;
	return r;
}

void mirror_drop(uint64_t base)
{
	int saved = errno;

	if (!mirror_any())
		return;
	pthread_mutex_lock(&lock);
	struct mirror *m = at(base);

	if (m) {
		tell_drop(base);
		range_set_mirrored(base, false);
		forget(m);
	}
	pthread_mutex_unlock(&lock);
	errno = saved;
}

void mirror_drop_owner(const void *owner)
{
	int saved = errno;

	if (!mirror_any())
		return;
	pthread_mutex_lock(&lock);
	for (struct mirror *m = first, *next; m; m = next) {
		next = m->next;
		if (!m->managed || m->owner != owner)
			continue;
		tell_drop(m->base);
		range_take(m->base, RANGE_MANAGED, NULL);
		forget(m);
	}
	pthread_mutex_unlock(&lock);
	errno = saved;
}

/* ---- exchanging */

static CUresult send_piece(struct mirror *m, size_t from, size_t n, bool wait)
{
	struct context *ctx;
	struct call c;
	CUresult r = begin_exchange(&c, MIRROR_SEND, m->base + from);

	if (r)
		return r;
	memcpy(piece, memory(m) + from, n);
	put_u64(&c.out, n);
	c.bulk = piece;
	c.bulk_len = n;
	/* Without a context that lives nothing may be posted. */
	wait = wait || context_check(&ctx);
	r = wait ? wait_for(&c) : call_post(&c);
	end_exchange(&c, wait && !r);
	if (!r)
		memcpy(m->agreed + from, piece, n);
	return r;
}

/* What differs among the bytes [from, to) of a range. */
static CUresult send_changed(struct mirror *m, size_t from, size_t to, bool wait)
{
	CUresult r = CUDA_SUCCESS;
	size_t n;

	while (!r && from < to) {
		from = mirror_changed(memory(m), m->agreed, to, from, MIRROR_PIECE, &n);
		if (n)
			r = send_piece(m, from, n, wait);
		from += n;
	}
	return r;
}

CUresult mirror_send_changed(bool wait)
{
	int saved = errno;
	CUresult r;

	pthread_mutex_lock(&lock);
	r = kept;
	kept = CUDA_SUCCESS;
	for (struct mirror *m = first; m && !r; m = m->next) {
		size_t from, to;

		watch_begin(&m->watch);
		while (!r && watch_next(&m->watch, &from, &to))
			r = send_changed(m, from, to, wait);
		if (r)
			watch_again(&m->watch);
	}
	/* What a host function wrote may be in an exchange that another thread has posted, which its end must
	 * not overtake: the answer to a later one says that the server has made it. */
	if (!r && wait && posted > made)
		fetch();
	pthread_mutex_unlock(&lock);
	errno = saved;
	return r;
}

/* One answer's runs to their places. False when the server names memory that is not in use. */
static bool place_runs(struct call *c, const uint8_t *fresh, uint64_t *next)
{
	uint64_t left = c->bulk_out_len, before = *next;

	*next = get_u64(&c->in);
	for (size_t i = get_array(&c->in, 2 * MIRROR_RUNS); i >= 2; i -= 2) {
		uint64_t p = get_u64(&c->in), n = get_u64(&c->in);
		struct mirror *m = n && n <= left ? holder(p, n) : NULL;

		if (!m)
			return false;
		mirror_merge(memory(m) + (p - m->base), m->agreed + (p - m->base), fresh, n);
		fresh += n;
		left -= n;
	}
	return !left && !c->in.bad && (!*next || *next > before);
}

static void fetch(void)
{
	uint8_t *fresh = malloc(MIRROR_PIECE);
	uint64_t next = 0;
	struct call c;
	CUresult r = CUDA_SUCCESS;

	if (!fresh)
		log_error("no memory to take what kernels wrote");
	while (fresh) {
		r = begin_exchange(&c, MIRROR_FETCH, next);
		if (r)
			break;
		c.bulk_out = fresh;
		c.bulk_out_len = MIRROR_PIECE;
		r = call_wait(&c);
		end_exchange(&c, !r);
		/* No results: the server's own refusal. */
		if (r && c.in.len >= c.in.cap)
			break;
		if (!place_runs(&c, fresh, &next)) {
			process_die(-EPROTO, "memory used in place");
			break;
		}
		call_end(&c, CUDA_SUCCESS);
		if (r && !kept)
			kept = r;
		if (!next)
			break;
	}
	free(fresh);
}

void mirror_fetch_changed(void)
{
	int saved = errno;

	if (thread_cached && thread_cached->host_function)
		return;
	pthread_mutex_lock(&lock);
	/* What was told of before the fetch begins is seen to when it has ended, and not before: others wait
	 * for it here. */
	unsigned told = atomic_load(&mirror_told);

	if (first && told != atomic_load(&mirror_seen))
		fetch();
	atomic_store(&mirror_seen, told);
	pthread_mutex_unlock(&lock);
	errno = saved;
}

/* ---- parameters that point to pinned memory */

/* Not every number that looks like a pointer is one for the kernel to follow: a range that the server cannot
 * have is no reason to refuse the launch. */
CUresult mirror_look_at(const uint8_t *p, size_t offset, size_t n)
{
	CUresult r = CUDA_SUCCESS;
	uint64_t v;

	for (size_t i = (8 - offset % 8) % 8; !r && n >= 8 && i <= n - 8; i += 8) {
		memcpy(&v, p + i, sizeof v);
		if (!range_may_be_host(v) || !mirror_use(v))
			continue;
		log_warning("kernels cannot use the pinned memory at %#llx that a parameter names",
			(unsigned long long)v);
		r = process_check();
	}
	return r;
}

CUresult mirror_look(const struct function *f, void **params, void **extra)
{
	const uint8_t *p = NULL;
	CUresult r = CUDA_SUCCESS;
	size_t n = 0;

	if (extra && !params) {
		for (void **e = extra; *e != CU_LAUNCH_PARAM_END; e += 2) {
			if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER)
				p = e[1];
			else if (*e == CU_LAUNCH_PARAM_BUFFER_SIZE && e[1])
				n = *(const size_t *)e[1];
			else
				return r;
		}
		return p ? mirror_look_at(p, 0, n) : r;
	}
	for (unsigned i = 0; params && f->laid_out && i < f->nparams && !r; i++)
		if (params[i])
			r = mirror_look_at(params[i], f->offset[i], f->size[i]);
	return r;
}
