/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose calls are known: `counted N HOW` makes N launches and one synchronization, then ends: HOW
 * is return, exit, _exit, abort, kill, fork (a child that calls CUDA in vain), exec (itself with N 1),
 * threads (four more threads with N launches each), close (all descriptors; those that it opens then are its
 * own, and nothing is written there). */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "prog.h"

static CUfunction function;
static CUdeviceptr memory;
static int launches;

static void launch_all(void)
{
	for (int i = 0; i < launches; i++)
		CHECK(prog_launch(function, memory, 1, 32, 32, NULL));
}

static void *thread(void *unused)
{
	(void)unused;
	CHECK(cuCtxSetCurrent(prog_context));
	launch_all();
	return NULL;
}

/* As daemons do. */
static void close_all(void)
{
	char path[] = "/tmp/counted.XXXXXX";
	struct stat st;
	int fd;

	REQUIRE(!close_range(3, ~0u, 0));
	REQUIRE((fd = mkstemp(path)) >= 0 && !unlink(path));
	for (int i = 3; i < 200; i++)
		REQUIRE(i == fd || dup2(fd, i) == i);
	REQUIRE(prog_launch(function, memory, 1, 32, 32, NULL) || cuCtxSynchronize());
	REQUIRE(!fstat(fd, &st) && !st.st_size);
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 3);
	launches = atoi(argv[1]);
	prog_up();
	function = prog_function("add");
	CHECK(cuMemAlloc_v2(&memory, 128));
	CHECK(cuCtxSynchronize());
	launch_all();
	CHECK(cuCtxSynchronize());
	if (!strcmp(argv[2], "threads")) {
		pthread_t t[4];
		for (int i = 0; i < 4; i++)
			REQUIRE(!pthread_create(&t[i], NULL, thread, NULL));
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		CHECK(cuCtxSynchronize());
	}
	if (!strcmp(argv[2], "close"))
		close_all();
	if (!strcmp(argv[2], "exit"))
		exit(0);
	if (!strcmp(argv[2], "_exit"))
		_exit(0);
	if (!strcmp(argv[2], "abort"))
		abort();
	if (!strcmp(argv[2], "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(argv[2], "exec"))
		execl(argv[0], argv[0], "1", "return", (char *)NULL);
	if (!strcmp(argv[2], "fork")) {
		pid_t p = fork();
		if (!p)
			_exit(cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
		int status;
		REQUIRE(waitpid(p, &status, 0) == p && status == 0);
	}
	return 0;
}
