/* SPDX-License-Identifier: Apache-2.0 */
/* Loading NVML, what the monitor asks it, and whose process is whose: NVML names the session processes of
 * this server, the program that a session works for is in the session process's name.
 *
 * Thread rule: as nvml.h; NVML itself is thread-safe. */
#include "server/nvml.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "wire/log.h"

#define PROGRAM "/memfd:scuda:" /* of the file that a session process holds, then the program's name */
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

bool nvml_free_memory(unsigned index, const char *pci_bus_id, uint64_t *free_bytes)
{
	nvmlMemory_t m = {0};
	nvmlDevice_t device;

	if (!nvml.nvmlInit_v2 || (*pci_bus_id ? nvml.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id, &device) :
				     nvml.nvmlDeviceGetHandleByIndex_v2(index, &device)) ||
	    nvml.nvmlDeviceGetMemoryInfo(device, &m))
		return false;
	*free_bytes = m.free;
	return true;
}

void nvml_announce(unsigned client_pid, const char *program)
{
	char name[16], file[80];
	static int held = -1;

	snprintf(name, sizeof name, NAME "%u", client_pid);
	prctl(PR_SET_NAME, name);
	/* A process has no other place where others find a longer name. */
	snprintf(file, sizeof file, "scuda:%.64s", program ? program : "");
	if (held < 0 && program)
		held = memfd_create(file, MFD_CLOEXEC);
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

/* The name that a session's hello told is the name of a memory file that the session holds. */
bool nvml_program(unsigned pid, char *name, size_t cap)
{
	char path[64], target[256];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%u/fd", pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target - 1);
		char *deleted;

		if (n <= (ssize_t)strlen(PROGRAM) || strncmp(target, PROGRAM, strlen(PROGRAM)))
			continue;
		target[n] = 0;
		deleted = strstr(target, " (deleted)");
		if (deleted)
			*deleted = 0;
		snprintf(name, cap, "%s", target + strlen(PROGRAM));
		found = true;
	}
	if (d)
		closedir(d);
	return found;
}

unsigned nvml_session_pid(unsigned client)
{
	DIR *d = opendir("/proc");
	unsigned found = client;
	struct dirent *e;

	while (d && found == client && (e = readdir(d))) {
		unsigned pid = (unsigned)strtoul(e->d_name, NULL, 10);

		if (pid && pid != client && nvml_client_pid(pid) == client)
			found = pid;
	}
	if (d)
		closedir(d);
	return found;
}

/* Is it a child of the process whose child this one is: the listener? */
static bool sibling(unsigned pid)
{
	char path[64], line[256] = "";
	unsigned parent = 0;
	const char *end;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	/* The name before it is in parentheses, and may hold any. */
	if (fgets(line, sizeof line, f) && (end = strrchr(line, ')')))
		sscanf(end + 1, " %*c %u", &parent);
	fclose(f);
	return parent == (unsigned)getppid();
}

unsigned nvml_computing(struct computing *list, unsigned room)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned n = 0;
	char name[8];

	while (d && (e = readdir(d))) {
		unsigned pid = (unsigned)strtoul(e->d_name, NULL, 10), client;

		if (!pid)
			continue;
		client = nvml_client_pid(pid);
		if (client == pid || !sibling(pid) || !nvml_program(pid, name, sizeof name))
			continue;
		if (n < room)
			list[n] = (struct computing){pid, client};
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

/* ---- whose process ---- */

/* Of all of these functions that tell processes by their pids, each is replaced by one that translates
 * them. */
#define REAL(name) static __typeof__(nvml.name) real_##name;

/* The pids in a list of *n elements, of which `room` are there at most: each is `at` bytes into its
 * element, the elements are `step` bytes apart. */
static nvmlReturn_t translate(
	nvmlReturn_t r, void *list, size_t at, size_t step, const unsigned *n, unsigned room)
{
	for (unsigned i = 0; !r && i < room && i < *n; i++) {
		unsigned *pid = (void *)((char *)list + i * step + at);

		*pid = nvml_client_pid(*pid);
	}
	return r;
}

#define PROCESSES(name, info) REAL(name) \
static nvmlReturn_t translated_##name(nvmlDevice_t device, unsigned *n, info *infos) \
{ \
	unsigned room = n && infos ? *n : 0; \
	nvmlReturn_t r = real_##name(device, n, infos); \
	return translate(r, infos, offsetof(info, pid), sizeof *infos, n, room); \
}

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
#undef PROCESSES

REAL(nvmlDeviceGetProcessUtilization)
static nvmlReturn_t translated_nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
		nvmlProcessUtilizationSample_t *samples, unsigned *n, unsigned long long since)
{
	unsigned room = n && samples ? *n : 0;
	nvmlReturn_t r = real_nvmlDeviceGetProcessUtilization(device, samples, n, since);

	return translate(r, samples, offsetof(nvmlProcessUtilizationSample_t, pid), sizeof *samples, n, room);
}

