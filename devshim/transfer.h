/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to the host that travel apart from the call: the record carries a transfer id, the bytes come with a
 * later answer (small ones inside it) or as data of their own, and are in place before the call returns that
 * tells the application of the copy's end.
 *
 * Thread rule: all functions may be called from any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/frame.h"

/* Where the bytes go: depth slices of height rows of width bytes. A plain copy is one row. */
struct transfer {
	uint8_t *to;
	size_t width, height, depth;
	size_t pitch, slice;        /* bytes from row to row and from slice to slice in memory */
};

/* Notes a transfer and returns its id (1 and up), 0 without memory. It ends when an answer delivers it, or
 * with transfer_drop. */
uint64_t transfer_new(const struct transfer *t);
static inline uint64_t transfer_new_plain(void *to, size_t n)
{
	return transfer_new(&(struct transfer){.to = to, .width = n, .height = 1, .depth = 1, .pitch = n,
			.slice = n});
}
/* Forgets a transfer whose call failed. */
void transfer_drop(uint64_t id);
/* True until the bytes have come or the transfer was given up. */
bool transfer_pending(uint64_t id);
/* For a wait that was sent and brings its bytes as data: takes them as they come, then the answer to record
 * `seq`. Returns 0 or -errno. */
struct answer;
int transfer_receive(uint64_t id, uint64_t seq, struct answer *a);
/* Sends the record of such a wait and does the same. */
struct record;
int transfer_exchange(uint64_t id, struct record *r, struct answer *a);
/* Copies bytes of the transfer's stream (from `offset` on) to their place. False past the end. */
bool transfer_place(const struct transfer *t, uint64_t offset, const void *p, size_t n);
/* Places all deliveries of an answer. `room` is the most that its bulk may have; `own`: what the rest of the
 * bulk is expected to be. Returns the bytes of the bulk that the deliveries took, or -errno. */
int64_t transfer_deliver(const struct frame *f, const uint8_t *bulk, size_t room, size_t own);
/* After the deliveries of a frame: waits until those of all frames before it are in place, too, whichever
 * thread has them. `told`: the number of deliveries that the frame tells. */
void transfer_settle(uint32_t told);
