/* SPDX-License-Identifier: Apache-2.0 */
/* The memory is a sealed memfd, so that nobody can take it away under us. Thread rule: channel.h. */
#include "scudafs/channel.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "scudafs/arena.h"
#include "scudafs/clock.h"
#include "scudafs/guard.h"
#include "wire/fds.h"
#include "wire/log.h"
#include "wire/pages.h"
#include "wire/ring.h"

#define GATHER (64u << 10)          /* bytes of segments taken at a time, unless one has more */
#define GATHER_LEAST (4u << 10)

struct channel {
	uint8_t *memory;
	struct ring_control *control;
	struct arena *arena;
	struct guard *guard;
	int memfd, listener, socket;
	_Atomic bool used;
	uint64_t tail;
	_Atomic uint64_t seen;      /* the head when the last channel_take found no more */
	uint64_t waiting;           /* a bit for each slot below 64 that waits for its answer */
	uint64_t waiting_large;     /* the same for the large ones */
	struct {
		uint64_t seq, transfer;
		_Atomic uint64_t got;   /* the session's thread's, but for the first */
		int area;           /* -1: none */
		uint64_t at, n, room;   /* of a sink; n 0: none */
		bool answered;
	} slot[RING_SLOTS];
};

static struct ring_slot *slot_at(const struct channel *c, unsigned i)
{
	return ring_slot_at(c->memory, i);
}

struct channel *channel_create(void)
{
	struct channel *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->listener = c->socket = -1;
	c->memory = MAP_FAILED;
	c->memfd = memfd_create("scudafs-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (c->memfd < 0 || ftruncate(c->memfd, RING_ALL) ||
			fcntl(c->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
			(c->memory = mmap(NULL, RING_ALL, PROT_READ | PROT_WRITE, MAP_SHARED, c->memfd, 0)) ==
					MAP_FAILED) {
		log_warning("shared memory: %m");
		channel_free(c);
		return NULL;
	}
	if (pages_may_be_refused() && !pages_take(c->memory, RING_ALL)) {
		log_warning("shared memory: %m");
		channel_free(c);
		return NULL;
	}
	c->control = (struct ring_control *)c->memory;
	c->guard = guard_add(c->memory, RING_ALL);
	c->arena = c->guard ? arena_create(c->memory) : NULL;
	if (!c->arena) {
		channel_free(c);
		return NULL;
	}
	for (unsigned i = 0; i < RING_SLOTS; i++)
		c->slot[i].area = -1;
	return c;
}

void channel_free(struct channel *c)
{
	if (!c)
		return;
	arena_destroy(c->arena);
	guard_drop(c->guard);
	if (c->memory != MAP_FAILED)
		munmap(c->memory, RING_ALL);
	if (c->memfd >= 0)
		close(c->memfd);
	if (c->listener >= 0)
		close(c->listener);
	if (c->socket >= 0)
		close(c->socket);
	free(c);
}

/* ---- handing over ---- */

void channel_offer(struct channel *c, int listener) { c->listener = listener; }
int channel_fd(const struct channel *c) { return c->listener >= 0 ? c->listener : c->socket; }
bool channel_is_used(const struct channel *c) { return atomic_load(&c->used); }
struct arena *channel_arena(const struct channel *c) { return c->arena; }

/* The socket of the meeting keeps the mount busy, so it does not stay: wakes come through a pair of its
 * own. */
static bool meet(struct channel *c, pid_t pid, uid_t uid)
{
	struct ucred peer;
	int pair[2];
	socklen_t n = sizeof(peer);
	int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) || peer.uid != uid ||
		(pid && peer.pid != pid)) {
		log_warning("process %d of user %u asked for the memory of another session", (int)peer.pid,
			(unsigned)peer.uid);
		close(fd);
		return true;
	}
	close(c->listener);
	c->listener = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		log_warning("socketpair: %m");
		close(fd);
		return false;
	}
	/* Before the program can have it. */
	atomic_store(&c->used, true);
	char version = RING_VERSION;
	int given[] = {c->memfd, arena_fd(c->arena), pair[1]};
	bool sent = !fds_send(fd, &version, 1, given, 3, MSG_DONTWAIT);
	close(pair[1]);
	close(fd);
	close(c->memfd);
	c->memfd = -1;
	arena_close_fd(c->arena);
	if (sent)
		c->socket = pair[0];
	else
		close(pair[0]);
	return sent;
}

