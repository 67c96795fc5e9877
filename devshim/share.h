/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of allocations that may be exported. Thread rule: any thread. */
#pragma once
#include "devshim/call.h"
#include "devshim/range.h"
#include "wire/cuda_types.h"

/* The handle types that the allocation of that handle was made with; 0 also for what is not known. */
unsigned share_types(CUmemGenericAllocationHandle h);
void share_note_types(CUmemGenericAllocationHandle h, unsigned types);
/* Takes memory of another program from an answer, [address, start, bytes, device], into *range; its
 * address. */
CUdeviceptr share_get_memory(struct call *c, struct range *range);
