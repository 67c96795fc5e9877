/* SPDX-License-Identifier: Apache-2.0 */
/* The driver: a table of function pointers, filled by dlopen. Loaded once per process, by the monitor and
 * by each session, never by the listener.
 *
 * Thread rule: driver_open comes before any other thread looks at drv; afterwards drv does not change. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "wire/cuda_types.h"
#include "cuda.driver.h"

/* A member per exported function; those that the library lacks answer CUDA_ERROR_NOT_SUPPORTED. */
extern struct driver drv;

struct driver_choice {
	char path[512];             /* for dlopen: a name or an absolute path */
	bool soft;
};

/* Finds the driver that `wanted` means ("auto", "soft", or a path), loads it, calls cuInit and counts its
 * devices. 0 and *choice, or -1 and a text of why. For the monitor. */
int driver_find(const char *wanted, struct driver_choice *choice, int *devices, char *why, size_t cap);
/* Loads the driver that driver_find chose in another process and fills drv. 0, or -1 and why. Does not
 * call cuInit. */
int driver_open(const struct driver_choice *choice, char *why, size_t cap);
/* CUDA_* and LD_* variables that would make the driver of this process differ from the others: removed.
 * Call before driver_find and driver_open. */
void driver_clear_environment(void);
