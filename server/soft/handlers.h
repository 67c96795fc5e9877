/* SPDX-License-Identifier: Apache-2.0 */
/* The table of vector handlers: names, numbers, and one table of functions for each instruction set it was
 * built for.
 *
 * Thread rule: constant data. */
#pragma once
#include "server/soft/exec.h"

enum handler_id {
	H_NONE,
#define U1(name, ...) H_##name,
#define B2 U1
#define T3 U1
#define RAW U1
#include "server/soft/handlers.inc"
#undef U1
#undef B2
#undef T3
#undef RAW
	H_COUNT
};

struct handler_pair {
	handler *full, *partial;
};
extern const struct handler_pair handlers_sse2[H_COUNT], handlers_avx2[H_COUNT], handlers_avx512[H_COUNT];

/* The best table for this processor, or the one that SCUDA_SOFT_SIMD names (sse2, avx2, avx512). */
const struct handler_pair *handlers_pick(void);
const char *handlers_name(void);
/* H_NONE when there is no handler of this name. */
enum handler_id handlers_find(const char *name);
