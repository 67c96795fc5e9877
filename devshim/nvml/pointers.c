/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose structs point at more, with the encoding that server/nvml_pointers.c reads, and waiting for
 * events.
 *
 * Thread rule: any thread; `units` has a lock. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include "devshim/nvml/call.h"
#include "nvml.calls.h"
#include "wire/limits.h"
#include "wire/nvml.h"

/* ---- events ---- */

#define WAIT_SLICE 500          /* ms that the server waits at a time: a program that ends holds it no
                                 * longer */
#define WAIT_THREAD 2           /* of the records: a wait does not hold up other calls */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static nvmlReturn_t wait_slice(nvmlEventSet_t set, nvmlEventData_t *data, unsigned ms)
{
	struct call c;
	int r = call_begin(&c, CALL_nvmlEventSetWait_v2);

	if (r)
		return nvml_local(r);
	c.thread = WAIT_THREAD;
	put_handle(&c, HANDLE_nvmlEventSet_t, set);
	put_u64(&c.out, ms);
	r = call_wait(&c);
	if (!r) {
		data->device = get_handle(&c, HANDLE_nvmlDevice_t);
		data->eventType = get_u64(&c.in);
		data->eventData = get_u64(&c.in);
		data->gpuInstanceId = (unsigned)get_u64(&c.in);
		data->computeInstanceId = (unsigned)get_u64(&c.in);
	}
	return nvml_remote(call_end(&c, r));
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeoutms)
{
	int64_t end = now_ms() + timeoutms;

	if (!set || !data)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (;;) {
		int64_t left = end - now_ms();
		unsigned slice = left < 0 ? 0 : left < WAIT_SLICE ? (unsigned)left : WAIT_SLICE;
		nvmlReturn_t r = wait_slice(set, data, slice);

		if (r != NVML_ERROR_TIMEOUT || left <= WAIT_SLICE)
			return r;
	}
}

/* ---- processes ---- */

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info)
{
	struct call c;
	int r = call_begin(&c, CALL_nvmlDeviceGetProcessesUtilizationInfo);

	if (r)
		return nvml_local(r);
	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	size_t room = info->procUtilArray ? info->processSamplesCount : 0;
	put_handle(&c, HANDLE_nvmlDevice_t, device);
	put_u64(&c.out, info->version);
	put_bool(&c.out, info->procUtilArray);
	put_u64(&c.out, info->processSamplesCount);
	put_u64(&c.out, info->lastSeenTimeStamp);
	r = call_wait(&c);
	if (c.in.len < c.in.cap) {
		info->processSamplesCount = (unsigned)get_u64(&c.in);
		for (size_t i = 0, n = get_array(&c.in, room); i < n; i++)
			get_bytes(&c.in, &info->procUtilArray[i], sizeof *info->procUtilArray);
	}
	return nvml_remote(call_end(&c, r));
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list)
{
	struct call c;
	int r = call_begin(&c, CALL_nvmlDeviceGetRunningProcessDetailList);

	if (r)
		return nvml_local(r);
	if (!list)
		return NVML_ERROR_INVALID_ARGUMENT;
	size_t room = list->procArray ? list->numProcArrayEntries : 0;
	put_handle(&c, HANDLE_nvmlDevice_t, device);
	put_u64(&c.out, list->version);
	put_u64(&c.out, list->mode);
	put_bool(&c.out, list->procArray);
	put_u64(&c.out, list->numProcArrayEntries);
	r = call_wait(&c);
	if (c.in.len < c.in.cap) {
		list->numProcArrayEntries = (unsigned)get_u64(&c.in);
		for (size_t i = 0, n = get_array(&c.in, room); i < n; i++)
			get_bytes(&c.in, &list->procArray[i], sizeof *list->procArray);
	}
	return nvml_remote(call_end(&c, r));
}

/* ---- metrics of GPM ---- */

/* Names and units belong to the library: each text is kept once, for good. A library tells a few hundred; the
 * server can have no more kept. */
static struct {
	pthread_mutex_t lock;
	unsigned count;
	char *text[3 * NVML_GPM_METRIC_MAX];
} units = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *keep_text(struct msg *m)
{
	char text[LIMIT_NAME + 1], *kept = NULL;
	const unsigned most = sizeof units.text / sizeof *units.text;

	if (get_nil(m))
		return NULL;
	get_text(m, text, sizeof text);
	if (m->bad)
		return NULL;
	pthread_mutex_lock(&units.lock);
	for (unsigned i = 0; i < units.count && !kept; i++)
		if (!strcmp(units.text[i], text))
			kept = units.text[i];
	if (!kept && units.count < most) {
		kept = strdup(text);
		if (kept)
			units.text[units.count++] = kept;
	}
	pthread_mutex_unlock(&units.lock);
	return kept;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
	struct call c;
	int r = call_begin(&c, CALL_nvmlGpmMetricsGet);

	if (r)
		return nvml_local(r);
	if (!get || get->numMetrics > NVML_GPM_METRIC_MAX)
		return NVML_ERROR_INVALID_ARGUMENT;
	put_u64(&c.out, get->version);
	put_handle(&c, HANDLE_nvmlGpmSample_t, get->sample1);
	put_handle(&c, HANDLE_nvmlGpmSample_t, get->sample2);
	put_array(&c.out, get->numMetrics);
	for (unsigned i = 0; i < get->numMetrics; i++)
		put_u64(&c.out, get->metrics[i].metricId);
	r = call_wait(&c);
	if (!r && get_array(&c.in, NVML_GPM_METRIC_MAX) != get->numMetrics)
		c.in.bad = true;
	for (unsigned i = 0; !r && !c.in.bad && i < get->numMetrics; i++) {
		nvmlGpmMetric_t *m = &get->metrics[i];

		m->nvmlReturn = (nvmlReturn_t)get_i64(&c.in);
		m->value = get_f64(&c.in);
		m->metricInfo.shortName = keep_text(&c.in);
		m->metricInfo.longName = keep_text(&c.in);
		m->metricInfo.unit = keep_text(&c.in);
	}
	return nvml_remote(call_end(&c, r));
}

/* ---- metadata of vGPUs: structs that end in bytes which only NVML understands ---- */

nvmlReturn_t nvmlGetVgpuCompatibility(nvmlVgpuMetadata_t *vgpu, nvmlVgpuPgpuMetadata_t *pgpu,
		nvmlVgpuPgpuCompatibility_t *compatibility)
{
	struct call c;
	int r = call_begin(&c, CALL_nvmlGetVgpuCompatibility);

	if (r)
		return nvml_local(r);
	if (!vgpu || !pgpu || !compatibility || vgpu->opaqueDataSize > LIMIT_METADATA ||
			pgpu->opaqueDataSize > LIMIT_METADATA)
		return NVML_ERROR_INVALID_ARGUMENT;
	put_bytes(&c.out, vgpu, offsetof(nvmlVgpuMetadata_t, opaqueData) + vgpu->opaqueDataSize);
	put_bytes(&c.out, pgpu, offsetof(nvmlVgpuPgpuMetadata_t, opaqueData) + pgpu->opaqueDataSize);
	r = call_wait(&c);
	if (!r)
		get_bytes(&c.in, compatibility, sizeof *compatibility);
	return nvml_remote(call_end(&c, r));
}
