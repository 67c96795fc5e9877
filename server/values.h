/* SPDX-License-Identifier: Apache-2.0 */
/* What changes about a device, as NVML tells it, for the monitor's snapshots (wire/values.h).
 *
 * Thread rule: any thread; a device is asked by one thread at a time. */
#pragma once
#include <stdbool.h>

struct msg;

/* Puts the map of values of the device at that PCI bus id, or, where it has none, of that index; asked at
 * most five times a second. */
void values_encode(unsigned index, const char *pci_bus_id, struct msg *m);