REAL(nvmlDeviceGetProcessesUtilizationInfo)
static nvmlReturn_t translated_nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
		nvmlProcessesUtilizationInfo_t *info)
{
	unsigned room = info->procUtilArray ? info->processSamplesCount : 0;
	nvmlReturn_t r = real_nvmlDeviceGetProcessesUtilizationInfo(device, info);

	return translate(r, info->procUtilArray, offsetof(nvmlProcessUtilizationInfo_v1_t, pid),
		sizeof *info->procUtilArray, &info->processSamplesCount, room);
}

REAL(nvmlDeviceGetRunningProcessDetailList)
static nvmlReturn_t translated_nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
		nvmlProcessDetailList_t *list)
{
	unsigned room = list->procArray ? list->numProcArrayEntries : 0;
	nvmlReturn_t r = real_nvmlDeviceGetRunningProcessDetailList(device, list);

	return translate(r, list->procArray, offsetof(nvmlProcessDetail_v1_t, pid), sizeof *list->procArray,
		&list->numProcArrayEntries, room);
}

REAL(nvmlDeviceGetAccountingPids)
static nvmlReturn_t translated_nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *n, unsigned *pids)
{
	unsigned room = n && pids ? *n : 0;
	nvmlReturn_t r = real_nvmlDeviceGetAccountingPids(device, n, pids);

	return translate(r, pids, 0, sizeof *pids, n, room);
}

REAL(nvmlDeviceGetAccountingStats)
static nvmlReturn_t translated_nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid,
		nvmlAccountingStats_t *stats)
{
	return real_nvmlDeviceGetAccountingStats(device, nvml_session_pid(pid), stats);
}

REAL(nvmlSystemGetProcessName)
static nvmlReturn_t translated_nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
	unsigned session = nvml_session_pid(pid);

	if (session != pid && name && length && nvml_program(session, name, length))
		return NVML_SUCCESS;
	return real_nvmlSystemGetProcessName(pid, name, length);
}
#undef REAL

void nvml_translate_processes(void)
{
#define TRANSLATE(name) real_##name = nvml.name, nvml.name = translated_##name
	TRANSLATE(nvmlDeviceGetComputeRunningProcesses_v3);
	TRANSLATE(nvmlDeviceGetGraphicsRunningProcesses_v3);
	TRANSLATE(nvmlDeviceGetMPSComputeRunningProcesses_v3);
	TRANSLATE(nvmlDeviceGetProcessUtilization);
	TRANSLATE(nvmlDeviceGetProcessesUtilizationInfo);
	TRANSLATE(nvmlDeviceGetRunningProcessDetailList);
	TRANSLATE(nvmlDeviceGetAccountingPids);
	TRANSLATE(nvmlDeviceGetAccountingStats);
	TRANSLATE(nvmlSystemGetProcessName);
#undef TRANSLATE
}

/* ---- the software device ---- */

void nvml_fill_missing(void)
{
	fill(NULL);
}
