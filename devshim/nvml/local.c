/* SPDX-License-Identifier: Apache-2.0 */
/* What libnvidia-ml answers by itself: initialisation, the texts of its codes, and the private table that
 * nvidia-smi demands (what is known of it was seen at a real driver: nvidia-smi refuses to run without it,
 * and is content with slots that say "not supported").
 *
 * Thread rule: any thread. */
#include <stdlib.h>
#include <string.h>
#include "devshim/nvml/call.h"
#include "devshim/nvml/process.h"
#include "wire/log.h"
#include "wire/nvml.h"

nvmlReturn_t nvmlInit_v2(void)
{
	return nvml_local(session_open());
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	if (flags & ~(unsigned)(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH))
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvml_local(session_open());
}

nvmlReturn_t nvmlShutdown(void)
{
	return nvml_local(session_close());
}

#pragma GCC visibility push(default)
nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *uuid);
#pragma GCC visibility pop

const char *nvmlErrorString(nvmlReturn_t result)
{
	switch ((int)result) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_ERROR_ALREADY_INITIALIZED: return "Already Initialized";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_INSUFFICIENT_POWER: return "Insufficient External Power";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_TIMEOUT: return "Timeout";
	case NVML_ERROR_IRQ_ISSUE: return "Interrupt Request Issue";
	case NVML_ERROR_LIBRARY_NOT_FOUND: return "NVML Shared Library Not Found";
	case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
	case NVML_ERROR_CORRUPTED_INFOROM: return "Corrupted infoROM";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
	case NVML_ERROR_OPERATING_SYSTEM: return "GPU access blocked by the operating system";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	case NVML_ERROR_IN_USE: return "In use by another client";
	case NVML_ERROR_MEMORY: return "Insufficient Memory";
	case NVML_ERROR_NO_DATA: return "No data";
	case NVML_ERROR_VGPU_ECC_NOT_SUPPORTED: return "vGPU not supported with ECC enabled";
	case NVML_ERROR_INSUFFICIENT_RESOURCES: return "Insufficient Resources";
	case NVML_ERROR_FREQ_NOT_SUPPORTED: return "Frequency Not Supported";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "The provided version is invalid/unsupported";
	case NVML_ERROR_DEPRECATED: return "The requested functionality has been deprecated";
	case NVML_ERROR_NOT_READY: return "The system is not ready for the request";
	case NVML_ERROR_GPU_NOT_FOUND: return "No GPUs found";
	case NVML_ERROR_INVALID_STATE: return "Resource not in correct state to perform requested operation";
	default: return "Unknown Error";
	}
}

/* ---- the private table ---- */

#define TABLE_BYTES 2160        /* as the real one says in its first word */

/* Each slot that is not known has a function of its own, so that the log tells which one a new nvidia-smi
 * wants. */
