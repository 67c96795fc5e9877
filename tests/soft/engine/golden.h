/* SPDX-License-Identifier: Apache-2.0 */
/* What a real GPU gave for each case, kept in a file (tests/soft/golden): one line per case, fields separated
 * by tabs.
 *
 *     E  key  inputs  results     exact: hashes of what went in and what came out
 *     A  key  inputs  words       approximation: the first GOLDEN_WORDS results
 *     R  key  reason              the GPU's assembler refuses the case
 *
 * The file that GOLDEN_WRITE names is appended to; the one that GOLDEN names is compared with. Cases that are
 * not in it are counted. Those that GOLDEN_DIFFERENCES lists (key, tab, reason) differ, and have to.
 *
 * Thread rule: one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_WORDS = 192 };

/* Is a result w (one word of the file) matched by g? Only asked for approximations. */
typedef bool golden_near(const void *what, uint64_t g, uint64_t w);

bool golden_open(void);
/* near: NULL for exact cases. */
void golden_begin(const char *key, golden_near *near, const void *what);
void golden_input(const void *p, size_t n);
void golden_result(uint64_t v);
/* Writes or compares; false when the device differs from the GPU. */
bool golden_end(void);
/* The device refuses the case. True when a GPU is recorded: it need not know everything. */
bool golden_refused(const char *key, const char *reason);
/* Prints the counts; false when lines of the file that start with `prefix` belong to no case any more. */
bool golden_close(const char *prefix);
