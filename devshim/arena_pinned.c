/* SPDX-License-Identifier: Apache-2.0 */
/* The program's pinned allocations, which lie in the arena behind staging, each a mapping of its own: a free
 * stretch goes to the first that fits, and its pages go back when it is freed. Natively a forked child shares
 * pinned memory with its parent (NVIDIA's module maps it VM_SHARED and without VM_DONTCOPY), and so it does
 * here. What a child may have is not given back, and to nobody else, until the process has no children. Not
 * known are a child's own child that outlives it, and one that _Fork or a raw system call made: what is freed
 * may become other memory of ours under them.
 *
 * Thread rule: arena.h. `lock` guards the lists of stretches. */
#include "devshim/arena.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "devshim/arena_memory.h"
#include "wire/uncancelled.h"

struct stretch { struct stretch *next; uint64_t at, n; };

static struct {
	pthread_mutex_t lock;
	struct stretch *free;           /* in rising order, no two of them touch */
	struct stretch *kept;           /* freed, and a child may have them */
	_Atomic unsigned forks, forking;
} pinned_memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool arena_pinned_open(uint64_t at, uint64_t n)
{
	struct stretch *all = malloc(sizeof *all);
	if (!all)
		return false;
	*all = (struct stretch){.at = at, .n = n};
	pinned_memory.free = all;
	pinned_memory.kept = NULL;
	return true;
}

static void stretches_drop(struct stretch **list)
{
	for (struct stretch *s = *list, *next; s; s = next) {
		next = s->next;
		free(s);
	}
	*list = NULL;
}

void arena_pinned_close(void)
{
	stretches_drop(&pinned_memory.free);
	stretches_drop(&pinned_memory.kept);
}

void arena_forking(void)
{
	atomic_fetch_add(&pinned_memory.forking, 1);
	atomic_fetch_add(&pinned_memory.forks, 1);
}

void arena_forked(void)
{
	atomic_fetch_add(&pinned_memory.forks, 1);
	atomic_fetch_sub(&pinned_memory.forking, 1);
}

static bool stretch_take(size_t n, uint64_t *at)
{
	pthread_mutex_lock(&pinned_memory.lock);
	struct stretch **from = &pinned_memory.free, *s;
	while ((s = *from) && s->n < n)
		from = &s->next;
	if (s) {
		*at = s->at;
		s->at += n;
		s->n -= n;
		if (!s->n) {
			*from = s->next;
			free(s);
		}
	}
	pthread_mutex_unlock(&pinned_memory.lock);
	return s != NULL;
}

/* Without memory to note it the stretch stays lost; its pages are gone all the same. */
static void stretch_give(uint64_t at, size_t n)
{
	struct stretch *spare = malloc(sizeof *spare);
	pthread_mutex_lock(&pinned_memory.lock);
	struct stretch **from = &pinned_memory.free, *before = NULL, *s;
	while ((s = *from) && s->at < at) {
		before = s;
		from = &s->next;
	}
	if (before && before->at + before->n == at) {
		before->n += n;
	} else if (spare) {
		*spare = (struct stretch){.next = s, .at = at, .n = n};
		*from = before = spare;
		spare = NULL;
	} else {
		before = NULL;
	}
	if (before && s && before->at + before->n == s->at) {
		before->n += s->n;
		before->next = s->next;
		free(s);
	}
	pthread_mutex_unlock(&pinned_memory.lock);
	free(spare);
}

/* Gives the pages back, by a mapping that was made for it: what lies at the program's place may be the
 * program's own by now, a file of its own even. One that closed our descriptor keeps them until its session
 * ends. */
static void release_pages(uint64_t at, size_t n)
{
	uint8_t *p = arena_map_at(at, n);
	if (!p)
		return;
	munlock(p, n);          /* mlockall */
	madvise(p, n, MADV_REMOVE);
	munmap(p, n);
}

/* Children that nobody has waited for count, too: one that is over harms nothing. So does one that another
 * thread is about to have: it gets our memory before it can be waited for. The call is a raw one, which is no
 * cancellation point. */
static bool has_children(void)
{
	siginfo_t i;
	int which = WEXITED | WNOHANG | WNOWAIT | __WALL;

	if (atomic_load(&pinned_memory.forking))
		return true;
	return !syscall(SYS_waitid, P_ALL, 0, &i, which, NULL) || errno != ECHILD;
}

static void release_kept(void)
{
	pthread_mutex_lock(&pinned_memory.lock);
	struct stretch *kept = pinned_memory.kept;
	pinned_memory.kept = NULL;
	pthread_mutex_unlock(&pinned_memory.lock);
	if (kept && has_children()) {
		struct stretch *last = kept;
		while (last->next)
			last = last->next;
		pthread_mutex_lock(&pinned_memory.lock);
		last->next = pinned_memory.kept;
		pinned_memory.kept = kept;
		pthread_mutex_unlock(&pinned_memory.lock);
		return;
	}
	for (struct stretch *s = kept; s; s = s->next) {
		release_pages(s->at, s->n);
		stretch_give(s->at, s->n);
	}
	stretches_drop(&kept);
}

/* Without memory to note it they stay what they are until the session ends. */
static void keep(uint64_t at, size_t n)
{
	struct stretch *s = malloc(sizeof *s);
	if (!s)
		return;
	pthread_mutex_lock(&pinned_memory.lock);
	*s = (struct stretch){.next = pinned_memory.kept, .at = at, .n = n};
	pinned_memory.kept = s;
	pthread_mutex_unlock(&pinned_memory.lock);
}

void *arena_alloc(size_t n, uint64_t *at, unsigned *forks)
{
	if (!arena_is_open())
		return NULL;
	release_kept();
	if (!stretch_take(n, at))
		return NULL;
	*forks = atomic_load(&pinned_memory.forks);
	void *p = arena_map_written(*at, n);
	if (!p)
		stretch_give(*at, n);
	return p;
}

void arena_free(void *p, size_t n, uint64_t at, unsigned forks)
{
	uncancelled state = uncancelled_begin();
	int saved = errno;
	if (!arena_is_open()) {
		munmap(p, n);
		errno = saved;
		return;
	}
	arena_wait_all();
	munmap(p, n);
	if (forks != atomic_load(&pinned_memory.forks) && has_children()) {
		keep(at, n);
	} else {
		release_pages(at, n);
		stretch_give(at, n);
	}
	release_kept();
	errno = saved;
}
