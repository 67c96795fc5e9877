/* SPDX-License-Identifier: Apache-2.0 */
/* From a launch's arguments to a piece of work.
 *
 * Thread rule: see state.h. */
#pragma once
#include "server/soft/module.h"
#include "server/soft/stream.h"

enum { CLUSTER_PORTABLE = 8 }; /* blocks; twice as many where the function allows it */

struct launch_shape {
	unsigned grid[3], block[3], cluster[3];
	size_t shared;
	bool cooperative;
	int priority;
};

/* Checks all as the driver does and packs the parameters. */
CUresult launch_prepare(
	struct function *f, const struct launch_shape *shape, void **params, void **extra, struct work *w);
size_t function_shared_most(const struct function *f);
int function_blocks(const struct function *f, size_t threads, size_t dynamic);
