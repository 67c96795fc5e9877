/* SPDX-License-Identifier: Apache-2.0 */
/* Counting and tracing of the program's calls, the same for both libraries. Every described function is
 * exported as a generated wrapper (cuda.entry.c, nvml.entry.c) around the function of this folder with that
 * name: with counting off it is one comparison and a jump. Calls among the functions of this folder do not
 * pass the wrappers. Those of tables.c do, as programs call its functions past them.
 *
 * Thread rule: any thread. `count_on` is set before the first call and does not change. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "wire/stats.h"

/* SCUDAFS_STATS (a folder, by scudafs run --stats) or SCUDAFS_TRACE (a file) was set when the library was
 * loaded. */
extern bool count_on __attribute__((visibility("hidden")));

/* Given by the library's generated file: what it counts, and the name of a result (NULL: it has none). */
extern const struct stats_library *const count_library;
const char *count_result_name(int r);

struct count { unsigned entry; uint8_t outer; uint64_t start; };
struct count count_begin(unsigned entry);
int count_end(struct count c, int r);

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
