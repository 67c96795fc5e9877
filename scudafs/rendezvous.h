/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets in the mount itself, through which a session's memory is handed to its program: they are found from
 * any container that sees the mount, whatever namespaces it has. One exists only from a program's question to
 * its answer, because a bound socket keeps the mount busy.
 *
 * Thread rule: rendezvous_init before the loop starts; then any thread. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/* Without it, or with NULL, there are none. `mountpoint` stays the caller's. */
void rendezvous_init(const char *mountpoint);
/* Listens at the socket of session `id`. Returns a descriptor or -errno; waits for the loop, four seconds
 * at most, so the loop's threads must not call it. */
int rendezvous_listen(unsigned id);
/* In a MKNOD: is that thread the one that makes the sockets? */
bool rendezvous_is(pid_t thread);
