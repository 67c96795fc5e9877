/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that the application may see, from the snapshot of the hello: all device queries are answered
 * from here.
 *
 * Thread rule: filled once inside cuInit, read-only afterwards. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "wire/cuda_types.h"
#include "wire/limits.h"
#include "wire/msg.h"

struct device {
	int ordinal;                /* the server's */
	char name[256];
	uint8_t uuid[16];
	char luid[8];
	unsigned node_mask;
	uint64_t total;
	char pci_bus_id[32];
	unsigned nattributes;
	int attributes[LIMIT_ATTRIBUTES];
	bool known[LIMIT_ATTRIBUTES];
};

/* Reads the snapshot map. Returns false when it is malformed. */
bool device_read_snapshot(struct msg *m);
/* Applies CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES (values of the environment, may be NULL). */
void device_apply_environment(const char *order, const char *visible);
/* What the snapshot said beside the devices. */
int device_driver_version(void);
/* True when the software device serves. */
bool device_is_soft(void);

/* Devices of the application, in its order. */
int device_count(void);
/* NULL when there is no such device. */
const struct device *device_get(CUdevice d);
/* The server's ordinal of the application's device and back; a number that is none stays as it is (devices
 * that do not exist are refused there). */
int device_to_server(CUdevice d);
CUdevice device_from_server(int ordinal);
/* The same, -1 for one that the application does not see, or none. */
CUdevice device_visible(int ordinal);
/* An attribute, or `fallback` where the driver gave none. */
int device_attribute(CUdevice d, CUdevice_attribute a, int fallback);
