/* SPDX-License-Identifier: Apache-2.0 */
/* Short sessions: as many as its argument says, two at a time, each a child that comes up, uses memory and
 * ends; every eighth is killed instead. Says "right". One thread in each process. */
#include <signal.h>
#include <sys/wait.h>
#include "tests/e2e/progs/prog.h"

static int session(unsigned number)
{
	unsigned words[64] = {number}, back = 0;
	CUdeviceptr p;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&prog_device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&prog_context, prog_device));
	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuMemAlloc_v2(&p, sizeof(words)));
	CHECK(cuMemcpyHtoD_v2(p, words, sizeof(words)));
	if (number % 8 == 7)
		raise(SIGKILL);
	CHECK(cuMemcpyDtoH_v2(&back, p, sizeof(back)));
	REQUIRE(back == number);
	return 0;
}

static void end_of_one(void)
{
	int status;

	REQUIRE(wait(&status) > 0);
	REQUIRE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : !WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 0;

	for (unsigned i = 0; i < n; i++) {
		pid_t pid = fork();
		if (!pid)
			exit(session(i));
		REQUIRE(pid > 0);
		if (i)
			end_of_one();
	}
	if (n)
		end_of_one();
	say("right");
	return 0;
}
