/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of memory that program and GPU use in place: mirror_list.c has the ranges, mirror.c their
 * exchange.
 *
 * Thread rule: all under mirrors.lock, which is held over an exchange, so that exchanges of several threads
 * reach the server in the order in which they change what is agreed on. A thread that holds it calls nothing
 * of mirror.h. */
#pragma once
#include <pthread.h>
#include "devshim/call.h"
#include "devshim/mirror.h"
#include "devshim/watch.h"
#include "wire/mirror.h"

struct mirror {
	struct mirror *next;
	uint64_t base;
	size_t size;
	uint8_t *agreed;
	bool managed;
	bool ours; /* pinned memory that nobody else can have mapped */
	const void *owner; /* of managed memory: its context or library */
	struct watch watch;
};

struct mirrors {
	pthread_mutex_t lock;
	struct mirror *first;
	size_t bytes;
	uint8_t *piece; /* what is being sent: memory itself may change meanwhile */
};
extern struct mirrors mirrors;

static inline uint8_t *mirror_memory(const struct mirror *m)
{
	return (uint8_t *)(uintptr_t)m->base;
}

/* The range that has n bytes from p on; NULL: none has. */
struct mirror *mirror_holder(uint64_t p, uint64_t n);

/* ---- mirror.c */
/* A record for the range at p. */
CUresult mirror_begin(struct call *c, enum mirror_op op, uint64_t p);
/* An answer may tell of an earlier post that failed, and be right all the same. */
CUresult mirror_wait(struct call *c);
/* Takes what the server's side has written. */
void mirror_fetch_all(void);
