/* SPDX-License-Identifier: Apache-2.0 */
/* The listener never loads a driver and never reads more of a connection than its preamble. It forks: one
 * monitor, which loads the driver and says what there is, and one process per session, which gets the
 * socket and makes the handshake. It waits for signals, sockets and the monitor in one poll.
 *
 *     listener ── monitor                 loads the driver, serves tree values
 *              ├─ session 1               one program
 *              └─ session 2
 *
 * Thread rule: one thread. */
#include "server/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/address.h"
#include "server/monitor.h"
#include "server/options.h"
#include "server/pending.h"
#include "server/report.h"
#include "server/session.h"
#include "server/share.h"
#include "wire/fds.h"
#include "wire/keys.h"
#include "wire/log.h"
#include "wire/transport.h"

#define TIME_DRAIN 20000            /* SIGTERM: what running sessions get */
#define TIME_KILL 1500              /* after that, from SIGTERM to SIGKILL of a session */
#define BACKOFF_MOST 30000          /* longest wait before the monitor is started again */

struct child {
	pid_t pid;                      /* 0: a free place */
	uint64_t id;
	struct report *report;
	int share;                      /* what it shares with others goes by this socket; -1: none */
	bool key;                       /* its name is a key's */
	int64_t start;
	char peer[96];
};

static struct {
	const struct options *options;
	struct keys *keys;
	struct listening sockets[SOCKETS_MOST];
	int socket_count;
	int signals;
	struct pending_table pending;
	struct child child[LIMIT_SESSIONS];
	unsigned children;
	uint64_t last_id;
	pid_t monitor;
	int monitor_fd;                 /* -1: none */
	int64_t monitor_again;          /* when to start the next one */
	int backoff;
	bool ready_told, snapshot_there;
	struct monitor_ready snapshot;  /* of the last monitor that found a driver */
	int64_t accept_again;           /* no accept before this moment: we were out of descriptors */
	int64_t drain_end;              /* 0: serving */
	bool drain_told, drain_killed;
	int status;
} l = {.signals = -1, .monitor_fd = -1};

/* ---- children ---- */

/* What every child does first: nothing of the listener stays open but stderr and what it keeps (-1: one
 * only). */
static void child_begin(int keep, int also, const char *name)
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

static void monitor_order(enum monitor_order_kind kind, unsigned value, int fd)
{
	struct monitor_order order = {.kind = kind, .value = value};
	if (l.monitor_fd < 0)
		return;
	int r = fds_send(l.monitor_fd, &order, sizeof order, &fd, fd >= 0, MSG_DONTWAIT);

	if (r)
		log_errno(r, "the monitor does not listen: %m");
}

static void monitor_start(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		log_error("socketpair: %m");
		l.monitor_again = transport_now_ms() + 1000;
		return;
	}
	l.monitor = fork();
	if (l.monitor < 0) {
		log_error("fork: %m");
		close(pair[0]);
		close(pair[1]);
		l.monitor = 0;
		l.monitor_again = transport_now_ms() + 1000;
		return;
	}
	if (!l.monitor) {
		child_begin(pair[1], -1, "scuda-monitor");
		monitor_run(l.options, pair[1]);
	}
	close(pair[1]);
	l.monitor_fd = pair[0];
	monitor_order(MONITOR_SESSIONS, l.children, -1);
}

static void monitor_ended(int status)
{
	l.monitor = 0;
	if (l.monitor_fd >= 0)
		close(l.monitor_fd);
	l.monitor_fd = -1;
	share_monitor_ended();
	if (l.drain_end || l.status)
		return;
	l.backoff = l.backoff ? l.backoff * 2 : 250;
	if (l.backoff > BACKOFF_MOST)
		l.backoff = BACKOFF_MOST;
	l.monitor_again = transport_now_ms() + l.backoff;
	if (WIFSIGNALED(status))
		log_warning("the monitor died of signal %d; another starts in %d ms", WTERMSIG(status),
				l.backoff);
	else
		log_warning("the monitor ended with status %d; another starts in %d ms",
				WEXITSTATUS(status), l.backoff);
}

static void tell_ready(void)
{
	char text[16];
	int n = snprintf(text, sizeof text, "%u\n", address_port(l.sockets, l.socket_count));

	l.ready_told = true;
	for (int i = 0; i < l.socket_count; i++)
		log_info("listening on %s%s", l.sockets[i].text, l.sockets[i].local ? "" :
			l.keys ? l.options->insecure ? ", with and without keys" : ", with keys" :
					", without keys");
	if (l.options->ready_fd < 0)
		return;
	if (write(l.options->ready_fd, text, n) != n)
		log_warning("--ready-fd %d: %m", l.options->ready_fd);
	close(l.options->ready_fd);
}

