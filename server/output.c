/* SPDX-License-Identifier: Apache-2.0 */
/* Device printf: at a synchronisation the driver writes to standard output, which in a session is a pipe.
 * Its text goes to the program before the reply of the call that synchronised. The reader drains it too,
 * so that a driver that prints more than the pipe holds is not stuck.
 *
 * Thread rule: output_drain from any thread; output_lock keeps the text in order. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "server/state.h"

#define PIECE (LIMIT_UPCALL - (unsigned)sizeof(struct frame))

int output_open(struct session *s)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	/* As large as an unprivileged pipe may be; smaller works too. */
	fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20);
	if (fcntl(pipes[0], F_SETFL, O_NONBLOCK) || dup2(pipes[1], STDOUT_FILENO) < 0) {
		int r = -errno;

		close(pipes[0]);
		close(pipes[1]);
		return r;
	}
	close(pipes[1]);
	s->output = pipes[0];
	return 0;
}

void output_drain(struct session *s, bool flush)
{
	/* Not under the lock: this may block until the reader has emptied the pipe. */
	if (flush)
		fflush(stdout);
	pthread_mutex_lock(&s->output_lock);
	for (;;) {
		uint8_t text[PIECE];
		ssize_t n = read(s->output, text, sizeof text);
		struct frame f = {.kind = FRAME_OUTPUT, .bulk_len = n > 0 ? n : 0};
		struct iovec v[2] = {{&f, sizeof f}, {text, f.bulk_len}};

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		send_frame(s, v, 2);
		atomic_fetch_add(&s->outputs, 1);
	}
	pthread_mutex_unlock(&s->output_lock);
}
