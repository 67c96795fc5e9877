/* SPDX-License-Identifier: Apache-2.0 */
/* Staging is a row of pieces that are used in turn: while the mount sends from some of them, others are
 * filled. There are no more of them than stay in a processor's cache: four times as much cost a fifth of the
 * bandwidth. The caller's thread alone copies: it is faster than any connection. When all pieces are under
 * way it looks for one for a while, where there are processors enough; then it sleeps until half of them are
 * free, so that it is woken once for so much.
 *
 * Behind staging lie the program's pinned allocations, each a mapping of its own: a free stretch goes to the
 * first that fits, and its pages go back when it is freed. Natively a forked child shares pinned memory with
 * its parent (NVIDIA's module maps it VM_SHARED and without VM_DONTCOPY), and so it does here. What a child
 * may have is not given back, and to nobody else, until the process has no children.
 *
 * Thread rule: arena.h. `lock` guards the list of free stretches, `owner` is held from arena_begin to
 * arena_end. */
#include "devshim/arena.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "devshim/held.h"
#include "devshim/node.h"
#include "devshim/ring.h"
#include "wire/ctl.h"
#include "wire/limits.h"
#include "wire/pages.h"
#include "wire/ring.h"
#include "wire/uncancelled.h"

#define PIECES 8u
#define PIECE ((size_t)256 << 10)
#define STAGING (PIECES * PIECE)
#define SINKS 4
#define PINNED (STAGING + SINKS * ARENA_SINK)      /* where pinned memory begins */

struct stretch { struct stretch *next; uint64_t at, n; };

static struct {
	_Atomic bool open;
	int fd;
	struct held held;               /* what the descriptor is */
	uint8_t *ring, *staging, *sink[SINKS];      /* mapped when they are used for the first time */
	unsigned sinks;                 /* a bit for each one in use */
	pthread_mutex_t owner, lock;
	uint64_t staged;                /* pieces used so far */
	uint64_t last[PIECES];          /* the bulk that a piece went with last, counted from 1 */
	struct stretch *free;           /* in rising order, no two of them touch */
	struct stretch *kept;           /* freed, and a child may have them */
	_Atomic unsigned forks, forking;
	bool strict;                    /* pages may be refused (wire/pages.h) */
} arena = {.fd = -1, .owner = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static struct ring_control *control(void) { return (struct ring_control *)arena.ring; }

/* The descriptor is still what we opened. */
static bool is_ours(void) { return held_is(arena.fd, &arena.held); }

bool arena_open(int fd, uint8_t *ring)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stretch *all = malloc(sizeof *all);
	if (!all || !held_look(fd, &arena.held) || fstat(fd, &st) || st.st_size != (off_t)LIMIT_ARENA ||
		seals < 0 || (seals & needed) != needed) {
		free(all);
		close(fd);
		return false;
	}
	*all = (struct stretch){.at = PINNED, .n = LIMIT_ARENA - PINNED};
	arena.free = all;
	arena.kept = NULL;
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

static void stretches_drop(struct stretch **list)
{
	for (struct stretch *s = *list, *next; s; s = next) {
		next = s->next;
		free(s);
	}
	*list = NULL;
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
	stretches_drop(&arena.free);
	stretches_drop(&arena.kept);
}

void arena_forget(void)
{
	/* Staging is not the child's (MADV_DONTFORK); pinned memory is, and stays. */
	if (atomic_exchange(&arena.open, false) && is_ours())
		syscall(SYS_close, arena.fd);
}

void arena_forking(void)
{
	atomic_fetch_add(&arena.forking, 1);
	atomic_fetch_add(&arena.forks, 1);
}

void arena_forked(void)
{
	atomic_fetch_add(&arena.forks, 1);
	atomic_fetch_sub(&arena.forking, 1);
}

static uint8_t *map_at(uint64_t at, size_t n)
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

/* The same with pages that are there to be written. */
static uint8_t *map_written(uint64_t at, size_t n)
{
	uint8_t *p = map_at(at, n);
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
	uint8_t *p = map_written(at, n);
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

/* ---- pinned memory ---- */

static bool stretch_take(size_t n, uint64_t *at)
{
	pthread_mutex_lock(&arena.lock);
	struct stretch **from = &arena.free, *s;
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
	pthread_mutex_unlock(&arena.lock);
	return s != NULL;
}

/* Without memory to note it the stretch stays lost; its pages are gone all the same. */
static void stretch_give(uint64_t at, size_t n)
{
	struct stretch *spare = malloc(sizeof *spare);
	pthread_mutex_lock(&arena.lock);
	struct stretch **from = &arena.free, *before = NULL, *s;
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
	pthread_mutex_unlock(&arena.lock);
	free(spare);
}

/* Gives the pages back, by a mapping that was made for it: what lies at the program's place may be the
 * program's own by now, a file of its own even. One that closed our descriptor keeps them until its session
 * ends. */
static void release_pages(uint64_t at, size_t n)
{
	uint8_t *p = map_at(at, n);
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

	if (atomic_load(&arena.forking))
		return true;
	return !syscall(SYS_waitid, P_ALL, 0, &i, which, NULL) || errno != ECHILD;
}

static void release_kept(void)
{
	pthread_mutex_lock(&arena.lock);
	struct stretch *kept = arena.kept;
	arena.kept = NULL;
	pthread_mutex_unlock(&arena.lock);
	if (kept && has_children()) {
		struct stretch *last = kept;
		while (last->next)
			last = last->next;
		pthread_mutex_lock(&arena.lock);
		last->next = arena.kept;
		arena.kept = kept;
		pthread_mutex_unlock(&arena.lock);
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
	pthread_mutex_lock(&arena.lock);
	*s = (struct stretch){.next = arena.kept, .at = at, .n = n};
	arena.kept = s;
	pthread_mutex_unlock(&arena.lock);
}

void *arena_alloc(size_t n, uint64_t *at, unsigned *forks)
{
	if (!atomic_load(&arena.open))
		return NULL;
	release_kept();
	if (!stretch_take(n, at))
		return NULL;
	*forks = atomic_load(&arena.forks);
	void *p = map_written(*at, n);
	if (!p)
		stretch_give(*at, n);
	return p;
}

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

void arena_free(void *p, size_t n, uint64_t at, unsigned forks)
{
	uncancelled state = uncancelled_begin();
	int saved = errno;
	if (!atomic_load(&arena.open)) {
		munmap(p, n);
		errno = saved;
		return;
	}
	wait_sent(atomic_load(&control()->given));
	munmap(p, n);
	if (forks != atomic_load(&arena.forks) && has_children()) {
		keep(at, n);
	} else {
		release_pages(at, n);
		stretch_give(at, n);
	}
	release_kept();
	errno = saved;
}

/* ---- sending ---- */

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
