/* SPDX-License-Identifier: Apache-2.0 */
/* NVML: a table of function pointers, as the driver is one, filled from the NVIDIA driver's libnvidia-ml.so.1
 * or, beside the software device, from what that device can tell truthfully (nvml_soft.c). The monitor and
 * sessions that ask for NVML load it; nobody else.
 *
 * Thread rule: nvml_open once, before other threads use the table; the rest from any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "nvml.driver.h"
#include "server/exec.h"

/* A member per exported function; those that the library lacks answer NVML_ERROR_NOT_SUPPORTED. */
extern struct nvml_driver nvml;
extern const struct serve_entry nvml_serve_table[];
extern const unsigned nvml_serve_count;

/* Loads and initialises libnvidia-ml.so.1; false when there is none, or it is our own. */
bool nvml_open(void);
/* From here on process lists name the programs that sessions of this server work for. */
void nvml_translate_processes(void);
/* Fills the table for the software device, whose driver must be loaded and initialised. */
void nvml_open_soft(void);
/* "580.159.04", or "". */
void nvml_driver_version(char *out, size_t cap);
/* Free bytes of the GPU at that PCI bus id ("0000:00:06.0"), or, of one on no bus, with that index. */
bool nvml_free_memory(unsigned index, const char *pci_bus_id, uint64_t *free_bytes);
/* The process that a session's process works for: the program's pid as its hello told it, or `pid` itself
 * when that is no session of this server. */
unsigned nvml_client_pid(unsigned pid);
/* The name of the program that a session's process computes for; false when it computes for none. */
bool nvml_program(unsigned pid, char *name, size_t cap);
/* A session's process and the program that it computes for. */
struct computing {
	unsigned pid, client;
};
/* Those of this server; how many there are, of which at most `room` are in `list`. */
unsigned nvml_computing(struct computing *list, unsigned room);
/* The process of the session that works for a client, else `client` itself. */
unsigned nvml_session_pid(unsigned client);
/* Makes this process, a session's, known to nvml_client_pid, and, when it computes, the program's name (else
 * NULL) to who lists processes. */
void nvml_announce(unsigned client_pid, const char *program);
