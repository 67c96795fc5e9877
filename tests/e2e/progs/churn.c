/* SPDX-License-Identifier: Apache-2.0 */
/* churn ROUNDS [WAY]: makes one of each thing, uses and ends it, ROUNDS times after a fifth as many that do
 * not count; WAY is one of them alone. Says "ready", waits for a word, goes round, says "done", waits for a
 * word. Then it ends with much left allocated: so does many a program. One thread. */
#include "tests/e2e/progs/prog.h"

#define PIECE (1 << 16)

static CUdeviceptr target;
static unsigned words[PIECE / 4];

static void memory(void)
{
	CUdeviceptr p;
	size_t pitch;

	CHECK(cuMemAlloc_v2(&p, PIECE));
	CHECK(cuMemcpyHtoD_v2(p, words, PIECE));
	CHECK(cuMemFree_v2(p));
	CHECK(cuMemAllocPitch_v2(&p, &pitch, 100, 20, 4));
	CHECK(cuMemFree_v2(p));
}

static void pools(void)
{
	CUdeviceptr p;

	CHECK(cuMemAllocAsync(&p, PIECE, NULL));
	CHECK(cuMemsetD32Async(p, 7, PIECE / 4, NULL));
	CHECK(cuMemcpyDtoHAsync_v2(words, p, PIECE, NULL));
	CHECK(cuMemFreeAsync(p, NULL));
	CHECK(cuCtxSynchronize());
	REQUIRE(words[PIECE / 4 - 1] == 7);
}

static void host(void)
{
	static char own[1 << 16] __attribute__((aligned(4096)));
	CUdeviceptr p;
	void *h;

	CHECK(cuMemHostAlloc(&h, PIECE, CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(cuMemHostGetDevicePointer_v2(&p, h, 0));
	CHECK(prog_launch(prog_function("fill"), p, 1, 1000, 1000, NULL));
	CHECK(cuCtxSynchronize());
	REQUIRE(((unsigned *)h)[999] == 1000);
	CHECK(cuMemFreeHost(h));
	CHECK(cuMemHostRegister_v2(own, sizeof own, 0));
	CHECK(cuMemcpyHtoDAsync_v2(target, own, PIECE, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemHostUnregister(own));
}

static void managed(void)
{
	CUdeviceptr p;

	CHECK(cuMemAllocManaged(&p, PIECE, CU_MEM_ATTACH_GLOBAL));
	*(unsigned *)p = 5;
	CHECK(prog_launch(prog_function("add"), p, 3, 1, 1, NULL));
	CHECK(cuCtxSynchronize());
	REQUIRE(*(unsigned *)p == 8);
	CHECK(cuMemFree_v2(p));
}

static void counted(void *n)
{
	++*(int *)n;
}

static void streams(void)
{
	CUstream s;
	CUevent e, f;
	float ms;
	int n = 0;

	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&e, CU_EVENT_DEFAULT));
	CHECK(cuEventCreate(&f, CU_EVENT_DEFAULT));
	CHECK(cuEventRecord(e, s));
	CHECK(prog_launch(prog_function("fill"), target, 1, 100, 100, s));
	CHECK(cuLaunchHostFunc(s, counted, &n));
	CHECK(cuEventRecord(f, s));
	CHECK(cuStreamWaitEvent(NULL, f, 0));
	CHECK(cuEventSynchronize(f));
	CHECK(cuEventElapsedTime_v2(&ms, e, f));
	CHECK(cuStreamSynchronize(s));
	REQUIRE(n == 1);
	CHECK(cuEventDestroy_v2(e));
	CHECK(cuEventDestroy_v2(f));
	CHECK(cuStreamDestroy_v2(s));
}

static void modules(void)
{
	CUmodule m;
	CUlibrary l;
	CUkernel k;
	CUfunction f;
	char ptx[sizeof prog_ptx + 40];
	static unsigned text; /* texts that were not seen before, and that come again */

	snprintf(ptx, sizeof ptx, "%s// %u\n", prog_ptx, text++ % 50);
	CHECK(cuModuleLoadData(&m, ptx));
	CHECK(cuModuleGetFunction(&f, m, "add"));
	CHECK(prog_launch(f, target, 1, 100, 100, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuModuleUnload(m));
	CHECK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&k, l, "fill"));
	CHECK(cuKernelGetFunction(&f, k));
	CHECK(cuLibraryUnload(l));
}

/* Without copies to pageable memory: what delivers those stays, since graphs do not tell when their last
 * replay is over (devshim/copy_turn.c). */
static void graphs(void)
{
	CUstream s;
	CUgraph g;
	CUgraphExec x;

	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(prog_launch(prog_function("fill"), target, 1, 100, 100, s));
	CHECK(cuStreamEndCapture(s, &g));
	CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
	CHECK(cuGraphLaunch(x, s));
	CHECK(cuStreamSynchronize(s));
	CHECK(cuMemcpyDtoH_v2(words, target, 400));
	REQUIRE(words[99] == 100);
	CHECK(cuGraphExecDestroy(x));
	CHECK(cuGraphDestroy(g));
	CHECK(cuStreamDestroy_v2(s));
}

static void contexts(void)
{
	CUcontext c;
	CUdeviceptr p;

	CHECK(cuCtxCreate_v2(&c, 0, prog_device));
	CHECK(cuMemAlloc_v2(&p, PIECE));
	CHECK(cuCtxDestroy_v2(c)); /* with it the memory */
	CHECK(cuCtxSetCurrent(prog_context));
}

static void arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {64, 64, CU_AD_FORMAT_FLOAT, 1};
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY};
	CUDA_TEXTURE_DESC t = {0};
	CUtexObject o;
	CUarray a;

	CHECK(cuArrayCreate_v2(&a, &d));
	r.res.array.hArray = a;
	CHECK(cuTexObjectCreate(&o, &r, &t, NULL));
	CHECK(cuTexObjectDestroy(o));
	CHECK(cuArrayDestroy(a));
}

/* What a real program does wrong, and is told. */
static void mistakes(void)
{
	CUfunction f;
	CUmodule m;

	REQUIRE(cuMemFree_v2(0x1234500) == CUDA_ERROR_INVALID_VALUE);
	REQUIRE(cuModuleLoadData(&m, "no image") == CUDA_ERROR_INVALID_IMAGE);
	REQUIRE(cuModuleGetFunction(&f, prog_module, "none") == CUDA_ERROR_NOT_FOUND);
}

static const struct {
	const char *name;
	void (*once)(void);
} ways[] = {{"memory", memory}, {"pools", pools}, {"host", host}, {"managed", managed}, {"streams", streams},
	{"modules", modules}, {"graphs", graphs}, {"contexts", contexts}, {"arrays", arrays},
	{"mistakes", mistakes}};

static void go_round(long rounds, const char *way)
{
	for (long i = 0; i < rounds; i++)
		for (unsigned w = 0; w < sizeof ways / sizeof *ways; w++)
			if (!way || !strcmp(way, ways[w].name))
				ways[w].once();
}

static void await_word(void)
{
	char word[16];

	REQUIRE(read(STDIN_FILENO, word, sizeof word) > 0);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100;
	const char *way = argc > 2 ? argv[2] : NULL;
	CUdeviceptr left;

	prog_up();
	CHECK(cuMemAlloc_v2(&target, PIECE));
	go_round(rounds / 5, way);
	say("ready");
	await_word();
	go_round(rounds, way);
	say("done");
	await_word();
	for (int i = 0; i < 8; i++)
		CHECK(cuMemAlloc_v2(&left, 64 << 20));
	return 0;
}
