/* SPDX-License-Identifier: Apache-2.0 */
/* What calls on managed memory check. Thread rule: any thread. */
#pragma once
#include <stddef.h>
#include "wire/cuda_types.h"

/* n bytes from p on are managed memory, and some: 0; else what the call gives back. */
CUresult managed_check(CUdeviceptr p, size_t n);
