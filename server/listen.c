/* SPDX-License-Identifier: Apache-2.0 */
/* The listener never loads a driver and never reads more of a connection than its preamble. It forks:
 * one monitor, which loads the driver and says what there is, and one process per session, which gets
 * the socket and makes the handshake (listen_monitor.c, listen_session.c). It waits for signals,
 * sockets, the monitor and what sessions share in one poll.
 *
 *     listener ── monitor                 loads the driver, serves tree values
 *              ├─ session 1               one program
 *              └─ session 2
 *
 * Thread rule: one thread. */
#include "server/listen.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/listen_state.h"
#include "server/options.h"
#include "wire/keys.h"
#include "wire/log.h"
#include "wire/transport.h"

#define TIME_DRAIN 20000            /* SIGTERM: what running sessions get */
#define MONITOR_AGAIN_MS 50         /* until the monitor is told again what it had no room for */
#define TIME_KILL 1500              /* after that, from SIGTERM to SIGKILL of a session */

struct listener listener = {.signals = -1, .monitor_fd = -1};

void child_begin(int keep, int also, const char *name)
{
	int first = also < 0 || keep < also ? keep : also, second = first == keep ? also : keep;

	sigset_t none;

	log_init(name, LOG_LEVEL_INFO);
	/* The terminal's signals are the listener's business, which tells its children. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (first > 3)
		close_range(3, first - 1, 0);
	if (second > first + 1)
		close_range(first + 1, second - 1, 0);
	close_range((second < 0 ? first : second) + 1, ~0u, 0);
}

static void accept_all(const struct listening *s)
{
	for (int i = 0; i < 16; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
				return;
			log_warning("accept on %s: %m", s->text);
			listener.accept_again = transport_now_ms() + 500;
			return;
		}
		pending_add(&listener.pending, fd, s->local);
	}
}

/* ---- signals ---- */

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == listener.monitor)
			monitor_ended(status);
		for (int i = 0; i < SESSIONS_MOST; i++)
			if (listener.session[i].pid == pid)
				session_ended(&listener.session[i], status);
	}
}

static void reload_keys(void)
{
	struct keys *fresh;
	const char *why;

	if (!listener.options->keys_path)
		return;
	if (keys_load(listener.options->keys_path, &fresh, &why)) {
		log_error("%s: %s; the old keys stay", listener.options->keys_path, why);
		return;
	}
	keys_free(listener.keys);
	listener.keys = fresh;
	monitor_order(MONITOR_KEYS, 0, -1);
	log_info("keys read again from %s", listener.options->keys_path);
}

static void close_sockets(void)
{
	for (int i = 0; i < listener.socket_count; i++) {
		close(listener.sockets[i].fd);
		if (*listener.sockets[i].path)
			unlink(listener.sockets[i].path);
	}
	listener.socket_count = 0;
}

static void drain(void)
{
	if (listener.drain_end)
		return;
	listener.drain_end = transport_now_ms() + TIME_DRAIN;
	if (listener.sessions)
		log_info("stopping: %u sessions have %d s to end", listener.sessions, TIME_DRAIN / 1000);
	close_sockets();
	for (int i = 0; i < LIMIT_PENDING; i++)
		pending_close(&listener.pending.place[i]);
}

static void signal_children(int signal)
{
	for (int i = 0; i < SESSIONS_MOST; i++)
		if (listener.session[i].pid)
			kill(listener.session[i].pid, signal);
}

static void signal_event(void)
{
	struct signalfd_siginfo s;

	while (read(listener.signals, &s, sizeof s) == sizeof s) {
		if (s.ssi_signo == SIGCHLD)
			reap();
		else if (s.ssi_signo == SIGHUP)
			reload_keys();
		else
			drain();
	}
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log or a cache that may not grow: the write says so */
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	listener.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return listener.signals < 0 ? -errno : 0;
}

/* ---- the loop ---- */

static void lower(int *timeout_ms, int64_t moment)
{
	int64_t left = moment - transport_now_ms();

	if (left < 0)
		left = 0;
	if (*timeout_ms < 0 || left < *timeout_ms)
		*timeout_ms = left;
}

