/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a copy use of each other: copy.c (which way it goes), copy_bytes.c (records and bytes),
 * copy_untold.c (what a later answer tells) and copy_turn.c (at the stream's turn).
 *
 * Thread rule: copy.h. */
#pragma once
#include "devshim/call.h"
#include "devshim/copy.h"
#include "devshim/transfer.h"
#include "devshim/work.h"
#include "wire/copy.h"
#include "cuda.calls.h"

static inline uint8_t *copy_host_base(const struct copy_side *s)
{
	return (uint8_t *)(uintptr_t)s->address + s->z * s->pitch * s->height + s->y * s->pitch + s->x;
}

static inline struct transfer copy_place(const struct copy *k, const struct copy_side *s)
{
	return (struct transfer){.to = copy_host_base(s),
		.width = k->w,
		.height = k->h,
		.depth = k->d,
		.pitch = s->pitch,
		.slice = s->pitch * s->height};
}

static inline size_t copy_total(const struct copy *k)
{
	return k->w * k->h * k->d;
}

/* From the first to behind the last byte in memory. */
static inline size_t copy_span(const struct copy *k, const struct copy_side *s)
{
	return (k->d - 1) * s->pitch * s->height + (k->h - 1) * s->pitch + k->w;
}

static inline bool copy_is_contiguous(const struct copy *k, const struct copy_side *s)
{
	return (k->h == 1 || s->pitch == k->w) && (k->d == 1 || s->pitch * s->height == k->w * k->h);
}

/* copy_bytes.c. Begins the call and puts its arguments; `transfer`: by which the bytes come, or 0. */
CUresult copy_encode(
	struct call *c, const struct copy *k, enum copy_mode mode, CUstream stream, uint64_t transfer);
/* Sends the bytes along, posted or waited for; *seq is the record's. */
CUresult copy_send_bytes(
	const struct copy *k, enum copy_mode mode, CUstream stream, bool post, uint64_t *seq);
/* Waits for the bytes: small ones are in the answer, others come as data. */
CUresult copy_fetch_bytes(const struct copy *k, enum copy_mode mode, CUstream stream);
void copy_in_program(const struct copy *k);
static inline CUresult copy_wait_for(struct call *c)
{
	CUresult r = call_wait(c);

	return call_end(c, r);
}

/* copy_untold.c. Bytes that wait to be told, and of how many copies; *overlap: some go to the n bytes at
 * `from`. */
size_t copy_untold_bytes(uintptr_t from, size_t n, bool *overlap, unsigned *copies);
/* A small copy to pinned memory, told by a later answer; and whether an answer has room for one more. */
CUresult copy_to_host_told(const struct copy *k, CUstream stream, struct work *w);
bool copy_may_be_told(const struct copy *k);

/* copy_turn.c. Queues it as a host function. Not `once`, in a capture, it stays for all replays: graphs do
 * not tell when the last one is over. */
CUresult copy_run_later(const struct copy *k, CUstream stream, struct work *w, bool once);
