/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the ring, shared by ring_open.c (getting the memory), ring.c (what is put there, slots) and
 * ring_await.c (answers).
 *
 * Thread rule: `head` and `tail` are guarded by the channel's lock. The rest does not change while it is
 * open, but for the words of free slots and the counts of threads. */
#pragma once
#include <stdatomic.h>
#include "devshim/held.h"
#include "devshim/ring.h"
#include "wire/ring.h"

#define RING_LOOKS 8                /* between two looks at the clock */

struct ring_state {
	_Atomic bool open;
	uint8_t *memory;
	struct ring_control *control;
	int socket;
	struct held held;           /* what that is */
	uint64_t head, tail;        /* ours; the mount's as it was looked at last */
	uint64_t spin_ns, await_ns;
	unsigned awaiting_most;
	_Atomic unsigned awaiting;  /* threads that look for an answer for await_ns */
	_Atomic bool sleeps;        /* the program wants its waits asleep */
	_Atomic uint64_t small, large;  /* a bit for each free slot */
};
extern struct ring_state ring __attribute__((visibility("hidden")));

/* ring.c. Wakes the mount if it sleeps. Returns 0, or 1 when it does not, or -errno: the session is over. */
int ring_wake_mount(void);
