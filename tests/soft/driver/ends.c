/* SPDX-License-Identifier: Apache-2.0 */
/* What ends on the software device, and what then is still there: contexts that die under their work, a
 * reset, exit in a host function, a child of fork, a process whose event nobody will record.
 *
 * Thread rule: main's thread; host functions run on the device's. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/soft/driver/test.h"

static CUcontext ctx;

/* ---- host functions may not call the API, and run where the program's threads are not */

static CUresult inside;
static pthread_t ran_on;
static void host(void *p)
{
	inside = cuMemAlloc_v2(p, 16);
	ran_on = pthread_self();
}

static void hosts(void)
{
	CUdeviceptr p = 0;
	OK(cuLaunchHostFunc(NULL, host, &p));
	OK(cuCtxSynchronize());
	CHECK(inside == CUDA_ERROR_NOT_PERMITTED && !p && !pthread_equal(ran_on, pthread_self()));
}

/* ---- exit() in a host function runs the program's destructors there, which end contexts: they do not wait
 * for the function */

static CUresult inside_of[3];
static void ends_inside(void *memory)
{
	inside_of[0] = cuDevicePrimaryCtxReset_v2(0);
	inside_of[1] = cuCtxDestroy_v2(ctx);
	inside_of[2] = cuMemFree_v2(*(CUdeviceptr *)memory);
	exit(7);
}

static void leaves_at_exit(void)
{
	CHECK(cuDevicePrimaryCtxRelease_v2(0) == CUDA_ERROR_NOT_PERMITTED);
	for (int i = 0; i < 3; i++)
		CHECK(inside_of[i] == (i == 1 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_NOT_PERMITTED));
	_exit(9);
}

/* In a child that never had a device before. */
static void exit_in_host_function(void)
{
	static CUdeviceptr p;
	int status;
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		alarm(5);
		ctx = device_up();
		OK(cuMemAlloc_v2(&p, 4));
		atexit(leaves_at_exit);
		OK(cuLaunchHostFunc(NULL, ends_inside, &p));
		cuCtxSynchronize();
		_exit(1);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

/* ---- a context dies while its stream works: the work is waited for, all its objects are gone */

static void pause_20ms(void *p)
{
	nanosleep(&(struct timespec){0, 20000000}, NULL);
	*(int *)p += 1;
}

static void deaths(void)
{
	size_t free0, free1, n;
	int ran = 0;
	CUcontext c, now;
	CUstream s;
	CUevent e;
	CUdeviceptr p;
	OK(cuMemGetInfo_v2(&free0, &n));
	OK(cuCtxCreate_v2(&c, 0, 0));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, 0));
	OK(cuMemAlloc_v2(&p, 1 << 20));
	for (int i = 0; i < 3; i++)
		OK(cuLaunchHostFunc(s, pause_20ms, &ran));
	OK(cuEventRecord(e, s));
	OK(cuCtxDestroy_v2(c));
	CHECK(ran == 3);
	OK(cuCtxGetCurrent(&now));
	CHECK(now == ctx);
	OK(cuMemGetInfo_v2(&free1, &n));
	CHECK(free0 - free1 < KEPT);
	IS(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
	IS(cuCtxSetCurrent(c), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
}

/* ---- a child cannot use what its parent began, and does not hang */

static void forks(void)
{
	fflush(stdout);
	pid_t p = fork();
	int status;
	if (!p) {
		CUdeviceptr q;
		IS(cuMemAlloc_v2(&q, 16), CUDA_ERROR_NOT_INITIALIZED);
		IS(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
		_exit(0);
	}
	CHECK(waitpid(p, &status, 0) == p && WIFEXITED(status) && !WEXITSTATUS(status));
	OK(cuCtxSynchronize());
}

/* ---- reset: what lived in the primary context is gone, and it can be used again */

static void resets(CUfunction add)
{
	CUdeviceptr p, q;
	OK(cuMemAlloc_v2(&p, 16));
	OK(cuDevicePrimaryCtxReset_v2(0));
	IS(cuMemAlloc_v2(&q, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	unsigned version;
	IS(cuCtxGetApiVersion(ctx, &version), CUDA_ERROR_INVALID_CONTEXT);
	CUcontext again;
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	CHECK(again == ctx);
	IS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAlloc_v2(&q, 16));
	IS(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemFree_v2(q));
	/* Who had it before the reset still has. */
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuMemAlloc_v2(&q, 16));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	IS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

/* ---- an event of a process that dies before it has come so far, and that nobody waits for */

static void for_ever(void *unused)
{
	(void)unused;
	pause();
}

static void event_of_the_dead(int from, pid_t child)
{
	CUipcEventHandle h;
	CUevent e;
	CHECK(read(from, &h, sizeof h) == sizeof h);
	OK(cuIpcOpenEventHandle(&e, h));
	IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	kill(child, SIGKILL);
	for (int k = 0; cuEventQuery(e); k++) {
		CHECK(k < 500);
		nanosleep(&(struct timespec){0, 10000000}, NULL);
	}
	OK(cuEventSynchronize(e));
	OK(cuEventDestroy_v2(e));
	CHECK(waitpid(child, NULL, 0) == child);
}

/* Before this process has a device: a child may have one of its own then. */
static pid_t start_recorder(int *from)
{
	int fd[2];
	CHECK(!pipe(fd));
	pid_t child = fork();
	CHECK(child >= 0);
	*from = fd[0];
	if (child) {
		close(fd[1]);
		return child;
	}
	CUipcEventHandle h;
	CUevent e;
	device_up();
	OK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuLaunchHostFunc(NULL, for_ever, NULL));
	OK(cuEventRecord(e, NULL));
	OK(cuIpcGetEventHandle(&h, e));
	CHECK(write(fd[1], &h, sizeof h) == sizeof h);
	pause();
	_exit(0);
}

int main(void)
{
	int from;
	pid_t recorder = start_recorder(&from);
	exit_in_host_function();
	ctx = device_up();
	CUfunction add = function(add_ptx, "add");
	warm_up(add);
	event_of_the_dead(from, recorder);
	hosts();
	deaths();
	forks();
	resets(add);
	puts("PASS ends");
	return 0;
}
