/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets. An address counts as open unless every number that it stands for is a loopback one.
 *
 * Thread rule: the listener's only thread, but for address_peer. */
#include "server/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/log.h"

#define BACKLOG 128

static struct addrinfo *resolve(const char *text)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
			*list = NULL;
	char host[256];
	const char *port = "9710", *start = text, *end, *colon = strrchr(text, ':');

	if (*text == '[') {
		start = text + 1;
		end = strchr(start, ']');
		if (!end || (end[1] && end[1] != ':'))
			return NULL;
		if (end[1])
			port = end + 2;
	} else if (colon && strchr(text, ':') == colon) {
		end = colon;
		port = colon + 1;
	} else {
		end = text + strlen(text);
	}
	/* getaddrinfo takes a port's number modulo 65536. */
	if ((size_t)(end - start) >= sizeof host || !*port || strlen(port) > 5 ||
			port[strspn(port, "0123456789")] || atoi(port) > 65535)
		return NULL;
	memcpy(host, start, end - start);
	host[end - start] = 0;
	/* A port alone would be an address, written as one number. */
	if (*host && !host[strspn(host, "0123456789")])
		return NULL;
	/* No host, or a star: all addresses. */
	if (getaddrinfo(*host && strcmp(host, "*") ? host : NULL, port, &hints, &list))
		return NULL;
	return list;
}

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	if (a->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
	return false;
}

bool address_is_open(const char *text)
{
	struct addrinfo *list;
	bool open = false;

	if (!strncmp(text, "unix:", 5))
		return false;
	list = resolve(text);
	for (struct addrinfo *a = list; a; a = a->ai_next)
		open |= !is_loopback(a->ai_addr);
	if (list)
		freeaddrinfo(list);
	return open;
}

/* A socket file that nobody listens on is left over from a server that was killed. */
static void remove_stale(const struct sockaddr_un *a)
{
	struct stat st;
	int fd;

	if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return;
	/* Whoever listens there and takes nobody in must not keep us. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED)
		unlink(a->sun_path);
	close(fd);
}

/* Nobody can connect before listen(), so the bits are right before anyone is let in. */
static int listen_unix(const char *path, mode_t mode, gid_t group, struct listening *l)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	mode_t mask;
	bool bound;
	int r;

	if (!*path)
		return -EINVAL;
	if (strlen(path) >= sizeof a.sun_path)
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	remove_stale(&a);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	mask = umask(0177);
	r = bind(l->fd, (struct sockaddr *)&a, sizeof a) ? -errno : 0;
	umask(mask);
	bound = !r;
	if (!r && group != (gid_t)-1 && chown(path, (uid_t)-1, group))
		r = -errno;
	if (!r && mode != 0600 && chmod(path, mode))
		r = -errno;
	if (!r && listen(l->fd, BACKLOG))
		r = -errno;
	if (r) {
		close(l->fd);
		if (bound)
			unlink(path);
		return r;
	}
	l->local = true;
	strcpy(l->path, path);
	snprintf(l->text, sizeof l->text, "unix:%s", path);
	return 0;
}

static int listen_tcp(const struct addrinfo *a, struct listening *l)
{
	struct sockaddr_storage bound;
	socklen_t n = sizeof bound;
	char host[64], port[8];
	int one = 1;

	l->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
	if (l->fd < 0)
		return -errno;
	/* [::] and 0.0.0.0 stand side by side. */
	if (a->ai_family == AF_INET6)
		setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) || bind(l->fd, a->ai_addr,
			a->ai_addrlen) ||
	    listen(l->fd, BACKLOG) || getsockname(l->fd, (struct sockaddr *)&bound, &n)) {
		int r = -errno;

		close(l->fd);
		return r;
	}
	if (getnameinfo((struct sockaddr *)&bound, n, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV))
		strcpy(host, "?"), strcpy(port, "?");
	snprintf(l->text, sizeof l->text, bound.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return 0;
}

/* Why nobody can listen there, with the way out. */
static const char *meaning(int r, bool local)
{
	switch (-r) {
	case EADDRINUSE:
		return local ? "a server listens there already" :
			"some program listens there already: end it, or take another port";
	case EADDRNOTAVAIL:
		return "this machine has no such address";
	case ENAMETOOLONG:
		return "the path is too long for a socket's";
	case ENOENT:
		return "its folder is not there";
	case EACCES:
		return local ? "this user may not make a file there" : "this user may not take that port";
	default:
		return strerror(-r);
	}
}

int address_listen(const char *text, mode_t mode, gid_t group, struct listening *list, int *count)
{
	struct addrinfo *all;
	int r = 0, before = *count, unknown = 0;

	if (*count == SOCKETS_MOST)
		return log_errno(-EMFILE, "--listen %s: too many addresses", text);
	list[*count] = (struct listening){.fd = -1};
	if (!strncmp(text, "unix:", 5)) {
		r = listen_unix(text + 5, mode, group, &list[*count]);
		if (r)
			return log_errno(r, "--listen %s: %s", text, meaning(r, true));
		(*count)++;
		return 0;
	}
	all = resolve(text);
	if (!all)
		return log_errno(-EINVAL,
			"--listen %s: not ADDRESS:PORT, [v6]:PORT, *:PORT or unix:PATH, or an unknown host",
			text);
	for (struct addrinfo *a = all; a && !r && *count < SOCKETS_MOST; a = a->ai_next) {
		list[*count] = (struct listening){.fd = -1};
		r = listen_tcp(a, &list[*count]);
		if (r == -EAFNOSUPPORT && (a->ai_next || *count > before)) {
			/* A kernel without IPv6, or without IPv4, and a name that stands for both. */
			unknown = r;
			r = 0;
			continue;
		}
		if (r)
			log_errno(r, "--listen %s: %s", text, meaning(r, false));
		else
			(*count)++;
	}
	freeaddrinfo(all);
	if (!r && *count == before)
		return log_errno(unknown, "--listen %s: %s", text, meaning(unknown, false));
	return r;
}

void address_default_unix(char *out, int cap)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	snprintf(out, cap, "unix:%s/scuda-server.sock", dir && *dir == '/' ? dir : "/run");
}

unsigned address_port(const struct listening *list, int count)
{
	for (int i = 0; i < count; i++) {
		struct sockaddr_storage a;
		socklen_t n = sizeof a;

		if (list[i].local || getsockname(list[i].fd, (struct sockaddr *)&a, &n))
			continue;
		if (a.ss_family == AF_INET)
			return ntohs(((struct sockaddr_in *)&a)->sin_port);
		return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
	}
	return 0;
}

void address_peer(int fd, char *out, size_t cap)
{
	struct sockaddr_storage a = {0};
	socklen_t n = sizeof a;
	struct ucred c;
	socklen_t cn = sizeof c;
	char host[64], port[8];
	bool known = !getpeername(fd, (struct sockaddr *)&a, &n);

	if (known && a.ss_family == AF_UNIX && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &cn))
		snprintf(out, cap, "unix uid %u pid %d", c.uid, (int)c.pid);
	else if (known && !getnameinfo((struct sockaddr *)&a, n, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(out, cap, "%s:%s", host, port);
	else
		snprintf(out, cap, "unknown");
}
