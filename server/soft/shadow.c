/* SPDX-License-Identifier: Apache-2.0 */
/* The shadow of device memory and the list of freed allocations. The shadow is a second range as large as the
 * first; pages of it exist where something was written.
 *
 * Thread rule: see shadow.h. */
#include "server/soft/shadow.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include "server/soft/memory.h"

enum { FREED = 4096, PAGE = 4096 };

static uint8_t *shadow; /* of the byte at soft_mem_base; NULL: not open */
static struct {
	uint64_t base;
	size_t bytes;
} freed[FREED];
static uint64_t nfreed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool shadow_open(void)
{
	if (shadow)
		return true;
	void *p = mmap(NULL, soft_mem_end - soft_mem_base, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	shadow = p;
	return true;
}

static uint8_t *of(uint64_t p)
{
	return shadow && p >= soft_mem_base && p < soft_mem_end ? shadow + (p - soft_mem_base) : NULL;
}

void shadow_forget(uint64_t base, size_t bytes)
{
	uint8_t *s = of(base);
	if (s) /* allocations begin at pages and share none */
		madvise(s, (bytes + PAGE - 1) & ~(size_t)(PAGE - 1), MADV_DONTNEED);
	pthread_mutex_lock(&lock);
	freed[nfreed % FREED].base = base;
	freed[nfreed++ % FREED].bytes = bytes;
	pthread_mutex_unlock(&lock);
}

bool shadow_freed(uint64_t p, uint64_t *base, size_t *bytes)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (uint64_t k = nfreed; k && k + FREED > nfreed && !found; k--) {
		*base = freed[(k - 1) % FREED].base;
		*bytes = freed[(k - 1) % FREED].bytes;
		found = p - *base < *bytes;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void shadow_written(uint64_t p, size_t n)
{
	uint8_t *s = of(p);
	if (s)
		memset(s, 1, n);
}

void shadow_copied(uint64_t to, uint64_t from, size_t n, bool known)
{
	const uint8_t *s = known ? of(from) : NULL;
	if (!s)
		shadow_written(to, n);
	else if (of(to))
		memmove(of(to), s, n);
}

bool shadow_unwritten(uint64_t p, unsigned n)
{
	const uint8_t *s = of(p);
	if (!s)
		return false;
	for (unsigned k = 0; k < n; k++)
		if (s[k])
			return false;
	return true;
}
