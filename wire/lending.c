/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever may change the size of a mapped file ends us with a SIGBUS; a file of another kind than memfd's, on
 * a file system of the peer's own, may keep us waiting for ever; and huge pages can be neither counted nor
 * made up for where one is missing. */
#include "wire/lending.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "wire/fds.h"
#include "wire/transport.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

int lending_create(const char *name, uint64_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)size) && !fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL))
		return fd;
	int e = errno;

	close(fd);
	return -e;
}

int lending_readonly(int fd)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int other = open(path, O_RDONLY | O_CLOEXEC);

	return other < 0 ? -errno : other;
}

const uint8_t *lending_map(int fd, uint64_t size, const char **why)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs on;
	struct stat st;
	void *p;

	if (seals < 0 || (seals & SEALS) != SEALS)
		*why = "memory whose size may change";
	else if (fstatfs(fd, &on) || on.f_type != TMPFS_MAGIC)
		*why = "memory of another kind";
	else if (fstat(fd, &st) || !size || (uint64_t)st.st_size != size)
		*why = "memory of another size";
	else if ((p = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0)) == MAP_FAILED)
		*why = "it cannot be mapped";
	else
		return p;
	return NULL;
}

int lending_send(int socket, const struct lending *l, int fd)
{
	return fds_send(socket, l, sizeof *l, &fd, fd >= 0, MSG_DONTWAIT);
}

int lending_receive(int socket, struct lending *l, int *fd, int timeout_ms)
{
	unsigned came;
	int r = transport_wait(socket, POLLIN, timeout_ms);

	*fd = -1;
	return r ? r : fds_receive_most(socket, l, sizeof *l, fd, 1, &came, MSG_DONTWAIT);
}
