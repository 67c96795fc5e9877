/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are kept in a folder, as long as there is room, so that what is in them need not be sent or made
 * again. Each is written under another name first, so nobody finds a part of one; whoever reads one makes it
 * young (futimens), and the oldest give way.
 *
 * Thread rule: any thread; processes that use a folder at the same time do not disturb each other. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <time.h>

#define KEPT_NAME 160           /* bytes of a name, with its end: a digest as text, and an ending */
struct kept_file {
	struct timespec time;
	uint64_t size;
	char name[KEPT_NAME];
};

/* The folder's files, but for hidden ones, `most` at most: the caller's to free. NULL without memory. What
 * somebody began to write, and never finished, is removed on the way. */
struct kept_file *kept_list(int folder, size_t most, size_t *n);
/* Removes the oldest of n files until so many bytes and files, or fewer, are left. How many files are, and
 * *left, their bytes; the list is in another order then. */
size_t kept_thin(int folder, struct kept_file *list, size_t n, uint64_t bytes, size_t files, uint64_t *left);

/* Opens a regular file; *size: its bytes. A descriptor, or -1. */
int kept_open(int folder, const char *name, uint64_t *size);
/* The next n bytes. False: there are not as many. */
bool kept_read(int fd, void *p, size_t n);
/* A file of that name with the bytes of the parts (which it changes); one that there is is replaced. False:
 * it is not there, and errno says why. */
bool kept_write(int folder, const char *name, struct iovec *parts, int n);
