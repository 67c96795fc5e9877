/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetProcAddress: of all symbols of a base name that the version allows, the newest; with the per-thread
 * default stream asked for, the flavour for it where there is one. Works before cuInit. Linked into the shim
 * and into the software device.
 *
 * Thread rule: constants only. */
#include "devshim/procs.h"
#include <stddef.h>
#include <string.h>
#include "wire/cuda.h"

#define FLAVOUR_PTDS 2

/* The first entry of that base, or proc_count. */
static unsigned first_of(const char *base)
{
	unsigned low = 0, high = proc_count;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (strcmp(procs[middle].base, base) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < proc_count && strcmp(procs[low].base, base) == 0 ? low : proc_count;
}

const struct proc *proc_find(const char *base, int version, cuuint64_t flags,
		CUdriverProcAddressQueryResult *status)
{
	const struct proc *plain = NULL, *ptds = NULL;
	unsigned i = first_of(base);
	*status = i < proc_count ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT :
			CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	for (; i < proc_count && strcmp(procs[i].base, base) == 0; i++) {
		const struct proc *p = &procs[i];
		if ((unsigned)p->version > (unsigned)version) /* of a negative one a driver thinks so */
			continue;
		if (p->flavour == FLAVOUR_PTDS)
			ptds = !ptds || p->version >= ptds->version ? p : ptds;
		else
			plain = !plain || p->version >= plain->version ? p : plain;
	}
	const struct proc *found = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && ptds ? ptds :
			plain;
	if (found)
		*status = CU_GET_PROC_ADDRESS_SUCCESS;
	return found;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
		CUdriverProcAddressQueryResult *symbolStatus)
{
	const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM |
			CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	CUdriverProcAddressQueryResult status;
	if (!symbol || !pfn || flags & ~known || flags == known)
		return CUDA_ERROR_INVALID_VALUE;
	const struct proc *p = proc_find(symbol, cudaVersion, flags, &status);
	*pfn = p ? p->fn : NULL;
	if (symbolStatus) {
		*symbolStatus = status;
		return CUDA_SUCCESS;
	}
	return p ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	void *found = NULL;
	CUresult r = cuGetProcAddress_v2(symbol, pfn ? &found : NULL, cudaVersion, flags, NULL);
	if (!r)
		*pfn = found; /* else it stays as it was, in this version */
	return r;
}
