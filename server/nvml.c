/* SPDX-License-Identifier: Apache-2.0 */
/* Loading NVML, what the monitor asks it, and whose process is whose: NVML names the session processes of this server, the program that a session works for is in the
 * session process's name.
 *
 * Thread rule: as nvml.h; NVML itself is thread-safe. */
#include "server/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "wire/log.h"

#define NAME "scuda-"           /* of a session process, then the program's pid: at most 15 characters */

struct nvml_driver nvml;
static bool ready;

static void fill(void *library)
{
	for (unsigned i = 0; i < nvml_driver_symbol_count; i++) {
		const struct driver_symbol *s = &nvml_driver_symbols[i];
		void *f = library ? dlsym(library, s->name) : NULL;

		if (!f)
			f = s->missing;
		memcpy((char *)&nvml + s->offset, &f, sizeof f);
	}
}

bool nvml_open(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	nvmlReturn_t r;

	if (!library) {
		log_debug("%s", dlerror());
		return false;
	}
	/* The library may be ours, which asks a mount. */
	if (dlsym(library, "scudafs_shim_marker")) {
		dlclose(library);
		return false;
	}
	fill(library);
	r = nvml.nvmlInit_v2();
	if (r) {
		log_info("nvmlInit: %d", (int)r);
		dlclose(library);
		fill(NULL);
		return false;
	}
	return ready = true;
}

void nvml_driver_version(char *out, size_t cap)
{
	if (!ready || nvml.nvmlSystemGetDriverVersion(out, (unsigned)cap))
		*out = 0;
}

bool nvml_free_memory(const char *pci_bus_id, uint64_t *free_bytes)
{
	nvmlMemory_t m = {0};
	nvmlDevice_t device;

	if (!ready || !*pci_bus_id || nvml.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id, &device) ||
	    nvml.nvmlDeviceGetMemoryInfo(device, &m))
		return false;
	*free_bytes = m.free;
	return true;
}

void nvml_announce(unsigned client_pid)
{
	char name[16];

	snprintf(name, sizeof name, NAME "%u", client_pid);
	prctl(PR_SET_NAME, name);
}

unsigned nvml_client_pid(unsigned pid)
{
	char path[64], line[32] = "", *end;
	unsigned long client = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%u/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return pid;
	if (fgets(line, sizeof line, f) && !strncmp(line, NAME, strlen(NAME)))
		client = strtoul(line + strlen(NAME), &end, 10);
	fclose(f);
	return client && client <= UINT32_MAX ? (unsigned)client : pid;
}

/* ---- whose process ---- */

#define PROCESSES(name, info) \
static nvmlReturn_t (*real_##name)(nvmlDevice_t, unsigned *, info *); \
static nvmlReturn_t translated_##name(nvmlDevice_t device, unsigned *n, info *infos) \
{ \
	nvmlReturn_t r = real_##name(device, n, infos); \
	for (unsigned i = 0; !r && infos && i < *n; i++) \
		infos[i].pid = nvml_client_pid(infos[i].pid); \
	return r; \
}

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

void nvml_translate_processes(void)
{
#define TRANSLATE(name) real_##name = nvml.name, nvml.name = translated_##name
	TRANSLATE(nvmlDeviceGetComputeRunningProcesses_v3);
	TRANSLATE(nvmlDeviceGetGraphicsRunningProcesses_v3);
	TRANSLATE(nvmlDeviceGetMPSComputeRunningProcesses_v3);
#undef TRANSLATE
}

/* ---- the software device ---- */

void nvml_fill_missing(void)
{
	fill(NULL);
}
