/* SPDX-License-Identifier: Apache-2.0 */
/* The device queries, all of them from the snapshot that came with the hello: programs ask more than a
 * hundred attributes of each device at their start, once for every library with a runtime inside.
 *
 * Thread rule: the snapshot is filled inside cuInit and constant afterwards. */
#include "devshim/device.h"
#include <stdio.h>
#include <string.h>
#include "devshim/process.h"
#include "devshim/visible.h"
#include "wire/cuda.h"

static struct {
	unsigned count;                     /* the server's */
	struct device all[LIMIT_DEVICES];
	unsigned visible_count;
	unsigned visible[LIMIT_DEVICES];    /* index in all[] of the application's ordinal */
	int driver_version;
	bool soft;
} devices;

/* What a driver has and a program here does not: memory of the host that kernels reach without being asked
 * for it, functions of both sides, and what other devices of the GPU's host would do with its memory. */
static const CUdevice_attribute not_here[] = {
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
	CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
	CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS,
	CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
	CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH,
	CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED,
};

static bool read_device(struct msg *m, struct device *d)
{
	char field[32];
	size_t n = get_map(m, 64);
	for (size_t i = 0; i < n && !m->bad; i++) {
		get_text(m, field, sizeof field);
		if (!strcmp(field, "name")) {
			get_text(m, d->name, sizeof d->name);
		} else if (!strcmp(field, "uuid")) {
			get_bytes(m, d->uuid, sizeof d->uuid);
		} else if (!strcmp(field, "luid")) {
			get_bytes(m, d->luid, sizeof d->luid);
		} else if (!strcmp(field, "node_mask")) {
			d->node_mask = (unsigned)get_u64(m);
		} else if (!strcmp(field, "total")) {
			d->total = get_u64(m);
		} else if (!strcmp(field, "pci_bus_id")) {
			get_text(m, d->pci_bus_id, sizeof d->pci_bus_id);
		} else if (!strcmp(field, "attributes")) {
			d->nattributes = (unsigned)get_array(m, LIMIT_ATTRIBUTES);
			for (unsigned a = 0; a < d->nattributes && !m->bad; a++) {
				d->known[a] = !get_nil(m);
				if (d->known[a])
					d->attributes[a] = (int)get_i64(m);
			}
		} else {
			get_skip(m);
		}
	}
	for (size_t i = 0; i < sizeof not_here / sizeof *not_here; i++)
		d->attributes[not_here[i]] = 0;
	return !m->bad;
}

bool device_read_snapshot(struct msg *m)
{
	char field[32];
	size_t n = get_map(m, 64);
	memset(&devices, 0, sizeof devices);
	for (size_t i = 0; i < n && !m->bad; i++) {
		get_text(m, field, sizeof field);
		if (!strcmp(field, "driver_version")) {
			devices.driver_version = (int)get_i64(m);
		} else if (!strcmp(field, "driver")) {
			char driver[32];

			get_text(m, driver, sizeof driver);
			devices.soft = !strcmp(driver, "soft");
		} else if (!strcmp(field, "devices")) {
			devices.count = (unsigned)get_array(m, LIMIT_DEVICES);
			for (unsigned d = 0; d < devices.count && !m->bad; d++) {
				devices.all[d].ordinal = (int)d;
				read_device(m, &devices.all[d]);
			}
		} else {
			get_skip(m);
		}
	}
	return !m->bad;
}

void device_apply_environment(const char *order, const char *visible)
{
	devices.visible_count = visible_select(devices.all, devices.count, order, visible, devices.visible);
}

int device_driver_version(void) { return devices.driver_version; }
bool device_is_soft(void) { return devices.soft; }
int device_count(void) { return (int)devices.visible_count; }

const struct device *device_get(CUdevice d)
{
	return d >= 0 && (unsigned)d < devices.visible_count ? &devices.all[devices.visible[d]] : NULL;
}

int device_to_server(CUdevice d)
{
	const struct device *one = device_get(d);
	return one ? one->ordinal : d;
}

CUdevice device_visible(int ordinal)
{
	for (unsigned i = 0; i < devices.visible_count; i++)
		if (devices.all[devices.visible[i]].ordinal == ordinal)
			return (CUdevice)i;
	return -1;
}

CUdevice device_from_server(int ordinal)
{
	CUdevice d = device_visible(ordinal);

	return d < 0 ? ordinal : d;
}

