/* SPDX-License-Identifier: Apache-2.0 */
/* When a record passed which place on its way through program, mount, server and driver, by the monotonic
 * clock: for the breakdown of a call (tests/bench/hops.sh), where no profiler can look into three processes
 * at once. With SCUDAFS_HOPS=FOLDER each process writes a file there, named by its pid: an array of struct
 * hop_mark. One comparison a place without it. For one program at a time: records are told apart by their
 * number.
 *
 * Thread rule: any thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum hop {
	HOP_CALL = 1,       /* program: the call begins */
	HOP_QUEUED,         /* program: its record has its place in the stream */
	HOP_MOUNT_TAKEN,    /* mount: has the record */
	HOP_MOUNT_SENT,     /* mount: the socket has it, and all before it */
	HOP_SERVER_TAKEN,   /* server: has the record */
	HOP_SERVE,          /* server: decodes it and calls the driver */
	HOP_SERVED,         /* server: the driver has returned, the answer is encoded */
	HOP_SERVER_SENT,    /* server: the socket has the answer */
	HOP_MOUNT_HEARD,    /* mount: has the answer */
	HOP_MOUNT_GIVEN,    /* mount: has told the program */
	HOP_BACK,           /* program: the answer is here */
	HOP_RETURN,         /* program: the call returns */
	HOPS
};

struct hop_mark { uint64_t ns, record; uint32_t hop, zero; };
#define HOP_MARKS (1u << 19)        /* of a process; later ones are not noted */

extern bool hops_on;
void hops_note(enum hop h, uint64_t record, uint64_t ns);
uint64_t hops_now(void);

static inline void hop(enum hop h, uint64_t record)
{
	if (__builtin_expect(hops_on, 0))
		hops_note(h, record, 0);
}
