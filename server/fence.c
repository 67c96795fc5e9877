/* SPDX-License-Identifier: Apache-2.0 */
/* Device addresses are the same numbers in the program and in its session. A program's own mappings lie at
 * the top of its address space, and so would the driver's in the session; where the two collide, the program
 * could not reserve the range. So a session first fills every hole from FENCE_LOW up with inaccessible pages:
 * whatever the driver maps then comes to lie below, where programs have nothing. The pages cost no memory.
 *
 * Thread rule: fence_build once, while the process has one thread; what it has filled does not change after
 * it. Of fence_open and fence_close the caller sees to it that two do not concern the same pages. */
#include "server/fence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "wire/log.h"

/* There when the thread sanitizer is: it allows mappings nowhere but where the fence goes. */
extern void __tsan_init(void) __attribute__((weak));

/* The main thread's stack grows down into the hole below it; mmap does not look there. */
#define STACK_ROOM (64ull << 20)

static struct { uint64_t from, to; } filled[4096];
static unsigned fills;

static int fill(uint64_t from, uint64_t to)
{
	void *p = mmap((void *)from, to - from, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	/* A kernel without MAP_FIXED_NOREPLACE takes the address as a wish. */
	if ((uint64_t)p != from) {
		munmap(p, to - from);
		return -EEXIST;
	}
	if (fills < sizeof filled / sizeof *filled) {
		filled[fills].from = from;
		filled[fills++].to = to;
	}
	return 1;
}

int fence_build(void)
{
	/* The list is read first: reading may map memory. */
	static struct { uint64_t from, to; bool stack; } map[4096];
	uint64_t at = FENCE_LOW;
	int n = 0, r;
	FILE *f;
	char line[512];

	if (__tsan_init)
		return 0;
	f = fopen("/proc/self/maps", "re");
	if (!f)
		return -errno;
	while (n < 4096 && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &map[n].from, &map[n].to) != 2)
			continue;
		map[n].stack = strstr(line, "[stack]") != NULL;
		if (map[n].to > FENCE_LOW)
			n++;
	}
	fclose(f);
	for (int i = 0; i <= n; i++) {
		uint64_t end = i < n ? map[i].from : FENCE_HIGH;

		if (end > FENCE_HIGH)
			end = FENCE_HIGH;
		if (i < n && map[i].stack)
			end -= STACK_ROOM;
		r = at < end ? fill(at, end) : 0;
		/* Something came to lie in the hole since the list was read, or the kernel keeps a gap:
		 * that one stays open. */
		if (r < 0 && r != -EEXIST && r != -EPERM)
			return r;
		if (i < n && map[i].to > at)
			at = map[i].to;
	}
	return (int)fills;
}

static bool map(uint64_t from, uint64_t to, int protection)
{
	return mmap((void *)from, to - from, protection,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool fence_open(uint64_t from, uint64_t to)
{
	for (unsigned i = 0; i < fills; i++)
		if (filled[i].from <= from && from < to && to <= filled[i].to)
			return map(from, to, PROT_READ | PROT_WRITE);
	return false;
}

void fence_close(uint64_t from, uint64_t to)
{
	if (!map(from, to, PROT_NONE))
		log_error("fence at %#" PRIx64 ": %m", from);
}
