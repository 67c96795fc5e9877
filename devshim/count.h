/* SPDX-License-Identifier: Apache-2.0 */
/* Counting and tracing of the program's calls. Every exported function is a generated wrapper (cuda.entry.c)
 * around the function of this folder with that name: with counting off it is one comparison and a jump. Calls
 * among the functions of this folder do not pass the wrappers.
 *
 * Thread rule: any thread. `count_on` is set before the first call and does not change. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "wire/cuda_types.h"

/* SCUDAFS_STATS (a folder, by scudafs run --stats) or SCUDAFS_TRACE (a file) was set when the library was
 * loaded. */
extern bool count_on __attribute__((visibility("hidden")));

struct count { unsigned entry; uint8_t outer; uint64_t start; };
struct count count_begin(unsigned entry);
CUresult count_end(struct count c, CUresult r);

/* What the thread's call has done: used where records leave and bytes come. */
void count_record_on(unsigned kind, unsigned flags, uint64_t bytes);
void count_received_on(uint64_t bytes);
static inline void count_record(unsigned kind, unsigned flags, uint64_t bytes)
{
	if (__builtin_expect(count_on, 0))
		count_record_on(kind, flags, bytes);
}
static inline void count_received(uint64_t bytes)
{
	if (__builtin_expect(count_on, 0))
		count_received_on(bytes);
}
