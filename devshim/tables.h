/* SPDX-License-Identifier: Apache-2.0 */
/* The private tables of cuGetExportTable that CUDA's runtime and libraries need. Linked into the shim and
 * into the software device: of either it uses public functions and the two hooks below.
 *
 * Thread rule: all functions may be called from any thread. */
#pragma once
#include <stdint.h>
#include "wire/cuda_types.h"

/* Given by the library: the handle of a device's primary context, active or not, without retaining it; NULL
 * when there is no such device. */
CUcontext tables_primary_context(CUdevice device);
/* Called by the library when a context has died: what runtimes keep with it is destroyed, by their own
 * functions. Without locks. */
void tables_context_died(CUcontext ctx);

/* The integrity answer (handshake.c, left out by `make HANDSHAKE=no`): fills out for a caller that gave
 * version and seconds. The addresses of the two tables and of the function are part of it. */
CUresult handshake_answer(uint32_t version, uint64_t seconds, const void *interface, const void *integrity,
		const void *function, uint8_t out[16]) __attribute__((weak));
