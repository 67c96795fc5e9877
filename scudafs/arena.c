/* SPDX-License-Identifier: Apache-2.0 */
/* The memory is a sealed, sparse memfd. The program may change the bytes at any time, also while they are
 * being sent, or taken by a server that it is lent to (lend.c): nobody looks at them here, and what it does
 * to them it does to its own copy alone.
 *
 * Thread rule: arena.h. */
#include "scudafs/arena.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "scudafs/guard.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/ring.h"

struct arena {
	uint8_t *ring, *memory;
	struct ring_control *control;
	struct guard *guard;
	int fd;
	bool keeps;
	uint64_t taken, sent;
	struct stretch { struct arena *of; bool done; } stretch[RING_BULKS];
	_Atomic uint64_t seen;          /* `given` when the last arena_take found no more */
};

struct arena *arena_create(uint8_t *ring)
{
	struct arena *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->ring = ring;
	a->control = (struct ring_control *)ring;
	a->memory = MAP_FAILED;
	a->fd = memfd_create("scudafs-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (a->fd < 0 || ftruncate(a->fd, (off_t)LIMIT_ARENA) ||
		fcntl(a->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
		(a->memory = mmap(NULL, LIMIT_ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 a->fd, 0)) == MAP_FAILED ||
		!(a->guard = guard_add(a->memory, LIMIT_ARENA))) {
		log_warning("memory for large copies: %m");
		arena_destroy(a);
		return NULL;
	}
	return a;
}

void arena_destroy(struct arena *a)
{
	if (!a)
		return;
	guard_drop(a->guard);
	if (a->memory != MAP_FAILED)
		munmap(a->memory, LIMIT_ARENA);
	a->keeps = false;
	arena_close_fd(a);
	free(a);
}

int arena_fd(const struct arena *a) { return a->fd; }

void arena_keep_fd(struct arena *a) { a->keeps = true; }

void arena_close_fd(struct arena *a)
{
	if (a->fd < 0 || a->keeps)
		return;
	close(a->fd);
	a->fd = -1;
}

static uint64_t given(const struct arena *a)
{
	return atomic_load_explicit(&a->control->given, memory_order_acquire);
}

bool arena_has_news(const struct arena *a)
{
	return given(a) != atomic_load_explicit(&a->seen, memory_order_relaxed);
}

bool arena_is_empty(const struct arena *a) { return given(a) == a->taken; }

void arena_look_again(struct arena *a)
{
	atomic_store_explicit(&a->seen, a->taken, memory_order_relaxed);
}

/* The last reference to a stretch goes when its bytes have been sent, or the server has taken them, or with
 * the session. By two connections they may go in another order; what is told is how many are sent without a
 * gap. */
static void stretch_sent(void *arg)
{
	struct stretch *s = arg;
	struct arena *a = s->of;
	s->done = true;
	while ((s = &a->stretch[a->sent % RING_BULKS])->done) {
		s->done = false;
		a->sent++;
	}
	atomic_store_explicit(&a->control->sent, a->sent, memory_order_release);
}

const char *arena_take(struct arena *a, uint64_t *last, struct buffer **bytes)
{
	uint64_t end = given(a);
	*bytes = NULL;
	if (arena_is_broken(a))
		return "a page of shared memory is missing";
	if (end - a->sent > RING_BULKS || end < a->taken)
		return "more stretches than there is room for";
	if (end != a->taken) {
		struct ring_bulk b = ring_bulk_out(a->ring, a->taken);
		if (b.at > LIMIT_ARENA || !b.len || b.len > LIMIT_ARENA - b.at)
			return "a stretch outside the arena";
		if (b.batch <= *last)
			return "a stretch's batch was there already";
		if (b.batch == *last + 1) {
			struct stretch *s = &a->stretch[a->taken % RING_BULKS];
			s->of = a;
			*bytes = buffer_elsewhere(a->memory + b.at, b.len, stretch_sent, s);
			if (!*bytes)
				return "no memory";
			a->taken++;
			++*last;
			return NULL;
		}
	}
	atomic_store_explicit(&a->seen, end, memory_order_relaxed);
	return NULL;
}

uint64_t arena_sent(const struct arena *a) { return a->sent; }

bool arena_is_broken(const struct arena *a) { return guard_is_broken(a->guard); }

uint8_t *arena_at(const struct arena *a, uint64_t at) { return a->memory + at; }
uint64_t arena_place(const struct arena *a, const uint8_t *p) { return (uint64_t)(p - a->memory); }
