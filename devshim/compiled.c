/* SPDX-License-Identifier: Apache-2.0 */
/* One file for each result, named by the digest of what names it, in a folder `scudafs` where a driver of
 * NVIDIA's has its own: $CUDA_CACHE_PATH, or ~/.nv/ComputeCache. CUDA_CACHE_DISABLE and CUDA_CACHE_MAXSIZE
 * mean what they mean to that. A file holds the digest of its contents, and is believed only in a folder into
 * which nobody else can write. Whatever fails here costs the caller a compilation and no more.
 *
 * Thread rule: see compiled.h. Programs that write at the same time do not meet: the last rename wins, with
 * the same contents. */
#include "devshim/compiled.h"
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
#include "wire/kept.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/uncancelled.h"

#define OURS "scudafs"
#define MAXSIZE (1ull << 30)      /* bytes, unless CUDA_CACHE_MAXSIZE says otherwise, as a driver's */
#define MAXSIZE_MOST (4ull << 30) /* the most that it can say */
#define FILES 65536
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

/* Looks for room now and then only: after what has been written here meanwhile could be too much. */
static void account(int folder, size_t n)
{
	static _Atomic uint64_t unseen = UINT64_MAX / 2; /* bytes since it was looked last: never yet */
	uint64_t most = limit(), total = 0;
	size_t files;

	if (atomic_fetch_add(&unseen, n) + n < most / 64)
		return;
	atomic_store(&unseen, 0);
	struct kept_file *list = kept_list(folder, FILES, &files);

	for (size_t i = 0; list && i < files; i++)
		total += list[i].size;
	/* An eighth more than needed, so that this is rare. */
	if (list && (total > most || files >= FILES))
		kept_thin(folder, list, files, most / 8 * 7, FILES / 8 * 7, &total);
	free(list);
}

/* ---- files */

/* The file's head, when it is one of ours, and the size of what follows. */
static bool read_head(int fd, uint64_t size, struct head *head, uint32_t *n)
{
	*n = (uint32_t)(size - sizeof *head);
	return size > sizeof *head && size <= LIMIT_IMAGE && kept_read(fd, head, sizeof *head) &&
		!memcmp(head->magic, magic, sizeof magic);
}

static bool read_body(int fd, const struct head *head, uint8_t *p, uint32_t n)
{
	uint8_t found[DIGEST];

	if (!kept_read(fd, p, n))
		return false;
	digest(p, n, found);
	return !memcmp(found, head->digest, DIGEST);
}

static uint8_t *read_result(int folder, const char *name, uint32_t *n)
{
	struct head head;
	uint64_t size;
	int fd = kept_open(folder, name, &size);

	if (fd == -1)
		return NULL;
	bool good = read_head(fd, size, &head, n);
	/* A text has no end of its own there, so there is a zero behind it. */
	uint8_t *p = good ? calloc(1, (size_t)*n + 1) : NULL;

	if (p && !(good = read_body(fd, &head, p, *n))) {
		free(p);
		p = NULL;
	}
	if (good) {
		futimens(fd, NULL); /* what is used is young */
	} else {
		log_warning("a damaged result of a compilation is thrown away: %s", name);
		unlinkat(folder, name, 0);
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
	struct head head;
	struct iovec parts[] = {{&head, sizeof head}, {(void *)p, n}};

	memcpy(head.magic, magic, sizeof magic);
	digest(p, n, head.digest);
	return kept_write(folder, name, parts, 2);
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
