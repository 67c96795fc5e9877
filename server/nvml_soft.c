/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML says of the software device: only what is true of it. It has no fan, no clock, no bus and no
 * temperature, and says so.
 *
 * Thread rule: any thread; the driver is loaded. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/driver.h"
#include "server/nvml.h"
#include "server/soft/usage.h"
#include "wire/limits.h"

void nvml_fill_missing(void);

/* A device's handle is its ordinal, and never NULL. */
static nvmlDevice_t device_of(unsigned index)
{
	return (nvmlDevice_t)(uintptr_t)(index + 1);
}

static bool ordinal_of(nvmlDevice_t device, CUdevice *d)
{
	return device && !drv.cuDeviceGet(d, (int)((uintptr_t)device - 1));
}

static nvmlReturn_t put_string(char *out, unsigned length, const char *text)
{
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NVML_SUCCESS;
}

static nvmlReturn_t init(void)
{
	return NVML_SUCCESS;
}

static nvmlReturn_t driver_version(char *version, unsigned length)
{
	return put_string(version, length, VERSION);
}

static nvmlReturn_t nvml_version(char *version, unsigned length)
{
	return put_string(version, length, "13." VERSION);
}

static nvmlReturn_t cuda_version(int *version)
{
	return version && !drv.cuDriverGetVersion(version) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t count(unsigned *n)
{
	int devices = 0;

	if (!n || drv.cuDeviceGetCount(&devices))
		return NVML_ERROR_INVALID_ARGUMENT;
	*n = (unsigned)devices;
	return NVML_SUCCESS;
}

static nvmlReturn_t by_index(unsigned index, nvmlDevice_t *device)
{
	unsigned n;

	if (!device || count(&n) || index >= n)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = device_of(index);
	return NVML_SUCCESS;
}

static void uuid_text(CUdevice d, char *out, size_t cap)
{
	const unsigned char *b;
	CUuuid u = {{0}};

	drv.cuDeviceGetUuid_v2(&u, d);
	b = (const unsigned char *)u.bytes;
	snprintf(out, cap, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
		b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
		b[15]);
}

static nvmlReturn_t by_uuid(const char *uuid, nvmlDevice_t *device)
{
	char text[64];
	unsigned n;

	if (!uuid || !device || count(&n))
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < n; i++) {
		CUdevice d;

		if (!ordinal_of(device_of(i), &d))
			continue;
		uuid_text(d, text, sizeof text);
		if (!strcmp(text, uuid)) {
			*device = device_of(i);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t name(nvmlDevice_t device, char *out, unsigned length)
{
	char text[256] = "";
	CUdevice d;

	if (!ordinal_of(device, &d) || drv.cuDeviceGetName(text, sizeof text, d))
		return NVML_ERROR_INVALID_ARGUMENT;
	return put_string(out, length, text);
}

static nvmlReturn_t uuid(nvmlDevice_t device, char *out, unsigned length)
{
	char text[64];
	CUdevice d;

	if (!ordinal_of(device, &d))
		return NVML_ERROR_INVALID_ARGUMENT;
	uuid_text(d, text, sizeof text);
	return put_string(out, length, text);
}

static nvmlReturn_t index_of(nvmlDevice_t device, unsigned *index)
{
	CUdevice d;

	if (!index || !ordinal_of(device, &d))
		return NVML_ERROR_INVALID_ARGUMENT;
	*index = (unsigned)d;
	return NVML_SUCCESS;
}

/* The address that the driver gives, which is on no bus. */
static nvmlReturn_t pci(nvmlDevice_t device, nvmlPciInfo_t *p)
{
	unsigned domain, bus, slot;
	char text[32];
	CUdevice d;

	if (!p || !ordinal_of(device, &d))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (drv.cuDeviceGetPCIBusId(text, sizeof text, d) ||
		sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return NVML_ERROR_NOT_SUPPORTED;
	*p = (nvmlPciInfo_t){.domain = domain, .bus = bus, .device = slot};
	snprintf(p->busId, sizeof p->busId, "%08X:%02X:%02X.0", domain, bus & 0xff, slot & 0xff);
	snprintf(p->busIdLegacy, sizeof p->busIdLegacy, "%04X:%02X:%02X.0", domain & 0xffff, bus & 0xff,
		slot & 0xff);
	return NVML_SUCCESS;
}

static nvmlReturn_t capability(nvmlDevice_t device, int *major, int *minor)
{
	CUdevice d;

	if (!major || !minor || !ordinal_of(device, &d) ||
	    drv.cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d) ||
	    drv.cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d))
		return NVML_ERROR_INVALID_ARGUMENT;
	return NVML_SUCCESS;
}

/* The bytes of each device that a process uses, as it tells them (server/soft/usage.h). */
static bool usage_of(unsigned pid, uint64_t used[USAGE_DEVICES])
{
	static const char wanted[] = "/memfd:" USAGE_FILE;
	char path[64], target[64];
	bool found = false;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%u/fd", pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target - 1);

		if (n < (ssize_t)strlen(wanted) || strncmp(target, wanted, strlen(wanted)))
			continue;
		int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		const size_t bytes = USAGE_DEVICES * sizeof *used;

		found = fd >= 0 && pread(fd, used, bytes, 0) == (ssize_t)bytes;
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
	return found;
}

/* The sessions that compute on a device; how many there are. Where there is one device, it is the one of all;
 * of several a session computes on those whose memory it uses. */
static unsigned computing(CUdevice d, nvmlProcessInfo_t *infos, unsigned room)
{
	struct computing list[LIMIT_SESSIONS];
	unsigned devices, there = nvml_computing(list, LIMIT_SESSIONS), n = 0;

	if (there > LIMIT_SESSIONS)
		there = LIMIT_SESSIONS;
	if (d >= USAGE_DEVICES || count(&devices))
		return 0;
	for (unsigned i = 0; i < there; i++) {
		uint64_t used[USAGE_DEVICES] = {0};

		if (!usage_of(list[i].pid, used))
			used[d] = (unsigned long long)NVML_VALUE_NOT_AVAILABLE;
		if (devices > 1 && !used[d])
			continue;
		if (n < room)
			infos[n] = (nvmlProcessInfo_t){
				.pid = list[i].client,
				.usedGpuMemory = used[d],
				.gpuInstanceId = UINT32_MAX,
				.computeInstanceId = UINT32_MAX,
			};
		n++;
	}
	return n;
}

/* Each session has as much as the device has; so what all use together may be more, and then all is used. */
static nvmlReturn_t memory(nvmlDevice_t device, nvmlMemory_t *m)
{
	nvmlProcessInfo_t infos[LIMIT_SESSIONS];
	uint64_t used = 0;
	size_t total;
	CUdevice d;

	if (!m || !ordinal_of(device, &d) || drv.cuDeviceTotalMem_v2(&total, d))
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = computing(d, infos, LIMIT_SESSIONS); i--;)
		if (infos[i].usedGpuMemory <= total - used)
			used += infos[i].usedGpuMemory;
		else if (infos[i].usedGpuMemory != (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
			used = total;
	*m = (nvmlMemory_t){.total = total, .free = total - used, .used = used};
	return NVML_SUCCESS;
}

static nvmlReturn_t memory_v2(nvmlDevice_t device, nvmlMemory_v2_t *m)
{
	nvmlMemory_t old;
	nvmlReturn_t r = m ? memory(device, &old) : NVML_ERROR_INVALID_ARGUMENT;

	if (!r && m->version != (sizeof *m | 2u << 24))
		r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!r) {
		m->total = old.total;
		m->free = old.free;
		m->used = old.used;
		m->reserved = 0;
	}
	return r;
}

static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *infos)
{
	CUdevice d;

	(void)infos;
	if (!n || !ordinal_of(device, &d))
		return NVML_ERROR_INVALID_ARGUMENT;
	*n = 0;
	return NVML_SUCCESS;
}

static nvmlReturn_t processes(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *infos)
{
	unsigned room;
	CUdevice d;

	if (!n || !ordinal_of(device, &d))
		return NVML_ERROR_INVALID_ARGUMENT;
	room = infos ? *n : 0;
	*n = computing(d, infos, room);
	return *n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t process_name(unsigned pid, char *out, unsigned length)
{
	unsigned session = nvml_session_pid(pid);

	if (!out || !length)
		return NVML_ERROR_INVALID_ARGUMENT;
	return session != pid && nvml_program(session, out, length) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* The domain may have four digits or eight. */
static nvmlReturn_t by_pci(const char *id, nvmlDevice_t *device)
{
	unsigned n, domain, bus, slot;

	if (!id || !device || count(&n) || sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < n; i++) {
		nvmlPciInfo_t p;

		if (!pci(device_of(i), &p) && p.domain == domain && p.bus == bus && p.device == slot) {
			*device = device_of(i);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

/* There is nothing between devices but this machine's memory, which no peer access reaches. */
static nvmlReturn_t p2p_status(
	nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t *status)
{
	CUdevice d;

	(void)index;
	if (!status || !ordinal_of(a, &d) || !ordinal_of(b, &d))
		return NVML_ERROR_INVALID_ARGUMENT;
	*status = NVML_P2P_STATUS_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

/* ---- what is the same of every one */

/* A function that says one thing of every device. */
#define SAYS(name, type, value) \
static nvmlReturn_t name(nvmlDevice_t device, type *out) \
{ \
	CUdevice d; \
	if (!out || !ordinal_of(device, &d)) \
		return NVML_ERROR_INVALID_ARGUMENT; \
	*out = value; \
	return NVML_SUCCESS; \
}

SAYS(compute_mode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
/* It is no part of another device and has no parts. */
SAYS(none_of_it, unsigned, 0)
SAYS(not_virtual, nvmlGpuVirtualizationMode_t, NVML_GPU_VIRTUALIZATION_MODE_NONE)
/* It has no events: a set of them stays empty. */
SAYS(events_supported, unsigned long long, 0)
#undef SAYS

/* What stands for a set of events. */
static char events;

static nvmlReturn_t events_create(nvmlEventSet_t *set)
{
	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	*set = (nvmlEventSet_t)&events;
	return NVML_SUCCESS;
}

static nvmlReturn_t events_free(nvmlEventSet_t set)
{
	return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t events_wait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	if (!set || !data)
		return NVML_ERROR_INVALID_ARGUMENT;
	while (nanosleep(&t, &t) && errno == EINTR)
		;
	return NVML_ERROR_TIMEOUT;
}

void nvml_open_soft(void)
{
	nvml_fill_missing();
	nvml.nvmlInit_v2 = init;
	nvml.nvmlShutdown = init;
	nvml.nvmlSystemGetDriverVersion = driver_version;
	nvml.nvmlSystemGetNVMLVersion = nvml_version;
	nvml.nvmlSystemGetCudaDriverVersion = cuda_version;
	nvml.nvmlSystemGetCudaDriverVersion_v2 = cuda_version;
	nvml.nvmlDeviceGetCount_v2 = count;
	nvml.nvmlDeviceGetHandleByIndex_v2 = by_index;
	nvml.nvmlDeviceGetHandleByUUID = by_uuid;
	nvml.nvmlDeviceGetName = name;
	nvml.nvmlDeviceGetUUID = uuid;
	nvml.nvmlDeviceGetIndex = index_of;
	nvml.nvmlDeviceGetMinorNumber = index_of;
	nvml.nvmlDeviceGetPciInfo_v3 = pci;
	nvml.nvmlDeviceGetHandleByPciBusId_v2 = by_pci;
	nvml.nvmlDeviceGetCudaComputeCapability = capability;
	nvml.nvmlDeviceGetMemoryInfo = memory;
	nvml.nvmlDeviceGetMemoryInfo_v2 = memory_v2;
	nvml.nvmlDeviceGetComputeRunningProcesses_v3 = processes;
	nvml.nvmlSystemGetProcessName = process_name;
	nvml.nvmlDeviceGetGraphicsRunningProcesses_v3 = no_processes;
	nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3 = no_processes;
	nvml.nvmlDeviceGetComputeMode = compute_mode;
	nvml.nvmlDeviceGetP2PStatus = p2p_status;
	nvml.nvmlDeviceIsMigDeviceHandle = none_of_it;
	nvml.nvmlDeviceGetMaxMigDeviceCount = none_of_it;
	nvml.nvmlDeviceGetVirtualizationMode = not_virtual;
	nvml.nvmlEventSetCreate = events_create;
	nvml.nvmlEventSetFree = events_free;
	nvml.nvmlEventSetWait_v2 = events_wait;
	nvml.nvmlDeviceGetSupportedEventTypes = events_supported;
}
