/* SPDX-License-Identifier: Apache-2.0 */
/* What a snapshot tells of a GPU beyond its name: each value is a key of the device's map "values", and a
 * file of the mount under gpuN/. Keys are paths. A value that the server does not know is no key, and no
 * file. Units are those of sysfs: percent, thousandths of a degree Celsius, microwatts, microjoules, hertz,
 * bytes. */
#pragma once

/* Numbers: name in C, folder of the file (as scudafs/tree.c calls it), path of the folder, file. */
#define GPU_NUMBERS(X) \
	X(MINOR_NUMBER, GPU, "", "minor_number") \
	X(UTILIZATION_GPU, UTILIZATION, "utilization/", "gpu") \
	X(UTILIZATION_MEMORY, UTILIZATION, "utilization/", "memory") \
	X(UTILIZATION_ENCODER, UTILIZATION, "utilization/", "encoder") \
	X(UTILIZATION_DECODER, UTILIZATION, "utilization/", "decoder") \
	X(TEMPERATURE_GPU, TEMPERATURE, "temperature/", "gpu") \
	X(TEMPERATURE_MEMORY, TEMPERATURE, "temperature/", "memory") \
	X(POWER_USAGE, POWER, "power/", "usage") \
	X(POWER_LIMIT, POWER, "power/", "limit") \
	X(POWER_ENERGY, POWER, "power/", "energy") \
	X(CLOCKS_SM, CLOCKS, "clocks/", "sm") \
	X(CLOCKS_MEMORY, CLOCKS, "clocks/", "memory") \
	X(CLOCKS_MAX_SM, CLOCKS, "clocks/", "max_sm") \
	X(CLOCKS_MAX_MEMORY, CLOCKS, "clocks/", "max_memory") \
	X(PCIE_GENERATION, PCIE, "pcie/", "generation") \
	X(PCIE_WIDTH, PCIE, "pcie/", "width") \
	X(PCIE_REPLAY, PCIE, "pcie/", "replay") \
	X(ECC_CORRECTED, ECC, "ecc/", "corrected") \
	X(ECC_UNCORRECTED, ECC, "ecc/", "uncorrected")

/* Words: the same. ecc/mode: enabled or disabled; mode: shared, exclusive or prohibited, which is who may
 * compute. */
#define GPU_WORDS(X) \
	X(VBIOS_VERSION, GPU, "", "vbios_version") \
	X(SERIAL, GPU, "", "serial") \
	X(MODE, GPU, "", "mode") \
	X(ECC_MODE, ECC, "ecc/", "mode")

#define GPU_PROCESSES 32        /* most of the key "processes": arrays of pid, bytes of memory (nil: unknown),
                                 * program */
