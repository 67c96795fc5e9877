/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that a program asks again and again: a monitor asks each line's values one after the other, and
 * would wait for the server each time. When a question comes that was asked before, some time ago, those that
 * followed it then are sent along with it, and their answers kept for a moment.
 *
 * An answer is given once, and never when it is older than AHEAD_FRESH. Only questions are asked ahead: calls
 * that change nothing.
 *
 * Thread rule: any thread; one lock inside, held for no I/O. */
#pragma once
#include "devshim/nvml/call.h"

#define AHEAD_MOST  128     /* questions that are sent along */
#define AHEAD_FRESH 200     /* ms that an answer is good for */
#define AHEAD_LOOP  200     /* ms after which the same question is a new round of a loop */

/* Questions to send along, as they follow each other on the wire: each a frame without its seq, and its
 * head. */
struct ahead_plan {
	unsigned count;
	unsigned entry[AHEAD_MOST];     /* of the table, with the ticket that tells whether it is still that
	                                 * question */
	uint64_t ticket[AHEAD_MOST], seq[AHEAD_MOST];
	size_t len;
	uint8_t bytes[8192];
};

/* True when the answer to c was there: it is in c->large and c->in. Else what to send along is in *p. */
bool ahead_ask(struct call *c, struct ahead_plan *p);
/* The answer, a whole frame, to the plan's question i; takes `answer`, which malloc made. */
void ahead_keep(const struct ahead_plan *p, unsigned i, uint8_t *answer, size_t n);
void ahead_forget(void);
/* In a forked child, which has one thread. */
void ahead_in_child(void);
