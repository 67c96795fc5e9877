/* SPDX-License-Identifier: Apache-2.0 */
/* Values are kept for a moment: several mounts may ask, and each question costs the driver some of its time.
 *
 * Thread rule: as values.h. */
#include "server/values.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/nvml.h"
#include "wire/limits.h"
#include "wire/msg.h"
#include "wire/values.h"

#define FRESH 200               /* ms; each mount asks once a second */

#define NUMBER(id, folder, path, file) V_##id,
enum number { GPU_NUMBERS(NUMBER) NUMBERS };
enum word { GPU_WORDS(NUMBER) WORDS };
#undef NUMBER
#define KEY(id, folder, path, file) path file,
static const char *const number_keys[] = {GPU_NUMBERS(KEY)};
static const char *const word_keys[] = {GPU_WORDS(KEY)};
#undef KEY

struct process {
	unsigned pid;
	unsigned long long memory;
	char name[64];
};

struct values {
	bool known[NUMBERS], listed;
	uint64_t number[NUMBERS];
	char word[WORDS][64];       /* "": unknown */
	unsigned processes;
	struct process process[GPU_PROCESSES];
};

static struct {
	pthread_mutex_t lock;
	int64_t read;               /* ms; 0: never */
	struct values values;
} devices[LIMIT_DEVICES] = {[0 ... LIMIT_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static void set(struct values *v, enum number n, nvmlReturn_t r, uint64_t value, uint64_t unit)
{
	v->known[n] = !r;
	v->number[n] = value * unit;
}

static void read_use(nvmlDevice_t d, struct values *v)
{
	nvmlUtilization_t use = {0};
	unsigned n = 0, period;
	nvmlReturn_t r = nvml.nvmlDeviceGetUtilizationRates(d, &use);

	set(v, V_UTILIZATION_GPU, r, use.gpu, 1);
	set(v, V_UTILIZATION_MEMORY, r, use.memory, 1);
	r = nvml.nvmlDeviceGetEncoderUtilization(d, &n, &period);
	set(v, V_UTILIZATION_ENCODER, r, n, 1);
	r = nvml.nvmlDeviceGetDecoderUtilization(d, &n, &period);
	set(v, V_UTILIZATION_DECODER, r, n, 1);
}

static void read_heat(nvmlDevice_t d, struct values *v)
{
	nvmlFieldValue_t memory = {.fieldId = NVML_FI_DEV_MEMORY_TEMP};
	unsigned long long energy = 0;
	unsigned n = 0;
	nvmlReturn_t r = nvml.nvmlDeviceGetTemperature(d, NVML_TEMPERATURE_GPU, &n);

	set(v, V_TEMPERATURE_GPU, r, n, 1000);
	r = nvml.nvmlDeviceGetFieldValues(d, 1, &memory);
	if (!r)
		r = memory.nvmlReturn;
	set(v, V_TEMPERATURE_MEMORY, r, memory.value.uiVal, 1000);
	r = nvml.nvmlDeviceGetPowerUsage(d, &n);
	set(v, V_POWER_USAGE, r, n, 1000);
	r = nvml.nvmlDeviceGetEnforcedPowerLimit(d, &n);
	set(v, V_POWER_LIMIT, r, n, 1000);
	r = nvml.nvmlDeviceGetTotalEnergyConsumption(d, &energy);
	set(v, V_POWER_ENERGY, r, energy, 1000);
}

static void read_clock(
	nvmlDevice_t d, struct values *v, enum number now, enum number most, nvmlClockType_t type)
{
	unsigned n = 0;
	nvmlReturn_t r = nvml.nvmlDeviceGetClockInfo(d, type, &n);

	set(v, now, r, n, 1000000);
	r = nvml.nvmlDeviceGetMaxClockInfo(d, type, &n);
	set(v, most, r, n, 1000000);
}

static void read_card(nvmlDevice_t d, struct values *v)
{
	unsigned long long errors = 0;
	nvmlEnableState_t on = 0, pending;
	nvmlComputeMode_t mode = 0;
	unsigned n = 0;
	nvmlReturn_t r = nvml.nvmlDeviceGetMinorNumber(d, &n);

	set(v, V_MINOR_NUMBER, r, n, 1);
	r = nvml.nvmlDeviceGetCurrPcieLinkGeneration(d, &n);
	set(v, V_PCIE_GENERATION, r, n, 1);
	r = nvml.nvmlDeviceGetCurrPcieLinkWidth(d, &n);
	set(v, V_PCIE_WIDTH, r, n, 1);
	r = nvml.nvmlDeviceGetPcieReplayCounter(d, &n);
	set(v, V_PCIE_REPLAY, r, n, 1);
	r = nvml.nvmlDeviceGetTotalEccErrors(d, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, &errors);
	set(v, V_ECC_CORRECTED, r, errors, 1);
	r = nvml.nvmlDeviceGetTotalEccErrors(d, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC,
		&errors);
	set(v, V_ECC_UNCORRECTED, r, errors, 1);
	if (nvml.nvmlDeviceGetVbiosVersion(d, v->word[V_VBIOS_VERSION], sizeof v->word[0]))
		*v->word[V_VBIOS_VERSION] = 0;
	if (nvml.nvmlDeviceGetSerial(d, v->word[V_SERIAL], sizeof v->word[0]))
		*v->word[V_SERIAL] = 0;
	if (!nvml.nvmlDeviceGetEccMode(d, &on, &pending))
		strcpy(v->word[V_ECC_MODE], on ? "enabled" : "disabled");
	if (!nvml.nvmlDeviceGetComputeMode(d, &mode))
		strcpy(v->word[V_MODE], mode == NVML_COMPUTEMODE_DEFAULT ? "shared" :
				mode == NVML_COMPUTEMODE_PROHIBITED ? "prohibited" : "exclusive");
}

static void read_processes(nvmlDevice_t d, struct values *v)
{
	nvmlProcessInfo_t infos[GPU_PROCESSES];
	unsigned n = GPU_PROCESSES;

	v->listed = !nvml.nvmlDeviceGetComputeRunningProcesses_v3(d, &n, infos);
	v->processes = v->listed && n <= GPU_PROCESSES ? n : 0;
	for (unsigned i = 0; i < v->processes; i++) {
		struct process *p = &v->process[i];

		*p = (struct process){.pid = infos[i].pid, .memory = infos[i].usedGpuMemory};
		if (nvml.nvmlSystemGetProcessName(p->pid, p->name, sizeof p->name))
			*p->name = 0;
		p->name[sizeof p->name - 1] = 0;
	}
}

static bool device_of(unsigned index, const char *pci_bus_id, nvmlDevice_t *d)
{
	return *pci_bus_id ? !nvml.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id, d) :
			!nvml.nvmlDeviceGetHandleByIndex_v2(index, d);
}

static void encode(const struct values *v, struct msg *m)
{
	size_t n = v->listed;

	for (unsigned i = 0; i < NUMBERS; i++)
		n += v->known[i];
	for (unsigned i = 0; i < WORDS; i++)
		n += *v->word[i] != 0;
	put_map(m, n);
	for (unsigned i = 0; i < NUMBERS; i++) {
		if (!v->known[i])
			continue;
		put_text(m, number_keys[i]);
		put_u64(m, v->number[i]);
	}
	for (unsigned i = 0; i < WORDS; i++) {
		if (!*v->word[i])
			continue;
		put_text(m, word_keys[i]);
		put_text(m, v->word[i]);
	}
	if (!v->listed)
		return;
	put_text(m, "processes");
	put_array(m, v->processes);
	for (unsigned i = 0; i < v->processes; i++) {
		put_array(m, 3);
		put_u64(m, v->process[i].pid);
		if (v->process[i].memory == (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
			put_nil(m);
		else
			put_u64(m, v->process[i].memory);
		put_text(m, v->process[i].name);
	}
}

void values_encode(unsigned index, const char *pci_bus_id, struct msg *m)
{
	struct timespec t;
	nvmlDevice_t d;

	if (index >= LIMIT_DEVICES) {
		put_map(m, 0);
		return;
	}
	pthread_mutex_lock(&devices[index].lock);
	clock_gettime(CLOCK_MONOTONIC, &t);
	int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
	if (!devices[index].read || now - devices[index].read >= FRESH) {
		struct values *v = &devices[index].values;

		memset(v, 0, sizeof *v);
		if (device_of(index, pci_bus_id, &d)) {
			read_use(d, v);
			read_heat(d, v);
			read_clock(d, v, V_CLOCKS_SM, V_CLOCKS_MAX_SM, NVML_CLOCK_SM);
			read_clock(d, v, V_CLOCKS_MEMORY, V_CLOCKS_MAX_MEMORY, NVML_CLOCK_MEM);
			read_card(d, v);
			read_processes(d, v);
		}
		devices[index].read = now;
	}
	encode(&devices[index].values, m);
	pthread_mutex_unlock(&devices[index].lock);
}
