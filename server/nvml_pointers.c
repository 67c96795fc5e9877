/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of devshim/nvml/pointers.c and of cached.c: NVML calls whose structs point at more, the wait
 * for events, and what programs ask first.
 *
 * Thread rule: as exec.h. */
#include <stddef.h>
#include <string.h>

#include "server/nvml.h"
#include "wire/limits.h"
#include "nvml.calls.h"

#define WAIT_MOST 1000          /* ms of one wait for events; the shim asks for less */

CUresult serve_nvmlEventSetWait_v2(struct exec *x);
CUresult serve_nvmlDeviceGetProcessesUtilizationInfo(struct exec *x);
CUresult serve_nvmlDeviceGetRunningProcessDetailList(struct exec *x);
CUresult serve_nvmlGpmMetricsGet(struct exec *x);
CUresult serve_nvmlScudaDevices(struct exec *x);
CUresult serve_nvmlGetVgpuCompatibility(struct exec *x);

CUresult serve_nvmlEventSetWait_v2(struct exec *x)
{
	nvmlEventSet_t set = exec_handle(x, HANDLE_nvmlEventSet_t);
	uint64_t ms = get_u64(&x->in);
	nvmlEventData_t data = {0};
	nvmlReturn_t r;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	r = nvml.nvmlEventSetWait_v2(set, &data, ms < WAIT_MOST ? (unsigned)ms : WAIT_MOST);
	if (!r) {
		exec_put_handle(x, HANDLE_nvmlDevice_t, data.device);
		put_u64(&x->out, data.eventType);
		put_u64(&x->out, data.eventData);
		put_u64(&x->out, data.gpuInstanceId);
		put_u64(&x->out, data.computeInstanceId);
	}
	return (CUresult)r;
}

/* Both lists answer with how many there are, and with those that came, whatever the code. */
static void put_list(struct exec *x, unsigned count, size_t room, const void *list, size_t size)
{
	size_t n = count < room ? count : room;

	put_u64(&x->out, count);
	put_array(&x->out, list ? n : 0);
	for (size_t i = 0; list && i < n; i++)
		put_bytes(&x->out, (const char *)list + i * size, size);
}

/* Room for as many elements as the program has, at most LIMIT_ARRAY, told in *count; *list NULL if it
 * has none. */
static bool make_room(struct exec *x, bool has, uint64_t room, size_t size, unsigned *count, void **list)
{
	*count = (unsigned)(room < LIMIT_ARRAY ? room : LIMIT_ARRAY);
	*list = has ? exec_alloc(x, (*count + 1ull) * size) : NULL;
	return !has || *list;
}

CUresult serve_nvmlDeviceGetProcessesUtilizationInfo(struct exec *x)
{
	nvmlDevice_t device = exec_handle(x, HANDLE_nvmlDevice_t);
	nvmlProcessesUtilizationInfo_t info = {.version = (unsigned)get_u64(&x->in)};
	bool has = get_bool(&x->in);
	uint64_t room = get_u64(&x->in);
	void *elements;
	nvmlReturn_t r;

	info.lastSeenTimeStamp = get_u64(&x->in);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	/* Other versions may have larger elements. */
	if (info.version != (sizeof info | 1u << 24))
		return (CUresult)NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!make_room(x, has, room, sizeof *info.procUtilArray, &info.processSamplesCount, &elements))
		return (CUresult)NVML_ERROR_MEMORY;
	room = info.processSamplesCount;
	info.procUtilArray = elements;
	r = nvml.nvmlDeviceGetProcessesUtilizationInfo(device, &info);
	put_list(x, info.processSamplesCount, room, info.procUtilArray, sizeof *info.procUtilArray);
	return (CUresult)r;
}

CUresult serve_nvmlDeviceGetRunningProcessDetailList(struct exec *x)
{
	nvmlDevice_t device = exec_handle(x, HANDLE_nvmlDevice_t);
	nvmlProcessDetailList_t list = {.version = (unsigned)get_u64(&x->in)};
	bool has;
	uint64_t room;
	void *elements;
	nvmlReturn_t r;

	list.mode = (unsigned)get_u64(&x->in);
	has = get_bool(&x->in);
	room = get_u64(&x->in);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	if (list.version != (sizeof list | 1u << 24))
		return (CUresult)NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!make_room(x, has, room, sizeof *list.procArray, &list.numProcArrayEntries, &elements))
		return (CUresult)NVML_ERROR_MEMORY;
	room = list.numProcArrayEntries;
	list.procArray = elements;
	r = nvml.nvmlDeviceGetRunningProcessDetailList(device, &list);
	put_list(x, list.numProcArrayEntries, room, list.procArray, sizeof *list.procArray);
	return (CUresult)r;
}

