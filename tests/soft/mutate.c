/* SPDX-License-Identifier: Apache-2.0 */
/* The watch over damaged inputs (mutate.h).
 *
 * Thread rule: one thread. */
#include "tests/soft/mutate.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
	GROWTH_MB = 512, /* of the process above what it had after the first inputs */
	/* at any time; two copies of the largest image that is accepted, and the sanitizer's own */
	PEAK_MB = 2048,
	WARM = 64,
	/* seconds of the clock: a wait without an end uses no processor time, and a busy machine gives
	 * little */
	ASLEEP = 120,
};
/* What 48 MiB of text in 2 KiB of an image take to read, with a sanitizer, is one. */
#define SECONDS 3.0

static volatile uint64_t *current;

/* What was freed is kept a while by the sanitizer; that is not memory which the tested code holds. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=16";
}

static uint64_t state;
uint32_t random_below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n ? (uint32_t)(state >> 20) % n : 0;
}

void seed(uint64_t n)
{
	n += 0x9e3779b97f4a7c15ull;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
	n = (n ^ n >> 27) * 0x94d049bb133111ebull;
	state = (n ^ n >> 31) | 1;
}

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long resident_mb(void)
{
	long pages = 0, total;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%ld %ld", &total, &pages) != 2)
		pages = -1;
	if (f)
		fclose(f);
	return pages < 0 ? -1 : pages * (sysconf(_SC_PAGESIZE) >> 10) >> 10;
}

static void too_long(int sig)
{
	(void)sig;
	char line[128];
	int n = snprintf(line, sizeof line,
			"FAILED input %llu takes more than %.1f s of the processor or %d s of time\n",
		(unsigned long long)*current, SECONDS, ASLEEP);
	if (write(STDOUT_FILENO, line, (size_t)n) == n)
		abort(); /* with a core, or a debugger's place */
	_exit(1);
}

static void watch(double seconds)
{
	struct itimerval t = {
		.it_value = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)}};
	setitimer(ITIMER_PROF, &t, NULL);
	alarm(t.it_value.tv_sec ? ASLEEP : 0);
}

struct rounds rounds_begin(const char *what)
{
	struct rounds r = {.count = 100};
	char *colon = NULL;
	if (what)
		r.count = (unsigned)strtoul(what, &colon, 10);
	if (colon && *colon == ':')
		r.first = strtoull(colon + 1, NULL, 10);
	r.next = r.first;
	const char *last = getenv("MUTATE_LAST");
	int fd = last ? open(last, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	if (last && (fd < 0 || ftruncate(fd, 8))) {
		printf("FAILED %s cannot be written\n", last);
		exit(1);
	}
	void *p = mmap(NULL, 8, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd,
			0);
	if (p == MAP_FAILED)
		exit(1);
	current = p;
	signal(SIGPROF, too_long);
	signal(SIGALRM, too_long);
	return r;
}

bool rounds_next(struct rounds *r)
{
	if (r->next == r->first + r->count)
		return false;
	*current = r->next;
	seed(r->next++);
	return true;
}

void rounds_keep(const void *input, size_t n)
{
	const char *name = getenv("MUTATE_TEXT");
	FILE *f = name ? fopen(name, "we") : NULL;
	if (f) {
		fwrite(input, 1, n, f);
		fclose(f);
	}
}

void rounds_start(struct rounds *r)
{
	watch(SECONDS);
	r->start = cpu_seconds();
}

void rounds_end(struct rounds *r, bool accepted)
{
	watch(0);
	double took = cpu_seconds() - r->start;
	uint64_t n = r->next - 1 - r->first;
	r->longest = took > r->longest ? took : r->longest;
	r->accepted += accepted;
	if (n < WARM) {
		r->before = resident_mb();
	} else if (n % 16 == 0 && resident_mb() > r->before + GROWTH_MB) {
		printf("FAILED input %llu: %ld MiB in use, %ld before\n", (unsigned long long)*current,
				resident_mb(),
			r->before);
		exit(1);
	}
}

void rounds_report(const struct rounds *r, const char *of)
{
	struct rusage u = {0};
	getrusage(RUSAGE_SELF, &u);
	long peak = u.ru_maxrss >> 10;
	if (peak > PEAK_MB) {
		printf("FAILED %ld MiB at most\n", peak);
		exit(1);
	}
	printf("%u damaged %s, %u of them loaded and ran or failed as they should; %.0f ms at most, "
			"%ld MiB now, %ld at most\n",
		r->count, of, r->accepted, r->longest * 1e3, resident_mb(), peak);
}
