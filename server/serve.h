/* SPDX-License-Identifier: Apache-2.0 */
/* What the hand-written serve functions share with each other. Thread rule: as exec.h. */
#pragma once
#include <stdbool.h>
#include "server/exec.h"
#include "wire/cuda_types.h"

/* The arguments of a kernel node, encoded like a launch; they live until the record is answered. False when malformed. */
bool get_kernel_node(struct exec *x, CUDA_KERNEL_NODE_PARAMS *p);
/* The default stream that a call without one means. */
static inline CUstream default_stream(const struct exec *x)
{
	return x->frame.flags & FRAME_PTDS ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}