/* One packet. Its bytes, or 0 when nothing more is to be had. */
static size_t monitor_event(void)
{
	static union { struct monitor_ready ready; struct share_message share; } u;
	struct monitor_ready *const r = &u.ready;
	ssize_t n = recv(l.monitor_fd, &u, sizeof u, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == sizeof u.share) {
		share_monitor(&u.share);
		return (size_t)n;
	}
	if (n < (ssize_t)offsetof(struct monitor_ready, blob) ||
			r->blob_len != n - offsetof(struct monitor_ready, blob)) {
		/* Its end; SIGCHLD follows. */
		close(l.monitor_fd);
		l.monitor_fd = -1;
		return 0;
	}
	r->text[sizeof r->text - 1] = 0;
	r->choice.path[sizeof r->choice.path - 1] = 0;
	if (r->devices <= 0) {
		log_error("no driver: %s", r->text);
		/* At the start this is a mistake that the user must know; later a driver may come back. */
		if (!l.ready_told)
			l.status = 1;
		return 0;
	}
	l.snapshot = *r;
	l.snapshot_there = true;
	l.backoff = 0;
	log_info("driver: %s", r->text);
	if (!l.ready_told)
		tell_ready();
	return (size_t)n;
}

/* What is there now, and no more: mounts may tell without end. */
static void monitor_events(void)
{
	int due = 0;
	size_t n = 1;

	if (ioctl(l.monitor_fd, FIONREAD, &due) || !due)
		monitor_event();        /* its end, or an error, is no byte */
	for (; due > 0 && n && l.monitor_fd >= 0; due -= (int)n)
		n = monitor_event();
}

/* ---- sessions ---- */

static void session_line(struct child *c, int status)
{
	struct report *r = c->report;
	double seconds = (transport_now_ms() - c->start) / 1000.0;
	char reason[sizeof r->reason], died[64] = "";

	r->identity[sizeof r->identity - 1] = 0;
	r->program[sizeof r->program - 1] = 0;
	memcpy(reason, r->reason, sizeof reason);
	reason[sizeof reason - 1] = 0;
	if (WIFSIGNALED(status))
		snprintf(died, sizeof died, "the process died of signal %d", WTERMSIG(status));
	else if (!atomic_load(&r->ended))
		snprintf(died, sizeof died, "the process exited with status %d", WEXITSTATUS(status));
	log_info("session %llu of %s from %s, program %s: %s; %llu records, %llu bytes in, %llu out, %.1f s",
			(unsigned long long)c->id, *r->identity ? r->identity : "nobody", c->peer,
			*r->program ? r->program : "unknown", *died ? died : reason,
			(unsigned long long)atomic_load(&r->records),
					(unsigned long long)atomic_load(&r->bytes_in),
			(unsigned long long)atomic_load(&r->bytes_out), seconds);
}

static void session_ended(struct child *c, int status)
{
	session_line(c, status);
	share_session_ended(c->id);
	if (c->share >= 0)
		close(c->share);
	munmap(c->report, sizeof *c->report);
	*c = (struct child){0};
	l.children--;
	monitor_order(MONITOR_SESSIONS, l.children, -1);
}

static void share_event(struct child *c)
{
	char name[sizeof c->report->identity], identity[sizeof name + 4];

	/* The page is the session's to write. */
	memcpy(name, c->report->identity, sizeof name);
	name[sizeof name - 1] = 0;
	/* A key may have the name of those who have none. */
	snprintf(identity, sizeof identity, "%s%s", c->key ? "key " : "", name);
	if (atomic_load(&c->report->authenticated) && share_serve(c->share, c->id, identity))
		return;
	close(c->share);
	c->share = -1;
}

static unsigned unauthenticated(void)
{
	unsigned n = 0;

	for (int i = 0; i < LIMIT_SESSIONS; i++)
		n += l.child[i].pid && !atomic_load(&l.child[i].report->authenticated);
	return n;
}

