/* SPDX-License-Identifier: Apache-2.0 */
/* The scudafs mounts of this machine. One thread, but for the one that asks whether a mount answers: what
 * waits for a daemon that is stopped is ended by no signal but SIGKILL, so it must not be the thread that
 * tells about it. */
#include "mount/mounts.h"
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "mount/command.h"
#include "wire/deadline.h"
#include "wire/limits.h"

#define ANSWER_SECONDS (TIMES * 3) /* seconds for a daemon, which answers from what it has */

/* Calls visit for each scudafs mount until it returns true. getmntent undoes the octal escapes of the paths.
 */
static bool each(bool (*visit)(const struct mntent *m, void *arg), void *arg)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	char line[8192];
	struct mntent m;
	bool found = false;

	if (!f)
		return false;
	while (!found && getmntent_r(f, &m, line, sizeof(line)))
		if (!strcmp(m.mnt_type, "fuse.scudafs"))
			found = visit(&m, arg);
	endmntent(f);
	return found;
}

int mounts_check(void)
{
	if (!access("/proc/self/mounts", R_OK))
		return 0;
	return fail(1, "/proc/self/mounts: %m: without /proc no mount is found; a program needs neither, "
		       "but LD_LIBRARY_PATH and SCUDAFS_MOUNT (scudafs(1), CONTAINERS)");
}

static void copy(struct mount_entry *out, const struct mntent *m)
{
	snprintf(out->source, sizeof(out->source), "%s", m->mnt_fsname);
	snprintf(out->dir, sizeof(out->dir), "%s", m->mnt_dir);
	const char *id = hasmntopt(m, "user_id");
	out->owner = id ? (uid_t)strtoul(id + strlen("user_id="), NULL, 10) : 0;
}

struct search {
	size_t left;
	const char *dir;
	bool found;
	struct mount_entry *out;
};

static bool count_down(const struct mntent *m, void *arg)
{
	struct search *s = arg;

	if (s->left--)
		return false;
	copy(s->out, m);
	return true;
}

bool mounts_get(size_t index, struct mount_entry *out)
{
	return each(count_down, &(struct search){.left = index, .out = out});
}

/* The last entry of a folder is the topmost mount on it. */
static bool same_dir(const struct mntent *m, void *arg)
{
	struct search *s = arg;

	if (!strcmp(m->mnt_dir, s->dir)) {
		copy(s->out, m);
		s->found = true;
	}
	return false;
}

bool mounts_at(const char *dir, struct mount_entry *out)
{
	char path[PATH_MAX];
	struct search s = {.dir = path, .out = out};

	if (!mounts_absolute(dir, path))
		return false;
	each(same_dir, &s);
	return s.found;
}

static bool prefix_dir(const struct mntent *m, void *arg)
{
	struct search *s = arg;
	size_t n = strlen(m->mnt_dir);

	if (!strncmp(m->mnt_dir, s->dir, n) && (s->dir[n] == '/' || !s->dir[n])) {
		copy(s->out, m);
		s->found = true;
	}
	return false;
}

bool mounts_around(const char *path, struct mount_entry *out)
{
	struct search s = {.dir = path, .out = out};

	each(prefix_dir, &s);
	return s.found;
}

/* realpath fails on the mount point of a dead daemon, so only its parent is resolved by it then. */
bool mounts_absolute(const char *dir, char *out)
{
	char parent[PATH_MAX], *name;
	size_t n = strlen(dir);

	if (realpath(dir, out))
		return true;
	if (errno != ENOTCONN && errno != ECONNABORTED && errno != EIO)
		return false;
	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n >= sizeof(parent)) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(parent, dir, n);
	parent[n] = '\0';
	name = strrchr(parent, '/');
	if (name)
		*name++ = '\0';
	if (!realpath(!name ? "." : *parent ? parent : "/", out))
		return false;
	n = strlen(out);
	if (!strcmp(out, "/"))
		n = 0;
	if ((size_t)snprintf(out + n, PATH_MAX - n, "/%s", name ? name : parent) >= PATH_MAX - n) {
		errno = ENAMETOOLONG;
		return false;
	}
	return true;
}

struct question {
	char path[PATH_MAX + 16];
	int answer;
};

static void *ask(void *arg)
{
	struct question *q = arg;
	struct stat st;

	q->answer = stat(q->path, &st) ? -errno : 0;
	return NULL;
}

int mounts_state(const char *dir)
{
	struct question *q = malloc(sizeof(*q));
	pthread_t thread;

	if (!q)
		return -ENOMEM;
	snprintf(q->path, sizeof(q->path), "%s/version", dir);
	int r = -pthread_create(&thread, NULL, ask, q);
	if (!r)
		r = -deadline_join(thread, ANSWER_SECONDS * 1000);
	if (r == -ETIMEDOUT) {
		pthread_detach(thread);
		return r; /* the thread still uses q, until the process ends */
	}
	if (!r)
		r = q->answer;
	free(q);
	return r;
}

/* What fusermount3 said last, one line. */
static char said[256];

/* Its first line; the rest is read, too, lest it is ended by writing. */
static void hear(int fd)
{
	char rest[256];
	size_t n = 0;
	ssize_t r;

	while ((r = read(fd, n < sizeof(said) - 1 ? said + n : rest,
			n < sizeof(said) - 1 ? sizeof(said) - 1 - n : sizeof(rest))) > 0 ||
		(r < 0 && errno == EINTR))
		if (r > 0 && n < sizeof(said) - 1)
			n += (size_t)r;
	said[n] = '\0';
	said[strcspn(said, "\n")] = '\0';
}

static int fusermount(const char *dir, bool lazy)
{
	int status, lines[2];

	if (pipe2(lines, O_CLOEXEC))
		return -errno;
	pid_t pid = fork();
	if (!pid) {
		dup2(lines[1], STDERR_FILENO);
		execlp("fusermount3", "fusermount3", lazy ? "-uz" : "-u", "--", dir, (char *)NULL);
		_exit(127);
	}
	int e = pid < 0 ? -errno : 0;
	close(lines[1]);
	if (!e)
		hear(lines[0]);
	close(lines[0]);
	while (!e && waitpid(pid, &status, 0) < 0)
		e = errno == EINTR ? 0 : -errno;
	if (e || (WIFEXITED(status) && !WEXITSTATUS(status)))
		return e;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	/* It has no other words for it, and no locale. */
	return strstr(said, strerror(EBUSY)) ? -EBUSY : -EIO;
}

int mounts_remove(const char *dir, bool lazy)
{
	*said = '\0';
	if (!umount2(dir, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)))
		return 0;
	return errno == EPERM ? fusermount(dir, lazy) : -errno;
}

const char *mounts_remove_text(int r)
{
	if (r == -ENOENT)
		return "fusermount3 is not installed (package fuse3), and only root can unmount without it";
	if (!*said)
		return strerror(-r);
	/* Without that file it refuses ordinary users, whom it has let mount. */
	return strstr(said, "failed to open /etc/mtab") ?
		"fusermount3 needs /etc/mtab, which this system has not; root makes it: "
		"ln -s ../proc/self/mounts /etc/mtab" : said;
}
