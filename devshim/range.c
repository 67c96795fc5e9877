/* SPDX-License-Identifier: Apache-2.0 */
/* The table of address ranges: an array sorted by start, searched by halves. A read-write lock, since
 * copies and memsets only read.
 *
 * Reservations are coarse: chunks of 64 MiB are mapped PROT_NONE once and stay, because the server's
 * driver hands the same addresses out again. */
#include "devshim/range.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "wire/log.h"

#define CHUNK ((uint64_t)64 << 20)
#define PAGE ((uint64_t)4096)

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct range **table;
static size_t count, room;
static uint64_t next_id = 1;

static pthread_mutex_t reserve_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *chunks; /* sorted numbers of the chunks that are held */
static size_t nchunks, chunk_room;

_Atomic uint64_t range_host_low = UINT64_MAX, range_host_high;

/* Index of the first range that starts after p. */
static size_t above(uint64_t p)
{
	size_t lo = 0, hi = count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table[mid]->base <= p)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct range *holder(uint64_t p)
{
	size_t i = above(p);
	struct range *r = i ? table[i - 1] : NULL;

	return r && (p - r->base < r->size || p == r->base) ? r : NULL;
}

bool range_add(struct range *r)
{
	struct range *copy = malloc(sizeof *copy);
	bool ok = false;

	if (!copy)
		return false;
	pthread_rwlock_wrlock(&lock);
	size_t i = above(r->base);

	r->id = next_id++;
	*copy = *r;
	if (range_is_host(r)) {
		if (r->base < range_host_low)
			range_host_low = r->base;
		if (r->base + r->size > range_host_high)
			range_host_high = r->base + r->size;
	}
	if (i && table[i - 1]->base == r->base) {
		free(table[i - 1]);
		table[i - 1] = copy;
		ok = true;
		goto out;
	}
	if (count == room) {
		size_t n = room ? room * 2 : 256;
		struct range **t = realloc(table, n * sizeof *t);

		if (!t) {
			free(copy);
			goto out;
		}
		table = t;
		room = n;
	}
	memmove(table + i + 1, table + i, (count - i) * sizeof *table);
	table[i] = copy;
	count++;
	ok = true;
out:
	pthread_rwlock_unlock(&lock);
	return ok;
}

bool range_find(uint64_t p, struct range *out)
{
	pthread_rwlock_rdlock(&lock);
	struct range *r = holder(p);

	if (r)
		*out = *r;
	pthread_rwlock_unlock(&lock);
	return r;
}

bool range_overlap(uint64_t p, size_t n, struct range *out)
{
	pthread_rwlock_rdlock(&lock);
	struct range *r = holder(p);
	size_t next = above(p);

	if (!r && next < count && table[next]->base - p < n)
		r = table[next];
	if (r)
		*out = *r;
	pthread_rwlock_unlock(&lock);
	return r;
}

uint64_t range_arena(uint64_t p, size_t n)
{
	struct range r;

	bool found = range_may_be_host(p) && range_find(p, &r);
	return found && r.arena && range_is_here(&r) && range_has(&r, p, n) ? r.arena + (p - r.base) : 0;
}