static int unknown(const char *slot)
{
	log_info("slot %s of the private table is not known", slot);
	return NVML_ERROR_NOT_SUPPORTED;
}
#define SLOT(n)  static int slot_##n(void) { return unknown(#n); }
#define NAME(n)  (const void *)slot_##n,
#define TEN(X, t) X(t##0) X(t##1) X(t##2) X(t##3) X(t##4) X(t##5) X(t##6) X(t##7) X(t##8) X(t##9)
#define HUNDRED(X, h) TEN(X, h##0) TEN(X, h##1) TEN(X, h##2) TEN(X, h##3) TEN(X, h##4) \
	TEN(X, h##5) TEN(X, h##6) TEN(X, h##7) TEN(X, h##8) TEN(X, h##9)
#define ALL(X)   HUNDRED(X, 0) HUNDRED(X, 1) \
	TEN(X, 20) TEN(X, 21) TEN(X, 22) TEN(X, 23) TEN(X, 24) TEN(X, 25) TEN(X, 26)
ALL(SLOT)

/* 26: an output hook, called often with format-like strings. */
static int slot_hook(void)
{
	return NVML_SUCCESS;
}

/* 81: PCI bus id of a device by index. */
static int slot_pci(unsigned index, char *out, unsigned size)
{
	nvmlPciInfo_t pci = {0};
	nvmlDevice_t d;
	nvmlReturn_t r = nvmlDeviceGetHandleByIndex_v2(index, &d);

	if (!r)
		r = nvmlDeviceGetPciInfo_v3(d, &pci);
	if (!r && (!out || strlen(pci.busId) >= size))
		r = NVML_ERROR_INSUFFICIENT_SIZE;
	if (!r)
		strcpy(out, pci.busId);
	return r;
}

/* 108: the power limit that holds, in mW: enforced.power.limit of --query-gpu. */
static int slot_power_limit(nvmlDevice_t d, unsigned *limit)
{
	return nvmlDeviceGetEnforcedPowerLimit(d, limit);
}

/* 72: does the device take part in what dmon and pmon show? Those that say no are left out. */
static int slot_watched(nvmlDevice_t d, unsigned *yes)
{
	unsigned index;
	nvmlReturn_t r = yes ? nvmlDeviceGetIndex(d, &index) : NVML_ERROR_INVALID_ARGUMENT;

	if (!r)
		*yes = 1;
	return r;
}

/* 213 to 215: the compute, graphics and MPS processes of a device, with their names. */
struct listed {
	unsigned pid;
	unsigned long long memory;
	unsigned gpu_instance, compute_instance;
	unsigned long long protected;
	char name[4096];
};
_Static_assert(sizeof(struct listed) == 4128, "as nvidia-smi steps through it");

static nvmlReturn_t list(list_fn *ask, nvmlDevice_t d, unsigned *n, struct listed *out)
{
	unsigned room = n && out ? *n : 0;
	nvmlProcessInfo_t *infos;
	nvmlReturn_t r = list_whole(ask, d, n, room, &infos);

	for (unsigned i = 0; !r && i < room && i < *n; i++) {
		const nvmlProcessInfo_t *p = &infos[i];

		out[i] = (struct listed){
			.pid = p->pid,
			.memory = p->usedGpuMemory,
			.gpu_instance = p->gpuInstanceId,
			.compute_instance = p->computeInstanceId,
		};
		if (nvmlSystemGetProcessName(p->pid, out[i].name, sizeof out[i].name))
			*out[i].name = 0;
	}
	free(infos);
	return r;
}

static int slot_compute(nvmlDevice_t d, unsigned *n, struct listed *out)
{
	return list(nvmlDeviceGetComputeRunningProcesses_v3, d, n, out);
}

static int slot_graphics(nvmlDevice_t d, unsigned *n, struct listed *out)
{
	return list(nvmlDeviceGetGraphicsRunningProcesses_v3, d, n, out);
}

static int slot_mps(nvmlDevice_t d, unsigned *n, struct listed *out)
{
	return list(nvmlDeviceGetMPSComputeRunningProcesses_v3, d, n, out);
}

nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *uuid)
{
	static const uint8_t known[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e, 0xa3, 0x27, 0xee,
		0x69, 0x6e, 0x12, 0xf7, 0xc4};
	static const void *slots[] = {ALL(NAME)};

	_Static_assert(sizeof slots == TABLE_BYTES, "a function for each slot");
	if (!table || !uuid)
		return NVML_ERROR_INVALID_ARGUMENT;
	*table = NULL;
	if (memcmp(uuid, known, sizeof known)) {
		const uint8_t *u = uuid;
		log_info("export table %02x%02x%02x%02x is not served", u[0], u[1], u[2], u[3]);
		return NVML_ERROR_NOT_SUPPORTED;
	}
	/* Written with the same values by whoever comes: no lock needed. */
	slots[26] = (const void *)slot_hook;
	slots[72] = (const void *)slot_watched;
	slots[81] = (const void *)slot_pci;
	slots[108] = (const void *)slot_power_limit;
	slots[213] = (const void *)slot_compute;
	slots[214] = (const void *)slot_graphics;
	slots[215] = (const void *)slot_mps;
	slots[0] = (const void *)(uintptr_t)TABLE_BYTES;
	*table = slots;
	return NVML_SUCCESS;
}
