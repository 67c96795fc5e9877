/* SPDX-License-Identifier: Apache-2.0 */
/* The little of NVML that the monitor asks the NVIDIA driver's own library for. Without that library
 * everything answers "unknown".
 *
 * Thread rule: nvml_open once, before other threads; the rest from any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Loads libnvidia-ml.so.1; false when there is none. */
bool nvml_open(void);
/* "580.159.04", or "". */
void nvml_driver_version(char *out, size_t cap);
/* Free bytes of the GPU at that PCI bus id ("0000:00:06.0"). */
bool nvml_free_memory(const char *pci_bus_id, uint64_t *free_bytes);
