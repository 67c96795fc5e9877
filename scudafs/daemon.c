/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's life: key, servers, mount, loop, end. Nothing is mounted before a server has answered, and the
 * mount is taken away on every way out that is ours.
 *
 * Thread rule: runs on the process's first thread, the only one that takes signals. `life` is set before
 * the other threads start; `ready` is called by one of them, once. */
#include "scudafs/daemon.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "scudafs/clock.h"
#include "scudafs/credential.h"
#include "scudafs/loop.h"
#include "scudafs/monitor.h"
#include "scudafs/ops.h"
#include "scudafs/relay.h"
#include "scudafs/rendezvous.h"
#include "scudafs/tree.h"
#include "wire/limits.h"
#include "wire/log.h"

#define END_MS 2000                 /* for the sessions' threads at the end */
#define SETTLE_MS (TIME_CONNECT + 300)

static struct {
	const struct mount_options *options;
	int ready_fd;
	bool told;                  /* the caller knows what came of it */
	char said[256];             /* libfuse's last error */
} life;

/* Ends the daemon's start with a reason, for the caller and in the log. */
static int fail(int code, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (life.ready_fd < 0) {
		log_error("%s", line);
		return code;
	}
	size_t n = strlen(line);
	line[n++] = '\n';
	if (write(life.ready_fd, line, n) != (ssize_t)n)
		log_error("%.*s", (int)n - 1, line);
	close(life.ready_fd);
	life.ready_fd = -1;
	return code;
}

/* Lets go of the caller's terminal; an error output that is a file is the log and stays. */
static void detach(void)
{
	struct stat st;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0) {
		log_warning("/dev/null: %m");
		return;
	}
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (fstat(STDERR_FILENO, &st) || !S_ISREG(st.st_mode))
		dup2(null, STDERR_FILENO);
	if (null > STDERR_FILENO)
		close(null);
}

static void ready(void)
{
	if (life.told)
		return;
	life.told = true;
	log_info("mounted on %s", life.options->mountpoint);
	if (life.ready_fd >= 0) {
		if (write(life.ready_fd, "\n", 1) != 1)
			log_warning("telling that the mount is ready: %m");
		close(life.ready_fd);
		life.ready_fd = -1;
	}
	if (!life.options->foreground)
		detach();
}

static void on_fuse_log(enum fuse_log_level level, const char *fmt, va_list ap)
{
	char line[256];
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	if (level <= FUSE_LOG_ERR)
		snprintf(life.said, sizeof(life.said), "%s", line);
	/* Whoever waits for the mount is told it with the rest. */
	if (level <= FUSE_LOG_ERR && !life.told && life.ready_fd >= 0)
		return;
	bool warning = level == FUSE_LOG_WARNING;
	enum log_level below = warning ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG;
	log_at(level <= FUSE_LOG_ERR ? LOG_LEVEL_ERROR : below, "%s", line);
}

static void raise_limit(int what, const char *name)
{
	struct rlimit l;
	if (getrlimit(what, &l) || l.rlim_cur == l.rlim_max)
		return;
	l.rlim_cur = l.rlim_max;
	if (setrlimit(what, &l))
		log_warning("%s: %m", name);
}

/* A session costs five descriptors, and memory that counts as a large file. Where that may not be, the
 * session goes without: the kernel's signal would end all of them. */
static void raise_limits(void)
{
	raise_limit(RLIMIT_NOFILE, "descriptor limit");
	raise_limit(RLIMIT_FSIZE, "limit of file sizes");
	signal(SIGXFSZ, SIG_IGN);
}

/* The monitors' threads must not take the signals that end the daemon. */
static int start_monitors(struct monitor **monitors, unsigned n)
{
	sigset_t all, old;
	int e = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	for (unsigned i = 0; i < n && !e; i++)
		e = monitor_start(monitors[i]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e;
}

/* Waits for the servers' first answers. Returns how many are ready; *why: what the last one that is not
 * said. */
static unsigned settle(struct monitor **monitors, unsigned n, char *why, size_t cap)
{
	uint64_t deadline = clock_ms() + SETTLE_MS;
	unsigned count = 0;
	for (unsigned i = 0; i < n; i++) {
		monitor_settle(monitors[i], deadline);
		const struct monitor_view *v = monitor_lock(monitors[i]);
		if (v->state == MONITOR_READY)
			count++;
		else
			snprintf(why, cap, "%s: %s", monitor_address(monitors[i]), v->why);
		monitor_unlock(monitors[i]);
	}
	return count;
}

static int add_option(struct fuse_args *args, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(text) || fuse_opt_add_arg(args, "-o") || fuse_opt_add_arg(args, text))
		return -ENOMEM;
	return 0;
}

