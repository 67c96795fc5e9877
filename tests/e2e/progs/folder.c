/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the folder that it is given from every offset that there may be, as anybody may who seeks in it: what
 * comes is names of the folder, each whole, and nothing else. Says "right". One thread. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include "tests/e2e/progs/prog.h"

#define OFFSETS 2000
#define ROOM (64u << 10)

struct entry {
	uint64_t node;
	int64_t offset;
	uint16_t len;
	uint8_t type;
	char name[];
};
static char names[ROOM];

/* The bytes of entries from that offset on. */
static long read_from(int fd, off_t offset, char *to)
{
	REQUIRE(lseek(fd, offset, SEEK_SET) == offset);
	return syscall(SYS_getdents64, fd, to, ROOM);
}

static int is_known(const char *name, long n)
{
	for (const char *p = names; p < names + n; p += ((const struct entry *)p)->len)
		if (!strcmp(((const struct entry *)p)->name, name))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	static char some[ROOM];

	REQUIRE(argc == 2);
	int fd = open(argv[1], O_RDONLY | O_DIRECTORY);
	REQUIRE(fd >= 0);
	long all = read_from(fd, 0, names);
	REQUIRE(all > 0 && all < OFFSETS);
	for (off_t at = 0; at < OFFSETS; at++) {
		long n = read_from(fd, at, some);

		REQUIRE(n >= 0 && n <= all);
		for (char *p = some; p < some + n; p += ((struct entry *)p)->len)
			REQUIRE(is_known(((struct entry *)p)->name, all));
	}
	REQUIRE(read_from(fd, INT64_MAX, some) == 0);
	puts("right");
	return 0;
}
