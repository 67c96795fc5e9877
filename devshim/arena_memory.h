/* SPDX-License-Identifier: Apache-2.0 */
/* What the arena's pinned allocations (arena_pinned.c) have of the arena itself (arena.c), and the other way
 * round. Thread rule: any thread, but for open and close. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool arena_is_open(void);
/* n bytes at that place, mapped; the same with pages that are there to be written. NULL: there is no room, or
 * the descriptor is not ours any more. */
uint8_t *arena_map_at(uint64_t at, size_t n);
uint8_t *arena_map_written(uint64_t at, size_t n);
/* Sleeps until the mount has sent all that it was handed, or the session is over. */
void arena_wait_all(void);

/* All of [at, at + n) is free. False: there was no memory to note it. */
bool arena_pinned_open(uint64_t at, uint64_t n);
void arena_pinned_close(void);
