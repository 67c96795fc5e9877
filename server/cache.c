/* SPDX-License-Identifier: Apache-2.0 */
/* A folder per client, and in it a file per image, named by its digest, and one of notes beside it. Reading
 * one makes it young.
 *
 * Thread rule: see cache.h; `kept.lock` guards what is known of the folder. */
#include "server/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "wire/kept.h"
#include "wire/limits.h"
#include "wire/log.h"

#define LIST_AGAIN 64 /* files that a process makes before it lists the folder once more */

static int folder = -1;

/* What is in the folder as far as this process knows, so that it is not listed for each new file: true while
 * nobody else makes or removes one there, which shows in the time of its last change. Of a change within the
 * clock's grain of our own nothing shows; so it is listed now and then all the same. */
static struct {
	pthread_mutex_t lock;
	struct timespec changed;
	uint64_t bytes;
	size_t files;
	unsigned left; /* of our own writes, before it is listed again */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct name {
	char text[2 * DIGEST + 8];
};

static struct name name_of(const uint8_t d[DIGEST], const char *suffix)
{
	char hex[2 * DIGEST + 1];
	struct name n;

	digest_text(d, hex);
	snprintf(n.text, sizeof n.text, "%s%s", hex, suffix);
	return n;
}

/* ---- the folders ---- */

void cache_default(char *out, size_t cap)
{
	const char *given = getenv("CACHE_DIRECTORY");
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	*out = 0;
	if (given && *given == '/')
		snprintf(out, cap, "%.*s", (int)strcspn(given, ":"), given);
	else if (xdg && *xdg == '/')
		snprintf(out, cap, "%s/scuda-server", xdg);
	else if (home && *home == '/')
		snprintf(out, cap, "%s/.cache/scuda-server", home);
}

/* Only what this user alone can read and write is believed, and is the client's own business. */
static int check_private(int fd, const char **why)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*why = "belongs to somebody else, or others may enter it (chmod 700)";
	return st.st_uid != geteuid() || st.st_mode & 077 ? -EPERM : 0;
}

