/* SPDX-License-Identifier: Apache-2.0 */
/* One file for each result, named by the digest of what names it, in a folder `scudafs` where a driver of
 * NVIDIA's has its own: $CUDA_CACHE_PATH, or ~/.nv/ComputeCache. CUDA_CACHE_DISABLE and CUDA_CACHE_MAXSIZE
 * mean what they mean to that. A file is written under another name first, holds the digest of its contents,
 * and is believed only in a folder into which nobody else can write. Whatever fails here costs the caller a
 * compilation and no more.
 *
 * Thread rule: see compiled.h. Programs that write at the same time do not meet: the last rename wins, with
 * the same contents. */
#include "devshim/compiled.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "wire/digest.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/uncancelled.h"

#define OURS "scudafs"
#define MAXSIZE (1ull << 30)      /* bytes, unless CUDA_CACHE_MAXSIZE says otherwise, as a driver's */
#define MAXSIZE_MOST (4ull << 30) /* the most that it can say */
#define UNFINISHED 600 /* seconds: a file that somebody began to write and never finished */
#define NAME (2 * DIGEST + 1)

struct compiled_key {
	char name[NAME];
};

struct head {
	char magic[8];
	uint8_t digest[DIGEST]; /* of what is behind it */
};
static const char magic[8] = "compile1";

static uint64_t limit(void)
{
	const char *said = secure_getenv("CUDA_CACHE_MAXSIZE");
	char *end;
	uint64_t n;

	if (!said || *said < '0' || *said > '9')
		return MAXSIZE;
	errno = 0;
	n = strtoull(said, &end, 10);
	return *end ? MAXSIZE : errno || n > MAXSIZE_MOST ? MAXSIZE_MOST : n;
}

/* ---- the folder. It is opened for each use: a descriptor that were kept could be closed by the program. */

/* A folder within another, made if need be; the outer one is closed. */
static int enter(int outer, const char *name, bool make)
{
	int fd = -1;

	if (outer == -1)
		return -1;
	if (!make || !mkdirat(outer, name, 0700) || errno == EEXIST)
		fd = openat(outer, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (outer != AT_FDCWD)
		close(outer);
	return fd;
}

static int open_folder(bool make)
{
	const char *path = secure_getenv("CUDA_CACHE_PATH"), *home = secure_getenv("HOME");
	struct stat st;
	int fd;

	if (path && *path)
		fd = enter(AT_FDCWD, path, make);
	else if (home && *home == '/')
		fd = enter(enter(enter(AT_FDCWD, home, false), ".nv", make), "ComputeCache", make);
	else
		return -1;
	fd = enter(fd, OURS, make);
	if (fd == -1)
		return -1;
	if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 022))
		return fd;
	log_warning("nothing compiled is kept: the folder %s is somebody else's, or others may write there",
			OURS);
	close(fd);
	return -1;
}

/* ---- room */

struct file {
	struct timespec time;
	uint64_t size;
	char name[NAME];
};

static int by_age(const void *a, const void *b)
{
	const struct timespec *s = &((const struct file *)a)->time, *t = &((const struct file *)b)->time;

	if (s->tv_sec != t->tv_sec)
		return s->tv_sec < t->tv_sec ? -1 : 1;
	return (s->tv_nsec > t->tv_nsec) - (s->tv_nsec < t->tv_nsec);
}

/* The results that are kept; what nobody finished is removed on the way. NULL: there are none, or no
 * memory. */
static struct file *list_files(int folder, size_t *n)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd == -1 ? NULL : fdopendir(fd);
	struct file *list = NULL;
	struct dirent *e;
	size_t room = 0;

	*n = 0;
	if (!d && fd != -1)
		close(fd);
	while (d && (e = readdir(d))) {
		struct stat st;

		if (fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (!strncmp(e->d_name, "new.", 4) && time(NULL) - st.st_mtime > UNFINISHED)
			unlinkat(folder, e->d_name, 0);
		if (strlen(e->d_name) != NAME - 1)
			continue;
		if (*n == room) {
			struct file *more = realloc(list, (room += 256 + room) * sizeof *list);

			if (!more)
				break;
			list = more;
		}
		list[*n].time = st.st_mtim;
		list[*n].size = (uint64_t)st.st_size;
		strcpy(list[(*n)++].name, e->d_name);
	}
	if (d)
		closedir(d);
	return list;
}

/* Throws the oldest away when there is too much, an eighth more than needed, so that this is rare. */
static void thin(int folder, uint64_t most)
{
	size_t n, gone = 0;
	struct file *list = list_files(folder, &n);
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += list[i].size;
	if (total > most) {
		qsort(list, n, sizeof *list, by_age);
		while (gone < n && total > most / 8 * 7) {
			unlinkat(folder, list[gone].name, 0);
			total -= list[gone++].size;
		}
	}
	free(list);
}