bool channel_came(struct channel *c, pid_t pid, uid_t uid)
{
	char bytes[64];
	ssize_t n;
	if (c->listener >= 0)
		return meet(c, pid, uid);
	/* Not all of it, should a program send more than we take: the next look will find the rest. */
	n = recv(c->socket, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return true;
	close(c->socket);
	c->socket = -1;
	return false;
}

/* ---- from the program ---- */

bool channel_is_broken(const struct channel *c)
{
	return guard_is_broken(c->guard) || arena_is_broken(c->arena);
}

bool channel_has_news(const struct channel *c)
{
	uint64_t head = atomic_load_explicit(&c->control->head, memory_order_acquire);
	return head != atomic_load_explicit(&c->seen, memory_order_relaxed) || arena_has_news(c->arena);
}

bool channel_is_empty(const struct channel *c)
{
	return atomic_load_explicit(&c->control->head, memory_order_acquire) == c->tail &&
		arena_is_empty(c->arena);
}

void channel_sleeps(struct channel *c, bool asleep)
{
	/* Ordered before the look at the head that follows; the program does it the other way round. */
	atomic_store(&c->control->asleep, asleep);
}

void channel_look_again(struct channel *c)
{
	/* As if nothing of what is there had been seen; all of it taken, it is not news. */
	atomic_store_explicit(&c->seen, c->tail, memory_order_relaxed);
	arena_look_again(c->arena);
}

static bool is_waiting(const struct channel *c, unsigned i)
{
	return (i < 64 ? c->waiting >> i : c->waiting_large >> (i - 64)) & 1;
}

static void set_waiting(struct channel *c, unsigned i, bool waits)
{
	uint64_t *word = i < 64 ? &c->waiting : &c->waiting_large, bit = 1ull << i % 64;
	*word = waits ? *word | bit : *word & ~bit;
}

static bool area_is_taken(const struct channel *c, int area)
{
	for (uint64_t w = c->waiting; w; w &= w - 1)
		if (c->slot[__builtin_ctzll(w)].area == area)
			return true;
	for (uint64_t w = c->waiting_large; w; w &= w - 1)
		if (c->slot[64 + __builtin_ctzll(w)].area == area)
			return true;
	return is_waiting(c, (unsigned)area);
}

/* Notes what a segment asks for. */
static const char *expect(struct channel *c, const struct ring_segment *s)
{
	int i = s->slot - 1, area = s->area - 1;
	if (!s->slot)
		return s->area ? "an area without a slot" : NULL;
	if (i >= RING_SLOTS || is_waiting(c, (unsigned)i) || !s->seq)
		return "a slot that is not free";
	bool sinks = s->area == RING_SINK;
	const struct ring_slot *asked = slot_at(c, (unsigned)i);
	uint64_t at = sinks ? asked->at : 0, n = sinks ? asked->n : 0, room = sinks ? asked->room : 0;
	/* What is checked is the copy. */
	atomic_signal_fence(memory_order_seq_cst);
	if (sinks && (!n || at > LIMIT_ARENA || (room ? room : n) > LIMIT_ARENA - at))
		return "a sink outside the arena";
	bool large = s->area && !sinks;
	if (large && (area < RING_SMALL || area >= RING_SLOTS || area == i || area_is_taken(c, area)))
		return "an area that is not free";
	c->slot[i].seq = s->seq;
	c->slot[i].transfer = s->transfer;
	c->slot[i].got = 0;
	c->slot[i].area = sinks ? -1 : area;
	c->slot[i].at = at;
	c->slot[i].n = n;
	c->slot[i].room = room;
	c->slot[i].answered = false;
	set_waiting(c, (unsigned)i, true);
	return NULL;
}

/* Looks for more than what ends at `head`, until *end, which is set the first time. */
static uint64_t linger_for(const struct channel *c, uint64_t head, unsigned linger, uint64_t *end)
{
	uint64_t more;
	if (!*end)
		*end = clock_ns() + linger;
	do
		more = atomic_load_explicit(&c->control->head, memory_order_acquire);
	while (more == head && clock_ns() < *end);
	return more;
}

const char *channel_take(struct channel *c, uint64_t *last, struct buffer **bytes, unsigned *waits,
	unsigned linger)
{
	uint64_t head = atomic_load_explicit(&c->control->head, memory_order_acquire), tail = c->tail;
	struct buffer *b = NULL;
	const char *why = NULL;
	*bytes = NULL;
	*waits = 0;
	uint64_t end = 0;
	if (channel_is_broken(c))
		return "a page of shared memory is missing";
	if (head - tail > RING_BYTES)
		return "the ring's head is not in the ring";
	for (;;) {
		if (head == tail && b && !*waits && linger)
			head = linger_for(c, head, linger, &end);
		if (head - tail > RING_BYTES)
			why = "the ring's head is not in the ring";
		if (head - tail < sizeof(struct ring_segment) || why)
			break;
		struct ring_segment s;
		ring_copy_out(c->memory, tail, &s, sizeof(s));
		if (!s.len || s.len > RING_RECORD || s.zero || ring_bytes(s.len) > head - tail) {
			why = "a segment's length";
			break;
		}
		if (s.batch != *last + 1) {
			why = s.batch <= *last ? "a segment's batch was there already" : NULL;
			break;
		}
		if (b && s.len > b->cap - b->len)
			break;
		if (!b) {
			uint64_t all = head - tail;
			size_t room = all > GATHER ? GATHER : all < GATHER_LEAST ? GATHER_LEAST : (size_t)all;
			b = buffer_create(room > s.len ? room : s.len);
			if (!b)
				return "no memory";
		}
		why = expect(c, &s);
		if (why)
			break;
		ring_copy_out(c->memory, tail + sizeof(s), b->data + b->len, s.len);
		b->len += s.len;
		*waits += s.slot != 0;
		tail += ring_bytes(s.len);
		++*last;
	}
	if (!why && head - tail && head - tail < sizeof(struct ring_segment))
		why = "a part of a segment";
	c->tail = tail;
	atomic_store_explicit(&c->control->tail, tail, memory_order_release);
	if (why) {
		buffer_unref(b);
		return why;
	}
	if (!b)
		atomic_store_explicit(&c->seen, head, memory_order_relaxed);
	*bytes = b;
	return NULL;
}

/* ---- to the program ---- */

int channel_waiting(const struct channel *c, uint64_t seq)
{
	for (uint64_t w = c->waiting; w; w &= w - 1)
		if (c->slot[__builtin_ctzll(w)].seq == seq)
			return __builtin_ctzll(w);
	for (uint64_t w = c->waiting_large; w; w &= w - 1)
		if (c->slot[64 + __builtin_ctzll(w)].seq == seq)
			return 64 + __builtin_ctzll(w);
	return -1;
}

bool channel_has_answered(const struct channel *c, uint64_t seq)
{
	for (unsigned i = 0; i < RING_SLOTS; i++)
		if (c->slot[i].answered && c->slot[i].seq == seq)
			return true;
	return false;
}

int channel_area(const struct channel *c, uint64_t transfer, uint64_t offset, size_t n, bool *ok)
{
	for (unsigned i = 0; i < RING_SLOTS; i++) {
		bool awaits = is_waiting(c, i) && (c->slot[i].area >= 0 || c->slot[i].n);
		if (!awaits || c->slot[i].transfer != transfer)
			continue;
		uint64_t most = c->slot[i].n ? c->slot[i].n : RING_AREA;
		*ok = offset == c->slot[i].got && n <= most - offset;
		return (int)i;
	}
	*ok = true;
	return -1;
}

uint8_t *channel_begin(struct channel *c, int slot, size_t n)
{
	return n <= ring_slot_room((unsigned)slot) ? slot_at(c, (unsigned)slot)->bytes : NULL;
}

void channel_end(struct channel *c, int slot, size_t n, bool elsewhere)
{
	struct ring_slot *s = slot_at(c, (unsigned)slot);
	s->len = (uint32_t)n;
	s->flags = elsewhere ? RING_ELSEWHERE : 0;
	c->slot[slot].answered = true;
	c->slot[slot].area = -1;
	c->slot[slot].n = 0;
	set_waiting(c, (unsigned)slot, false);
	atomic_store_explicit(&s->done, c->slot[slot].seq, memory_order_release);
}

uint8_t *channel_area_at(const struct channel *c, int slot, uint64_t offset, size_t *room)
{
	uint64_t at = c->slot[slot].at, n = c->slot[slot].n, around = c->slot[slot].room;
	if (!n) {
		*room = RING_AREA - offset;
		return slot_at(c, (unsigned)c->slot[slot].area)->bytes + offset;
	}
	*room = n - offset;
	if (!around)
		return arena_at(c->arena, at) + offset;
	uint64_t taken = atomic_load_explicit(&slot_at(c, (unsigned)slot)->taken, memory_order_acquire);
	uint64_t full = taken <= offset ? offset - taken : 0, place = offset % around;
	uint64_t left = full < around ? around - full : 0;
	left = left < around - place ? left : around - place;
	*room = left < *room ? left : *room;
	return arena_at(c->arena, at) + place;
}

void channel_area_has(struct channel *c, int slot, uint64_t got)
{
	int place = c->slot[slot].n ? slot : c->slot[slot].area;
	c->slot[slot].got = got;
	atomic_store_explicit(&slot_at(c, (unsigned)place)->got, got, memory_order_release);
}

uint64_t channel_got(const struct channel *c, uint64_t seq)
{
	int slot = channel_waiting(c, seq);
	/* Its turn may not have come. */
	if (slot < 0 && !channel_is_empty(c))
		return 0;
	return slot >= 0 && c->slot[slot].n ? c->slot[slot].got : UINT64_MAX;
}

void channel_fail(struct channel *c, int error)
{
	atomic_store(&c->control->error, error);
}