bool range_take(uint64_t base, enum range_kind kind, struct range *out)
{
	bool found = false;

	pthread_rwlock_wrlock(&lock);
	size_t i = above(base);
	struct range *r = i ? table[i - 1] : NULL;

	if (r && r->base == base && r->kind == kind) {
		found = true;
		if (out)
			*out = *r;
		free(r);
		memmove(table + i - 1, table + i, (count - i) * sizeof *table);
		count--;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

static bool count_opens(uint64_t base, int n)
{
	bool left = false;

	pthread_rwlock_wrlock(&lock);
	struct range *r = holder(base);

	if (r && r->base == base && r->kind == RANGE_IPC)
		left = (r->opens += (unsigned)n) > 0;
	pthread_rwlock_unlock(&lock);
	return left;
}

bool range_open(uint64_t base)
{
	return count_opens(base, 1);
}
bool range_close(uint64_t base)
{
	return count_opens(base, -1);
}

void range_set_sync_memops(uint64_t p, bool on)
{
	pthread_rwlock_wrlock(&lock);
	struct range *r = holder(p);

	if (r)
		r->sync_memops = on;
	pthread_rwlock_unlock(&lock);
}

void range_set_mirrored(uint64_t base, bool on)
{
	pthread_rwlock_wrlock(&lock);
	struct range *r = holder(base);

	if (r && r->base == base)
		r->mirrored = on;
	pthread_rwlock_unlock(&lock);
}

void range_drop_owner(enum range_kind kind, CUcontext owner)
{
	size_t kept = 0;

	pthread_rwlock_wrlock(&lock);
	for (size_t i = 0; i < count; i++) {
		struct range *r = table[i];
		bool drop = r->ctx == owner && (kind ? r->kind == kind : range_is_device(r));

		if (drop)
			free(r);
		else
			table[kept++] = r;
	}
	count = kept;
	pthread_rwlock_unlock(&lock);
}

/* Where chunk c stands in the list, or would. */
static size_t chunk_place(uint64_t c)
{
	size_t lo = 0, hi = nchunks;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (chunks[mid] < c)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void note_chunk(uint64_t c)
{
	size_t at = chunk_place(c);

	if (nchunks == chunk_room) {
		size_t n = chunk_room ? chunk_room * 2 : 64;
		uint64_t *t = realloc(chunks, n * sizeof *t);

		if (!t)
			return; /* the chunk is held all the same; the next attempt finds it taken */
		chunks = t;
		chunk_room = n;
	}
	memmove(chunks + at + 1, chunks + at, (nchunks - at) * sizeof *chunks);
	chunks[at] = c;
	nchunks++;
}

static bool hold(uint64_t base, uint64_t size)
{
	void *p = mmap((void *)base, size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	if (p != (void *)base) { /* a kernel before 4.17 takes the address as a hint */
		munmap(p, size);
		return false;
	}
	return true;
}

void range_reserve(uint64_t base, size_t size)
{
	uint64_t end, c;
	int saved = errno;

	if (!size || __builtin_add_overflow(base, size, &end) || end > (uint64_t)1 << 47)
		return;
	pthread_mutex_lock(&reserve_lock);
	for (c = base / CHUNK; c <= (end - 1) / CHUNK; c++) {
		uint64_t first = c * CHUNK, last = first + CHUNK;

		size_t at = chunk_place(c);

		if (at < nchunks && chunks[at] == c)
			continue;
		if (hold(first, CHUNK)) {
			note_chunk(c);
			continue;
		}
		/* Something lies in the chunk: hold at least what was given. */
		first = first < base ? base / PAGE * PAGE : first;
		last = last > end ? (end + PAGE - 1) / PAGE * PAGE : last;
		if (!hold(first, last - first))
			log_debug("address range %#llx of the server is in use in this program",
				(unsigned long long)first);
	}
	pthread_mutex_unlock(&reserve_lock);
	errno = saved;
}

/* Under the lock: the chunk is held as a whole. */
static bool have_chunk(uint64_t c)
{
	size_t at = chunk_place(c);

	if (at < nchunks && chunks[at] == c)
		return true;
	if (!hold(c * CHUNK, CHUNK))
		return false;
	note_chunk(c);
	at = chunk_place(c);
	return at < nchunks && chunks[at] == c;
}

static void unmap(uint64_t base, uint64_t end)
{
	for (uint64_t from = base, to; from < end; from = to) {
		uint64_t c = from / CHUNK;
		size_t at = chunk_place(c);

		to = (c + 1) * CHUNK < end ? (c + 1) * CHUNK : end;
		if (at < nchunks && chunks[at] == c)
			mmap((void *)from, to - from, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		else
			munmap((void *)from, to - from);
	}
}

bool range_map(uint64_t base, size_t size)
{
	uint64_t end = base + size;
	int saved = errno;
	bool ok = base % PAGE == 0 && size % PAGE == 0 && end > base && end <= (uint64_t)1 << 47;

	pthread_mutex_lock(&reserve_lock);
	for (uint64_t from = base, to; ok && from < end; from = to) {
		uint64_t c = from / CHUNK;
		int how = have_chunk(c) ? MAP_FIXED : MAP_FIXED_NOREPLACE;

		to = (c + 1) * CHUNK < end ? (c + 1) * CHUNK : end;
		void *p = mmap((void *)from, to - from, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0);

		ok = p == (void *)from;
		if (!ok && p != MAP_FAILED)
			munmap(p, to - from);
		if (!ok)
			unmap(base, from);
	}
	pthread_mutex_unlock(&reserve_lock);
	errno = saved;
	return ok;
}

void range_unmap(uint64_t base, size_t size)
{
	int saved = errno;

	pthread_mutex_lock(&reserve_lock);
	unmap(base, base + size);
	pthread_mutex_unlock(&reserve_lock);
	errno = saved;
}
