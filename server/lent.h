/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the mount's, out of which large bulks are taken: see lent.c. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/frame.h"

struct session;
struct stream;
struct lent_piece;

/* The baton's, under input_lock because the reader looks ahead. */
struct lent {
	bool asked;                 /* the mount would lend */
	const uint8_t *_Atomic memory;  /* NULL: there is none */
	uint64_t size;
	struct stream *stream;      /* by which the mount is told */
	uint64_t bulk, left;        /* of the current record: its size, and places that are not taken */
	uint64_t taken, told;       /* pieces copied so far, and of those the mount knows */
	struct lent_piece *first, **end;    /* `kept` of them, ahead of their turn */
	uint64_t kept;
	uint8_t *part;              /* the last piece of which a part was wanted */
};

/* By second.c's thread: the second connection is here to lend by, or, should nothing come of that, for
 * stripes. NULL, or what is wrong with it: then it is the caller's to close. */
const char *lent_meet(struct session *s, struct stream *second);
/* Bytes of the bulk of f, the current record, from byte `at` of it on; p NULL: nobody wants them. */
void lent_bulk(struct session *s, const struct frame *f, uint64_t at, void *p, size_t n);
/* By the reader, with input_lock: the last `places` of a bulk stand, as many as have come, in [from, end).
 * *seen counts those of all that wait, in their order. False: none behind them may be copied now. */
bool lent_ahead(struct session *s, uint64_t bulk, uint64_t places, const uint8_t *from, const uint8_t *end,
	uint64_t *seen);
