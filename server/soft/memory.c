/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: one reserved address range, committed per allocation, an inaccessible page after each, and
 * the table of live allocations. The lower half of the range is for allocations, the upper for the ranges
 * that programs reserve themselves (reserved.c).
 *
 * Thread rule: one lock for the table and the counters, held for short times only. */
#include "server/soft/allocation.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "server/soft/file.h"
#include "server/soft/shadow.h"
#include "wire/log.h"

#define PAGE 4096ull
#ifdef __SANITIZE_THREAD__ /* it allows mappings at few places only; this one is free */
#define RANGE_BASE 0x001000000000ull
#define RANGE_SPAN (1ull << 38)
#else /* nothing of a Linux process lies between this and its executable at 0x55.. */
#define RANGE_BASE 0x500000000000ull
#define RANGE_SPAN (1ull << 40) /* address space costs nothing; less is tried when the system refuses */
#endif
#define RANGE_LEAST (16ull << 30)
#define SPARE (256u << 20) /* for what kernels need to run when the program has taken all memory */

uint64_t soft_mem_base, soft_mem_middle, soft_mem_end;
static size_t limit; /* bytes per device */
static _Atomic uint64_t unshown[ALLOCATION_DEVICES];
static _Atomic uint64_t *used = unshown; /* bytes per device */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Live allocations, sorted by address. */
struct entry {
	struct allocation a;
	size_t span; /* pages and guard; 0: not our memory */
	int fd; /* of the file that holds the bytes; 0: none does */
};
static struct entry **table;
static size_t live, room;
static uint64_t next_id = 1;
static _Atomic uint64_t changes;
static uint64_t cursor; /* the next search starts here, so that addresses are not reused at once */

