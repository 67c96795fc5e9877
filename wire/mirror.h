/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the program and the GPU use in place: a range that exists at one address at both ends, each
 * with a second copy of what the two last agreed on. An end tells the other which blocks differ from what was
 * agreed; the receiver takes over the bytes that changed and leaves the others, which may have changed at
 * its own side meanwhile. Both agree on the same bytes after each exchange, since the program numbers all
 * exchanges from 1 on, and the server makes them in the order of their numbers: also where they go ahead of
 * other records (FRAME_ASIDE).
 *
 * The records are those of cuMemHostGetDevicePointer, whose first argument is the operation:
 *
 *     [MAKE, address, bytes]       maps memory of the server there and registers it with the driver
 *     [DROP, address]              forgets the range that starts there; unmaps what MAKE has mapped
 *     [SEND, address, number, bytes] bulk: what the program has there now; a POST, or a WAIT when the program
 *                                  must know that the bytes are there
 *     [FETCH, address, number]     answered [next, [address, bytes, address, bytes, ...]], bulk: the bytes of
 *                                  these runs. The search begins at the range that holds the address or at
 *                                  the next one; `next` is where to go on, 0 at the end
 *
 * Managed memory becomes such a range when the server allocates it. Blocks are counted from a range's start.
 *
 * Thread rule: no state. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum mirror_op { MIRROR_MAKE = 1, MIRROR_DROP, MIRROR_SEND, MIRROR_FETCH };

#define MIRROR_BLOCK 4096u
#define MIRROR_PIECE (512u << 10) /* bytes of one SEND, and of one FETCH's answer */
#define MIRROR_RUNS 1024u /* runs of one answer */

/* Bytes of the block that begins at `at` of a range of `size` bytes. */
static inline size_t mirror_block(size_t size, size_t at)
{
	return size - at < MIRROR_BLOCK ? size - at : MIRROR_BLOCK;
}

/* The bytes of `fresh` that differ from what was agreed go to memory, and are agreed from now on. Bytes are
 * written one by one, so that a neighbour which another thread writes meanwhile keeps its value. */
static inline void mirror_merge(uint8_t *memory, uint8_t *agreed, const uint8_t *fresh, size_t n)
{
	size_t i = 0;

	while (i < n) {
		if (n - i >= 8 && !memcmp(agreed + i, fresh + i, 8)) {
			i += 8;
			continue;
		}
		for (size_t end = n - i < 8 ? n : i + 8; i < end; i++) {
			if (agreed[i] == fresh[i])
				continue;
			((volatile uint8_t *)memory)[i] = fresh[i];
			agreed[i] = fresh[i];
		}
	}
}

/* Where the next run of blocks that differ from what was agreed begins, from `at` on; *n: its bytes, at most
 * `most` (at least a block). `size` when there is none. */
static inline size_t mirror_changed(
	const uint8_t *memory, const uint8_t *agreed, size_t size, size_t at, size_t most, size_t *n)
{
	size_t end;

	while (at < size && !memcmp(memory + at, agreed + at, mirror_block(size, at)))
		at += mirror_block(size, at);
	for (end = at; end < size && end - at + mirror_block(size, end) <= most &&
		       memcmp(memory + end, agreed + end, mirror_block(size, end));)
		end += mirror_block(size, end);
	*n = end - at;
	return at;
}
