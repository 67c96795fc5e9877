/* SPDX-License-Identifier: Apache-2.0 */
/* `confined HOW`: confines itself after cuInit, as daemons and sandboxes do, and then uses what there is of
 * loads, launches, copies, graphs and managed memory. HOW: stack (a thread of 16 KiB), descriptors, chroot,
 * user, namespace, private (not dumpable, no new privileges), address (space), locked, statx (a filter of
 * system calls that does not know it), writes (one by which nothing can be written to the mount for want of
 * memory), free (not at all). Says "right", or "cannot" where this process may not do that to itself. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "prog.h"

enum { COUNT = 1 << 18, BYTES = COUNT * 4, NOBODY = 65534 };

static unsigned back[COUNT];

static void copies(CUfunction f, CUstream s)
{
	CUdeviceptr p;
	CUevent e;
	void *pinned;

	CHECK(cuMemAlloc_v2(&p, BYTES));
	CHECK(cuEventCreate(&e, 0));
	CHECK(prog_launch(f, p, 5, COUNT, COUNT, s));
	CHECK(cuEventRecord(e, s));
	CHECK(cuEventSynchronize(e));
	CHECK(cuMemcpyDtoH_v2(back, p, BYTES));
	REQUIRE(back[0] == 5 && back[COUNT - 1] == 5 + COUNT - 1);
	CHECK(cuMemcpyHtoD_v2(p, back, BYTES));
	CHECK(cuMemAllocHost_v2(&pinned, BYTES));
	CHECK(cuMemcpyDtoHAsync_v2(pinned, p, BYTES, s));
	CHECK(cuStreamSynchronize(s));
	REQUIRE(!memcmp(pinned, back, BYTES));
	CHECK(cuMemFreeHost(pinned));
	CHECK(cuEventDestroy_v2(e));
	CHECK(cuMemFree_v2(p));
}

static void graph(CUfunction f, CUstream s)
{
	CUdeviceptr p;
	CUgraph g;
	CUgraphExec x;

	CHECK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
	volatile unsigned *managed = (volatile unsigned *)p;

	CHECK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	CHECK(prog_launch(f, p, 7, 1, 1, s));
	CHECK(cuStreamEndCapture(s, &g));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	managed[1] = 9;
	CHECK(cuGraphLaunch(x, s));
	CHECK(cuStreamSynchronize(s));
	REQUIRE(managed[0] == 7 && managed[1] == 9);
	CHECK(cuGraphExecDestroy(x));
	CHECK(cuGraphDestroy(g));
	CHECK(cuMemFree_v2(p));
}

static void *use(void *unused)
{
	CUmodule m;
	CUfunction f;
	CUstream s;
	size_t left, all;

	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuModuleLoadData(&m, prog_ptx));
	CHECK(cuModuleGetFunction(&f, m, "fill"));
	CHECK(cuStreamCreate(&s, 0));
	copies(f, s);
	graph(f, s);
	CHECK(cuMemGetInfo_v2(&left, &all));
	REQUIRE(left <= all);
	CHECK(cuStreamDestroy_v2(s));
	CHECK(cuModuleUnload(m));
	return unused;
}

static bool limit(int what, rlim_t n)
{
	struct rlimit l = {n, n};

	return !setrlimit(what, &l);
}

/* From now on the system call `number` ends with `error`. */
static bool refuse(unsigned number, unsigned error)
{
	struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog all = {sizeof f / sizeof *f, f};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

/* A copy that cannot be sent fails, and so does what comes behind it: nothing waits for what never comes. */
static void lose(void)
{
	CUdeviceptr p;

	CHECK(cuMemAlloc_v2(&p, BYTES));
	if (!refuse(SYS_pwritev, ENOMEM)) {
		say("cannot");
		return;
	}
	REQUIRE(cuMemcpyHtoD_v2(p, back, BYTES) == CUDA_ERROR_MPS_RPC_FAILURE);
	REQUIRE(cuCtxSynchronize() == CUDA_ERROR_MPS_RPC_FAILURE);
	say("right");
}

static bool confine(const char *how)
{
	if (!strcmp(how, "descriptors"))
		return limit(RLIMIT_NOFILE, 4);
	if (!strcmp(how, "chroot"))
		return !chroot("/tmp") && !chdir("/");
	if (!strcmp(how, "user"))
		return !setgid(NOBODY) && !setuid(NOBODY);
	if (!strcmp(how, "namespace"))
		return !unshare(CLONE_NEWNS | CLONE_NEWNET);
	if (!strcmp(how, "private"))
		return !prctl(PR_SET_DUMPABLE, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!strcmp(how, "address"))
		return limit(RLIMIT_AS, (rlim_t)3 << 30);
	if (!strcmp(how, "locked"))
		return !mlockall(MCL_CURRENT | MCL_FUTURE);
	if (!strcmp(how, "statx"))
		return refuse(SYS_statx, EPERM);
	return !strcmp(how, "free") || !strcmp(how, "stack");
}

int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t thread;

	REQUIRE(argc == 2);
	prog_up();
	if (!strcmp(argv[1], "writes")) {
		lose();
		return 0;
	}
	if (!confine(argv[1])) {
		say("cannot");
		return 0;
	}
	if (!strcmp(argv[1], "stack")) {
		pthread_attr_init(&small);
		REQUIRE(!pthread_attr_setstacksize(&small, 16 << 10));
		REQUIRE(!pthread_create(&thread, &small, use, NULL));
		pthread_join(thread, NULL);
	} else {
		use(NULL);
	}
	say("right");
	return 0;
}
