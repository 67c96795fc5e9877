/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges of memory that the program shares with the GPU: how they come to be in use in place, and end.
 *
 * Thread rule: mirror_state.h. Making a range may wait for the device, and so for host functions, which
 * exchange: `making` serialises that, and the lock is free meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "devshim/context.h"
#include "devshim/copy.h"
#include "devshim/mirror_state.h"
#include "wire/limits.h"
#include "wire/log.h"

#define PAGE ((uint64_t)4096)

_Atomic unsigned mirror_count;
struct mirrors mirrors = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* ---- the list, under the lock */

static struct mirror *at(uint64_t base)
{
	struct mirror *m = mirrors.first;

	while (m && m->base != base)
		m = m->next;
	return m;
}

struct mirror *mirror_holder(uint64_t p, uint64_t n)
{
	for (struct mirror *m = mirrors.first; m; m = m->next)
		if (p >= m->base && p - m->base < m->size && n <= m->size - (p - m->base))
			return m;
	return NULL;
}

static CUresult add(const struct mirror *made)
{
	struct mirror *m = malloc(sizeof *m);
	void *p = MAP_FAILED;

	if (mirrors.bytes > LIMIT_MIRROR || made->size > LIMIT_MIRROR - mirrors.bytes ||
		mirror_count >= LIMIT_MIRRORS) {
		log_warning("memory that program and GPU use in place: %zu bytes more are past the limit",
			made->size);
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (m && !mirrors.piece)
		mirrors.piece = malloc(MIRROR_PIECE);
	if (m && mirrors.piece)
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
	m->next = mirrors.first;
	mirrors.first = m;
	mirrors.bytes += m->size;
	atomic_fetch_add(&mirror_count, 1);
	return CUDA_SUCCESS;
}

/* True when another range of managed memory lies in the page. */
static bool shared(uint64_t page, const struct mirror *except)
{
	for (struct mirror *m = mirrors.first; m; m = m->next)
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
	struct mirror **l = &mirrors.first;
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
	mirrors.bytes -= m->size;
	atomic_fetch_sub(&mirror_count, 1);
	free(m);
}

static CUresult tell_drop(uint64_t base)
{
	struct call c;
	CUresult r = mirror_begin(&c, MIRROR_DROP, base);

	return r ? r : mirror_wait(&c);
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
		r = mirror_begin(&c, MIRROR_MAKE, m.base);
		if (!r) {
			put_u64(&c.out, m.size);
			r = mirror_wait(&c);
		}
		if (!r) {
			pthread_mutex_lock(&mirrors.lock);
			r = add(&m);
			if (r)
				tell_drop(m.base);
			else
				range_set_mirrored(m.base, true);
			pthread_mutex_unlock(&mirrors.lock);
		}
	}
	pthread_mutex_unlock(&making);
	errno = saved;
	return r;
}

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
	pthread_mutex_lock(&mirrors.lock);
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
	memset(mirror_memory(&m), 0, size < 2 * PAGE ? size : 0);
	r = add(&m);
	if (!r && !range_add(&range)) {
		forget(at(base));
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (r && from < to) {
		range_unmap(from, to - from);
	}
	/* A variable has a value. */
	if (!r && owner)
		mirror_fetch_all();
out:
	pthread_mutex_unlock(&mirrors.lock);
	errno = saved;
	return r;
}

void mirror_drop(uint64_t base)
{
	int saved = errno;

	if (!mirror_any())
		return;
	pthread_mutex_lock(&mirrors.lock);
	struct mirror *m = at(base);

	if (m) {
		tell_drop(base);
		range_set_mirrored(base, false);
		forget(m);
	}
	pthread_mutex_unlock(&mirrors.lock);
	errno = saved;
}

void mirror_drop_owner(const void *owner)
{
	int saved = errno;

	if (!mirror_any())
		return;
	pthread_mutex_lock(&mirrors.lock);
	for (struct mirror *m = mirrors.first, *next; m; m = next) {
		next = m->next;
		if (!m->managed || m->owner != owner)
			continue;
		tell_drop(m->base);
		range_take(m->base, RANGE_MANAGED, NULL);
		forget(m);
	}
	pthread_mutex_unlock(&mirrors.lock);
	errno = saved;
}
