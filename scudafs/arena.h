/* SPDX-License-Identifier: Apache-2.0 */
/* The arena that a session's program shares with the mount (wire/ring.h): the bytes of its large copies are
 * sent from where they lie there.
 *
 * Thread rule: guarded by the relay's lock, but for arena_has_news. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "scudafs/buffer.h"

struct arena;

/* `ring`: the memory with the stretches, which outlives the arena. NULL: there was no memory. */
struct arena *arena_create(uint8_t *ring);
/* No buffer of arena_take may be left. */
void arena_destroy(struct arena *a);
/* The descriptor for the program, which is closed when the program has it, unless it is kept for the
 * server. */
int arena_fd(const struct arena *a);
void arena_keep_fd(struct arena *a);
void arena_close_fd(struct arena *a);

/* Has a stretch been named since arena_take found none? Without the lock. */
bool arena_has_news(const struct arena *a);
/* Has every one that was named been taken? */
bool arena_is_empty(const struct arena *a);
/* A batch has come another way: look again. */
void arena_look_again(struct arena *a);
/* Takes the stretch that is batch *last + 1, counting it up: *bytes is the caller's; NULL when its turn has
 * not come. Returns NULL or what is wrong with it. */
const char *arena_take(struct arena *a, uint64_t *last, struct buffer **bytes);
/* See guard.h. */
bool arena_is_broken(const struct arena *a);
/* Where its byte `at`, which is inside, is. */
uint8_t *arena_at(const struct arena *a, uint64_t at);
/* The other way round. */
uint64_t arena_place(const struct arena *a, const uint8_t *p);
/* How many have been sent. */
uint64_t arena_sent(const struct arena *a);
