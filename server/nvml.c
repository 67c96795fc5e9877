/* SPDX-License-Identifier: Apache-2.0 */
/* Free memory of a GPU without a context on it, and the driver's version as people know it: only NVML
 * tells these.
 *
 * Thread rule: as nvml.h; NVML itself is thread-safe. */
#include "server/nvml.h"

#include <dlfcn.h>

struct memory { unsigned long long total, free, used; };

static struct {
	int (*init)(void);
	int (*driver_version)(char *version, unsigned length);
	int (*by_pci)(const char *bus_id, void **device);
	int (*memory_info)(void *device, struct memory *memory);
} nvml;
static bool ready;

bool nvml_open(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
	*(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
	*(void **)&nvml.driver_version = dlsym(library, "nvmlSystemGetDriverVersion");
	*(void **)&nvml.by_pci = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&nvml.memory_info = dlsym(library, "nvmlDeviceGetMemoryInfo");
	/* The library may be ours, which asks a mount. */
	if (dlsym(library, "scudafs_shim_marker") || !nvml.init || !nvml.driver_version || !nvml.by_pci ||
	    !nvml.memory_info || nvml.init()) {
		dlclose(library);
		return false;
	}
	ready = true;
	return true;
}

void nvml_driver_version(char *out, size_t cap)
{
	if (!ready || nvml.driver_version(out, cap))
		*out = 0;
}

bool nvml_free_memory(const char *pci_bus_id, uint64_t *free_bytes)
{
	struct memory m = {0};
	void *device;

	if (!ready || !*pci_bus_id || nvml.by_pci(pci_bus_id, &device) || nvml.memory_info(device, &m))
		return false;
	*free_bytes = m.free;
	return true;
}
