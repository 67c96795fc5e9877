/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the software device that runs at the same time: a stream that waits for another's value, many
 * threads with a stream each, blocks that watch each other's stores.
 *
 * Thread rule: `threads` has threads of its own, the rest is main's. */
#include <pthread.h>
#include "tests/soft/driver/test.h"

static CUcontext ctx;
static CUfunction add;

/* ---- memory operations: a stream that waits for a value that another one writes */

static void memops(void)
{
	CUstream s, t;
	CUdeviceptr p;
	OK(cuMemAlloc_v2(&p, 64));
	OK(cuMemsetD8_v2(p, 0, 64));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWaitValue32_v2(s, p, 3, CU_STREAM_WAIT_VALUE_GEQ));
	launch(add, p + 16, 1, s);
	OK(cuStreamWriteValue32_v2(t, p, 2, 0));
	OK(cuStreamSynchronize(t));
	IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	OK(cuStreamWriteValue32_v2(t, p, 7, 0));
	OK(cuStreamSynchronize(s));
	OK(cuStreamWaitValue64_v2(s, p + 8, 0, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamWriteValue64_v2(s, p + 8, 1ull << 40, 0));
	OK(cuStreamSynchronize(s));
	CHECK(word(p) == 7 && word(p + 16) == 1 && word(p + 12) == 1 << 8);
	IS(cuStreamWaitValue32_v2(s, p + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy_v2(s));
	OK(cuStreamDestroy_v2(t));
	OK(cuMemFree_v2(p));
}

/* ---- many threads: each with a stream of its own, all adding to one word in turn through events */

enum { THREADS = 6, TURNS = 60 };
static CUdeviceptr shared_word;
static CUevent turn[THREADS];
static pthread_barrier_t gate;

static void *adder(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg;
	CUstream s;
	CUdeviceptr own, back;
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamCreate(&s, id & 1 ? CU_STREAM_NON_BLOCKING : 0));
	pthread_barrier_wait(&gate);
	for (int i = 0; i < TURNS; i++) {
		OK(cuMemAllocAsync(&own, 4096, s));
		OK(cuMemsetD32Async(own, id, 1, s));
		launch(add, own, 1, s);
		OK(cuMemAlloc_v2(&back, 64));
		OK(cuMemcpyDtoDAsync_v2(back, own, 4, s));
		OK(cuMemFreeAsync(own, s));
		OK(cuEventRecord(turn[id], s));
		OK(cuStreamWaitEvent(s, turn[(id + 1) % THREADS], 0));
		OK(cuStreamSynchronize(s));
		CHECK(word(back) == id + 1);
		OK(cuMemFree_v2(back));
	}
	launch(add, shared_word, 1, CU_STREAM_LEGACY);
	launch(add, shared_word, 1, CU_STREAM_LEGACY);
	OK(cuStreamDestroy_v2(s));
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	size_t free0, free1, n;
	OK(cuMemAlloc_v2(&shared_word, 4));
	OK(cuMemsetD32_v2(shared_word, 0, 1));
	OK(cuMemGetInfo_v2(&free0, &n));
	pthread_barrier_init(&gate, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		OK(cuEventCreate(&turn[i], CU_EVENT_DISABLE_TIMING));
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, adder, (void *)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	OK(cuCtxSynchronize());
	CHECK(word(shared_word) == 2 * THREADS);
	OK(cuMemGetInfo_v2(&free1, &n));
	CHECK(free0 - free1 < KEPT);
}

/* ---- a pair that one block writes and another one watches is never seen by halves */

static void pairs(void)
{
	static const char ptx[] = PTX_HEAD
		".visible .entry watch(.param .u64 p) { .reg .pred %q<2>; .reg .b32 %r<6>; .reg .b64 %d;\n"
		" ld.param.u64 %d,[p]; mov.u32 %r0,%ctaid.x; setp.ne.u32 %q0,%r0,0; mov.u32 %r1,0; @%q0 bra "
		"R;\n"
		"W: st.relaxed.gpu.v2.u32 [%d],{%r1,%r1}; add.u32 %r1,%r1,1; setp.lt.u32 %q1,%r1,300000;\n"
		" @%q1 bra W; ret;\n"
		"R: ld.relaxed.gpu.v2.u32 {%r2,%r3},[%d]; setp.ne.u32 %q1,%r2,%r3; @%q1 bra B;\n"
		" add.u32 %r1,%r1,1; setp.lt.u32 %q1,%r1,300000; @%q1 bra R; ret;\n"
		"B: mov.u32 %r4,1; st.global.u32 [%d+8],%r4; ret; }\n";
	CUfunction f = function(ptx, "watch");
	CUdeviceptr p;
	OK(cuMemAlloc_v2(&p, 16));
	OK(cuMemsetD8_v2(p, 0, 16));
	OK(cuLaunchKernel(f, 2, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p}, NULL));
	CHECK(word(p) == 299999 && word(p + 4) == 299999 && word(p + 8) == 0);
	OK(cuMemFree_v2(p));
}

int main(void)
{
	ctx = device_up();
	add = function(add_ptx, "add");
	warm_up(add);
	memops();
	threads();
	pairs();
	puts("PASS together");
	return 0;
}
