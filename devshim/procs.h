/* SPDX-License-Identifier: Apache-2.0 */
/* The table behind cuGetProcAddress, generated from the API description. Linked into the shim and into the
 * software device.
 *
 * Thread rule: constants only. */
#pragma once
#include <stdint.h>
#include "cuda.flavours.h"
#include "wire/cuda_types.h"

struct proc {
	const char *base;           /* without _v2, _ptsz, ... */
	int version;                /* the least CUDA version that gives this symbol */
	uint8_t flavour;            /* 2: for the per-thread default stream */
	const char *symbol;
	void *fn;
};
/* Sorted by base, then version, then flavour. */
extern const struct proc procs[];
extern const unsigned proc_count;

/* The entry for a base name, a CUDA version, and flags of cuGetProcAddress; NULL with the reason in
 * *status. */
const struct proc *proc_find(const char *base, int version, cuuint64_t flags,
		CUdriverProcAddressQueryResult *status);
