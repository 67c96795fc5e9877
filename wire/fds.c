/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever descriptors a peer sends are ours from then on: those that were not asked for are closed. */
#include "wire/fds.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control { struct cmsghdr align; char bytes[CMSG_SPACE(FDS_MOST * sizeof(int))]; };

int fds_send(int socket, const void *p, size_t n, const int *fds, unsigned count, int flags)
{
	union control control = {0};
	struct iovec v = {(void *)p, n};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	if (count > FDS_MOST)
		return -EINVAL;
	if (count) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	ssize_t r = sendmsg(socket, &m, flags | MSG_NOSIGNAL);
	return r < 0 ? -errno : (size_t)r == n ? 0 : -EPROTO;
}

int fds_receive_most(int socket, void *p, size_t n, int *fds, unsigned most, unsigned *came, int flags)
{
	union control control;
	struct iovec v = {p, n};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	int all[FDS_MOST];
	unsigned k = 0;
	*came = 0;
	ssize_t r = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
	if (r <= 0)
		return r ? -errno : -ECONNRESET;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		k = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(all, CMSG_DATA(c), k * sizeof(int));
	}
	if ((size_t)r == n && k <= most && !(m.msg_flags & MSG_CTRUNC)) {
		memcpy(fds, all, k * sizeof(int));
		*came = k;
		return 0;
	}
	while (k)
		close(all[--k]);
	return -EPROTO;
}

int fds_receive(int socket, void *p, size_t n, int *fds, unsigned count, int flags)
{
	unsigned came;
	int r = fds_receive_most(socket, p, n, fds, count, &came, flags);
	if (r || came == count)
		return r;
	while (came)
		close(fds[--came]);
	return -EPROTO;
}

void fds_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}