/* What time alone brings about. */
static void timers(int *timeout_ms)
{
	int64_t now = transport_now_ms();

	pending_expire(&listener.pending);
	if (listener.monitor && !monitor_settle())
		lower(timeout_ms, now + MONITOR_AGAIN_MS);
	if (!listener.monitor && !listener.drain_end && !listener.status) {
		if (now >= listener.monitor_again)
			monitor_start();
		if (!listener.monitor)
			lower(timeout_ms, listener.monitor_again);
	}
	if (!listener.drain_end || !listener.sessions)
		return;
	if (now < listener.drain_end) {
		lower(timeout_ms, listener.drain_end);
		return;
	}
	if (!listener.drain_told)
		signal_children(SIGTERM);
	listener.drain_told = true;
	if (now < listener.drain_end + TIME_KILL) {
		lower(timeout_ms, listener.drain_end + TIME_KILL);
		return;
	}
	if (!listener.drain_killed)
		signal_children(SIGKILL);
	listener.drain_killed = true;
}

static void turn(void)
{
	static struct pollfd p[2 + SOCKETS_MOST + SESSIONS_MOST + LIMIT_PENDING];
	static int index[LIMIT_PENDING];
	static struct session_child *sharing[SESSIONS_MOST];
	int n = 0, sockets, first_share, shares, first_pending, pendings, timeout_ms = -1;

	timers(&timeout_ms);
	p[n++] = (struct pollfd){.fd = listener.signals, .events = POLLIN};
	p[n++] = (struct pollfd){.fd = listener.monitor_fd, .events = POLLIN};
	/* Before the driver is known the kernel's queue holds those who come. */
	sockets = listener.ready_told ? listener.socket_count : 0;
	if (listener.accept_again > transport_now_ms()) {
		sockets = 0;
		lower(&timeout_ms, listener.accept_again);
	}
	for (int i = 0; i < sockets; i++)
		p[n++] = (struct pollfd){.fd = listener.sockets[i].fd, .events = POLLIN};
	first_share = n;
	for (int i = 0; i < SESSIONS_MOST; i++)
		if (listener.session[i].pid && listener.session[i].share >= 0) {
			sharing[n - first_share] = &listener.session[i];
			p[n++] = (struct pollfd){.fd = listener.session[i].share, .events = POLLIN};
		}
	shares = n - first_share;
	first_pending = n;
	pendings = pending_poll(&listener.pending, p + n, index, &timeout_ms);
	if (poll(p, n + pendings, timeout_ms) < 0 && errno != EINTR) {
		log_error("poll: %m");
		listener.status = 1;
		return;
	}
	/* What the monitor told of a mount's files comes ahead of what sessions put into them. */
	if (p[1].revents && listener.monitor_fd >= 0)
		monitor_events();
	for (int i = 0; i < shares; i++)
		if (p[first_share + i].revents)
			share_event(sharing[i]);
	for (int i = 0; i < pendings; i++)
		if (p[first_pending + i].revents)
			pending_event(&listener.pending, index[i]);
	for (int i = 0; i < sockets; i++)
		if (p[2 + i].revents)
			accept_all(&listener.sockets[i]);
	if (p[0].revents)
		signal_event();
}

static int open_socket(const char *text)
{
	const struct options *o = listener.options;
	return address_listen(text, o->socket_mode, o->socket_group, listener.sockets,
			&listener.socket_count);
}

static int open_sockets(void)
{
	char path[128];

	for (int i = 0; i < listener.options->listen_count; i++)
		if (open_socket(listener.options->listen[i]))
			return -1;
	if (listener.options->listen_count)
		return 0;
	if (open_socket("127.0.0.1:9710"))
		return -1;
	/* Nobody asked for this one by name: the server is of use without it. */
	address_default_unix(path, sizeof path);
	if (open_socket(path))
		log_info("going on without %s, which nobody asked for", path);
	return 0;
}

/* Descriptors that sessions share are kept here. */
static void raise_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return;
	r.rlim_cur = r.rlim_max < 4 * LIMIT_SHARED ? r.rlim_max : 4 * LIMIT_SHARED;
	setrlimit(RLIMIT_NOFILE, &r);
}

int listen_run(const struct options *o, struct keys *keys)
{
	listener.options = o;
	listener.keys = keys;
	listener.pending.ready = connection_ready;
	pending_init(&listener.pending);
	raise_descriptors();
	if (open_signals()) {
		log_error("signals: %m");
		return 1;
	}
	if (open_sockets()) {
		close_sockets();
		return 1;
	}
	while (!listener.status && !(listener.drain_end && !listener.sessions))
		turn();
	close_sockets();
	if (listener.monitor)
		kill(listener.monitor, SIGKILL);
	if (listener.drain_end)
		log_info("stopped");
	keys_free(listener.keys);
	return listener.status;
}
