/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that has been cancelled goes through all that waits, reads or writes in the programs' libraries.
 * None of it is a cancellation point: the thread ends where it asks for it itself, behind the last call.
 * Arguments: a file with prog.h's PTX to write and load, and a file to be written. Two threads; the main one
 * only waits for the other. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "tests/e2e/progs/prog.h"
#include "wire/nvml.h"

#define LARGE (24u << 20)       /* bytes of a copy in pieces, by several threads */
#define ASIDE (200u << 10)      /* of one that runs at its stream's turn */

static const char print_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
	".global .align 1 .b8 text[8] = {112, 114, 105, 110, 116, 10, 0, 0};\n"
	".visible .entry print()\n{\n	.reg .b64 %d<3>;\n	.reg .b32 %r<2>;\n"
	"	mov.u64 %d0, text;\n	cvta.global.u64 %d1, %d0;\n	mov.u64 %d2, 0;\n"
	"	{\n	.param .b64 f;\n	.param .b64 a;\n	.param .b32 got;\n"
	"	st.param.b64 [f], %d1;\n	st.param.b64 [a], %d2;\n"
	"	call.uni (got), vprintf, (f, a);\n	ld.param.b32 %r0, [got];\n	}\n	ret;\n}\n";

static const char *image, *written;
static void *nvml;
static const char *volatile place = "the beginning";
static volatile bool through;

/* Writing of a failure would be a cancellation point. */
static void step(CUresult r, const char *what, int line)
{
	if (r)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	prog_check(r, what, line);
}
#define STEP(call) (place = #call, errno = PROG_ERRNO, step(call, #call, __LINE__))

static void ran(void *flag) { *(volatile bool *)flag = true; }

static void memory_and_copies(CUstream s)
{
	uint8_t *pageable = malloc(LARGE), *pinned;
	CUdeviceptr p;

	REQUIRE(pageable != NULL);
	memset(pageable, 3, LARGE);
	STEP(cuMemAlloc_v2(&p, LARGE));
	STEP(cuMemAllocHost_v2((void **)&pinned, LARGE));
	STEP(cuMemcpyHtoD_v2(p, pageable, LARGE));
	STEP(cuMemcpyDtoH_v2(pinned, p, LARGE));
	REQUIRE(!memcmp(pageable, pinned, LARGE));
	/* The second takes its bytes when it is its turn, and what frees memory waits for that. */
	STEP(cuMemsetD8Async(p, 4, ASIDE, s));
	STEP(cuMemcpyDtoHAsync_v2(pinned, p, ASIDE, s));
	STEP(cuMemcpyHtoDAsync_v2(p + ASIDE, pinned, ASIDE, s));
	STEP(cuMemFree_v2(p));
	STEP(cuStreamSynchronize(s));
	REQUIRE(pinned[0] == 4 && pinned[ASIDE - 1] == 4 && pinned[ASIDE] == 3);
	STEP(cuMemFreeHost(pinned));
	free(pageable);
}

/* What was freed is kept for the child, and looked at when more is pinned. */
static void beside_a_child(void)
{
	void *before, *after;

	STEP(cuMemAllocHost_v2(&before, ASIDE));
	pid_t child = fork();
	if (!child) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	REQUIRE(child > 0);
	STEP(cuMemFreeHost(before));
	STEP(cuMemAllocHost_v2(&after, ASIDE));
	STEP(cuMemFreeHost(after));
	kill(child, SIGKILL);
	syscall(SYS_wait4, child, NULL, 0, NULL);
}

