/* SPDX-License-Identifier: Apache-2.0 */
/* Where the server listens: texts of --listen to listening sockets. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#define SOCKETS_MOST 32

struct listening {
	int fd;
	bool local;                 /* a unix socket: its peers are known by their uid */
	char text[128];             /* for the log */
	char path[108];             /* unix: to remove at the end */
};

/* True when the text means an address that other machines may reach. */
bool address_is_open(const char *text);
/* Opens what the text means, `127.0.0.1:9710`, `[::1]:0`, `localhost:9710`, `unix:/path`, and appends to
 * list (of SOCKETS_MOST). Of a unix socket the permission bits decide who may connect; group (gid_t)-1: the
 * server's own. 0, or -errno after a log line. */
int address_listen(const char *text, mode_t mode, gid_t group, struct listening *list, int *count);
/* The path of the default unix socket, "unix:..." */
void address_default_unix(char *out, int cap);
/* Who is at the other end of a connection, for the log. Any thread. */
void address_peer(int fd, char *out, size_t cap);
/* The port of the first TCP socket of the list, 0 if there is none. */
unsigned address_port(const struct listening *list, int count);
