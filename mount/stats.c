/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of the processes that `scudafs run --stats` ran, each process's in a file of its own, added
 * up: as JSON, or as a table for people. One thread. */
#include "mount/stats.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "mount/command.h"
#include "wire/stats.h"

static const char *const classes[STATS_CLASSES] = {"local", "cached", "post", "wait"};

/* Of one process, or of several together. */
struct sum {
	uint32_t pid;
	char command[sizeof(((struct stats_header *)0)->command)];
	uint64_t class[STATS_CLASSES], round_trips, bytes_out, bytes_in;
	uint64_t *calls;        /* [functions()][STATS_CLASSES]: libcuda's functions, then libnvidia-ml's */
};

static unsigned functions(void)
{
	return stats_cuda.count + stats_nvml.count;
}

static const char *name_of(unsigned i)
{
	return i < stats_cuda.count ? stats_cuda.names[i].name : stats_nvml.names[i - stats_cuda.count].name;
}

static bool sum_init(struct sum *s)
{
	*s = (struct sum){.calls = calloc(functions() * STATS_CLASSES, sizeof(uint64_t))};
	return s->calls;
}

static void sum_add(struct sum *to, const struct sum *s)
{
	for (unsigned i = 0; i < functions() * STATS_CLASSES; i++)
		to->calls[i] += s->calls[i];
	for (unsigned c = 0; c < STATS_CLASSES; c++)
		to->class[c] += s->class[c];
	to->round_trips += s->round_trips;
	to->bytes_out += s->bytes_out;
	to->bytes_in += s->bytes_in;
}

int stats_prepare(char *out)
{
	return private_folder("scudafs-stats.", out);
}

/* Adds what a library of the process has counted. 0, -ENOENT, or -EBADMSG: the file is not one that our
 * library has filled. */
static int read_file(int folder, const char *name, const struct stats_library *l, struct sum *s)
{
	size_t size = stats_bytes(l->count);
	struct stat st;
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : -EBADMSG;
	bool fits = !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
	const struct stats_header *h = fits ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	close(fd);
	if (h == MAP_FAILED)
		return -EBADMSG;
	bool good = !memcmp(h->magic, STATS_MAGIC, sizeof(h->magic)) && h->entries == l->count;
	if (good) {
		uint64_t *calls = s->calls + (l == &stats_nvml ? stats_cuda.count * STATS_CLASSES : 0);
		s->pid = h->pid;
		memcpy(s->command, h->command, sizeof(s->command) - 1);
		s->round_trips += atomic_load(&h->round_trips);
		s->bytes_out += atomic_load(&h->bytes_out);
		s->bytes_in += atomic_load(&h->bytes_in);
		const _Atomic uint64_t *counters = (const void *)((const char *)h + STATS_HEADER);
		for (unsigned i = 0; i < STATS_BLOCKS * l->count * STATS_CLASSES; i++) {
			uint64_t n = atomic_load_explicit(&counters[i], memory_order_relaxed);
			calls[i % (l->count * STATS_CLASSES)] += n;
			s->class[i % STATS_CLASSES] += n;
		}
	}
	munmap((void *)h, size);
	return good ? 0 : -EBADMSG;
}

/* Both files of the process that one of them, name, belongs to: read into s, and removed. -ENOENT: the other
 * one's turn has done it. */
static int take_process(int folder, const char *name, struct sum *s)
{
	static const struct stats_library *const libraries[] = {&stats_cuda, &stats_nvml};
	int found = -ENOENT;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		char path[NAME_MAX + 16];
		snprintf(path, sizeof(path), "%.*s%s", (int)strcspn(name, "."), name, libraries[i]->suffix);
		int r = read_file(folder, path, libraries[i], s);
		if (r == -EBADMSG)
			fail(0, "%s was not written by the library of this scudafs", path);
		if (!r)
			found = 0;
		unlinkat(folder, path, 0);
	}
	return found;
}

