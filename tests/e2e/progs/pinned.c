/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory and forked children. Natively a child shares it: it reads what the parent wrote and the other
 * way round, also what the parent has freed since, and no child touches what the parent pins later. Memory
 * that kernels use in place is a copy. Freed memory goes back to the machine when no child can have it, and
 * what the program has put in its place is left alone. One thread in each process. */
#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "prog.h"

#define LARGE ((size_t)1 << 20)

static void *pin(size_t n, unsigned flags, int value)
{
	void *p;

	CHECK(cuMemHostAlloc(&p, n, flags));
	memset(p, value, n);
	return p;
}

static bool all_are(const void *p, size_t n, int value)
{
	const unsigned char *b = p;

	return b[0] == value && !memcmp(b, b + 1, n - 1);
}

/* What the device gets of it. */
static bool arrives(const void *p, size_t n, int value)
{
	static unsigned char back[LARGE];
	CUdeviceptr d;

	CHECK(cuMemAlloc_v2(&d, n));
	CHECK(cuMemcpyHtoD_v2(d, p, n));
	CHECK(cuMemcpyDtoH_v2(back, d, n));
	CHECK(cuMemFree_v2(d));
	return all_are(back, n, value);
}

static bool ends_well(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void shares(size_t n, bool mapped)
{
	unsigned char *p = pin(n, mapped ? CU_MEMHOSTALLOC_DEVICEMAP : 0, 1);
	pid_t pid = fork();

	if (!pid) {
		bool right = all_are(p, n, 1);

		memset(p, 2, n);
		_exit(!right || cuMemFreeHost(p) != CUDA_ERROR_NOT_INITIALIZED);
	}
	REQUIRE(ends_well(pid));
	REQUIRE(all_are(p, n, mapped ? 1 : 2));
	REQUIRE(arrives(p, n, mapped ? 1 : 2));
	CHECK(cuMemFreeHost(p));
}

/* Bytes that the memory shared with the mount takes, or -1: there is none. */
static int64_t taken(void)
{
	char path[64], name[64] = "";
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int64_t n = -1;

	while (d && (e = readdir(d))) {
		struct stat st;

		snprintf(path, sizeof path, "/proc/self/fd/%.16s", e->d_name);
		memset(name, 0, sizeof name);
		if (readlink(path, name, sizeof name - 1) > 0 && strstr(name, "scudafs-arena") &&
				!stat(path, &st))
			n = st.st_blocks * 512;
	}
	closedir(d);
	return n;
}

static void kept_for_a_child(void)
{
	unsigned char *a = pin(LARGE, 0, 1), *b, *c;
	int64_t before = taken();
	int line[2];
	char word;

	REQUIRE(!pipe(line));
	pid_t pid = fork();
	if (!pid) {
		close(line[1]);
		if (read(line[0], &word, 1) != 1 || !all_are(a, LARGE, 1))
			_exit(1);
		memset(a, 3, LARGE);
		_exit(0);
	}
	CHECK(cuMemFreeHost(a));
	b = pin(LARGE, 0, 2);
	REQUIRE(write(line[1], "w", 1) == 1);
	REQUIRE(ends_well(pid));
	REQUIRE(all_are(b, LARGE, 2));
	REQUIRE(arrives(b, LARGE, 2));
	/* There are no children any more. */
	c = pin(LARGE, 0, 4);
	REQUIRE(all_are(b, LARGE, 2) && all_are(c, LARGE, 4));
	CHECK(cuMemFreeHost(b));
	CHECK(cuMemFreeHost(c));
	REQUIRE(before < 0 || taken() <= before - (int64_t)LARGE);
	close(line[0]);
	close(line[1]);
}

static void replaced_by_a_file(void)
{
	unsigned char *p = pin(LARGE, 0, 1);
	int fd = memfd_create("the program's", 0);

	REQUIRE(fd >= 0 && !ftruncate(fd, LARGE));
	REQUIRE(mmap(p, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == p);
	memset(p, 7, LARGE);
	CHECK(cuMemFreeHost(p));
	p = mmap(NULL, LARGE, PROT_READ, MAP_SHARED, fd, 0);
	REQUIRE(p != MAP_FAILED && all_are(p, LARGE, 7));
}

int main(void)
{
	static const size_t sizes[] = {4096, 64 << 10, LARGE};
	int64_t before;

	prog_up();
	for (unsigned i = 0; i < 3; i++) {
		shares(sizes[i], false);
		shares(sizes[i], true);
	}
	before = taken();
	kept_for_a_child();
	REQUIRE(taken() == before);
	replaced_by_a_file();
	say("right");
	return 0;
}