static void work(CUstream s)
{
	CUfunction slow, add, print;
	volatile bool called = false;
	CUmodule printer;
	CUevent event;
	CUdeviceptr p;

	STEP(cuModuleGetFunction(&slow, prog_module, "slow"));
	STEP(cuModuleGetFunction(&add, prog_module, "add"));
	STEP(cuModuleLoadData(&printer, print_ptx));
	STEP(cuModuleGetFunction(&print, printer, "print"));
	STEP(cuMemAlloc_v2(&p, 4096));
	STEP(cuEventCreate(&event, 0));
	/* More than a program may be ahead of its device. */
	STEP(prog_launch(slow, p, 1, 300, 1, s));
	for (int i = 0; i < 3000; i++)
		STEP(prog_launch(add, p, 1, 1, 1, s));
	STEP(cuEventRecord(event, s));
	STEP(cuEventSynchronize(event));
	STEP(cuLaunchHostFunc(s, ran, (void *)&called));
	STEP(cuStreamSynchronize(s));
	REQUIRE(called);
	STEP(cuLaunchKernel(print, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
	STEP(cuStreamSynchronize(s));
	STEP(cuMemFree_v2(p));
}

static void files(void)
{
	CUgraphNode node;
	CUlibrary library;
	CUmodule module;
	CUgraph graph;

	STEP(cuModuleLoad(&module, image));
	STEP(cuModuleUnload(module));
	STEP(cuLibraryLoadFromFile(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	STEP(cuLibraryUnload(library));
	STEP(cuGraphCreate(&graph, 0));
	STEP(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	STEP(cuGraphDebugDotPrint(graph, written, 0));
	STEP(cuGraphDestroy(graph));
}

/* The table by which compilers keep what they compiled: a name, its end, looking and keeping. */
static void compiled(void)
{
	static const char name[] = "\xda\x91\x51\xd3\x3a\xe6\xcc\x41\xa5\xc0\x4f\x26\xd5\x33\xe3\x28";
	const void *const *table;
	void *key, *data;
	uint32_t n = 0;
	CUuuid id;

	memcpy(id.bytes, name, sizeof id.bytes);
	STEP(cuGetExportTable((const void **)&table, &id));
	STEP(((CUresult (*)(void **, int, const void *, size_t, const char *, const char *))table[1])(
		&key, 1, "in", 2, "", ""));
	STEP(((CUresult (*)(void *, void *, const void *, uint32_t))table[4])(key, NULL, "out", 3));
	STEP(((CUresult (*)(void *, void *, void **, uint32_t *))table[3])(key, NULL, &data, &n));
	REQUIRE(n == 3 && !memcmp(data, "out", n));
	STEP(((CUresult (*)(void *))table[6])(data));
	STEP(((CUresult (*)(void *))table[2])(key));
}

#define ASK(name) ((__typeof__(&(name)))dlsym(nvml, #name))

static void monitor(void)
{
	unsigned n = 0;
	char name[64];

	place = "nvmlInit_v2";
	REQUIRE(!ASK(nvmlInit_v2)());
	place = "nvmlDeviceGetCount_v2";
	REQUIRE(!ASK(nvmlDeviceGetCount_v2)(&n) && n >= 1);
	place = "nvmlSystemGetProcessName";
	REQUIRE(!ASK(nvmlSystemGetProcessName)((unsigned)getpid(), name, sizeof name));
	place = "nvmlShutdown";
	REQUIRE(!ASK(nvmlShutdown)());
}

/* The address sanitizer does not see that the thread's stack is left by unwinding. */
void __asan_handle_no_return(void) __attribute__((weak));

static void *cancelled(void *unused)
{
	CUstream s;

	pthread_cancel(pthread_self());
	STEP(cuInit(0));
	STEP(cuDeviceGet(&prog_device, 0));
	STEP(cuDevicePrimaryCtxRetain(&prog_context, prog_device));
	STEP(cuCtxSetCurrent(prog_context));
	STEP(cuModuleLoadData(&prog_module, prog_ptx));
	STEP(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	memory_and_copies(s);
	beside_a_child();
	work(s);
	files();
	compiled();
	monitor();
	STEP(cuStreamDestroy_v2(s));
	STEP(cuDevicePrimaryCtxRelease_v2(prog_device));
	through = true;
	if (__asan_handle_no_return)
		__asan_handle_no_return();
	pthread_testcancel();
	place = "its own cancellation point, which did nothing";
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t t;
	void *result;
	FILE *f;

	REQUIRE(argc == 3);
	image = argv[1];
	written = argv[2];
	f = fopen(image, "w");
	REQUIRE(f && fputs(prog_ptx, f) >= 0 && !fclose(f));
	nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	REQUIRE(nvml != NULL);
	REQUIRE(!pthread_create(&t, NULL, cancelled, NULL) && !pthread_join(t, &result));
	if (result != PTHREAD_CANCELED || !through) {
		fprintf(stderr, "the thread ended in %s\n", place);
		return 1;
	}
	say("right");
	return 0;
}
