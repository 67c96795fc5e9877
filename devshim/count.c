/* SPDX-License-Identifier: Apache-2.0 */
/* The counters live in a file that the process shares with `scudafs run --stats` (wire/stats.h): so they are
 * there however the program ends, and nothing has to run at its end. A trace is one line a call, written at
 * once. Each library of a process (libcuda, libnvidia-ml) has its own copy of this file's state.
 *
 * Thread rule: as count.h. The file is mapped by whichever thread counts first; a forked child maps one of
 * its own. No locks. */
#include "devshim/count.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "wire/frame.h"
#include "wire/uncancelled.h"

#define TRACE_FD 64             /* the least descriptor of a trace: out of the program's way */

bool count_on;
static const char *folder;      /* of the processes' files; NULL: nothing is counted */
static int trace = -1;
static struct stat trace_file;  /* what it was when it was opened */
static struct stats_header *_Atomic file;
static _Atomic bool hopeless;   /* the file could not be made */
static _Atomic unsigned turns;
/* Per thread: what the call under way has sent, and the block that it counts in, from 1. */
static _Thread_local struct { uint8_t sent, block; } self __attribute__((tls_model("initial-exec")));

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct stats_header *file_make(void)
{
	char path[PATH_MAX];
	size_t size = stats_bytes(count_library->count);
	int n = snprintf(path, sizeof path, "%s/%d%s", folder, (int)getpid(), count_library->suffix);
	bool fits = n > 0 && (size_t)n < sizeof path;
	int fd = fits ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	if (fd < 0)
		return NULL;
	void *p = MAP_FAILED;
	if (!ftruncate(fd, (off_t)size))
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return NULL;
	/* A process that has executed another program goes on in its file. */
	struct stats_header *h = p;
	h->entries = count_library->count;
	h->pid = (uint32_t)getpid();
	const char *command = program_invocation_short_name;
	strncpy(h->command, command ? command : "", sizeof h->command - 1);
	memcpy(h->magic, STATS_MAGIC, sizeof h->magic);
	return h;
}

static struct stats_header *file_get(void)
{
	struct stats_header *h = atomic_load_explicit(&file, memory_order_acquire), *none = NULL;
	if (__builtin_expect(h != NULL, 1) || !folder || atomic_load(&hopeless))
		return h;
	uncancelled state = uncancelled_begin();
	int saved = errno;
	h = file_make();
	if (!h) {
		atomic_store(&hopeless, true);
	} else if (!atomic_compare_exchange_strong(&file, &none, h)) {
		munmap(h, stats_bytes(count_library->count));
		h = none;
	}
	errno = saved;
	return h;
}

static void in_child(void)
{
	struct stats_header *h = atomic_exchange(&file, NULL);
	if (h)
		munmap(h, stats_bytes(count_library->count));
}

__attribute__((constructor)) static void count_start(void)
{
	folder = secure_getenv("SCUDAFS_STATS");
	folder = folder && *folder ? strdup(folder) : NULL;
	const char *path = secure_getenv("SCUDAFS_TRACE");
	if (path && *path) {
		int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		trace = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, TRACE_FD);
		if (fd >= 0 && trace < 0)
			trace = fd;
		else if (fd >= 0)
			close(fd);
		if (trace >= 0 && fstat(trace, &trace_file)) {
			close(trace);
			trace = -1;
		}
	}
	count_on = folder || trace >= 0;
	if (count_on)
		pthread_atfork(NULL, NULL, in_child);
}

/* time (monotonic, seconds), thread, class, function, result, duration (microseconds) */
static void trace_line(const struct count *c, enum stats_class class, int r)
{
	static const char *const classes[] = {"local", "cached", "post", "wait"};
	char line[256];
	uint64_t took = now() - c->start;
	const char *code = count_result_name(r);
	struct stat st;
	int saved = errno;
	/* A program that closes all descriptors may have a file of its own by that number now. */
	if (fstat(trace, &st) || st.st_dev != trace_file.st_dev || st.st_ino != trace_file.st_ino) {
		errno = saved;
		return;
	}
	int n = snprintf(line, sizeof line, "%llu.%09llu %ld %s %s %s %llu.%03llu\n",
		(unsigned long long)(c->start / 1000000000u), (unsigned long long)(c->start % 1000000000u),
		syscall(SYS_gettid), classes[class], count_library->names[c->entry].name, code ? code : "?",
		(unsigned long long)(took / 1000), (unsigned long long)(took % 1000));
	if (n > 0)
		syscall(SYS_write, trace, line, (size_t)n < sizeof line ? (size_t)n : sizeof line);
	errno = saved;
}

struct count count_begin(unsigned entry)
{
	struct count c = {entry, self.sent, trace >= 0 ? now() : 0};
	self.sent = 0;
	return c;
}

int count_end(struct count c, int r)
{
	enum stats_class class = self.sent ? self.sent : count_library->names[c.entry].quiet;
	self.sent = c.outer;
	struct stats_header *h = file_get();
	if (h) {
		if (!self.block) {
			unsigned turn = atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
			self.block = (uint8_t)(turn % STATS_BLOCKS + 1);
		}
		_Atomic uint64_t *counters = (void *)((char *)h + STATS_HEADER);
		size_t block = (self.block - 1u) * (size_t)count_library->count;
		size_t at = (block + c.entry) * STATS_CLASSES + class;
		atomic_fetch_add_explicit(&counters[at], 1, memory_order_relaxed);
	}
	if (trace >= 0)
		trace_line(&c, class, r);
	return r;
}

void count_record_on(unsigned kind, unsigned flags, uint64_t bytes)
{
	bool waits = kind == FRAME_HELLO || (kind == FRAME_WAIT && !(flags & FRAME_PACE));
	if (waits)
		self.sent = STATS_WAIT;
	else if (kind == FRAME_POST && self.sent < STATS_POST)
		self.sent = STATS_POST;
	struct stats_header *h = file_get();
	if (!h)
		return;
	atomic_fetch_add_explicit(&h->bytes_out, bytes, memory_order_relaxed);
	if (waits)
		atomic_fetch_add_explicit(&h->round_trips, 1, memory_order_relaxed);
}

void count_received_on(uint64_t bytes)
{
	struct stats_header *h = file_get();
	if (h)
		atomic_fetch_add_explicit(&h->bytes_in, bytes, memory_order_relaxed);
}
