/* SPDX-License-Identifier: Apache-2.0 */
/* Small pieces of pinned memory of the server's own, each of which waits for its delivery. Per context, in
 * its stage (staging.h).
 *
 * Thread rule: all functions run on threads that execute records, with the context current; a piece belongs
 * to its taker until it is given back. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda_types.h"

struct stage;

/* A small piece of pinned memory for a delivery. Its end is told by an event, and by a word that the
 * stream itself writes, which can be read where no driver function may be called. */
struct piece {
	struct stage *stage;
	uint8_t *p;
	size_t n, room; /* bytes of the delivery; with the word behind them */
	volatile uint32_t *word;
	uint64_t word_device; /* its address for the device; 0: there is none */
	CUevent event;
	struct own *own; /* memory of its own: the arena was full */
};
struct piece *piece_take(size_t n);
/* What `stream` has in it now is the delivery's copy. */
CUresult piece_mark(struct piece *p, CUstream stream);
/* 1 done, 0 not yet or not known (`blind`: without asking the driver), -1 failed. */
int piece_state(struct piece *p, bool blind);
void piece_release(struct piece *p);
