/* SPDX-License-Identifier: Apache-2.0 */
/* Files without a name, which hold device memory that other processes can map.
 *
 * Thread rule: none. */
#pragma once
#include <stddef.h>

/* A file of that size, which nobody can make smaller under its users. A descriptor from 3 on, or -errno. */
int file_create(size_t bytes);
/* All n bytes at p, at the file's position. 0 or -errno. */
int file_write(int fd, const void *p, size_t n);
