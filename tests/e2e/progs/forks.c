/* SPDX-License-Identifier: Apache-2.0 */
/* fork after cuInit: children exit in every way (exit, _exit, after calling CUDA, by a signal), and the
 * parent's session goes on. In the child every call answers CUDA_ERROR_NOT_INITIALIZED, as natively. One
 * thread in each process. */
#include <signal.h>
#include <sys/wait.h>
#include "tests/e2e/progs/prog.h"

static void work(CUdeviceptr p, unsigned value)
{
	unsigned words[1024];

	CHECK(prog_launch(prog_function("fill"), p, value, 1024, 1024, NULL));
	CHECK(cuMemcpyDtoH_v2(words, p, sizeof(words)));
	for (unsigned i = 0; i < 1024; i++)
		REQUIRE(words[i] == value + i);
}

/* The address sanitizer's search for leaks, at a process's end, takes locks that a thread may have had when
 * we forked: in the child nobody gives them back. */
static bool forked;
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return forked;
}

static int child(int way)
{
	CUdeviceptr p = 0;

	forked = true;
	if (way == 1)
		_exit(0);
	if (way == 2) {
		CUresult r = cuMemAlloc_v2(&p, 16), s = cuCtxSynchronize();
		fprintf(stderr, "the child's calls answer %d and %d\n", (int)r, (int)s);
		exit(r == CUDA_ERROR_NOT_INITIALIZED && s == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
	}
	if (way == 3)
		raise(SIGKILL);
	exit(0);
}

int main(void)
{
	CUdeviceptr p;

	prog_up();
	CHECK(cuMemAlloc_v2(&p, 4096));
	work(p, 1);
	for (int way = 0; way < 4; way++) {
		/* Work is queued and unfinished while the child comes and goes. */
		CHECK(prog_launch(prog_function("slow"), p, 3, 30, 1, NULL));
		pid_t pid = fork();
		int status;
		if (!pid)
			return child(way);
		REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
		REQUIRE(way == 3 ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status));
		work(p, 100 + (unsigned)way);
	}
	CHECK(cuMemFree_v2(p));
	say("right");
	return 0;
}