static void session_start(struct pending *p)
{
	struct child *c = NULL;
	struct report *report;
	int pair[2] = {-1, -1};

	for (int i = 0; i < LIMIT_SESSIONS && !c; i++)
		if (!l.child[i].pid)
			c = &l.child[i];
	if (!c) {
		pending_refuse(p, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
				"the server has as many sessions as it allows");
		return;
	}
	report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED) {
		pending_refuse(p, CUDA_ERROR_OUT_OF_MEMORY, "the server is out of memory");
		return;
	}
	*c = (struct child){.id = ++l.last_id,
		.report = report,
		.share = -1,
		.key = p->preamble.flags & PREAMBLE_TLS,
		.start = transport_now_ms()};
	memcpy(c->peer, p->peer, sizeof c->peer);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		log_warning("socketpair: %m: session %llu shares nothing", (unsigned long long)c->id);
	c->pid = fork();
	if (c->pid < 0) {
		log_error("fork: %m");
		if (pair[0] >= 0) {
			close(pair[0]);
			close(pair[1]);
		}
		munmap(report, sizeof *report);
		*c = (struct child){0};
		pending_refuse(p, CUDA_ERROR_OUT_OF_MEMORY, "the server cannot start a session");
		return;
	}
	if (!c->pid) {
		struct session_start start = {
			.id = c->id,
			.fd = p->fd,
			.share = pair[1],
			.report = report,
			.driver = l.snapshot.choice,
			.cache = l.options->cache,
			.preamble = p->preamble.flags,
			.fence = l.options->fence,
			.may_change = l.options->may_change,
			.snapshot = l.snapshot.blob,
			.snapshot_len = l.snapshot.blob_len,
		};

		if (p->preamble.flags & PREAMBLE_TLS) {
			start.keys = l.keys;
			l.keys = NULL;
		}
		keys_free(l.keys);
		child_begin(p->fd, pair[1], "scuda-session");
		session_run(&start);
	}
	c->share = pair[0];
	if (pair[1] >= 0)
		close(pair[1]);
	/* Later children have no business with this page. */
	madvise(report, sizeof *report, MADV_DONTFORK);
	l.children++;
	pending_close(p);
	monitor_order(MONITOR_SESSIONS, l.children, -1);
}

static void connection_ready(struct pending_table *t, struct pending *p)
{
	bool tls = p->preamble.flags & PREAMBLE_TLS;

	(void)t;
	if (tls && !l.keys)
		pending_refuse(p, CUDA_ERROR_MPS_CONNECTION_FAILED,
				"the server has no keys, and was sent one");
	else if (!tls && l.keys && !p->local && !l.options->insecure)
		pending_refuse(p, CUDA_ERROR_MPS_CONNECTION_FAILED, "the server wants a key");
	else if (l.drain_end)
		pending_refuse(p, CUDA_ERROR_MPS_SERVER_NOT_READY, "the server is stopping");
	else if (!l.snapshot_there || (p->preamble.flags & PREAMBLE_MONITOR && l.monitor_fd < 0))
		pending_refuse(p, CUDA_ERROR_MPS_SERVER_NOT_READY, "the server's driver is not ready");
	else if (unauthenticated() + pending_count(&l.pending) > LIMIT_PENDING)
		pending_refuse(p, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
				"too many connections wait for authentication");
	else if (p->preamble.flags & PREAMBLE_MONITOR) {
		monitor_order(tls ? MONITOR_CONNECTION_TLS : MONITOR_CONNECTION, 0, p->fd);
		pending_close(p);
	} else {
		session_start(p);
	}
}

static void accept_all(const struct listening *s)
{
	for (int i = 0; i < 16; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
				return;
			log_warning("accept on %s: %m", s->text);
			l.accept_again = transport_now_ms() + 500;
			return;
		}
		pending_add(&l.pending, fd, s->local);
	}
}

/* ---- signals ---- */

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == l.monitor)
			monitor_ended(status);
		for (int i = 0; i < LIMIT_SESSIONS; i++)
			if (l.child[i].pid == pid)
				session_ended(&l.child[i], status);
	}
}

static void reload_keys(void)
{
	struct keys *fresh;
	const char *why;

	if (!l.options->keys_path)
		return;
	if (keys_load(l.options->keys_path, &fresh, &why)) {
		log_error("%s: %s; the old keys stay", l.options->keys_path, why);
		return;
	}
	keys_free(l.keys);
	l.keys = fresh;
	log_info("keys read again from %s", l.options->keys_path);
}

static void close_sockets(void)
{
	for (int i = 0; i < l.socket_count; i++) {
		close(l.sockets[i].fd);
		if (*l.sockets[i].path)
			unlink(l.sockets[i].path);
	}
	l.socket_count = 0;
}

static void drain(void)
{
	if (l.drain_end)
		return;
	l.drain_end = transport_now_ms() + TIME_DRAIN;
	if (l.children)
		log_info("stopping: %u sessions have %d s to end", l.children, TIME_DRAIN / 1000);
	close_sockets();
	for (int i = 0; i < LIMIT_PENDING; i++)
		pending_close(&l.pending.place[i]);
}

