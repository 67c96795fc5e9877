/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRESH "new."            /* how the name of one begins that is being written */
#define UNFINISHED 600          /* seconds after which it will not be finished any more */

/* ---- room ---- */

/* A file of the folder, and what is to be known of it. False: it is none that counts. */
static bool look_at(int folder, const char *name, struct kept_file *f)
{
	struct stat st;

	if (*name == '.' || strlen(name) >= sizeof f->name ||
		fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	if (!strncmp(name, FRESH, strlen(FRESH)) && time(NULL) - st.st_mtime > UNFINISHED) {
		unlinkat(folder, name, 0);
		return false;
	}
	f->time = st.st_mtim;
	f->size = (uint64_t)st.st_size;
	strcpy(f->name, name);
	return true;
}

struct kept_file *kept_list(int folder, size_t most, size_t *n)
{
	struct kept_file *list = malloc(sizeof *list), *more;
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	size_t room = 1;

	*n = 0;
	if (fd >= 0 && !d)
		close(fd);
	while (list && d && *n < most && (e = readdir(d))) {
		*n += look_at(folder, e->d_name, &list[*n]);
		if (*n < room)
			continue;
		more = realloc(list, (room = 2 * room + 64) * sizeof *list);
		if (!more)
			free(list);
		list = more;
	}
	if (d)
		closedir(d);
	return list;
}

static int by_age(const void *a, const void *b)
{
	const struct kept_file *f = a, *g = b;
	const struct timespec *s = &f->time, *t = &g->time;

	if (s->tv_sec != t->tv_sec)
		return s->tv_sec < t->tv_sec ? -1 : 1;
	return (s->tv_nsec > t->tv_nsec) - (s->tv_nsec < t->tv_nsec);
}

size_t kept_thin(int folder, struct kept_file *list, size_t n, uint64_t bytes, size_t files, uint64_t *left)
{
	size_t gone = 0;

	*left = 0;
	for (size_t i = 0; i < n; i++)
		*left += list[i].size;
	qsort(list, n, sizeof *list, by_age);
	while (gone < n && (*left > bytes || n - gone > files)) {
		unlinkat(folder, list[gone].name, 0);
		*left -= list[gone++].size;
	}
	return n - gone;
}

/* ---- one file ---- */

int kept_open(int folder, const char *name, uint64_t *size)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		*size = (uint64_t)st.st_size;
		return fd;
	}
	close(fd);
	return -1;
}

bool kept_read(int fd, void *p, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t k = read(fd, (uint8_t *)p + got, n - got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		got += (size_t)k;
	}
	return true;
}

static bool write_parts(int fd, struct iovec *v, int n)
{
	while (n) {
		ssize_t k = v->iov_len ? writev(fd, v, n) : 0;

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 || (!k && v->iov_len))
			return false;
		for (; n && (size_t)k >= v->iov_len; n--, v++)
			k -= (ssize_t)v->iov_len;
		if (n) {
			v->iov_base = (uint8_t *)v->iov_base + k;
			v->iov_len -= (size_t)k;
		}
	}
	return true;
}

bool kept_write(int folder, const char *name, struct iovec *parts, int n)
{
	struct timespec t;
	char fresh[KEPT_NAME];
	int fd, e;
	bool ok;

	/* Processes of several containers may have the same number. */
	clock_gettime(CLOCK_REALTIME, &t);
	snprintf(fresh, sizeof fresh, FRESH "%d.%lld.%09ld", (int)gettid(), (long long)t.tv_sec, t.tv_nsec);
	fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	ok = write_parts(fd, parts, n);
	e = errno;
	if (close(fd) && ok) {
		ok = false;
		e = errno;
	}
	if (ok && renameat(folder, fresh, folder, name)) {
		ok = false;
		e = errno;
	}
	if (!ok) {
		unlinkat(folder, fresh, 0);
		errno = e;
	}
	return ok;
}
