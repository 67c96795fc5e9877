/* SPDX-License-Identifier: Apache-2.0 */
/* How a server is reached: from an address in the user's words, a unix path or a host and port, to a socket
 * that is connected, within a deadline.
 *
 * Thread rule: any thread that may block. */
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "wire/transport.h"

#define DEFAULT_PORT "9710"

/* ---- any socket ---- */

static int connect_socket(int fd, const struct sockaddr *a, socklen_t n, int64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int error = 0, r;
	socklen_t len = sizeof error;

	if (!connect(fd, a, n))
		return 0;
	/* A unix socket whose backlog is full says EAGAIN. */
	if (errno != EINPROGRESS && errno != EINTR)
		return errno == EAGAIN ? -ECONNREFUSED : -errno;
	do {
		int64_t left = deadline - transport_now_ms();

		r = poll(&p, 1, left > 0 ? left : 0);
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r ? -errno : -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	return -error;
}

/* ---- unix sockets ---- */

/* Whether nobody but root, we and the owner of what stands in the folder can have put it there: on the whole
 * way from the root on, since who may write a folder may also make, or take away, the one below. A sticky
 * folder keeps what is root's or ours. */
static bool only_theirs(const char *folder, uid_t owner)
{
	char path[PATH_MAX];
	uid_t below = owner;
	struct stat st;

	if (!realpath(folder, path))
		return false;
	for (;;) {
		char *slash = strrchr(path, '/');
		bool kept = !below || below == geteuid();

		if (stat(path, &st) || (st.st_uid && st.st_uid != geteuid() && st.st_uid != owner) ||
			(st.st_mode & 022 && !(st.st_mode & S_ISVTX && kept)))
			return false;
		if (!path[1])
			return true;
		below = st.st_uid;
		slash[slash == path] = 0;
	}
}

/* Whom do we talk to? Root, ourselves, or the owner of a socket in a folder where nobody else can put one:
 * anyone may listen in /tmp. */
static int check_listener(int fd, const char *path, const char **why)
{
	const char *slash = strrchr(path, '/');
	char folder[sizeof ((struct sockaddr_un *)0)->sun_path];
	struct stat there;
	struct ucred peer;
	socklen_t n = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n))
		return -errno;
	if (!peer.uid || peer.uid == geteuid())
		return 0;
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	if (!stat(path, &there) && there.st_uid == peer.uid && only_theirs(folder, peer.uid))
		return 0;
	*why = "the socket is another user's, in a folder where others can put one: it may be anyone's";
	return -EACCES;
}

static int open_unix(const char *path, int64_t deadline, int *fd, const char **why)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int r;

	if (!*path || strlen(path) >= sizeof a.sun_path) {
		*why = "the socket's path is empty or too long";
		return -EINVAL;
	}
	strcpy(a.sun_path, path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return -errno;
	r = connect_socket(*fd, (struct sockaddr *)&a, sizeof a, deadline);
	if (!r)
		r = check_listener(*fd, path, why);
	else if (r == -EACCES)
		*why = "this user may not connect: the mode of the socket, and of its folders, says who may "
		       "(scuda-server --socket-mode, --socket-group)";
	if (r)
		close(*fd);
	return r;
}

/* ---- hosts ---- */

