/* SPDX-License-Identifier: Apache-2.0 */
/* Field values: a program keeps one array for all its rounds, with the old answers in it. Only what the
 * fields are is sent, so that a round's question is the same as that of the round before, and can be asked
 * ahead (ahead.h).
 *
 * Thread rule: any thread. */
#include <stdlib.h>
#include "devshim/nvml/call.h"
#include "nvml.remote.h"
#include "wire/limits.h"
#include "wire/nvml.h"

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values)
{
	size_t n = valuesCount > 0 && values ? (size_t)valuesCount : 0;
	nvmlFieldValue_t *asked = n && n <= LIMIT_ARRAY ? calloc(n, sizeof *asked) : NULL;
	nvmlReturn_t r;

	if (!asked)
		return n ? NVML_ERROR_MEMORY : remote_nvmlDeviceGetFieldValues(device, valuesCount, values);
	for (size_t i = 0; i < n; i++) {
		asked[i].fieldId = values[i].fieldId;
		/* The memory's temperature has no scope: what is in the word is nobody's. */
		if (values[i].fieldId != NVML_FI_DEV_MEMORY_TEMP)
			asked[i].scopeId = values[i].scopeId;
	}
	r = remote_nvmlDeviceGetFieldValues(device, valuesCount, asked);
	for (size_t i = 0; !r && i < n; i++) {
		asked[i].scopeId = values[i].scopeId;
		values[i] = asked[i];
	}
	free(asked);
	return r;
}
