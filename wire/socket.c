/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection wants of its socket: no delay, attempts that come soon, buffers that suit a peer on the
 * same host; and whether the peer is there.
 *
 * Thread rule: any thread. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include "wire/transport.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* since Linux 6.15 */
#endif
#define HERE_BUFFER (512 << 10)

/* Do both ends have the same address? */
static bool is_here(int fd)
{
	struct sockaddr_storage own = {0}, peer = {0};
	socklen_t n = sizeof own, m = sizeof peer;

	if (getsockname(fd, (struct sockaddr *)&own, &n) || getpeername(fd, (struct sockaddr *)&peer, &m) ||
		own.ss_family != peer.ss_family)
		return false;
	if (own.ss_family == AF_INET)
		return ((struct sockaddr_in *)&own)->sin_addr.s_addr ==
			((struct sockaddr_in *)&peer)->sin_addr.s_addr;
	return own.ss_family == AF_INET6 && !memcmp(&((struct sockaddr_in6 *)&own)->sin6_addr,
		&((struct sockaddr_in6 *)&peer)->sin6_addr, sizeof(struct in6_addr));
}

/* On its own host a connection needs no more than keeps both ends at work; what the kernel would make of it,
 * megabytes, does not stay in the caches (docs/performance.md). */
static int here_buffers(int fd)
{
	int bytes = HERE_BUFFER;

	return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) ||
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) ? -errno : 0;
}

/* TCP doubles the time between its attempts: behind an outage of 3 s, which is none to us, the next one may
 * come after TIME_DEAD. A kernel that knows neither option goes on as ever. */
static void retry_soon(int fd)
{
	int one = 1, most_ms = 1000;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &most_ms, sizeof most_ms);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &one, sizeof one);
}

int transport_options(int fd, bool nonblocking)
{
	int one = 1, flags = fcntl(fd, F_GETFL), domain = 0;
	socklen_t n = sizeof domain;

	if (flags < 0 || fcntl(fd, F_SETFL, nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK))
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n))
		return -errno;
	if (domain == AF_UNIX)
		return 0;
	/* No TCP_USER_TIMEOUT: it also ends a connection whose live peer takes nothing for a while because
	 * its GPU is behind. The heartbeat tells the two apart. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		return -errno;
	retry_soon(fd);
	return is_here(fd) ? here_buffers(fd) : 0;
}

bool transport_is_near(int fd)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof a;

	if (getpeername(fd, (struct sockaddr *)&a, &n))
		return true;
	if (a.ss_family == AF_INET)
		return ntohl(((struct sockaddr_in *)&a)->sin_addr.s_addr) >> 24 == 127;
	if (a.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&a)->sin6_addr);
	return true;
}