/* "a:1\,b:2": the commas of the list are escaped, for a comma ends an option. */
static void join_servers(char *out, size_t cap, const struct mount_options *o)
{
	size_t n = 0;
	*out = '\0';
	for (size_t i = 0; i < o->server_count && n < cap; i++)
		n += (size_t)snprintf(out + n, cap - n, "%s%s", i ? "\\," : "", o->servers[i]);
}

static struct fuse_session *create_session(const struct mount_options *o)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se = NULL;
	char source[900];
	join_servers(source, sizeof(source), o);
	if (!fuse_opt_add_arg(&args, "scudafs") && !add_option(&args, "fsname=%s", source) &&
			!add_option(&args, "subtype=scudafs") && !add_option(&args, "default_permissions") &&
			(!o->allow_other || !add_option(&args, "allow_other")) &&
			(!o->fuse_options || !*o->fuse_options || !add_option(&args, "%s", o->fuse_options)))
		se = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	fuse_opt_free_args(&args);
	return se;
}

static int serve(const struct mount_options *o, struct credential *credential)
{
	struct ops_options options = {
		.credential = credential,
		.flags = o->session_flags,
		.connections = o->connections,
		.owner = getuid(),
		.allow_other = o->allow_other,
		.ready = ready,
	};
	ops_init(&options);
	rendezvous_init(o->no_channel ? NULL : o->mountpoint);
	struct fuse_session *se = create_session(o);
	if (!se)
		return fail(2, "%s", *life.said ? life.said : "the mount options are wrong");
	if (fuse_set_signal_handlers(se)) {
		fuse_session_destroy(se);
		return fail(1, "signal handlers: %m");
	}
	if (fuse_session_mount(se, o->mountpoint)) {
		fuse_remove_signal_handlers(se);
		fuse_session_destroy(se);
		return fail(1, "mounting on %s failed: %s", o->mountpoint,
			*life.said ? life.said : "see above");
	}
	int r = loop_prepare(se);
	if (!r)
		r = loop_run(se);
	if (r > 0)
		log_info("ended by signal %d", r);
	else if (r < 0)
		log_error("the mount's loop ended: %s", strerror(-r));
	bool ended = relay_end_all(END_MS);
	fuse_remove_signal_handlers(se);
	fuse_session_unmount(se);
	if (ended)
		fuse_session_destroy(se);
	if (!life.told)
		return fail(1, "the mount of %s ended before it was usable", o->mountpoint);
	return r < 0;
}

static int with_monitors(const struct mount_options *o, struct credential *credential)
{
	static struct monitor *monitors[MOUNT_SERVERS];
	char why[300] = "";
	unsigned n = 0;
	int r = 0;
	while (n < o->server_count && (monitors[n] = monitor_create(o->servers[n], credential)))
		n++;
	if (n < o->server_count || start_monitors(monitors, n))
		r = fail(1, "no memory or threads");
	else if (!settle(monitors, n, why, sizeof(why)))
		r = fail(1, "%s", why);
	else if (tree_init(monitors, n, getuid(), getgid()))
		r = fail(1, "too many servers");
	else
		r = serve(o, credential);
	for (unsigned i = 0; i < n; i++)
		monitor_destroy(monitors[i]);
	return r;
}

int daemon_run(const struct mount_options *o)
{
	struct credential *credential = NULL;
	const char *why = NULL;
	life.options = o;
	life.ready_fd = o->ready_fd;
	log_init("scudafs", o->foreground ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING);
	fuse_set_log_func(on_fuse_log);
	if (!o->server_count || o->server_count > MOUNT_SERVERS)
		return fail(2, "a mount has 1 to %d servers", MOUNT_SERVERS);
	if (*o->mountpoint != '/')
		return fail(2, "the mount point %s is no absolute path", o->mountpoint);
	if (o->key_file) {
		int e = credential_load(o->key_file, &credential, &why);
		if (e)
			return fail(1, "key file %s: %s", o->key_file, why ? why : strerror(-e));
	}
	raise_limits();
	if (!o->foreground && (setsid() < 0 || chdir("/")))
		log_debug("leaving the caller's session: %m");
	/* Threads of sessions that did not end may use the credential still. */
	return with_monitors(o, credential);
}
