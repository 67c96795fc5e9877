/* SPDX-License-Identifier: Apache-2.0 */
/* `closes FOLDER`: pins memory, closes all descriptors that it has not opened itself, and opens files in the
 * folder in their place: freeing and pinning memory must not touch those. Before that, what was freed is zero
 * when it is pinned again, locked or not. Says "right". One thread. */
#include <fcntl.h>
#include <sys/mman.h>
#include "tests/e2e/progs/prog.h"

enum { FILES = 40, BYTES = 24 << 20, PINNED = 4 << 20, PAGE = 4096 };

static void freed_is_zero(bool locked)
{
	uint8_t *p;

	CHECK(cuMemAllocHost_v2((void **)&p, PINNED));
	memset(p, 0x5a, PINNED);
	REQUIRE(!locked || !mlock(p, PAGE));
	CHECK(cuMemFreeHost(p));
	CHECK(cuMemAllocHost_v2((void **)&p, PINNED));
	for (size_t i = 0; i < PINNED; i += PAGE)
		REQUIRE(!p[i]);
	CHECK(cuMemFreeHost(p));
}

int main(int argc, char **argv)
{
	static uint8_t page[PAGE], got[PAGE];
	int fd[FILES];
	void *p, *q;

	REQUIRE(argc == 2);
	prog_up();
	freed_is_zero(false);
	freed_is_zero(true);
	CHECK(cuMemAllocHost_v2(&p, PINNED));
	memset(p, 1, PINNED);
	memset(page, 0xc3, sizeof page);
	close_range(3, ~0u, 0);
	/* One file by many descriptors: whatever numbers ours had. */
	for (int i = 0; i < FILES; i++) {
		char path[4096];

		snprintf(path, sizeof path, "%s/file", argv[1]);
		fd[i] = open(path, O_RDWR | O_CREAT, 0600);
		REQUIRE(fd[i] >= 0);
	}
	for (off_t at = 0; at < BYTES; at += PAGE)
		REQUIRE(pwrite(fd[0], page, PAGE, at) == PAGE);
	CHECK(cuMemFreeHost(p));
	if (!cuMemAllocHost_v2(&q, PINNED))
		memset(q, 2, PINNED);
	for (off_t at = 0; at < BYTES; at += PAGE)
		REQUIRE(pread(fd[0], got, PAGE, at) == PAGE && !memcmp(got, page, PAGE));
	puts("right");
	fflush(stdout);
	_exit(0);
}