/* Splits "host", "host:port", "[v6]", "[v6]:port" and a bare v6 address. */
static bool split(const char *address, char *host, size_t cap, const char **port)
{
	const char *end, *colon = strrchr(address, ':');

	*port = DEFAULT_PORT;
	if (*address == '[') {
		end = strchr(++address, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		if (end[1])
			*port = end + 2;
	} else if (colon && strchr(address, ':') == colon) {
		end = colon;
		*port = colon + 1;
	} else {
		end = address + strlen(address);
	}
	if (end == address || (size_t)(end - address) >= cap || !**port || strlen(*port) > 5 ||
	    (*port)[strspn(*port, "0123456789")])
		return false;
	memcpy(host, address, end - address);
	host[end - address] = 0;
	return true;
}

static bool is_v6(const char *text)
{
	struct addrinfo hints = {.ai_family = AF_INET6, .ai_flags = AI_NUMERICHOST}, *list = NULL;
	bool is = !getaddrinfo(text, NULL, &hints, &list);

	if (is)
		freeaddrinfo(list);
	return is;
}

struct lookup {
	struct gaicb request;
	struct addrinfo hints;
	char host[256], port[8];
};

/* A name's addresses within the deadline. Numbers need no helper thread of the resolver. */
static int look_up(const char *host, const char *port, int64_t deadline, struct addrinfo **out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	const struct gaicb *list[1];
	struct gaicb *request[1];
	struct lookup *l;
	int r = getaddrinfo(host, port, &hints, out);

	if (!r)
		return 0;
	l = calloc(1, sizeof *l);
	if (!l)
		return -ENOMEM;
	snprintf(l->host, sizeof l->host, "%s", host);
	snprintf(l->port, sizeof l->port, "%s", port);
	l->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG};
	l->request = (struct gaicb){.ar_name = l->host, .ar_service = l->port, .ar_request = &l->hints};
	list[0] = request[0] = &l->request;
	r = getaddrinfo_a(GAI_NOWAIT, request, 1, NULL);
	while (!r && gai_error(&l->request) == EAI_INPROGRESS) {
		int64_t left = deadline - transport_now_ms();
		struct timespec t = {left / 1000, left % 1000 * 1000000};

		if (left <= 0)
			break;
		gai_suspend(list, 1, &t);
	}
	if (!r && gai_error(&l->request) == EAI_INPROGRESS && gai_cancel(&l->request) != EAI_CANCELED)
		return -ETIMEDOUT;      /* the resolver still uses l: it is lost, once per dead name server */
	r = r ? r : gai_error(&l->request);
	if (!r)
		*out = l->request.ar_result;
	free(l);
	return !r ? 0 : r == EAI_CANCELED ? -ETIMEDOUT : -EHOSTUNREACH;
}

static int open_tcp(const char *address, int64_t deadline, int *fd, const char **why)
{
	struct addrinfo *list = NULL;
	const char *port;
	char host[256];
	int r, left = 0;

	if (*address != '[' && strchr(address, ':') != strrchr(address, ':') && !is_v6(address)) {
		*why = "a v6 address with a port needs brackets: [v6]:port";
		return -EINVAL;
	}
	if (!split(address, host, sizeof host, &port)) {
		*why = "the address is not host, host:port, [v6]:port or unix:/path";
		return -EINVAL;
	}
	if (strtoul(port, NULL, 10) - 1 >= UINT16_MAX) {
		*why = "a port is a number from 1 to 65535";
		return -EINVAL;
	}
	r = look_up(host, port, deadline, &list);
	if (r) {
		*why = r == -ETIMEDOUT ? "the name server does not answer" :
			"the host's name is unknown: check it, or give the address";
		return r;
	}
	for (struct addrinfo *a = list; a; a = a->ai_next)
		left++;
	r = -EHOSTUNREACH;
	for (struct addrinfo *a = list; a; a = a->ai_next, left--) {
		int64_t now = transport_now_ms();

		*fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
		if (*fd < 0) {
			r = -errno;
			continue;
		}
		/* Each address gets its share of the time, so that one that drops packets does not hide
		 * the next. */
		r = connect_socket(*fd, a->ai_addr, a->ai_addrlen, now + (deadline - now) / left);
		if (!r)
			break;
		close(*fd);
	}
	freeaddrinfo(list);
	return r;
}

int transport_dial(const char *address, int64_t deadline, int *fd, const char **why)
{
	if (!strncmp(address, "unix:", 5))
		return open_unix(address + 5, deadline, fd, why);
	return open_tcp(address, deadline, fd, why);
}
