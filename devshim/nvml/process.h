/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of processes, which older functions and the export table tell in structs of their own. Thread
 * rule: any thread. */
#pragma once
#include "wire/nvml_types.h"

/* nvmlDeviceGetComputeRunningProcesses_v3, or one of the two like it. */
typedef nvmlReturn_t list_fn(nvmlDevice_t, unsigned *, nvmlProcessInfo_t *);

/* Asks for at most `room` processes of the device: *n as the function tells it, *infos is the caller's
 * to free, whatever the result, and NULL without room. NVML_ERROR_MEMORY: this process has none. */
nvmlReturn_t list_whole(
	list_fn *ask, nvmlDevice_t device, unsigned *n, unsigned room, nvmlProcessInfo_t **infos);
