/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor, as the listener sees it: started, told of sessions and connections, started again when it
 * dies.
 *
 * Thread rule: the listener's one thread. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/listen_state.h"
#include "server/options.h"
#include "server/share.h"
#include "wire/fds.h"
#include "wire/log.h"
#include "wire/transport.h"

#define BACKOFF_MOST 30000          /* longest wait before the monitor is started again */

void monitor_order(enum monitor_order_kind kind, unsigned value, int fd)
{
	struct monitor_order order = {.kind = kind, .value = value};
	if (listener.monitor_fd < 0)
		return;
	int r = fds_send(listener.monitor_fd, &order, sizeof order, &fd, fd >= 0, MSG_DONTWAIT);

	/* A connection ends instead, and its mount tries again. */
	listener.owed[kind] = r && fd < 0;
	if (r && fd >= 0)
		log_errno(r, "the monitor does not listen: %m");
}

bool monitor_settle(void)
{
	if (listener.owed[MONITOR_SESSIONS])
		monitor_order(MONITOR_SESSIONS, listener.sessions, -1);
	if (listener.owed[MONITOR_KEYS])
		monitor_order(MONITOR_KEYS, 0, -1);
	return !listener.owed[MONITOR_SESSIONS] && !listener.owed[MONITOR_KEYS];
}

void monitor_start(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		log_error("socketpair: %m");
		listener.monitor_again = transport_now_ms() + 1000;
		return;
	}
	listener.monitor = fork();
	if (listener.monitor < 0) {
		log_error("fork: %m");
		close(pair[0]);
		close(pair[1]);
		listener.monitor = 0;
		listener.monitor_again = transport_now_ms() + 1000;
		return;
	}
	if (!listener.monitor) {
		child_begin(pair[1], -1, "scuda-monitor");
		monitor_run(listener.options, listener.keys, pair[1]);
	}
	close(pair[1]);
	listener.monitor_fd = pair[0];
	monitor_order(MONITOR_SESSIONS, listener.sessions, -1);
}

void monitor_ended(int status)
{
	listener.monitor = 0;
	/* What it said before comes first: why there is no driver, above all. */
	if (listener.monitor_fd >= 0)
		monitor_events();
	if (listener.monitor_fd >= 0)
		close(listener.monitor_fd);
	listener.monitor_fd = -1;
	share_monitor_ended();
	if (listener.drain_end || listener.status)
		return;
	listener.backoff = listener.backoff ? listener.backoff * 2 : 250;
	if (listener.backoff > BACKOFF_MOST)
		listener.backoff = BACKOFF_MOST;
	listener.monitor_again = transport_now_ms() + listener.backoff;
	if (WIFSIGNALED(status))
		log_warning("the monitor died of signal %d; another starts in %d ms", WTERMSIG(status),
				listener.backoff);
	else
		log_warning("the monitor ended with status %d; another starts in %d ms",
				WEXITSTATUS(status), listener.backoff);
}

static void tell_ready(void)
{
	char text[16];
	int n = snprintf(text, sizeof text, "%u\n", address_port(listener.sockets, listener.socket_count));

	listener.ready_told = true;
	const char *keys = !listener.keys ? ", without keys" :
			listener.options->insecure ? ", with and without keys" : ", with keys";

	for (int i = 0; i < listener.socket_count; i++)
		log_info("listening on %s%s", listener.sockets[i].text,
			listener.sockets[i].local ? "" : keys);
	if (listener.options->ready_fd < 0)
		return;
	if (write(listener.options->ready_fd, text, n) != n)
		log_warning("--ready-fd %d: %m", listener.options->ready_fd);
	close(listener.options->ready_fd);
}

/* One packet. Its bytes, or 0 when nothing more is to be had. */
static size_t monitor_event(void)
{
	static union { struct monitor_ready ready; struct share_message share; } u;
	struct monitor_ready *const r = &u.ready;
	ssize_t n;

	/* One that ended with orders unread is a reset first, once; what it had said comes behind that. */
	do
		n = recv(listener.monitor_fd, &u, sizeof u, MSG_DONTWAIT);
	while (n < 0 && (errno == ECONNRESET || errno == EINTR));
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n == sizeof u.share) {
		share_monitor(&u.share);
		return (size_t)n;
	}
	if (n < (ssize_t)offsetof(struct monitor_ready, blob) ||
			r->blob_len != n - offsetof(struct monitor_ready, blob)) {
		/* Its end; SIGCHLD follows. */
		close(listener.monitor_fd);
		listener.monitor_fd = -1;
		return 0;
	}
	r->text[sizeof r->text - 1] = 0;
	r->choice.path[sizeof r->choice.path - 1] = 0;
	if (r->devices <= 0) {
		log_error("no driver: %s", r->text);
		/* At the start this is a mistake that the user must know; later a driver may come back. */
		if (!listener.ready_told)
			listener.status = 1;
		return 0;
	}
	listener.snapshot = *r;
	listener.snapshot_there = true;
	listener.backoff = 0;
	log_info("driver: %s", r->text);
	if (!listener.ready_told)
		tell_ready();
	return (size_t)n;
}

/* What is there now, and no more: mounts may tell without end. */
void monitor_events(void)
{
	int due = 0;
	size_t n = 1;

	if (ioctl(listener.monitor_fd, FIONREAD, &due) || !due)
		monitor_event();        /* its end, or an error, is no byte */
	for (; due > 0 && n && listener.monitor_fd >= 0; due -= (int)n)
		n = monitor_event();
}
