/* SPDX-License-Identifier: Apache-2.0 */
/* Captures the same work ROUNDS times, instantiates it now and then, and runs it: copies between the device
 * and pageable memory both ways, a rectangle, a host function; and builds a graph of such nodes by hand. The
 * last graph and one of the first still do what they should. Says "ready" after 100 rounds, "done" after
 * all, waits for a word after each. */
#include "tests/e2e/progs/prog.h"

enum { N = 1024 };
static unsigned from[N], to[N], box[64 * 64];
static CUdeviceptr d;
static CUstream s;
static int ran;

static void wait_for_word(void)
{
	char line[16];

	REQUIRE(fgets(line, sizeof line, stdin));
}

static void host(void *p)
{
	(*(int *)p)++;
}

static CUgraph capture(void)
{
	CUDA_MEMCPY2D rectangle = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = d,
		.srcPitch = 64,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = box,
		.dstPitch = 256,
		.WidthInBytes = 64,
		.Height = 16};
	CUgraph g;

	CHECK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuMemcpyHtoDAsync_v2(d, from, sizeof from, s));
	CHECK(cuMemcpyDtoHAsync_v2(to, d, sizeof to, s));
	CHECK(cuMemcpy2DAsync_v2(&rectangle, s));
	CHECK(cuLaunchHostFunc(s, host, &ran));
	CHECK(cuStreamEndCapture(s, &g));
	return g;
}

static void add_by_hand(void)
{
	CUDA_HOST_NODE_PARAMS p = {.fn = host, .userData = &ran};
	CUgraphNode node;
	CUgraph g;

	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphAddHostNode(&node, g, NULL, 0, &p));
	CHECK(cuGraphDestroy(g));
}

static void run(CUgraphExec e, unsigned value)
{
	int before = ran;

	for (unsigned i = 0; i < N; i++)
		from[i] = value + i, to[i] = 0;
	memset(box, 0, sizeof box);
	CHECK(cuGraphLaunch(e, s));
	CHECK(cuStreamSynchronize(s));
	REQUIRE(ran == before + 1);
	for (unsigned i = 0; i < N; i++)
		REQUIRE(to[i] == value + i);
	for (unsigned row = 0; row < 16; row++)
		for (unsigned i = 0; i < 16; i++)
			REQUIRE(box[row * 64 + i] == value + row * 16 + i);
}

static CUgraphExec instantiate(void)
{
	CUgraph g = capture();
	CUgraphExec e;

	CHECK(cuGraphInstantiateWithFlags(&e, g, 0));
	CHECK(cuGraphDestroy(g));
	return e;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1000;

	prog_up();
	CHECK(cuMemAlloc_v2(&d, sizeof from));
	CHECK(cuStreamCreate(&s, 0));
	CUgraphExec first = instantiate();
	for (long i = 0; i < rounds; i++) {
		if (i == 100) {
			say("ready");
			wait_for_word();
		}
		if (i % 100) {
			CHECK(cuGraphDestroy(capture()));
			continue;
		}
		CUgraphExec e = instantiate();
		run(e, (unsigned)i);
		CHECK(cuGraphExecDestroy(e));
		add_by_hand();
	}
	run(first, 5);
	say("done");
	wait_for_word();
	return 0;
}
