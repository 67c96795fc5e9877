/* SPDX-License-Identifier: Apache-2.0 */
/* For few_pages.sh: pins memory, makes a hole of it by the descriptor that the shim has open, fills the file
 * system that its pages come from, FOLDER, and copies "to" the device or "from" it. Says "refused" when that
 * and all that follows is an error. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "prog.h"

#define SIZE ((size_t)4 << 20)

static void punch(const char *folder)
{
	char path[64], name[512];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int holes = 0;

	while (d && (e = readdir(d))) {
		struct stat st;

		snprintf(path, sizeof path, "/proc/self/fd/%.16s", e->d_name);
		memset(name, 0, sizeof name);
		if (readlink(path, name, sizeof name - 1) > 0 && !strncmp(name, folder, strlen(folder)) &&
				!stat(path, &st))
			holes += !fallocate(atoi(e->d_name), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				st.st_size);
	}
	closedir(d);
	REQUIRE(holes == 1);
}

static void fill_up(const char *folder)
{
	static char block[4096];
	char path[512];

	snprintf(path, sizeof path, "%s/full", folder);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	REQUIRE(fd >= 0);
	memset(block, 1, sizeof block);
	while (write(fd, block, sizeof block) > 0)
		;
}

int main(int argc, char **argv)
{
	CUdeviceptr d;
	unsigned word;
	void *p;
	CUresult r;

	REQUIRE(argc == 3);
	prog_up();
	CHECK(cuMemAlloc_v2(&d, SIZE));
	CHECK(cuMemHostAlloc(&p, SIZE, 0));
	memset(p, 1, SIZE);
	CHECK(cuMemcpyHtoD_v2(d, p, SIZE));
	CHECK(cuCtxSynchronize());
	punch(argv[1]);
	fill_up(argv[1]);
	r = !strcmp(argv[2], "to") ? cuMemcpyHtoD_v2(d, p, SIZE) : cuMemcpyDtoH_v2(p, d, SIZE);
	/* What it has sent without an error is not to be read back. */
	if (!r)
		r = cuMemcpyDtoH_v2(&word, d, sizeof word);
	printf("%d\n", (int)r);
	REQUIRE(r);
	REQUIRE(cuCtxSynchronize());
	say("refused");
	return 0;
}
