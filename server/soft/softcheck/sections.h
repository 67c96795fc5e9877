/* SPDX-License-Identifier: Apache-2.0 */
/* The device code in a host object file: the sections that nvcc puts fat binaries into.
 *
 * Thread rule: no shared state. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define SECTION_BYTES (2ull << 30) /* of one section, or of a file that is read whole */

/* A 64-bit ELF file for a host processor (not a cubin). */
bool is_host_elf(int fd);
/* Reads the section `name` into fresh memory, which the caller frees. Returns 0 (*data stays NULL when there
 * is no such section) or -errno: -ENOEXEC for headers that contradict themselves or the file's length. */
int section_read(int fd, const char *name, void **data, size_t *size);
/* Reads the whole file likewise. */
int file_read(int fd, void **data, size_t *size);
