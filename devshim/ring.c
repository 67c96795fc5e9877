/* SPDX-License-Identifier: Apache-2.0 */
/* What a program puts into the memory that it shares with the mount: a record goes into the ring without a
 * system call, but for waking a mount that sleeps; and which slots are free for its answer.
 *
 * Thread rule: ring_state.h. */
#include "devshim/ring_state.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "wire/look.h"

#define ALIVE_EVERY 64              /* batches after which the mount's life is looked at */

struct ring_state ring = {.socket = -1};

bool ring_is_open(void) { return atomic_load_explicit(&ring.open, memory_order_relaxed); }

bool ring_looks(void) { return ring.spin_ns; }

void ring_wait_asleep(void) { atomic_store_explicit(&ring.sleeps, true, memory_order_relaxed); }

/* ---- slots ---- */

static int take(_Atomic uint64_t *word)
{
	uint64_t w = atomic_load_explicit(word, memory_order_relaxed);
	while (w)
		if (atomic_compare_exchange_weak(word, &w, w & (w - 1)))
			return __builtin_ctzll(w);
	return -1;
}

int ring_take_area(void)
{
	int i = ring_is_open() ? take(&ring.large) : -1;
	return i < 0 ? -1 : RING_SMALL + i;
}

int ring_take_slot(size_t n)
{
	if (!ring_is_open() || n > ring_slot_room(RING_SMALL))
		return -1;
	return n <= ring_slot_room(0) ? take(&ring.small) : ring_take_area();
}

void ring_give(int slot)
{
	if (slot >= RING_SMALL)
		atomic_fetch_or(&ring.large, 1ull << (slot - RING_SMALL));
	else if (slot >= 0)
		atomic_fetch_or(&ring.small, 1ull << slot);
}

/* ---- to the mount ---- */

bool ring_put(uint64_t batch, const struct ring_wait *w, const void *p, size_t n, const void *bulk,
	size_t bulk_len)
{
	size_t len = n + bulk_len, need = ring_bytes(len);
	uint64_t at = ring.head;
	if (bulk_len > RING_RECORD || len > RING_RECORD)
		return false;
	if (at + need - ring.tail > RING_BYTES) {
		ring.tail = atomic_load_explicit(&ring.control->tail, memory_order_acquire);
		if (at + need - ring.tail > RING_BYTES)
			return false;
	}
	struct ring_segment s = {.len = (uint32_t)len, .batch = batch};
	if (w) {
		s.slot = (uint8_t)(w->slot + 1);
		s.area = w->n ? RING_SINK : (uint8_t)(w->area + 1);
		s.seq = w->seq;
		s.transfer = w->transfer;
		if (w->area >= 0)
			atomic_store_explicit(&ring_slot_at(ring.memory, (unsigned)w->area)->got, 0,
				memory_order_relaxed);
		if (w->n) {
			struct ring_slot *slot = ring_slot_at(ring.memory, (unsigned)w->slot);
			slot->at = w->at;
			slot->n = w->n;
			slot->room = w->room;
			atomic_store_explicit(&slot->taken, 0, memory_order_relaxed);
			atomic_store_explicit(&slot->got, 0, memory_order_relaxed);
		}
	}
	ring_copy_in(ring.memory, at, &s, sizeof s);
	ring_copy_in(ring.memory, at + sizeof s, p, n);
	if (bulk_len)
		ring_copy_in(ring.memory, at + sizeof s + n, bulk, bulk_len);
	ring.head = at + need;
	atomic_store_explicit(&ring.control->head, ring.head, memory_order_release);
	return true;
}

/* A mount that was killed while it was awake wakes nobody and fails nothing. */
static bool is_gone(void)
{
	char c;
	return syscall(SYS_recvfrom, ring.socket, &c, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) == 0 ||
	       !held_is(ring.socket, &ring.held);
}

int ring_wake_mount(void)
{
	uint32_t one = 1;
	/* Ordered behind what the mount has to see; it does it the other way round. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&ring.control->asleep, memory_order_relaxed) ||
			!atomic_compare_exchange_strong(&ring.control->asleep, &one, 0))
		return 1;
	if (!held_is(ring.socket, &ring.held))
		return -ENOTCONN;
	long r = syscall(SYS_sendto, ring.socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
	return r < 0 && errno != EAGAIN && errno != EINTR ? -ENOTCONN : 0;
}

int ring_wake(uint64_t batch)
{
	int e = atomic_load_explicit(&ring.control->error, memory_order_relaxed);
	if (e)
		return -e;
	e = ring_wake_mount();
	return e == 1 ? batch % ALIVE_EVERY == 0 && is_gone() ? -ENOTCONN : 0 : e;
}

bool ring_look(const _Atomic uint64_t *v, uint64_t least)
{
	if (atomic_load_explicit(v, memory_order_acquire) >= least)
		return true;
	struct look l = look_begin(ring.spin_ns);
	for (unsigned i = 0;; i++) {
		if (atomic_load_explicit(v, memory_order_acquire) >= least)
			return true;
		if (i % RING_LOOKS == 0 && !look_on(&l))
			return false;
		look_relax();
	}
}
