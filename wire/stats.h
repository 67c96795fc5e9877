/* SPDX-License-Identifier: Apache-2.0 */
/* What a program's calls are counted in while `scudafs run --stats` runs it: one file a process, which the
 * shim maps and adds to and the command reads when the program has ended, however it ended. The file is a
 * header and STATS_BLOCKS blocks of counters, [entry][class]; the threads of a process take turns in choosing
 * a block, so that they do not fight for a cache line. Each of the two libraries has a file of its own: PID,
 * and PID.nvml.
 *
 * Thread rule: counters are only added to, relaxed. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>

/* How a call was answered: by the shim alone (described CACHED or not), by posting records, by at least one
 * wait. */
enum stats_class { STATS_LOCAL, STATS_CACHED, STATS_POST, STATS_WAIT, STATS_CLASSES };

/* A library's described functions by their index (build/gen/cuda.names.c, nvml.names.c), the class of a call
 * that sends nothing, and what follows the pid in the file's name. */
struct stats_name { const char *name; uint8_t quiet; };
struct stats_library { const struct stats_name *names; unsigned count; const char *suffix; };
extern const struct stats_library stats_cuda, stats_nvml;

#define STATS_MAGIC "scustat1"
#define STATS_BLOCKS 32
#define STATS_HEADER 4096               /* bytes in front of the counters */

struct stats_header {
	char magic[8];                  /* without a NUL */
	uint32_t entries, pid;
	char command[64];
	_Atomic uint64_t round_trips;   /* records that were answered, the hello among them; markers for
	                                 * pacing are not */
	_Atomic uint64_t bytes_out, bytes_in; /* of records with their bulk; of answers and data */
};
_Static_assert(sizeof(struct stats_header) <= STATS_HEADER, "header");

static inline uint64_t stats_bytes(unsigned entries)
{
	return STATS_HEADER + (uint64_t)STATS_BLOCKS * entries * STATS_CLASSES * sizeof(uint64_t);
}
