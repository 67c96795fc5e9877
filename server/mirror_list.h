/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that program and GPU use in place, as its two files share it: what there is (mirror.c), and what
 * of it is exchanged (mirror_exchange.c).
 *
 * Thread rule: mirror_lock guards the list and all that hangs on it. */
#pragma once
#include <pthread.h>
#include "server/mirror.h"

struct mirror {
	struct mirror *next;        /* by address */
	uint64_t base, size;
	uint8_t *agreed;
	uint64_t owner;             /* of managed memory */
	uint64_t from, to;          /* pages that we have mapped; none of managed memory */
	bool fenced;                /* over the fence */
	bool touched;               /* the CPU has been able to */
};

extern pthread_mutex_t mirror_lock;
extern struct mirror *mirror_first;

static inline uint8_t *mirror_memory(const struct mirror *m)
{
	return (uint8_t *)(uintptr_t)m->base;
}

/* With the lock: the one that has all of [p, p + n), or NULL. */
struct mirror *mirror_holder(uint64_t p, uint64_t n);
/* Without it. [MAKE, address, bytes] */
CUresult mirror_make(uint64_t base, uint64_t size);
/* [DROP, address] */
CUresult mirror_forget(uint64_t base);
