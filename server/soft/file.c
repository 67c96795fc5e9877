/* SPDX-License-Identifier: Apache-2.0 */
/* Files without a name, which hold device memory that other processes can map.
 *
 * Thread rule: none. */
#include "server/soft/file.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

int file_create(size_t bytes)
{
	int fd = memfd_create("scuda-soft", MFD_CLOEXEC | MFD_ALLOW_SEALING), r = 0;
	if (fd < 0)
		return -errno;
	if (fd < 3) {
		int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		r = high < 0 ? -errno : 0;
		close(fd);
		fd = high;
	}
	if (!r && (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)))
		r = -errno;
	if (r && fd >= 0)
		close(fd);
	return r ? r : fd;
}

int file_write(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;
	while (n) {
		ssize_t w = write(fd, p, n < 1u << 30 ? n : 1u << 30);
		if (w < 0 && errno != EINTR)
			return -errno;
		if (w > 0) {
			p += w;
			n -= (size_t)w;
		}
	}
	return 0;
}
