/* SPDX-License-Identifier: Apache-2.0 */
/* Staging is a row of pieces that are used in turn: while the mount sends from some of them, others are
 * filled. There are no more of them than stay in a processor's cache: four times as much cost a fifth of the
 * bandwidth. The caller's thread alone copies: it is faster than any connection. When all pieces are under
 * way it looks for one for a while, where there are processors enough; then it sleeps until half of them are
 * free, so that it is woken once for so much.
 *
 * Behind it lie the sinks, and the program's pinned allocations (arena_pinned.c).
 *
 * Thread rule: arena.h. `lock` guards the sinks, `owner` is held from arena_begin to arena_end. */
#include "devshim/arena.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "devshim/arena_memory.h"
#include "devshim/held.h"
#include "devshim/node.h"
#include "devshim/ring.h"
#include "wire/ctl.h"
#include "wire/limits.h"
#include "wire/pages.h"
#include "wire/ring.h"

#define PIECES 8u
#define PIECE ((size_t)256 << 10)
#define STAGING (PIECES * PIECE)
#define SINKS 4
#define PINNED (STAGING + SINKS * ARENA_SINK)      /* where pinned memory begins */

static struct {
	_Atomic bool open;
	int fd;
	struct held held;               /* what the descriptor is */
	uint8_t *ring, *staging, *sink[SINKS];      /* mapped when they are used for the first time */
	unsigned sinks;                 /* a bit for each one in use */
	pthread_mutex_t owner, lock;
	uint64_t staged;                /* pieces used so far */
	uint64_t last[PIECES];          /* the bulk that a piece went with last, counted from 1 */
	bool strict;                    /* pages may be refused (wire/pages.h) */
} arena = {.fd = -1, .owner = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static struct ring_control *control(void) { return (struct ring_control *)arena.ring; }

bool arena_is_open(void) { return atomic_load(&arena.open); }

/* The descriptor is still what we opened. */
static bool is_ours(void) { return held_is(arena.fd, &arena.held); }

bool arena_open(int fd, uint8_t *ring)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (!held_look(fd, &arena.held) || fstat(fd, &st) || st.st_size != (off_t)LIMIT_ARENA || seals < 0 ||
		(seals & needed) != needed || !arena_pinned_open(PINNED, LIMIT_ARENA - PINNED)) {
		close(fd);
		return false;
	}
	arena.strict = pages_may_be_refused();
	arena.fd = fd;
	arena.ring = ring;
	arena.staging = NULL;
	memset(arena.sink, 0, sizeof arena.sink);
	arena.sinks = 0;
	arena.staged = 0;
	memset(arena.last, 0, sizeof arena.last);
	atomic_store(&arena.open, true);
	return true;
}

void arena_close(void)
{
	if (!atomic_exchange(&arena.open, false))
		return;
	if (arena.staging)
		munmap(arena.staging, STAGING);
	for (unsigned i = 0; i < SINKS; i++)
		if (arena.sink[i])
			munmap(arena.sink[i], ARENA_SINK);
	if (is_ours())
		close(arena.fd);
	arena.fd = -1;
	arena_pinned_close();
}

void arena_forget(void)
{
	/* Staging is not the child's (MADV_DONTFORK); pinned memory is, and stays. */
	if (atomic_exchange(&arena.open, false) && is_ours())
		syscall(SYS_close, arena.fd);
}

uint8_t *arena_map_at(uint64_t at, size_t n)
{
	void *p = MAP_FAILED;
	if (is_ours())
		p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd, (off_t)at);
	/* What was ours before and behind it was ours meanwhile. */
	if (p != MAP_FAILED && !is_ours()) {
		munmap(p, n);
		p = MAP_FAILED;
	}
	return p == MAP_FAILED ? NULL : p;
}

uint8_t *arena_map_written(uint64_t at, size_t n)
{
	uint8_t *p = arena_map_at(at, n);
	if (p && arena.strict && !pages_take(p, n)) {
		madvise(p, n, MADV_REMOVE);
		munmap(p, n);
		p = NULL;
	}
	return p;
}

