/* SPDX-License-Identifier: Apache-2.0 */
/* `closes FOLDER files|sockets`: pins memory, closes all descriptors that it has not opened itself, and opens
 * files in the folder, or sockets, in their place: freeing and pinning memory, calls that wake the mount,
 * large writes to it and a fork must not touch those. Before that, what was freed is zero when it is pinned
 * again, locked or not. Says "right". One thread. */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "tests/e2e/progs/prog.h"

enum { FILES = 40, BYTES = 24 << 20, PINNED = 4 << 20, PAGE = 4096 };

static CUdeviceptr prog_place; /* of a MiB */

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

/* Whatever becomes of them, now that the session is lost. */
static void call_all(void)
{
	static uint8_t bytes[1 << 20];
	CUdeviceptr device = 0;

	for (int i = 0; i < 200; i++)
		cuMemsetD8Async(prog_place, (unsigned char)i, 4, NULL);
	usleep(20000);
	cuMemcpyHtoDAsync_v2(prog_place, bytes, sizeof bytes, NULL);
	cuMemcpyHtoD_v2(prog_place, bytes, sizeof bytes);
	cuMemAlloc_v2(&device, 4);
	cuCtxSynchronize();
}

/* A forked child has all of them, and has forgotten ours. */
static void fork_keeps(const int *fd)
{
	pid_t child = fork();
	int status;

	REQUIRE(child >= 0);
	if (!child) {
		for (int i = 0; i < FILES; i++)
			if (fcntl(fd[i], F_GETFD) < 0)
				_exit(1);
		_exit(0);
	}
	REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

/* The ends that were opened before hold nothing: nobody has written to those that took our numbers. */
static void sockets(void)
{
	int fd[FILES], ends[FILES];

	for (int i = 0; i < FILES; i++) {
		int pair[2];

		REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		ends[i] = fcntl(pair[1], F_DUPFD, 500);
		REQUIRE(ends[i] >= 0);
		close(pair[1]);
		fd[i] = pair[0];
	}
	fork_keeps(fd);
	call_all();
	for (int i = 0; i < FILES; i++) {
		struct pollfd p = {.fd = ends[i], .events = POLLIN};

		REQUIRE(!poll(&p, 1, 0));
	}
	puts("right");
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	static uint8_t page[PAGE], got[PAGE];
	int fd[FILES];
	struct stat st;
	void *p, *q;

	REQUIRE(argc == 3);
	prog_up();
	CHECK(cuMemAlloc_v2(&prog_place, 1 << 20));
	freed_is_zero(false);
	freed_is_zero(true);
	CHECK(cuMemAllocHost_v2(&p, PINNED));
	memset(p, 1, PINNED);
	memset(page, 0xc3, sizeof page);
	close_range(3, ~0u, 0);
	if (!strcmp(argv[2], "sockets"))
		sockets();
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
	fork_keeps(fd);
	call_all();
	REQUIRE(!fstat(fd[0], &st) && st.st_size == BYTES);
	for (off_t at = 0; at < BYTES; at += PAGE)
		REQUIRE(pread(fd[0], got, PAGE, at) == PAGE && !memcmp(got, page, PAGE));
	puts("right");
	fflush(stdout);
	_exit(0);
}
