/* SPDX-License-Identifier: Apache-2.0 */
/* Address space that the program reserves itself, in the upper half of the range of device memory: which
 * ranges are taken, and memory put at an address of one.
 *
 * Thread rule: one lock for the list. */
#include "server/soft/reserved.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "server/soft/memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Sorted by nothing: there are few. */
struct range {
	uint64_t base;
	size_t bytes;
};
static struct range *ranges;
static size_t nranges;

static bool range_free(uint64_t p, size_t bytes)
{
	if (p < soft_mem_middle || p > soft_mem_end || bytes > soft_mem_end - p)
		return false;
	for (size_t i = 0; i < nranges; i++)
		if (p < ranges[i].base + ranges[i].bytes && ranges[i].base < p + bytes)
			return false;
	return true;
}

uint64_t range_reserve(size_t bytes, size_t align, uint64_t wish)
{
	if (!bytes || align > (1ull << 36))
		return 0;
	pthread_mutex_lock(&lock);
	uint64_t p = wish && !(wish & (align - 1)) && range_free(wish, bytes) ? wish : 0;
	if (!p) {
		p = (soft_mem_middle + align - 1) & ~(uint64_t)(align - 1);
		for (size_t i = 0; i < nranges;) {
			const struct range *r = &ranges[i++];
			if (p < r->base + r->bytes && r->base < p + bytes) {
				p = (r->base + r->bytes + align - 1) & ~(uint64_t)(align - 1);
				i = 0;
			}
		}
		if (!range_free(p, bytes))
			p = 0;
	}
	struct range *more = p ? realloc(ranges, (nranges + 1) * sizeof *ranges) : NULL;
	if (more) {
		ranges = more;
		ranges[nranges++] = (struct range){p, bytes};
	} else {
		p = 0;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

bool range_release(uint64_t p, size_t bytes)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < nranges && !found; i++)
		if (ranges[i].base == p && ranges[i].bytes == bytes) {
			ranges[i] = ranges[--nranges];
			found = true;
		}
	pthread_mutex_unlock(&lock);
	return found;
}

bool range_reserved(uint64_t p, size_t bytes)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < nranges && !found; i++)
		found = p >= ranges[i].base && bytes <= ranges[i].bytes &&
			p - ranges[i].base <= ranges[i].bytes - bytes;
	pthread_mutex_unlock(&lock);
	return found;
}

int range_map(uint64_t p, size_t bytes, int fd, uint64_t offset)
{
	int prot = PROT_NONE,
	    flags = MAP_FIXED | MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
	return mmap((void *)(uintptr_t)p, bytes, prot, flags, fd, fd < 0 ? 0 : (off_t)offset) == MAP_FAILED
		       ? -errno
		       : 0;
}