static void signal_children(int signal)
{
	for (int i = 0; i < LIMIT_SESSIONS; i++)
		if (l.child[i].pid)
			kill(l.child[i].pid, signal);
}

static void signal_event(void)
{
	struct signalfd_siginfo s;

	while (read(l.signals, &s, sizeof s) == sizeof s) {
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
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	l.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return l.signals < 0 ? -errno : 0;
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

	pending_expire(&l.pending);
	if (!l.monitor && !l.drain_end && !l.status) {
		if (now >= l.monitor_again)
			monitor_start();
		if (!l.monitor)
			lower(timeout_ms, l.monitor_again);
	}
	if (!l.drain_end || !l.children)
		return;
	if (now < l.drain_end) {
		lower(timeout_ms, l.drain_end);
		return;
	}
	if (!l.drain_told)
		signal_children(SIGTERM);
	l.drain_told = true;
	if (now < l.drain_end + TIME_KILL) {
		lower(timeout_ms, l.drain_end + TIME_KILL);
		return;
	}
	if (!l.drain_killed)
		signal_children(SIGKILL);
	l.drain_killed = true;
}

static void turn(void)
{
	static struct pollfd p[2 + SOCKETS_MOST + LIMIT_SESSIONS + LIMIT_PENDING];
	static int index[LIMIT_PENDING];
	static struct child *sharing[LIMIT_SESSIONS];
	int n = 0, sockets, first_share, shares, first_pending, pendings, timeout_ms = -1;

	timers(&timeout_ms);
	p[n++] = (struct pollfd){.fd = l.signals, .events = POLLIN};
	p[n++] = (struct pollfd){.fd = l.monitor_fd, .events = POLLIN};
	/* Before the driver is known the kernel's queue holds those who come. */
	sockets = l.ready_told ? l.socket_count : 0;
	if (l.accept_again > transport_now_ms()) {
		sockets = 0;
		lower(&timeout_ms, l.accept_again);
	}
	for (int i = 0; i < sockets; i++)
		p[n++] = (struct pollfd){.fd = l.sockets[i].fd, .events = POLLIN};
	first_share = n;
	for (int i = 0; i < LIMIT_SESSIONS; i++)
		if (l.child[i].pid && l.child[i].share >= 0) {
			sharing[n - first_share] = &l.child[i];
			p[n++] = (struct pollfd){.fd = l.child[i].share, .events = POLLIN};
		}
	shares = n - first_share;
	first_pending = n;
	pendings = pending_poll(&l.pending, p + n, index, &timeout_ms);
	if (poll(p, n + pendings, timeout_ms) < 0 && errno != EINTR) {
		log_error("poll: %m");
		l.status = 1;
		return;
	}
	/* What the monitor told of a mount's files comes ahead of what sessions put into them. */
	if (p[1].revents && l.monitor_fd >= 0)
		monitor_events();
	for (int i = 0; i < shares; i++)
		if (p[first_share + i].revents)
			share_event(sharing[i]);
	for (int i = 0; i < pendings; i++)
		if (p[first_pending + i].revents)
			pending_event(&l.pending, index[i]);
	for (int i = 0; i < sockets; i++)
		if (p[2 + i].revents)
			accept_all(&l.sockets[i]);
	if (p[0].revents)
		signal_event();
}

static int open_socket(const char *text)
{
	const struct options *o = l.options;
	return address_listen(text, o->socket_mode, o->socket_group, l.sockets, &l.socket_count);
}

static int open_sockets(void)
{
	char path[128];

	for (int i = 0; i < l.options->listen_count; i++)
		if (open_socket(l.options->listen[i]))
			return -1;
	if (l.options->listen_count)
		return 0;
	if (open_socket("127.0.0.1:9710"))
		return -1;
	/* Nobody asked for this one by name: the server is of use without it. */
	address_default_unix(path, sizeof path);
	open_socket(path);
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
	l.options = o;
	l.keys = keys;
	l.pending.ready = connection_ready;
	pending_init(&l.pending);
	raise_descriptors();
	if (open_signals()) {
		log_error("signals: %m");
		return 1;
	}
	if (open_sockets()) {
		close_sockets();
		return 1;
	}
	while (!l.status && !(l.drain_end && !l.children))
		turn();
	close_sockets();
	if (l.monitor)
		kill(l.monitor, SIGKILL);
	if (l.drain_end)
		log_info("stopped");
	keys_free(l.keys);
	return l.status;
}