/* A part that is ours and no child's. */
static uint8_t *map_own(uint64_t at, size_t n)
{
	uint8_t *p = arena_map_written(at, n);
	if (p)
		madvise(p, n, MADV_DONTFORK);
	return p;
}

uint8_t *arena_sink_take(uint64_t *at)
{
	uint8_t *p = NULL;
	if (!atomic_load(&arena.open))
		return NULL;
	pthread_mutex_lock(&arena.lock);
	unsigned i = 0;
	while (i < SINKS && arena.sinks >> i & 1)
		i++;
	if (i < SINKS) {
		*at = STAGING + i * ARENA_SINK;
		p = arena.sink[i] ? arena.sink[i] : (arena.sink[i] = map_own(*at, ARENA_SINK));
		arena.sinks |= p ? 1u << i : 0;
	}
	pthread_mutex_unlock(&arena.lock);
	return p;
}

void arena_sink_give(uint64_t at)
{
	pthread_mutex_lock(&arena.lock);
	arena.sinks &= ~(1u << (at - STAGING) / ARENA_SINK);
	pthread_mutex_unlock(&arena.lock);
}

/* ---- sending ---- */

/* Sleeps until the mount has sent so many bulks. 0, or -errno: the session is over. */
static int wait_sent(uint64_t bulks)
{
	int e = 0;
	while (atomic_load_explicit(&control()->sent, memory_order_acquire) < bulks && (!e || e == -EAGAIN)) {
		struct ctl_until until = {.count = bulks};
		e = node_ioctl(CTL_UNTIL, &until);
	}
	/* A batch that has its number already cannot be left out. */
	return e == -EAGAIN ? 0 : e == -ENOMEM ? -ENOBUFS : e;
}

void arena_wait_all(void) { wait_sent(atomic_load(&control()->given)); }

bool arena_begin(void)
{
	if (!atomic_load_explicit(&arena.open, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&arena.owner);
	if (!arena.staging)
		arena.staging = map_own(0, STAGING);
	if (!arena.staging)
		pthread_mutex_unlock(&arena.owner);
	return arena.staging;
}

void arena_end(void)
{
	pthread_mutex_unlock(&arena.owner);
}

uint64_t arena_batches(const struct record *r)
{
	return r->bulk_at ? 1 : (r->bulk_len + PIECE - 1) / PIECE;
}

/* Hands a stretch to the mount; its number, counted from 1, is then that of all so far. */
static int give(uint64_t batch, uint64_t at, size_t n)
{
	uint64_t given = atomic_load_explicit(&control()->given, memory_order_relaxed);
	int e = given < RING_BULKS ? 0 : wait_sent(given - RING_BULKS + 1);
	if (e)
		return e;
	*ring_bulk_at(arena.ring, given) = (struct ring_bulk){.batch = batch, .at = at, .len = n};
	atomic_store_explicit(&control()->given, given + 1, memory_order_release);
	return ring_wake(batch);
}

static uint64_t given(void)
{
	return atomic_load_explicit(&control()->given, memory_order_relaxed);
}

/* The next piece of staging; when it is not free, sleeps until half of them are. */
static int piece_take(unsigned *piece)
{
	*piece = (unsigned)(arena.staged++ % PIECES);
	if (ring_look(&control()->sent, arena.last[*piece]))
		return 0;
	return wait_sent(arena.last[(*piece + PIECES / 2 - 1) % PIECES]);
}

int arena_send(const struct record *r, uint64_t batch)
{
	if (r->bulk_at) {
		int e = give(batch, r->bulk_at, r->bulk_len);
		return e || r->bulk_held ? e : wait_sent(given());
	}
	for (size_t at = 0; at < r->bulk_len; at += PIECE) {
		size_t left = r->bulk_len - at, n = left < PIECE ? left : PIECE;
		unsigned piece;
		int e = piece_take(&piece);
		if (e)
			return e;
		memcpy(arena.staging + piece * PIECE, (const uint8_t *)r->bulk + at, n);
		e = give(batch++, piece * PIECE, n);
		if (e)
			return e;
		arena.last[piece] = given();
	}
	return 0;
}
