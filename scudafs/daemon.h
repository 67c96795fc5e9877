/* SPDX-License-Identifier: Apache-2.0 */
/* The filesystem daemon's only entrance: everything else in scudafs/ is its own business. Called by mount/
 * in the process that shall become the daemon, before that process has any other thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "scudafs/relay.h"

struct mount_options {
	const char *const *servers; /* as stream_connect takes them; GPUs are numbered in this order */
	size_t server_count;        /* 1 to MOUNT_SERVERS */
	const char *mountpoint;
	const char *key_file;       /* NULL: clear connections */
	unsigned session_flags;     /* of the preambles of sessions: PREAMBLE_PACK, ... */
	enum connections connections;
	const char *fuse_options;   /* further -o options for libfuse, comma separated; NULL or "": none */
	bool foreground;            /* keep the terminal, session and working directory of the caller */
	bool no_channel;            /* programs get no shared memory */
	bool allow_other;           /* other users than the mounting one (and root) may use the tree */
	int ready_fd;               /* gets '\n' when the tree is usable, or one line that says why it never
				     * will be; then it is closed. -1: none */
};
#define MOUNT_SERVERS 32

/* Connects to the servers, mounts, and serves until unmounted or told to end by SIGTERM, SIGINT or SIGHUP.
 * It does not fork: mount/ does that when it runs in the background, with ready_fd the write end of a pipe
 * that the parent reads. Unless `foreground`, the daemon becomes the leader of its own session and, once
 * ready, lets go of standard input, output and error (an error output that is a regular file is kept: it
 * is the log). Fails without mounting when no server answers within TIME_CONNECT. Returns the exit status:
 * 0 after an ordinary unmount, 1 on an error, 2 when the options are wrong. */
int daemon_run(const struct mount_options *o);