CUresult serve_nvmlGpmMetricsGet(struct exec *x)
{
	nvmlGpmMetricsGet_t *get = exec_alloc(x, sizeof *get);
	nvmlReturn_t r;

	if (!get)
		return (CUresult)NVML_ERROR_MEMORY;
	get->version = (unsigned)get_u64(&x->in);
	get->sample1 = exec_handle(x, HANDLE_nvmlGpmSample_t);
	get->sample2 = exec_handle(x, HANDLE_nvmlGpmSample_t);
	get->numMetrics = (unsigned)get_array(&x->in, NVML_GPM_METRIC_MAX);
	for (unsigned i = 0; i < get->numMetrics && !x->in.bad; i++)
		get->metrics[i].metricId = (unsigned)get_u64(&x->in);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	if (get->version != 1)
		return (CUresult)NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	r = nvml.nvmlGpmMetricsGet(get);
	if (r)
		return (CUresult)r;
	put_array(&x->out, get->numMetrics);
	for (unsigned i = 0; i < get->numMetrics; i++) {
		const nvmlGpmMetric_t *m = &get->metrics[i];

		put_i64(&x->out, m->nvmlReturn);
		put_f64(&x->out, m->value);
		put_text(&x->out, m->metricInfo.shortName);
		put_text(&x->out, m->metricInfo.longName);
		put_text(&x->out, m->metricInfo.unit);
	}
	return CUDA_SUCCESS;
}

/* ---- what programs ask first ---- */

static void put_known_text(struct exec *x, nvmlReturn_t r, const char *text)
{
	put_i64(&x->out, r);
	put_text(&x->out, r ? "" : text);
}

static void put_known_device(struct exec *x, unsigned i)
{
	char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	nvmlPciInfo_t pci = {0};
	nvmlDevice_t device;
	unsigned n = 0;
	nvmlReturn_t r = nvml.nvmlDeviceGetHandleByIndex_v2(i, &device);

	put_i64(&x->out, r);
	if (r)
		return;
	exec_put_handle(x, HANDLE_nvmlDevice_t, device);
	r = nvml.nvmlDeviceGetName(device, text, sizeof text);
	put_known_text(x, r, text);
	r = nvml.nvmlDeviceGetUUID(device, text, sizeof text);
	put_known_text(x, r, text);
	r = nvml.nvmlDeviceGetSerial(device, text, sizeof text);
	put_known_text(x, r, text);
	put_i64(&x->out, nvml.nvmlDeviceGetIndex(device, &n));
	put_u64(&x->out, n);
	n = 0;
	put_i64(&x->out, nvml.nvmlDeviceGetMinorNumber(device, &n));
	put_u64(&x->out, n);
	put_i64(&x->out, nvml.nvmlDeviceGetPciInfo_v3(device, &pci));
	put_bytes(&x->out, &pci, sizeof pci);
	n = 0;
	put_i64(&x->out, nvml.nvmlDeviceGetMaxMigDeviceCount(device, &n));
	put_u64(&x->out, n);
}

CUresult serve_nvmlScudaDevices(struct exec *x)
{
	char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	unsigned count = 0;
	int version = 0;
	nvmlReturn_t r;

	if (!get_end(&x->in))
		return SERVE_BAD;
	r = nvml.nvmlSystemGetDriverVersion(text, sizeof text);
	put_known_text(x, r, text);
	r = nvml.nvmlSystemGetNVMLVersion(text, sizeof text);
	put_known_text(x, r, text);
	put_i64(&x->out, nvml.nvmlSystemGetCudaDriverVersion_v2(&version));
	put_i64(&x->out, version);
	r = nvml.nvmlDeviceGetCount_v2(&count);
	put_i64(&x->out, r);
	put_u64(&x->out, r ? 0 : count);
	if (r)
		count = 0;
	if (count > LIMIT_DEVICES)
		count = LIMIT_DEVICES;
	put_array(&x->out, count);
	for (unsigned i = 0; i < count; i++)
		put_known_device(x, i);
	return CUDA_SUCCESS;
}

/* A struct of `fixed` bytes and as many opaque ones as the word at `size_at` says. NULL: it is not that. */
static void *get_metadata(struct exec *x, size_t fixed, size_t size_at)
{
	size_t n;
	const uint8_t *p = get_blob(&x->in, &n, fixed + LIMIT_METADATA);
	unsigned opaque;
	/* Not less than the whole struct, so that its last member is there. */
	uint8_t *m = p && n >= fixed ? exec_alloc(x, fixed + LIMIT_METADATA) : NULL;

	if (!m)
		return NULL;
	memset(m, 0, fixed + LIMIT_METADATA);
	memcpy(m, p, n);
	memcpy(&opaque, m + size_at, sizeof opaque);
	return opaque == n - fixed ? m : NULL;
}

CUresult serve_nvmlGetVgpuCompatibility(struct exec *x)
{
	nvmlVgpuPgpuCompatibility_t c = {0};
	void *vgpu = get_metadata(
		x, offsetof(nvmlVgpuMetadata_t, opaqueData), offsetof(nvmlVgpuMetadata_t, opaqueDataSize));
	void *pgpu = get_metadata(x, offsetof(nvmlVgpuPgpuMetadata_t, opaqueData),
			offsetof(nvmlVgpuPgpuMetadata_t, opaqueDataSize));
	nvmlReturn_t r;

	if (!vgpu || !pgpu || !get_end(&x->in))
		return SERVE_BAD;
	r = nvml.nvmlGetVgpuCompatibility(vgpu, pgpu, &c);
	if (!r)
		put_bytes(&x->out, &c, sizeof c);
	return (CUresult)r;
}
