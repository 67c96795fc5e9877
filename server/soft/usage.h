/* SPDX-License-Identifier: Apache-2.0 */
/* How much device memory a process uses, told to who lists processes (server/nvml_soft.c, NVML's place for
 * the software device): a memory file of this name, open in the process, that holds a number of bytes for
 * each device.
 *
 * Thread rule: one writer, which has the memory's lock; a reader sees each number whole. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define USAGE_FILE "scuda-soft-usage"
#define USAGE_DEVICES 8

/* The process's numbers, all 0; NULL: the file cannot be made, and nobody is told. Called once. */
_Atomic uint64_t *usage_open(void);
