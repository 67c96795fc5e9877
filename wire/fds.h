/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: through a unix socket, and the standard ones. Thread rule: any thread. */
#pragma once
#include <stddef.h>

#define FDS_MOST 4

/* Sends n bytes, not 0, and `count` descriptors with them. 0 or -errno; flags as of sendmsg. */
int fds_send(int socket, const void *p, size_t n, const int *fds, unsigned count, int flags);
/* Receives n bytes and the `count` descriptors that must come with them, close-on-exec. 0, or -errno: then
 * the caller gets none; -EPROTO: something else came. */
int fds_receive(int socket, void *p, size_t n, int *fds, unsigned count, int flags);
/* The same for a peer that may send fewer, down to none: *came says how many are in fds. -ECONNRESET:
 * the peer has closed the socket. */
int fds_receive_most(int socket, void *p, size_t n, int *fds, unsigned most, unsigned *came, int flags);

/* For a program of ours, first of all: standard descriptors that were closed when it started are taken, lest
 * a socket gets such a number and the log goes there. Writing to them fails still, and what the program
 * executes finds them closed. */
void fds_standard(void);
