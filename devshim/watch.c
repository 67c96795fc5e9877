/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's notes of written pages, kept as a bit a page. Its interfaces are younger than the headers of
 * some systems that we are built on, so what is used of them stands here; Linux:
 * Documentation/admin-guide/mm/userfaultfd.rst and pagemap.rst.
 *
 * Thread rule: as watch.h; the descriptors are opened once and stay. */
#include "devshim/watch.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "wire/log.h"

#define WATCH_PAGE ((size_t)4096)
#define SUSPECT_MS 1000         /* as watch.h says of pinned memory */
#define RUNS 64                 /* asked for in one system call */

/* userfaultfd */
#define USER_MODE_ONLY 1        /* all that a process without privileges may ask for */
#define UNPOPULATED ((uint64_t)1 << 13)
#define ASYNC ((uint64_t)1 << 15)

/* PAGEMAP_SCAN */
struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, mask, anyof_mask, return_mask;
};
struct run {
	uint64_t from, to, categories;
};
#define SCAN _IOWR('f', 16, struct scan)
#define SCAN_PROTECT 1          /* what is told counts as not written from now on */
#define SCAN_CHECK 2            /* fails where nothing is noted */
#define PAGE_WRITTEN ((uint64_t)1 << 1)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int faults = -1, pagemap = -1;

static void open_kernel(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UNPOPULATED | ASYNC};
	const char *wanted = getenv("SCUDAFS_WATCH");

	if (wanted && !strcmp(wanted, "off"))
		return;
	if (wanted && *wanted)
		log_warning("SCUDAFS_WATCH=%s: the one word that it knows is off", wanted);
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
	if (faults >= 0 && !ioctl(faults, UFFDIO_API, &api))
		pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		log_debug("the kernel does not tell which pages were written (%m): memory used in place is "
			  "compared as a whole");
}

static bool have_kernel(uint64_t from, uint64_t to)
{
	struct uffdio_register r = {.range = {from, to - from}, .mode = UFFDIO_REGISTER_MODE_WP};

	pthread_once(&once, open_kernel);
	return pagemap >= 0 && !ioctl(faults, UFFDIO_REGISTER, &r);
}

void watch_none(struct watch *w, uint64_t base, size_t size)
{
	*w = (struct watch){.base = base, .size = size, .all = true};
}

void watch_open(struct watch *w, uint64_t base, size_t size, bool pinned)
{
	size_t pages = base % WATCH_PAGE ? 0 : size / WATCH_PAGE;
	size_t words = (pages + 63) / 64;
	int saved = errno;

	watch_none(w, base, size);
	w->pinned = pinned;
	if (pages && have_kernel(base, base + pages * WATCH_PAGE))
		w->now = calloc(2 * words, sizeof *w->now);
	if (w->now) {
		w->before = w->now + words;
		w->pages = pages;
	}
	errno = saved;
}

void watch_close(struct watch *w)
{
	free(w->now < w->before ? w->now : w->before);
	w->now = w->before = NULL;
	w->pages = 0;
}

static void note(struct watch *w, uint64_t from, uint64_t to)
{
	for (size_t i = (from - w->base) / WATCH_PAGE, end = (to - w->base) / WATCH_PAGE; i < end; i++)
		w->now[i / 64] |= (uint64_t)1 << i % 64;
}

/* Takes over what the kernel has noted. Without an answer all counts, this time. */
static void ask(struct watch *w)
{
	struct run run[RUNS];
	uint64_t at = w->base, end = w->base + w->pages * WATCH_PAGE;

	while (at < end) {
		struct scan s = {.size = sizeof s,
			.flags = SCAN_PROTECT | SCAN_CHECK,
			.start = at,
			.end = end,
			.vec = (uintptr_t)run,
			.vec_len = RUNS,
			.mask = PAGE_WRITTEN,
			.return_mask = PAGE_WRITTEN};
		long n = ioctl(pagemap, SCAN, &s);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || s.walk_end <= at) {
			w->all = true;
			return;
		}
		for (long i = 0; i < n; i++)
			note(w, run[i].from, run[i].to);
		at = s.walk_end;
	}
}

/* Forgets what is old enough. */
static void turn(struct watch *w)
{
	size_t bytes = (w->pages + 63) / 64 * sizeof *w->now;
	struct timespec t;

	if (!w->pinned) {
		memset(w->now, 0, bytes);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	int64_t ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;

	if (ms - w->turned < SUSPECT_MS)
		return;
	uint64_t *was = w->before;

	w->before = w->now;
	w->now = was;
	w->turned = ms;
	memset(w->now, 0, bytes);
}

void watch_begin(struct watch *w)
{
	int saved = errno;

	w->at = 0;
	if (w->pages) {
		turn(w);
		ask(w);
	}
	errno = saved;
}

static bool told(const struct watch *w, size_t page)
{
	return (w->now[page / 64] | w->before[page / 64]) >> page % 64 & 1;
}

bool watch_next(struct watch *w, size_t *from, size_t *to)
{
	size_t page = w->at / WATCH_PAGE;

	if (w->at >= w->size)
		return false;
	if (w->all || !w->pages) {
		w->all = false;
		*from = w->at;
		*to = w->at = w->size;
		return true;
	}
	while (page < w->pages && !told(w, page))
		page += page % 64 || w->now[page / 64] | w->before[page / 64] ? 1 : 64;
	if (page > w->pages)
		page = w->pages;
	*from = page * WATCH_PAGE;
	while (page < w->pages && told(w, page))
		page++;
	/* What lies in the last page beside others' bytes is not watched. */
	*to = w->at = page < w->pages ? page * WATCH_PAGE : w->size;
	return *from < *to;
}

void watch_again(struct watch *w)
{
	w->all = true;
}
