/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver tells the program: messages of its log, and what kernels print. At a synchronisation the
 * driver writes it to standard output, and failed assertions to standard error; in a session both are pipes.
 * The text goes to the program before the reply of the call that synchronised. The reader drains them too, so
 * that a driver that prints more than a pipe holds is not stuck. The log has a descriptor of its own.
 *
 * Thread rule: output_drain from any thread; output_lock keeps the text in order. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "server/state.h"
#include "wire/log.h"

#define PIECE (LIMIT_UPCALL - (unsigned)sizeof(struct frame))

/* Makes `fd` the writing end of a pipe. */
static int redirect(int fd, int *read_end)
{
	int pipes[2], r = 0;

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	/* As large as an unprivileged pipe may be; smaller works too. */
	fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20);
	if (fcntl(pipes[0], F_SETFL, O_NONBLOCK) || dup2(pipes[1], fd) < 0)
		r = -errno;
	close(pipes[1]);
	if (r)
		close(pipes[0]);
	else
		*read_end = pipes[0];
	return r;
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#include <dlfcn.h>
#include <sanitizer/common_interface_defs.h>

/* A sanitizer's findings go where the log goes. That of undefined behaviour is a library with a setting of
 * its own. */
static void report_to(int fd)
{
	void *undefined = dlopen("libubsan.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void (*set)(void *) = undefined ? dlsym(undefined, "__sanitizer_set_report_fd") : NULL;

	__sanitizer_set_report_fd((void *)(uintptr_t)fd);
	if (set)
		set((void *)(uintptr_t)fd);
}
#else
static void report_to(int fd)
{
	(void)fd;
}
#endif

int output_open(struct session *s)
{
	int r = redirect(STDOUT_FILENO, &s->output), log;

	s->errors = -1;
	if (r)
		return r;
	log = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (log < 0)
		return -errno;
	log_to(log);
	report_to(log);
	return redirect(STDERR_FILENO, &s->errors);
}

/* Under the lock: one frame. */
static void send(struct session *s, unsigned flags, const struct iovec *text, int n)
{
	struct frame f = {.kind = FRAME_OUTPUT, .flags = flags};
	struct iovec v[3] = {{&f, sizeof f}};

	for (int i = 0; i < n; i++) {
		v[1 + i] = text[i];
		f.bulk_len += text[i].iov_len;
	}
	send_frame(s, v, 1 + n);
	atomic_fetch_add(&s->outputs, 1);
}

void session_log(struct session *s, unsigned level, const char *text, size_t n)
{
	uint8_t first = level;
	struct iovec v[2] = {{&first, 1}, {(void *)text, n < PIECE - 1 ? n : PIECE - 1}};

	pthread_mutex_lock(&s->output_lock);
	send(s, FRAME_LOG, v, 2);
	pthread_mutex_unlock(&s->output_lock);
}

/* Under the lock. */
static void drain(struct session *s, int fd, unsigned flags)
{
	for (;;) {
		uint8_t text[PIECE];
		ssize_t n = read(fd, text, sizeof text);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		send(s, flags, &(struct iovec){text, n}, 1);
	}
}

void output_drain(struct session *s, bool flush)
{
	/* Not under the lock: this may block until the reader has emptied the pipe. */
	if (flush)
		fflush(stdout);
	pthread_mutex_lock(&s->output_lock);
	drain(s, s->output, 0);
	if (s->errors >= 0)
		drain(s, s->errors, FRAME_STDERR);
	pthread_mutex_unlock(&s->output_lock);
}
