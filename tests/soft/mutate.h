/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged inputs in rounds: input number n depends on n and the program alone, so that a failure can be had
 * again by `PROGRAM 1:n`. A sanitizer watches for wrong accesses; here is what else an input may not do: take
 * more than a second of processor time, sleep without an end, or leave memory behind. MUTATE_LAST names a
 * file that always holds the number of the current input (for when the program dies), MUTATE_TEXT one where
 * the input itself is left.
 *
 * Thread rule: one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rounds {
	uint64_t first, next;
	unsigned count, accepted;
	long before; /* MiB of the process after the first inputs */
	double start, longest;
};

/* Takes "COUNT[:FIRST]" apart (NULL: 100 from 0 on) and sets the watch up; ends the program if it cannot. */
struct rounds rounds_begin(const char *what);
/* Seeds the numbers of the next input; false behind the last. */
bool rounds_next(struct rounds *r);
/* Leaves the input where MUTATE_TEXT says. */
void rounds_keep(const void *input, size_t n);
/* Around what is tested; `accepted`: the input was taken for a good one. Ends the program when a limit is
 * passed. */
void rounds_start(struct rounds *r);
void rounds_end(struct rounds *r, bool accepted);
/* One line; ends the program when the process ever had more than is allowed. */
void rounds_report(const struct rounds *r, const char *of);

/* 0 to n - 1; 0 of 0. Neighbouring seeds give numbers that have nothing in common. */
uint32_t random_below(uint32_t n);
void seed(uint64_t n);
