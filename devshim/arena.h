/* SPDX-License-Identifier: Apache-2.0 */
/* The arena (wire/ring.h): memory for the bytes of large copies, which the mount sends from where they lie.
 * Some of it is staging for bytes that lie elsewhere in the program, the rest is given to the program as
 * pinned memory.
 *
 * Thread rule: arena_number to arena_send are called by one thread at a time, between arena_begin and
 * arena_end; arena_open and arena_close while nothing else is under way; the rest any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "devshim/channel.h"

/* Takes the descriptor, and the memory of the ring. False: there will be no arena. */
bool arena_open(int fd, uint8_t *ring);
void arena_close(void);
/* In a forked child: without a lock. */
void arena_forget(void);
/* Before and after a fork, in the parent: memory that is made in between counts as the child's, too, and what
 * is freed in between as if the child were there. */
void arena_forking(void);
void arena_forked(void);

/* n bytes, whole pages, that the mount sees, at *at there. NULL: there is none, or no room. *forks: children
 * that were forked before do not have them. */
void *arena_alloc(size_t n, uint64_t *at, unsigned *forks);
/* Gives them back once nothing that was handed to the mount needs them. */
void arena_free(void *p, size_t n, uint64_t at, unsigned forks);

/* A stretch of ARENA_SINK bytes, at *at, in which data is received piece by piece; NULL: none is free. */
#define ARENA_SINK ((size_t)2 << 20)
uint8_t *arena_sink_take(uint64_t *at);
void arena_sink_give(uint64_t at);

/* Holds other large records back. False: there is no arena. */
bool arena_begin(void);
void arena_end(void);
/* How many batches the record's bulk will be. */
uint64_t arena_batches(const struct record *r);
/* Hands them to the mount, the first of them with that number. The caller may change the bytes afterwards,
 * unless the record says that he will not. Returns 0 or -errno: the session is over. */
int arena_send(const struct record *r, uint64_t batch);
