/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: start-up calls, names, identities, what one is to another. Attributes are in device_attribute.c.
 *
 * Thread rule: see state.h; what is told here does not change after cuInit. */
#include "server/soft/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/visible.h"
#include "server/soft/context.h"

#define DEVICE_NAME "scudafs software device (CPU)"

CUresult cuInit(unsigned flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : state_init();
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = soft.devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int n, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!name || n <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)n, "%s", DEVICE_NAME);
	return CUDA_SUCCESS;
}

/* The same on every run of one machine, different on another: from the machine's id. */
static void uuid_make(CUuuid *u, CUdevice d)
{
	char id[64] = "";
	FILE *f = fopen("/etc/machine-id", "re");
	if (!f)
		f = fopen("/proc/sys/kernel/hostname", "re");
	size_t n = f ? fread(id, 1, sizeof id - 1, f) : 0;
	if (f)
		fclose(f);
	uint64_t h[2] = {0xcbf29ce484222325ull, 0x84222325cbf29ce4ull};
	for (int half = 0; half < 2; half++) {
		for (size_t i = 0; i < n; i++)
			h[half] = (h[half] ^ (unsigned char)id[i]) * 0x100000001b3ull;
		h[half] = (h[half] ^ (unsigned)d ^ (uint64_t)half << 32) * 0x9e3779b97f4a7c15ull;
		h[half] ^= h[half] >> 29;
	}
	memcpy(u->bytes, h, sizeof u->bytes);
	u->bytes[6] = (char)((u->bytes[6] & 0x0f) | 0x80); /* version 8: made by a rule of our own */
	u->bytes[8] = (char)((u->bytes[8] & 0x3f) | 0x80);
}

CUdevice device_at(int place)
{
	for (CUdevice d = 0; d < soft.devices; d++)
		if (soft.place[d] == place)
			return d;
	return -1;
}

/* CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, which a driver reads. */
void devices_choose(void)
{
	struct device *all = calloc((size_t)soft.devices, sizeof *all);
	unsigned chosen[LIMIT_DEVICES];
	for (int i = 0; i < soft.devices; i++) {
		soft.place[i] = i;
		if (!all)
			continue;
		CUuuid u;
		uuid_make(&u, i);
		memcpy(all[i].uuid, u.bytes, sizeof all[i].uuid);
		snprintf(all[i].pci_bus_id, sizeof all[i].pci_bus_id, "ffff:00:%02x.0", i);
	}
	if (all) {
		soft.devices = (int)visible_select(all, (unsigned)soft.devices, getenv("CUDA_DEVICE_ORDER"),
			getenv("CUDA_VISIBLE_DEVICES"), chosen);
		for (int i = 0; i < soft.devices; i++)
			soft.place[i] = (int)chosen[i];
	}
	free(all);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	uuid_make(uuid, soft.place[d]);
	return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice d)
{
	return cuDeviceGetUuid_v2(uuid, d);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = soft.memory;
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice d)
{
	size_t n;
	CUresult r = bytes ? cuDeviceTotalMem_v2(&n, d) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*bytes = n > ~0u ? ~0u : (unsigned)n;
	return r;
}

CUresult cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	(void)luid;
	(void)mask;
	return device_valid(d) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetPCIBusId(char *out, int n, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || n < 13)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(out, (size_t)n, "%04X:%02X:%02X.0", PCI_DOMAIN, 0, d & 0xff);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *id)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || !id)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned domain, bus, slot, function = 0;
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
		return CUDA_ERROR_INVALID_VALUE;
	CUdevice d = domain != PCI_DOMAIN || bus || function ? -1 : device_at((int)slot);
	if (d < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = d;
	return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *out, CUdevice d, CUdevice peer)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(d) || !device_valid(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *out, CUdevice_P2PAttribute a, CUdevice d, CUdevice peer)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || a < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
		a > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(d) || !device_valid(peer) || d == peer)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *out, CUexecAffinityType type, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || (unsigned)type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = 0;
	return CUDA_SUCCESS;
}
