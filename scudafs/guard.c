/* SPDX-License-Identifier: Apache-2.0 */
/* The handler runs on the thread that touched the page, and may only read what is here and make system
 * calls. So the guards are in a list that only grows; one that is dropped serves the next that is added.
 *
 * Its own page is shared memory, too, which was written to when it was made and which nobody else has: a
 * second mapping of it (mremap of no bytes) needs nothing that the kernel could refuse, but for the mapping
 * itself. */
#include "scudafs/guard.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard {
	struct guard *next;
	_Atomic uintptr_t from, to;     /* to 0: it is free */
	_Atomic bool broken;
	void *page;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct guard *_Atomic all;
static size_t page_size;        /* constant from the first guard on */

static void on_bus(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr, page = at - at % page_size;
	(void)context;
	for (struct guard *g = atomic_load(&all); g; g = g->next) {
		if (at < atomic_load(&g->from) || at >= atomic_load(&g->to))
			continue;
		atomic_store(&g->broken, true);
		if (mremap(g->page, 0, page_size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)page) != MAP_FAILED)
			return;
	}
	/* None of ours: the same again, and the end. */
	signal(sig, SIG_DFL);
}

static struct guard *make(void)
{
	struct guard *g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	page_size = (size_t)sysconf(_SC_PAGESIZE);
	g->page = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g->page == MAP_FAILED) {
		free(g);
		return NULL;
	}
	memset(g->page, 0, page_size);
	g->next = atomic_load(&all);
	if (!g->next) {
		struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
		sigaction(SIGBUS, &act, NULL);
	}
	atomic_store(&all, g);
	return g;
}

struct guard *guard_add(void *memory, size_t n)
{
	pthread_mutex_lock(&lock);
	struct guard *g = atomic_load(&all);
	while (g && atomic_load(&g->to))
		g = g->next;
	if (!g)
		g = make();
	if (g) {
		atomic_store(&g->broken, false);
		atomic_store(&g->from, (uintptr_t)memory);
		atomic_store(&g->to, (uintptr_t)memory + n);
	}
	pthread_mutex_unlock(&lock);
	return g;
}

void guard_drop(struct guard *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&lock);
	/* The next session is another user's. */
	if (atomic_load(&g->broken))
		memset(g->page, 0, page_size);
	atomic_store(&g->to, 0);
	pthread_mutex_unlock(&lock);
}

bool guard_is_broken(const struct guard *g)
{
	return __builtin_expect(atomic_load_explicit(&g->broken, memory_order_relaxed), 0);
}
