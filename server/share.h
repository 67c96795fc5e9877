/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions show each other: the driver's handles of memory, events and pointers into pools (bytes), and
 * of memory and pools (descriptors). The listener keeps them, because it outlives every session and never
 * enters a driver: a program sees a token of 128 random bits, which names something only for sessions of the
 * same key.
 *
 * Bytes hold nothing alive, so they stay until others need the room; what they are worth the driver says. A
 * descriptor keeps memory alive on the GPU: it is kept as long as the mount has the file open that stands for
 * it (wire/ctl.h), which the mount tells over its monitor connection, ahead of the first use (KEEP) and
 * behind the last close (DROP).
 *
 * Thread rule: the functions are the listener's, which has one thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "wire/frame.h"

enum share_op {
	SHARE_PUT = 1,              /* session: bytes, answered by a token; or a descriptor for a kept
	                             * token */
	SHARE_GET,                  /* session: a token, answered by the bytes or the descriptor */
	SHARE_KEEP, SHARE_DROP,     /* monitor: about a token; no answer */
	SHARE_END,                  /* monitor: a connection has ended; no answer */
};

enum share_kind { SHARE_MEMORY = 1, SHARE_EVENT, SHARE_ALLOCATION, SHARE_POOL, SHARE_POINTER,
	SHARE_SECOND,               /* PUT: the session expects its second connection through the descriptor,
	                             * answered by the token that opens it (join.h) */
	SHARE_KINDS };
static inline bool share_is_file(unsigned kind) { return kind == SHARE_ALLOCATION || kind == SHARE_POOL; }

#define SHARE_BYTES 64              /* of a handle of the driver's */

/* One packet, a descriptor beside it where one belongs. */
struct share_message {
	uint32_t op, kind;
	int32_t result;             /* of an answer: 0 or -errno */
	uint32_t connection;        /* the monitor's number of it */
	struct share_token token;
	uint8_t bytes[SHARE_BYTES];
};

/* A packet of a session; `identity` is its key's name. False when the session sent what it may not. */
bool share_serve(int fd, uint64_t session, const char *identity);
/* The session is over: nothing that it put is missed any more, but may be asked for. */
void share_session_ended(uint64_t session);
/* A packet of the monitor. */
void share_monitor(const struct share_message *m);
/* The monitor has died, and with it all its connections. */
void share_monitor_ended(void);

/* Sends a packet, with fd beside it unless that is -1; never waits. 0 or -errno. */
int share_send(int socket, const struct share_message *m, int fd);
/* Receives one; *fd is -1 or the caller's. `flags` as of recv. 0 or -errno, -ECONNRESET at the end. */
int share_receive(int socket, struct share_message *m, int *fd, int flags);