static bool has(const struct device *d, int a)
{
	return a > 0 && (unsigned)a < d->nattributes && d->known[a];
}

int device_attribute(CUdevice dev, CUdevice_attribute a, int fallback)
{
	const struct device *d = device_get(dev);
	return d && has(d, (int)a) ? d->attributes[a] : fallback;
}

/* What every query begins with: initialised, a place for the answer, a device. */
static CUresult query(const void *out, CUdevice dev, const struct device **d)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*d = device_get(dev);
	return *d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult put_string(char *out, int len, const char *text)
{
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(out, (size_t)len, "%s", text);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = device_count();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	const struct device *d;
	CUresult r = query(device, ordinal, &d);
	if (!r)
		*device = ordinal;
	return r;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	const struct device *d;
	CUresult r = query(name, dev, &d);
	return r ? r : put_string(name, len, d->name);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	const struct device *d;
	CUresult r = query(uuid, dev, &d);
	if (!r)
		memcpy(uuid, d->uuid, sizeof d->uuid);
	return r;
}

CUresult cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
	/* Windows only, says the driver. */
	const struct device *d;
	CUresult r = query(luid && deviceNodeMask ? luid : NULL, dev, &d);
	if (r)
		return r;
	static const char none[sizeof d->luid];
	if (!d->node_mask && memcmp(d->luid, none, sizeof none) == 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	memcpy(luid, d->luid, sizeof d->luid);
	*deviceNodeMask = d->node_mask;
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	const struct device *d;
	CUresult r = query(bytes, dev, &d);
	if (!r)
		*bytes = d->total;
	return r;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	const struct device *d;
	CUresult r = query(pi, dev, &d);
	if (r)
		return r;
	if (!has(d, (int)attrib))
		return CUDA_ERROR_INVALID_VALUE;
	*pi = d->attributes[attrib];
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	CUresult r = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
	return r ? r : cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	const struct device *d;
	CUresult r = query(prop, dev, &d);
	if (r)
		return r;
#define A(name) device_attribute(dev, CU_DEVICE_ATTRIBUTE_##name, 0)
	*prop = (CUdevprop){
		.maxThreadsPerBlock = A(MAX_THREADS_PER_BLOCK),
		.maxThreadsDim = {A(MAX_BLOCK_DIM_X), A(MAX_BLOCK_DIM_Y), A(MAX_BLOCK_DIM_Z)},
		.maxGridSize = {A(MAX_GRID_DIM_X), A(MAX_GRID_DIM_Y), A(MAX_GRID_DIM_Z)},
		.sharedMemPerBlock = A(MAX_SHARED_MEMORY_PER_BLOCK),
		.totalConstantMemory = A(TOTAL_CONSTANT_MEMORY),
		.SIMDWidth = A(WARP_SIZE),
		.memPitch = A(MAX_PITCH),
		.regsPerBlock = A(MAX_REGISTERS_PER_BLOCK),
		.clockRate = A(CLOCK_RATE),
		.textureAlign = A(TEXTURE_ALIGNMENT),
	};
#undef A
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	const struct device *d;
	CUresult r = query(pciBusId, dev, &d);
	return r ? r : put_string(pciBusId, len, d->pci_bus_id);
}

/* Domain, bus, slot and function; the domain and the function may be left out. */
static bool parse_bus_id(const char *text, unsigned v[4])
{
	char rest;
	memset(v, 0, 4 * sizeof *v);
	return sscanf(text, "%x:%x:%x.%x%c", &v[0], &v[1], &v[2], &v[3], &rest) == 4 ||
		sscanf(text, "%x:%x:%x%c", &v[0], &v[1], &v[2], &rest) == 3 ||
		(v[0] = 0, v[3] = 0, sscanf(text, "%x:%x.%x%c", &v[1], &v[2], &v[3], &rest)) == 3;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	unsigned wanted[4], one[4];
	CUresult r = process_check();
	if (r)
		return r;
	if (!dev || !pciBusId)
		return CUDA_ERROR_INVALID_VALUE;
	if (!parse_bus_id(pciBusId, wanted))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < device_count(); i++) {
		if (parse_bus_id(device_get(i)->pci_bus_id, one) && memcmp(one, wanted, sizeof one) == 0) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}
