/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: start-up calls, names, identities, attributes.
 *
 * Thread rule: see state.h; what is told here does not change after cuInit. */
#include "server/soft/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "devshim/visible.h"
#include "server/soft/allocation.h"
#include "server/soft/context.h"
#include "server/soft/pool.h"
#include "server/soft/logs.h"
#include "wire/log.h"

#define DEVICE_NAME "scudafs software device (CPU)"

CUresult soft_unsupported(const char *name)
{
	/* told once per function: a program may call one of these in a loop */
	static const char *told[1024];
	static unsigned n;
	pthread_mutex_lock(&soft.lock);
	bool known = false;
	for (unsigned i = 0; i < n && !known; i++)
		known = told[i] == name;
	if (!known && n < sizeof told / sizeof *told)
		told[n++] = name;
	bool initialised = soft.initialised && !soft.forked;
	pthread_mutex_unlock(&soft.lock);
	if (!initialised)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!known)
		log_warning("%s: the software device does not have this function", name);
	soft_log(CU_LOG_LEVEL_ERROR, "%s: the software device does not have this function", name);
	logs_tell();
	return CUDA_ERROR_NOT_SUPPORTED;
}

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

static bool valid(CUdevice d)
{
	return d >= 0 && d < soft.devices;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!valid(ordinal))
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
	if (!valid(d))
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
	if (!valid(d))
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
	if (!valid(d))
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

static const struct model models[] = {
	{70, 2048, 32, 96 << 10, 96 << 10, 0, 256},
	{75, 1024, 16, 64 << 10, 64 << 10, 0, 256},
	{80, 2048, 32, 164 << 10, 163 << 10, 1024, 128},
	{86, 1536, 16, 100 << 10, 99 << 10, 1024, 128},
	{87, 1536, 16, 164 << 10, 163 << 10, 1024, 128},
	{89, 1536, 24, 100 << 10, 99 << 10, 1024, 128},
	{90, 2048, 32, 228 << 10, 227 << 10, 1024, 128},
};

const struct model *device_model(void)
{
	const struct model *m = models, *end = models + sizeof models / sizeof *models;
	while (m + 1 < end && m[1].capability <= soft.major * 10 + soft.minor)
		m++;
	return m;
}

/* Values of attributes 1.. in order; -1: special. As compute capability 7.5 has them, without what this
 * device does not offer. */
static const int attributes[] = {
	[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = THREADS_BLOCK,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = 2147483647,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
	[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = SHARED_BLOCK,
	[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = 65536,
	[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32,
	[CU_DEVICE_ATTRIBUTE_MAX_PITCH] = 2147483647,
	[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = 65536,
	[CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = 1000000,
	[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = TEXTURE_ALIGNMENT,
	[CU_DEVICE_ATTRIBUTE_GPU_OVERLAP] = 1,
	[CU_DEVICE_ATTRIBUTE_INTEGRATED] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH] = 131072,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH] = 131072,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT] = 65536,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS] = 2048,
	[CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT] = 512,
	[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
	[CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = 1000000,
	[CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] = 64,
	[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = 4 << 20,
	[CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] = 2,
	[CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS] = 2048,
	[CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER] = 1,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE] = 8192,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE] = 8192,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE] = 32768,
	[CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] = TEXTURE_PITCH_ALIGNMENT,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS] = 2046,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH] = 131072,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT] = 65536,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS] = 2048,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS] = 2048,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS] = 2046,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH] = 268435456,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH] = 131072,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT] = 65000,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH] = 2097120,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = REGISTERS_MULTIPROCESSOR,
	[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 1,
	[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 1,
	[CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO] = 2,
	[CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM] = 1,
	[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1,
	[CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST] = 1,
	[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR] = 1,
	[CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT] = 1,
	[CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES] = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	[CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_NUMA_ID] = -1,
	[CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID] = -1,
	[CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED] = 0,
};
_Static_assert(sizeof attributes / sizeof *attributes == CU_DEVICE_ATTRIBUTE_MAX,
	"the table ends with the last attribute");

static int attribute_value(CUdevice_attribute a, CUdevice d)
{
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return (int)soft.workers;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return device_model()->threads;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return device_model()->blocks;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return device_model()->shared;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return device_model()->shared_optin;
	case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return device_model()->shared_reserved;
	case CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT: return soft.time_limit > 0;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return soft.major;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return soft.minor;
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: /* no such slot exists, but programs tell devices apart by it
						 */
		return soft.place[d];
	case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
	case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: return soft.major >= 9;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return 0;
	case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: return 0xffff;
	default: return attributes[a];
	}
}

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute a, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || a <= 0 || a >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = attribute_value(a, d);
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*major = soft.major;
	*minor = soft.minor;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *p, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (!valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*p = (CUdevprop){
		.maxThreadsPerBlock = THREADS_BLOCK,
		.maxThreadsDim = {1024, 1024, 64},
		.maxGridSize = {2147483647, 65535, 65535},
		.sharedMemPerBlock = SHARED_BLOCK,
		.totalConstantMemory = 65536,
		.SIMDWidth = 32,
		.memPitch = 2147483647,
		.regsPerBlock = 65536,
		.clockRate = attributes[CU_DEVICE_ATTRIBUTE_CLOCK_RATE],
		.textureAlign = TEXTURE_ALIGNMENT,
	};
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	(void)luid;
	(void)mask;
	return valid(d) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetPCIBusId(char *out, int n, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || n < 13)
		return CUDA_ERROR_INVALID_VALUE;
	if (!valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(out, (size_t)n, "%04X:%02X:%02X.0", attribute_value(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, d), 0,
		d & 0xff);
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
	CUdevice d = domain != 0xffff || bus || function ? -1 : device_at((int)slot);
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
	if (!valid(d) || !valid(peer))
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
	if (!valid(d) || !valid(peer) || d == peer)
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
	if (!valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *out, CUarray_format format, unsigned channels, CUdevice d)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	bool known = format == CU_AD_FORMAT_UNSIGNED_INT8 || format == CU_AD_FORMAT_UNSIGNED_INT16 ||
		     format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT8 ||
		     format == CU_AD_FORMAT_SIGNED_INT16 || format == CU_AD_FORMAT_SIGNED_INT32 ||
		     format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT;
	if (!out || !known || (channels != 1 && channels != 2 && channels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	if (!valid(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = (size_t)attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH];
	return CUDA_SUCCESS;
}

CUresult cuFlushGPUDirectRDMAWrites(
	CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	(void)target;
	(void)scope;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuProfilerStart(void)
{
	guarded g = enter_context();
	return g.error;
}

CUresult cuProfilerStop(void)
{
	guarded g = enter_context();
	return g.error;
}

CUresult cuProfilerInitialize(const char *config, const char *output, CUoutput_mode mode)
{
	(void)config;
	(void)output;
	(void)mode;
	return CUDA_ERROR_NOT_SUPPORTED;
}
