/* SPDX-License-Identifier: Apache-2.0 */
/* What launches, graph nodes and occupancy share of encoding a launch. Thread rule: as call.h. */
#pragma once
#include <stdbool.h>
#include "devshim/call.h"
#include "devshim/function.h"
#include "devshim/process.h"
#include "wire/frame.h"
#include "wire/limits.h"

#define LAUNCH_PARAMS                                                                                        \
	(33u << 10) /* room for packed parameters: 32764 bytes and what a caller's own buffer may have       \
		       behind */

/* The thread's own room of that size, once its call is begun: threads and fibers have small stacks. */
static inline uint8_t *launch_room(void)
{
	return thread_cached->out + sizeof(struct frame) + LIMIT_HEAD;
}

/* Puts grid, block, shared memory and stream; with `attributes` these too. */
CUresult put_launch_shape(struct call *c, const CUlaunchConfig *config, bool attributes);
/* Makes the packed parameters the call's bulk: those of kernelParams are packed into `room`, those of
 * extra stay where they are. */
CUresult put_launch_params(struct call *c, const struct function *f, void **params, void **extra, void *room);