static uint64_t calls_of(const struct sum *s, unsigned i)
{
	uint64_t n = 0;

	for (unsigned c = 0; c < STATS_CLASSES; c++)
		n += s->calls[i * STATS_CLASSES + c];
	return n;
}

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *json_of(const struct sum *s)
{
	json_t *o = json_object(), *calls = json_object(), *waits = json_object();

	for (unsigned c = 0; c < STATS_CLASSES; c++)
		json_object_set_new(o, classes[c], number(s->class[c]));
	json_object_set_new(o, "round_trips", number(s->round_trips));
	json_object_set_new(o, "bytes_out", number(s->bytes_out));
	json_object_set_new(o, "bytes_in", number(s->bytes_in));
	for (unsigned i = 0; i < functions(); i++) {
		uint64_t waited = s->calls[i * STATS_CLASSES + STATS_WAIT];
		if (calls_of(s, i))
			json_object_set_new(calls, name_of(i), number(calls_of(s, i)));
		if (waited)
			json_object_set_new(waits, name_of(i), number(waited));
	}
	json_object_set_new(o, "calls", calls);
	json_object_set_new(o, "waits", waits);
	return o;
}

static int write_json(const char *to, const struct sum *all, json_t *processes)
{
	json_t *o = json_of(all);

	json_object_set(o, "processes", processes);
	int r = json_dump_file(o, to, JSON_INDENT(1)) ? fail(EXIT_RUN, "%s: %m", to) : 0;
	json_decref(o);
	return r;
}

static const struct sum *sorted;        /* what by_calls compares */

static int by_calls(const void *a, const void *b)
{
	uint64_t x = calls_of(sorted, *(const unsigned *)a), y = calls_of(sorted, *(const unsigned *)b);

	return (x < y) - (x > y);
}

static void table(const struct sum *s, size_t processes)
{
	unsigned *order = calloc(functions(), sizeof(*order));

	fprintf(stderr, "scudafs: %zu process%s: %" PRIu64 " round trips, %" PRIu64 " bytes sent, %" PRIu64
		" received\n",
		processes, processes == 1 ? "" : "es", s->round_trips, s->bytes_out, s->bytes_in);
	fprintf(stderr, "%12s %12s %12s %12s\n", classes[0], classes[1], classes[2], classes[3]);
	for (unsigned c = 0; c < STATS_CLASSES; c++)
		fprintf(stderr, "%12" PRIu64 " ", s->class[c]);
	fprintf(stderr, "all calls\n");
	sorted = s;
	for (unsigned i = 0; order && i < functions(); i++)
		order[i] = i;
	if (order)
		qsort(order, functions(), sizeof(*order), by_calls);
	for (unsigned i = 0; order && i < functions() && calls_of(s, order[i]); i++) {
		for (unsigned c = 0; c < STATS_CLASSES; c++)
			fprintf(stderr, "%12" PRIu64 " ", s->calls[order[i] * STATS_CLASSES + c]);
		fprintf(stderr, "%s\n", name_of(order[i]));
	}
	free(order);
}

int stats_report(const char *folder, const char *to)
{
	json_t *processes = json_array();
	struct sum all;
	DIR *d = opendir(folder);

	if (!d || !sum_init(&all)) {
		int r = fail(EXIT_RUN, "%s: %m", folder);
		if (d)
			closedir(d);
		json_decref(processes);
		return r;
	}
	for (struct dirent *e; (e = readdir(d));) {
		struct sum s;
		if (*e->d_name == '.')
			continue;
		if (!sum_init(&s)) {
			fail(0, "%s/%s: %m", folder, e->d_name);
			continue;
		}
		if (!take_process(dirfd(d), e->d_name, &s)) {
			json_t *o = json_of(&s);
			json_object_set_new(o, "pid", number(s.pid));
			size_t n = strnlen(s.command, sizeof(s.command));
			json_object_set_new(o, "command", json_stringn(s.command, n));
			json_array_append_new(processes, o);
			sum_add(&all, &s);
		}
		free(s.calls);
		unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
	int r = rmdir(folder) ? fail(EXIT_RUN, "%s: %m", folder) : 0;
	if (to)
		r = write_json(to, &all, processes);
	else
		table(&all, json_array_size(processes));
	json_decref(processes);
	free(all.calls);
	return r;
}