int soft_mem_init(size_t bytes)
{
	pthread_mutex_lock(&lock);
	int r = 0;
	for (uint64_t span = RANGE_SPAN; !soft_mem_base && span >= RANGE_LEAST; span /= 2) {
		void *p = mmap((void *)RANGE_BASE, span, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (p == MAP_FAILED)
			p = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) {
			r = -errno;
			continue;
		}
		r = 0;
		limit = bytes;
		soft_mem_base = (uint64_t)(uintptr_t)p;
		soft_mem_end = soft_mem_base + span;
		soft_mem_middle = soft_mem_base + span / 2;
		cursor = soft_mem_base + PAGE;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

void memory_show(_Atomic uint64_t *where)
{
	pthread_mutex_lock(&lock);
	for (int d = 0; d < ALLOCATION_DEVICES; d++)
		where[d] = used[d];
	used = where;
	pthread_mutex_unlock(&lock);
}

/* Index of the first allocation that ends past p. */
static size_t seek(uint64_t p)
{
	size_t lo = 0, hi = live;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct allocation *a = &table[mid]->a;
		if (a->base + a->bytes > p)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static struct entry *holding(uint64_t p)
{
	size_t i = seek(p);
	return i < live && table[i]->a.base <= p ? table[i] : NULL;
}

static bool insert(struct entry *e)
{
	if (live == room) {
		size_t n = room ? room * 2 : 256;
		struct entry **t = realloc(table, n * sizeof *t);
		if (!t)
			return false;
		table = t;
		room = n;
	}
	size_t i = seek(e->a.base);
	memmove(table + i + 1, table + i, (live - i) * sizeof *table);
	table[i] = e;
	live++;
	changes++;
	return true;
}

/* A hole of `span` bytes whose start is aligned, looked for from the cursor on and then once from the start.
 */
static uint64_t hole(size_t span, size_t align)
{
	for (int round = 0; round < 2; round++) {
		uint64_t p = round ? soft_mem_base + PAGE : cursor;
		for (size_t i = seek(p);; i++) {
			p = (p + align - 1) & ~(uint64_t)(align - 1);
			if (p > soft_mem_middle || span > soft_mem_middle - p)
				break;
			if (i == live || table[i]->a.base >= p + span)
				return p;
			uint64_t end =
				table[i]->a.base + (table[i]->span ? table[i]->span : table[i]->a.bytes);
			if (end > p)
				p = end;
		}
	}
	return 0;
}

/* `spare`: bytes past the limit that are allowed, too. */
static bool charge(int device, size_t bytes, size_t spare)
{
	size_t most = limit + spare;
	if (device < 0 || device >= ALLOCATION_DEVICES || bytes > most || used[device] > most - bytes)
		return false;
	used[device] += bytes;
	return true;
}

static size_t pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}
static bool counted(const struct allocation *a)
{
	return a->kind != ALLOCATION_PINNED && !a->inode;
}

/* A fresh mapping in place of the old one: the pages go back, and the next owner finds zeros. */
static void unmap(uint64_t p, size_t bytes)
{
	if (mmap((void *)(uintptr_t)p, bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
		MAP_FAILED)
		log_error("unmap device memory at %#llx: %m", (unsigned long long)p);
}

/* With the pages of a file, or with fresh ones (fd -1). */
static uint64_t create(const struct allocation *wanted, size_t bytes, size_t align, int fd)
{
	if (!soft_mem_base || !bytes || bytes > soft_mem_end - soft_mem_base || align > (2u << 20))
		return 0;
	size_t body = pages(bytes), span = body + PAGE;
	struct entry *e = calloc(1, sizeof *e);
	if (!e)
		return 0;
	pthread_mutex_lock(&lock);
	uint64_t p = 0;
	if (!counted(wanted) || charge(wanted->device, body, wanted->kind == ALLOCATION_MODULE ? SPARE : 0)) {
		p = hole(span, align > PAGE ? align : PAGE);
		if (p && fd < 0 && mprotect((void *)(uintptr_t)p, body, PROT_READ | PROT_WRITE))
			p = 0;
		if (p && fd >= 0 && mmap((void *)(uintptr_t)p, body, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_FIXED, fd, 0) ==
					    MAP_FAILED)
			p = 0;
		if (p) {
			e->a = *wanted;
			e->a.base = p;
			e->a.bytes = bytes;
			e->a.id = next_id++;
			e->span = span;
			if (!insert(e)) {
				unmap(p, body);
				p = 0;
			}
		}
		if (p)
			cursor = p + span;
		else if (counted(wanted))
			used[wanted->device] -= body;
	}
	pthread_mutex_unlock(&lock);
	if (!p)
		free(e);
	return p;
}

uint64_t allocation_create(const struct allocation *wanted, size_t bytes, size_t align)
{
	return create(wanted, bytes, align, -1);
}

uint64_t allocation_import(const struct allocation *wanted, int fd, size_t bytes)
{
	return create(wanted, bytes, PAGE, fd);
}

uint64_t allocation_create_shared(const struct allocation *wanted, size_t bytes, size_t align)
{
	int fd = file_create(pages(bytes));
	uint64_t p = fd < 0 ? 0 : create(wanted, bytes, align, fd);
	if (!p) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	pthread_mutex_lock(&lock);
	holding(p)->fd = fd;
	pthread_mutex_unlock(&lock);
	return p;
}

int allocation_share(uint64_t p)
{
	pthread_mutex_lock(&lock);
	struct entry *e = holding(p);
	int fd = e ? e->fd : -ENOENT;
	if (e && !e->fd) {
		size_t body = e->span - PAGE;
		fd = e->span ? file_create(body) : -EINVAL;
		int r = fd < 0 ? fd : file_write(fd, (const char *)(uintptr_t)e->a.base, body);
		if (!r && mmap((void *)(uintptr_t)e->a.base, body, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_FIXED, fd, 0) ==
				  MAP_FAILED)
			r = -errno;
		if (r && fd >= 0)
			close(fd);
		if (r)
			fd = r;
		else
			e->fd = fd;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

bool allocation_enter(const struct allocation *a)
{
	struct entry *e = calloc(1, sizeof *e);
	if (!e)
		return false;
	pthread_mutex_lock(&lock);
	size_t i = seek(a->base);
	bool good = i == live || table[i]->a.base >= a->base + a->bytes;
	if (good) {
		e->a = *a;
		e->a.id = next_id++;
		good = insert(e);
	}
	pthread_mutex_unlock(&lock);
	if (!good)
		free(e);
	return good;
}

bool allocation_remove(uint64_t p)
{
	pthread_mutex_lock(&lock);
	size_t i = seek(p);
	struct entry *e = i < live && table[i]->a.base == p ? table[i] : NULL;
	if (e) {
		if (e->span) {
			unmap(p, e->span - PAGE);
			if (e->fd)
				close(e->fd);
			if (counted(&e->a))
				used[e->a.device] -= e->span - PAGE;
		}
		shadow_forget(e->a.base, e->a.bytes);
		changes++;
		live--;
		memmove(table + i, table + i + 1, (live - i) * sizeof *table);
	}
	pthread_mutex_unlock(&lock);
	free(e);
	return e != NULL;
}

bool allocation_find(uint64_t p, struct allocation *out)
{
	pthread_mutex_lock(&lock);
	const struct entry *e = holding(p);
	if (e)
		*out = e->a;
	pthread_mutex_unlock(&lock);
	return e != NULL;
}

bool allocation_near(uint64_t p, struct allocation *out)
{
	pthread_mutex_lock(&lock);
	size_t i = seek(p);
	bool found = live > 0;
	if (found && (i == live ||
			(i && p - (table[i - 1]->a.base + table[i - 1]->a.bytes) < table[i]->a.base - p)))
		i--;
	if (found)
		*out = table[i]->a;
	pthread_mutex_unlock(&lock);
	return found;
}

uint64_t soft_generation(void)
{
	return changes;
}

bool allocation_covers(uint64_t p, size_t n)
{
	pthread_mutex_lock(&lock);
	size_t i = seek(p);
	bool all = i < live && table[i]->a.base <= p;
	while (all) {
		size_t left = table[i]->a.base + table[i]->a.bytes - p;
		if (n <= left)
			break;
		n -= left;
		p += left;
		i++;
		all = i < live && table[i]->a.base == p;
	}
	pthread_mutex_unlock(&lock);
	return all;
}

void allocation_update(const struct allocation *a)
{
	pthread_mutex_lock(&lock);
	struct entry *e = holding(a->base);
	if (e && e->a.base == a->base) {
		e->a.owner = a->owner;
		e->a.sync_memops = a->sync_memops;
		e->a.freeing = a->freeing;
		e->a.opens = a->opens;
		e->a.flags = a->flags;
	}
	pthread_mutex_unlock(&lock);
}

bool allocation_owned(const void *owner, struct allocation *out)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < live && !found; i++) {
		const struct allocation *a = &table[i]->a;
		found = a->owner == owner && a->kind != ALLOCATION_MODULE && a->kind != ALLOCATION_ARRAY &&
			a->kind != ALLOCATION_MAPPED && a->kind != ALLOCATION_POOL;
		if (found)
			*out = *a;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

bool allocation_imported(const void *owner, uint64_t inode, struct allocation *out)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < live && !found; i++) {
		const struct allocation *a = &table[i]->a;
		found = a->kind == ALLOCATION_IPC && a->owner == owner && a->inode == inode;
		if (found)
			*out = *a;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void allocation_info(int device, size_t *free_bytes, size_t *total_bytes)
{
	pthread_mutex_lock(&lock);
	*total_bytes = limit;
	*free_bytes = used[device] < limit ? limit - used[device] : 0;
	pthread_mutex_unlock(&lock);
}

bool memory_charge(int device, size_t bytes)
{
	pthread_mutex_lock(&lock);
	bool r = charge(device, bytes, 0);
	pthread_mutex_unlock(&lock);
	return r;
}

void memory_uncharge(int device, size_t bytes)
{
	pthread_mutex_lock(&lock);
	used[device] -= bytes;
	pthread_mutex_unlock(&lock);
}

uint64_t soft_alloc(size_t bytes, size_t align)
{
	struct allocation a = {.kind = ALLOCATION_MODULE};
	return allocation_create(&a, bytes, align);
}

bool soft_free(uint64_t p)
{
	return allocation_remove(p);
}

bool soft_find(uint64_t p, uint64_t *base, size_t *bytes)
{
	struct allocation a;
	if (!allocation_find(p, &a))
		return false;
	*base = a.base;
	*bytes = a.bytes;
	return true;
}

int soft_reach(const uint64_t *at, unsigned n, unsigned bytes)
{
	int fault = 0;
	const struct allocation *a = NULL; /* neighbours are mostly in the same one */
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n && !fault; i++) {
		if (!a || at[i] < a->base || at[i] - a->base >= a->bytes) {
			const struct entry *e = holding(at[i]);
			a = e ? &e->a : NULL;
		}
		if (!a || bytes > a->bytes - (at[i] - a->base))
			fault = 700;
		else if (at[i] & (bytes - 1))
			fault = 716;
	}
	pthread_mutex_unlock(&lock);
	return fault;
}