static int open_private(int parent, const char *path, const char **why)
{
	int fd, r;

	*why = "cannot be made or opened";
	if (mkdirat(parent, path, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = check_private(fd, why);
	if (r) {
		close(fd);
		return r;
	}
	return fd;
}

int cache_prepare(const char *dir, const char **why)
{
	char parent[512], *slash;
	int fd;

	*why = "its path is too long";
	if (snprintf(parent, sizeof parent, "%s", dir) >= (int)sizeof parent)
		return -ENAMETOOLONG;
	slash = strrchr(parent, '/');
	if (slash && slash != parent) {
		*slash = 0;
		mkdir(parent, 0700); /* ~/.cache may be missing; what else is missing is told below */
	}
	fd = open_private(AT_FDCWD, dir, why);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

void cache_open(const char *dir, const char *client)
{
	const char *why = "";
	uint8_t d[DIGEST];
	int top;

	if (!dir || !*dir)
		return;
	kept.left = 0;
	top = open_private(AT_FDCWD, dir, &why);
	if (top >= 0) {
		/* A digest, because a client's name may hold anything that a file's may not. */
		digest(client, strlen(client), d);
		folder = open_private(top, name_of(d, "").text, &why);
		close(top);
	}
	if (folder < 0)
		log_warning("the cache folder %s %s: images are not kept", dir, why);
}

bool cache_is_open(void)
{
	return folder >= 0;
}

/* ---- room ---- */

static bool still_known(void)
{
	struct stat st;

	return kept.left && !fstat(folder, &st) && st.st_mtim.tv_sec == kept.changed.tv_sec &&
	       st.st_mtim.tv_nsec == kept.changed.tv_nsec;
}

/* A file was made, or could not be. */
static void wrote(void)
{
	struct stat st;

	pthread_mutex_lock(&kept.lock);
	if (!fstat(folder, &st))
		kept.changed = st.st_mtim;
	pthread_mutex_unlock(&kept.lock);
}

/* Counts what there is, and throws the oldest away when n bytes more are too many. */
static bool list_and_thin(size_t n)
{
	size_t count;
	struct kept_file *list = kept_list(folder, LIMIT_CACHE_FILES + 1, &count);
	uint64_t total = 0;

	if (!list)
		return false;
	for (size_t i = 0; i < count; i++)
		total += list[i].size;
	/* An eighth more than needed, so that this is rare. */
	if (total + n > LIMIT_CACHE || count >= LIMIT_CACHE_FILES)
		count = kept_thin(folder, list, count, LIMIT_CACHE / 8 * 7 - n, LIMIT_CACHE_FILES / 8 * 7,
			&total);
	free(list);
	kept.bytes = total;
	kept.files = count;
	kept.left = LIST_AGAIN;
	return true;
}

/* Makes room for n bytes more. False when there is none to be had; else `wrote` comes next. */
static bool make_room(size_t n)
{
	struct statvfs fs;
	bool ok = true;

	if (n > LIMIT_CACHE / 2 || fstatvfs(folder, &fs) ||
		(uint64_t)fs.f_bavail * fs.f_frsize < n + (uint64_t)fs.f_blocks * fs.f_frsize / 10)
		return false;
	pthread_mutex_lock(&kept.lock);
	if (!still_known() || kept.bytes + n > LIMIT_CACHE || kept.files >= LIMIT_CACHE_FILES)
		ok = list_and_thin(n);
	if (ok) {
		kept.bytes += n;
		kept.files++;
		kept.left--;
	}
	pthread_mutex_unlock(&kept.lock);
	return ok;
}

/* ---- images ---- */

static int open_file(const struct name *name, size_t most, size_t *n)
{
	uint64_t size;
	int fd = folder < 0 ? -1 : kept_open(folder, name->text, &size);

	if (fd < 0)
		return -1;
	if (!size || size > most) {
		close(fd);
		return -1;
	}
	*n = size;
	return fd;
}

void *cache_read(const uint8_t d[DIGEST], size_t n, size_t tail)
{
	struct name name = name_of(d, "");
	uint8_t found[DIGEST];
	size_t there = 0;
	int fd = open_file(&name, LIMIT_IMAGE, &there);
	uint8_t *p = fd < 0 || there != n ? NULL : malloc(n + tail);
	bool ok = p && kept_read(fd, p, n);

	if (ok) {
		digest(p, n, found);
		ok = !memcmp(found, d, DIGEST);
		if (!ok) {
			log_warning("a damaged image is thrown out of the cache: %s", name.text);
			unlinkat(folder, name.text, 0);
		}
	}
	if (ok) {
		memset(p + n, 0, tail);
		futimens(fd, NULL);
	} else {
		free(p);
		p = NULL;
	}
	if (fd >= 0)
		close(fd);
	return p;
}

void cache_write(const uint8_t d[DIGEST], const void *p, size_t n)
{
	struct iovec part = {(void *)p, n};

	if (folder < 0 || !make_room(n))
		return;
	if (!kept_write(folder, name_of(d, "").text, &part, 1))
		log_warning("an image is not kept: %m");
	wrote();
}

/* ---- notes ---- */

uint8_t *cache_notes(const uint8_t d[DIGEST], size_t *n)
{
	struct name name = name_of(d, ".notes");
	int fd = open_file(&name, LIMIT_CACHE_NOTES, n);
	uint8_t *p = fd < 0 ? NULL : malloc(*n);

	if (p && !kept_read(fd, p, *n)) {
		free(p);
		p = NULL;
	}
	if (fd >= 0) {
		futimens(fd, NULL);
		close(fd);
	}
	return p;
}

/* One write, so that those of several sessions do not mix. What two of them note at once is there twice,
 * which does no harm. */
void cache_note(const uint8_t d[DIGEST], const void *p, size_t n)
{
	struct name file = name_of(d, ".notes");
	struct stat st;
	int fd;

	if (folder < 0)
		return;
	fd = openat(folder, file.text, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && make_room(LIMIT_CACHE_NOTES)) {
		fd = openat(folder, file.text, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		wrote();
	}
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && (uint64_t)st.st_size + n <= LIMIT_CACHE_NOTES && write(fd, p, n) < 0)
		log_debug("a note is not kept: %m");
	close(fd);
}

void cache_forget_notes(const uint8_t d[DIGEST])
{
	if (folder >= 0)
		unlinkat(folder, name_of(d, ".notes").text, 0);
}
