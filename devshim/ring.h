/* SPDX-License-Identifier: Apache-2.0 */
/* The program's end of the memory that it shares with the mount (wire/ring.h): the fast way to the mount,
 * beside the session node, which is always there.
 *
 * Thread rule: ring_put and what it says are under the channel's lock; the rest any thread, between ring_open
 * and ring_close. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "devshim/channel.h"

/* After node_open of `path`: asks the mount for memory. False: this session goes without. */
bool ring_open(const char *path);
void ring_close(void);
/* In a forked child: takes no lock. */
void ring_forget(void);
bool ring_is_open(void);

/* Where an answer is awaited. */
struct ring_wait {
	int slot, area;             /* -1: none */
	uint64_t seq, transfer;
	/* n not 0: data goes to the arena in place of an area, as in struct ring_slot. */
	uint64_t n, at, room;
};
/* A free slot for an answer of n bytes, a free area; -1: none, or there is no ring. */
int ring_take_slot(size_t n);
int ring_take_area(void);
void ring_give(int slot);

/* Appends a batch of a whole record, p and its bulk; w: NULL, or where its answer goes. False when there is
 * no room: then it goes by the node. Must be followed by ring_wake. */
bool ring_put(uint64_t batch, const struct ring_wait *w, const void *p, size_t n, const void *bulk,
	size_t bulk_len);
/* Do threads look for their answers before they sleep? One that sleeps at once needs no ring_wake: the ioctl
 * in which it sleeps has the mount look. */
bool ring_looks(void);
/* From now on no thread looks long for an answer before it sleeps: a context of the program's waits blocked
 * (CU_CTX_SCHED_BLOCKING_SYNC). Any thread. */
void ring_wait_asleep(void);
/* Looks for *v to become `least` for as long as such threads do. True when it has. */
bool ring_look(const _Atomic uint64_t *v, uint64_t least);
/* The mount looks at what was put. Returns 0, or -errno: the session is over. */
int ring_wake(uint64_t batch);

/* Takes bytes of a transfer as they come. */
struct ring_sink {
	void (*place)(void *arg, uint64_t offset, const void *p, size_t n);
	void *arg;
	const uint8_t *around;      /* what lies at `at` there, when `room` is not 0 */
	size_t n;                   /* of the transfer */
	uint64_t got;               /* out */
};
/* Waits for the answer of w; gives its area back. `buf` has NODE_ROOM bytes. Returns 0 with *a, which points
 * to buf, to *large, which the caller frees, and, with *held, to the slot; ring_give(w->slot) follows when
 * the caller is done with it, unless *held is false. Or -errno. */
int ring_await(const struct ring_wait *w, struct ring_sink *sink, uint8_t *buf, uint8_t **large, bool *held,
	struct answer *a);
