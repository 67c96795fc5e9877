/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of shared memory (memfd) come when they are touched first. Where the kernel counts what it has
 * promised (vm.overcommit_memory=2) it may refuse one then, which is a SIGBUS. There they are asked for
 * ahead, where a refusal is an error; elsewhere they still come as they are used.
 *
 * Thread rule: any thread. Changes errno. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static inline bool pages_may_be_refused(void)
{
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	char mode = 0;
	if (fd < 0)
		return false;
	if (read(fd, &mode, 1) != 1)
		mode = 0;
	close(fd);
	return mode == '2';
}

/* Has them all, to be written. A kernel before 5.14 does not know the question: true. */
static inline bool pages_take(void *p, size_t n)
{
	int r;
	do
		r = madvise(p, n, MADV_POPULATE_WRITE);
	while (r && (errno == EINTR || errno == EAGAIN));
	return !r || errno == EINVAL;
}
