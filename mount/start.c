/* SPDX-License-Identifier: Apache-2.0 */
/* From the command to the daemon. The daemon is forked here, before any thread exists, and tells over a pipe
 * when the tree is usable or why it never will be; so `scudafs mount` returns as soon as, and only if, a
 * program can use the mount. One thread. */
#include "mount/start.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "mount/command.h"
#include "mount/mounts.h"
#include "wire/frame.h"
#include "wire/log.h"

int start_check(const char *dir)
{
	struct mount_entry m;
	struct stat st;
	int r;

	if (!*dir)
		return fail(EXIT_USAGE, "the folder's name is empty");
	if (mounts_check())
		return 1;
	/* A mount whose daemon died stays and answers ENOTCONN; a new mount over it would fail. */
	while (mounts_at(dir, &m) && (r = mounts_state(m.dir)) != 0) {
		if (r != -ENOTCONN && r != -ECONNABORTED)
			return fail(1,
				"%s is a mount of %s already, and %s; take it away with: scudafs umount %s",
				dir, m.source,
				r == -ETIMEDOUT ? "its daemon does not answer" :
				r == -EACCES	? "not this user's" :
						  strerror(-r),
				dir);
		r = mounts_remove(m.dir, true);
		if (r)
			return fail(1,
				"%s is the mount point of a daemon that is gone, and taking it away failed: "
				"%s",
				dir, mounts_remove_text(r));
	}
	if (mounts_at(dir, &m))
		return fail(1, "%s is a mount of %s already; take it away with: scudafs umount %s", dir,
			m.source, dir);
	if (stat(dir, &st))
		return errno == ENOENT ? fail(1, "there is no folder %s; make it with: mkdir -p %s", dir, dir)
				       : fail(1, "%s: %m", dir);
	if (!S_ISDIR(st.st_mode))
		return fail(1, "%s is not a folder", dir);
	if (access("/dev/fuse", F_OK))
		return fail(1, "there is no /dev/fuse: load the kernel's fuse module, or give the container "
			       "the device (--device /dev/fuse)");
	if (access("/dev/fuse", R_OK | W_OK))
		return fail(1, "this user may not open /dev/fuse: %m; its mode is 0666 where udev makes it");
	return 0;
}

static struct mount_options daemon_options(const struct options *o, const char *dir, int ready_fd)
{
	return (struct mount_options){
		.servers = o->servers,
		.server_count = o->server_count,
		.mountpoint = dir,
		.key_file = o->key_file,
		.session_flags = o->compress == COMPRESS_ON   ? PREAMBLE_PACK_ALWAYS
				 : o->compress == COMPRESS_OFF ? 0
							       : PREAMBLE_PACK,
		.connections = o->connections,
		.fuse_options = o->fuse,
		.allow_other = o->allow_other,
		.no_channel = o->no_channel,
		.foreground = ready_fd < 0,
		.ready_fd = ready_fd,
	};
}

/* The daemon logs on standard error; with -o log=FILE that is the file. *fd: the file, -1 when there is
 * none. */
static int open_log(const struct options *o, int *fd)
{
	*fd = -1;
	if (!o->log_file)
		return 0;
	*fd = open(o->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	return *fd < 0 ? fail(1, "log %s: %m", o->log_file) : 0;
}

static void redirect_to(int fd)
{
	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	close(fd);
}

int start_foreground(const struct options *o, const char *dir)
{
	struct mount_options m = daemon_options(o, dir, -1);
	int log, r = open_log(o, &log);

	if (r)
		return r;
	redirect_to(log);
	log_init("scudafs", LOG_LEVEL_INFO);
	return daemon_run(&m);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads the daemon's line within START_SECONDS. Returns its length, 0 when the daemon ended without a word,
 * -1 when the time is over. */
static int read_line(int fd, char *line, size_t cap)
{
	int64_t end = now_ms() + START_SECONDS * 1000;
	size_t n = 0;

	while (n < cap - 1 && !memchr(line, '\n', n)) {
		int64_t left = end - now_ms();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (left <= 0)
			return -1;
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		ssize_t r = read(fd, line + n, cap - 1 - n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	line[n] = '\0';
	return (int)n;
}

static int reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
}

int start_background(const struct options *o, const char *dir, bool tied, pid_t *daemon)
{
	char line[1024];
	int ready[2], log, r = open_log(o, &log);
	pid_t parent = getpid();

	if (r)
		return r;
	if (pipe2(ready, O_CLOEXEC))
		return fail(1, "%m");
	fflush(NULL);
	pid_t pid = fork();
	if (pid < 0)
		return fail(1, "%m");
	if (!pid) {
		struct mount_options m = daemon_options(o, dir, ready[1]);
		close(ready[0]);
		if (tied) {
			prctl(PR_SET_PDEATHSIG, SIGTERM);
			if (getppid() != parent)
				_exit(1);
		}
		/* The reason for a failure comes over the pipe as one line; without a log nobody wants its
		 * warnings. */
		if (!o->log_file)
			setenv("SCUDAFS_LOG", "error", 0);
		redirect_to(log);
		_exit(daemon_run(&m));
	}
	close(ready[1]);
	if (log >= 0)
		close(log);
	int n = read_line(ready[0], line, sizeof(line));
	close(ready[0]);
	if (n > 0 && *line == '\n') {
		if (daemon)
			*daemon = pid;
		return 0;
	}
	if (n < 0)
		kill(pid, SIGKILL);
	int code = reap(pid);
	if (n < 0)
		mounts_remove(dir, true);
	line[strcspn(line, "\n")] = '\0';
	if (n > 0)
		return fail(code, "%s", line);
	if (n < 0)
		return fail(1,
			"%s is not usable after %d seconds; scudafs mount -f ... shows what the daemon does",
			dir, START_SECONDS);
	return fail(code, "the daemon ended before %s was usable", dir);
}
