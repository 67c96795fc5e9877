/* SPDX-License-Identifier: Apache-2.0 */
/* A monitor: asks the same seven questions each 250 ms, a line each time until standard input ends its wait.
 * One thread. */
#include <dlfcn.h>
#include "tests/e2e/progs/prog.h"
#include "wire/nvml.h"

int main(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	struct timespec pause = {.tv_nsec = 250000000};
	nvmlDevice_t d;
	nvmlFieldValue_t field = {.fieldId = 1};
	unsigned n;
	int mode[2];

	REQUIRE(library);
#define ASK(name) ((__typeof__(&(name)))dlsym(library, #name))
	REQUIRE(!ASK(nvmlInit_v2)() && !ASK(nvmlDeviceGetHandleByIndex_v2)(0, &d));
	for (unsigned line = 0; line < 8; line++) {
		nvmlMemory_t memory;
		nvmlComputeMode_t compute;

		REQUIRE(!ASK(nvmlDeviceGetMemoryInfo)(d, &memory));
		REQUIRE(ASK(nvmlDeviceGetPowerUsage)(d, &n) == NVML_ERROR_NOT_SUPPORTED);
		REQUIRE(ASK(nvmlDeviceGetTemperature)(d, NVML_TEMPERATURE_GPU,
				&n) == NVML_ERROR_NOT_SUPPORTED);
		REQUIRE(!ASK(nvmlDeviceGetCudaComputeCapability)(d, &mode[0], &mode[1]) && mode[0] == 7);
		/* One twice, and one whose array still has the answer of the line before. */
		REQUIRE(!ASK(nvmlDeviceGetComputeMode)(d, &compute));
		REQUIRE(ASK(nvmlDeviceGetFieldValues)(d, 1, &field) == NVML_ERROR_NOT_SUPPORTED &&
				field.fieldId == 1);
		field.timestamp = line + 1;
		REQUIRE(!ASK(nvmlDeviceGetComputeMode)(d, &compute) && compute == NVML_COMPUTEMODE_DEFAULT);
		nanosleep(&pause, NULL);
	}
	ASK(nvmlShutdown)();
	say("right");
	return 0;
}
