/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of this mount and the GPUs of all of them. A GPU's number is given when it is first heard of,
 * in the order of the servers, and never changes while mounted.
 *
 * Thread rule: inventory_init before the first thread; then any thread. The numbers have a lock, taken before
 * a monitor's; all else is constant. */
#pragma once
#include <stdbool.h>
#include "scudafs/daemon.h"
#include "scudafs/monitor.h"
#include "scudafs/snapshot.h"

struct gpu_place { unsigned server, index; };

extern struct inventory {
	struct monitor *const *monitors;
	unsigned count;
	char names[MOUNT_SERVERS][80];  /* of the servers' folders */
} inventory;

/* The monitors stay the caller's. -EINVAL: none, or more than MOUNT_SERVERS. */
int inventory_init(struct monitor *const *monitors, unsigned count);
void inventory_finish(void);
/* Gives numbers to GPUs that have none yet. Returns how many numbers there are. */
unsigned inventory_gpus(void);
/* Where the GPU of that number is; false: there is none. */
bool inventory_place(unsigned number, struct gpu_place *p);
/* A copy of what is known of it; false: there is none, or its server does not tell of it now. */
bool inventory_gpu(unsigned number, struct gpu *g, struct gpu_place *p);
