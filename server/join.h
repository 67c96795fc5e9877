/* SPDX-License-Identifier: Apache-2.0 */
/* Second connections at the listener: which sessions expect one (second.c, protocol.md section 1), and the
 * way of one to its session. A session expects one at a time, so there are no more than sessions.
 *
 * Thread rule: the listener's one thread. */
#pragma once
#include <stdint.h>
#include "wire/frame.h"

/* The session will take a connection from the other end of `fd`, which is taken over; whoever brings *token,
 * made here, is it. 0 or -errno. */
int join_expect(uint64_t session, int fd, struct share_token *token);
/* Passes the connection `fd`, which stays the caller's, to the session that expects it; the token is used up.
 * 0 or -errno: -ENOENT when nobody does. */
int join_arrived(const uint8_t routing[16], int fd);
/* The session is over. */
void join_forget(uint64_t session);
