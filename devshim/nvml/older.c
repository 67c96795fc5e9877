/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that libnvidia-ml keeps for programs of older days whose structs were shorter: they ask the newer
 * function and give the part that the program has room for.
 *
 * Thread rule: any thread; nothing is kept. */
#include <stdlib.h>
#include "devshim/nvml/call.h"
#include "devshim/nvml/process.h"
#include "wire/nvml.h"

#define PCI_1 offsetof(nvmlPciInfo_t, pciSubSystemId)   /* bytes that the first version had */
#define PCI_2 offsetof(nvmlPciInfo_t, busId)
#define ATTRIBUTES_1 offsetof(nvmlDeviceAttributes_t, memorySizeMB)
#define EVENT_1 offsetof(nvmlEventData_t, gpuInstanceId)

static nvmlReturn_t pci_part(nvmlDevice_t device, void *out, size_t n)
{
	nvmlPciInfo_t pci = {0};
	nvmlReturn_t r = out ? nvmlDeviceGetPciInfo_v3(device, &pci) : NVML_ERROR_INVALID_ARGUMENT;

	if (!r)
		memcpy(out, &pci, n);
	return r;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return pci_part(device, pci, PCI_1);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return pci_part(device, pci, PCI_2);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci)
{
	nvmlPciInfo_t whole = {0};
	nvmlReturn_t r = NVML_ERROR_INVALID_ARGUMENT;
	if (pci)
		r = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &whole);

	if (!r)
		memcpy(pci, &whole, PCI_2);
	return r;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
	nvmlDeviceAttributes_t whole = {0};
	nvmlReturn_t r = NVML_ERROR_INVALID_ARGUMENT;
	if (attributes)
		r = nvmlDeviceGetAttributes_v2(device, &whole);

	if (!r)
		memcpy(attributes, &whole, ATTRIBUTES_1);
	return r;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeoutms)
{
	nvmlEventData_t whole = {0};
	nvmlReturn_t r = data ? nvmlEventSetWait_v2(set, &whole, timeoutms) : NVML_ERROR_INVALID_ARGUMENT;

	if (!r)
		memcpy(data, &whole, EVENT_1);
	return r;
}

/* ---- process lists of pid and memory only ---- */

static nvmlReturn_t list_part(list_fn *ask, nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v1_t *infos)
{
	unsigned room = n && infos ? *n : 0;
	nvmlProcessInfo_t *whole;
	nvmlReturn_t r = list_whole(ask, device, n, room, &whole);

	for (unsigned i = 0; !r && i < *n && i < room; i++)
		infos[i] = (nvmlProcessInfo_v1_t){
			.pid = whole[i].pid, .usedGpuMemory = whole[i].usedGpuMemory};
	free(whole);
	return r;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(
	nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v1_t *infos)
{
	return list_part(nvmlDeviceGetComputeRunningProcesses_v3, device, n, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(
	nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v1_t *infos)
{
	return list_part(nvmlDeviceGetGraphicsRunningProcesses_v3, device, n, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(
	nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v1_t *infos)
{
	return list_part(nvmlDeviceGetMPSComputeRunningProcesses_v3, device, n, infos);
}