/* Looks for room now and then only: after what has been written here meanwhile could be too much. */
static void account(int folder, size_t n)
{
	static _Atomic uint64_t unseen = UINT64_MAX / 2; /* bytes since it was looked last: never yet */
	uint64_t most = limit();

	if (atomic_fetch_add(&unseen, n) + n < most / 64)
		return;
	atomic_store(&unseen, 0);
	thin(folder, most);
}

/* ---- files */

static bool read_whole(int fd, void *p, size_t n)
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

static bool write_whole(int fd, const void *p, size_t n)
{
	for (size_t put = 0; put < n;) {
		ssize_t k = write(fd, (const uint8_t *)p + put, n - put);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		put += (size_t)k;
	}
	return true;
}

/* A text has no end of its own there, so there is a zero behind it. */
static uint8_t *read_result(int folder, const char *name, uint32_t *n)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	uint8_t found[DIGEST], *p = NULL;
	struct head head;
	struct stat st;
	bool ok;

	if (fd == -1)
		return NULL;
	ok = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > (off_t)sizeof head &&
	     (uint64_t)st.st_size <= LIMIT_IMAGE && read_whole(fd, &head, sizeof head) &&
	     !memcmp(head.magic, magic, sizeof magic);
	if (ok) {
		*n = (uint32_t)((uint64_t)st.st_size - sizeof head);
		p = calloc(1, (size_t)*n + 1);
		ok = p && read_whole(fd, p, *n);
	}
	if (ok) {
		digest(p, *n, found);
		ok = !memcmp(found, head.digest, DIGEST);
	}
	if (ok) {
		futimens(fd, NULL); /* what is used is young */
	} else {
		log_warning("a damaged result of a compilation is thrown away: %s", name);
		unlinkat(folder, name, 0);
		free(p);
		p = NULL;
	}
	close(fd);
	return p;
}

/* A file that is larger than the program's own limit would be a signal in the program. */
static bool fits(uint64_t n)
{
	struct rlimit r;

	return n <= LIMIT_IMAGE && n <= limit() && !getrlimit(RLIMIT_FSIZE, &r) && n <= r.rlim_cur;
}

static bool write_result(int folder, const char *name, const void *p, size_t n)
{
	static atomic_uint number;
	struct head head;
	char fresh[64];
	bool ok;
	int fd;

	memcpy(head.magic, magic, sizeof magic);
	digest(p, n, head.digest);
	snprintf(fresh, sizeof fresh, "new.%d.%u", (int)getpid(), atomic_fetch_add(&number, 1));
	fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return false;
	ok = write_whole(fd, &head, sizeof head) && write_whole(fd, p, n);
	ok = !close(fd) && ok;
	ok = ok && !renameat(folder, fresh, folder, name);
	if (!ok)
		unlinkat(folder, fresh, 0);
	return ok;
}

/* ---- the functions of the table */

CUresult compiled_key(struct compiled_key **out, int step, const void *input, size_t n, const char *options,
		const char *compiler)
{
	const char *off = secure_getenv("CUDA_CACHE_DISABLE");
	struct { uint8_t input[DIGEST], options[DIGEST], compiler[DIGEST]; uint64_t n, step; } all;
	uint8_t d[DIGEST];
	int saved = errno;

	if (!out || !input || !n || !options || !compiler)
		return CUDA_ERROR_INVALID_VALUE;
	if (off && strtol(off, NULL, 10))
		return CUDA_ERROR_NOT_SUPPORTED;
	struct compiled_key *key = malloc(sizeof *key);

	if (key) {
		digest(input, n, all.input);
		digest(options, strlen(options), all.options);
		digest(compiler, strlen(compiler), all.compiler);
		all.n = n;
		all.step = (uint64_t)step;
		digest(&all, sizeof all, d);
		digest_text(d, key->name);
		*out = key;
	}
	errno = saved;
	return key ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult compiled_forget(struct compiled_key *key)
{
	free(key);
	return CUDA_SUCCESS;
}

CUresult compiled_find(struct compiled_key *key, void *unused, void **data, uint32_t *n)
{
	(void)unused;
	if (!key || !data || !n)
		return CUDA_ERROR_INVALID_VALUE;
	uncancelled state = uncancelled_begin();
	int saved = errno, folder = open_folder(false);
	uint8_t *p = NULL;

	if (folder != -1) {
		p = read_result(folder, key->name, n);
		close(folder);
	}
	*data = p;
	errno = saved;
	return p ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult compiled_keep(struct compiled_key *key, void *unused, const void *data, uint32_t n)
{
	(void)unused;
	if (!key || !data || !n)
		return CUDA_ERROR_INVALID_VALUE;
	uncancelled state = uncancelled_begin();
	int saved = errno, folder = fits(sizeof(struct head) + (uint64_t)n) ? open_folder(true) : -1;
	bool ok = folder != -1 && write_result(folder, key->name, data, n);

	if (ok)
		account(folder, sizeof(struct head) + (size_t)n);
	else
		log_info("what was compiled is not kept: %m");
	if (folder != -1)
		close(folder);
	errno = saved;
	return ok ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult compiled_free(void *data)
{
	free(data);
	return CUDA_SUCCESS;
}
