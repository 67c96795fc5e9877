/* SPDX-License-Identifier: Apache-2.0 */
/* What the recorded answers of real drivers do not reach, on the software device alone: virtual memory
 * management, linking, arrays, memory operations of streams, host functions that call back, contexts that die
 * under their work, many threads, fork.
 *
 * Thread rule: each part says what its threads do. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/soft/driver/test.h"

static CUcontext ctx;
static CUfunction add;

static unsigned word(CUdeviceptr p)
{
	unsigned v = 0;
	OK(cuMemcpyDtoH_v2(&v, p, 4));
	return v;
}

static void launch(CUdeviceptr p, unsigned v, CUstream s)
{
	OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, s, (void *[]){&p, &v}, NULL));
}

/* The engine's workers keep a little for the next kernel; what the tests take is more than that. */
#define KEPT (256u << 10)

/* What the engine keeps for kernels is taken before memory is counted. */
static void warm_up(void)
{
	CUdeviceptr p;
	OK(cuMemAlloc_v2(&p, 4));
	launch(p, 0, NULL);
	OK(cuMemFree_v2(p));
}

/* ---- virtual memory: two addresses of the same memory, access given and taken */

static void vmm(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc rw = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
			none = rw;
	CUmemGenericAllocationHandle h, same;
	CUdeviceptr p, base;
	size_t unit, free0, free1, n;
	unsigned long long flags;
	none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	OK(cuMemGetInfo_v2(&free0, &n));
	IS(cuMemCreate(&h, unit + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemCreate(&h, 2 * unit, &prop, 0));
	OK(cuMemGetInfo_v2(&free1, &n));
	CHECK(free0 - free1 == 2 * unit);
	OK(cuMemAddressReserve(&p, 4 * unit, 0, 0, 0));
	IS(cuMemMap(p, 3 * unit, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(p, 2 * unit, 0, h, 0));
	IS(cuMemMap(p + unit, unit, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemsetD32_v2(p, 1, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(p + 2 * unit, 2 * unit, 0, h, 0));
	OK(cuMemSetAccess(p, 4 * unit, &rw, 1));
	OK(cuMemsetD32_v2(p, 5, unit / 2));
	launch(p + 2 * unit, 3, NULL);
	CHECK(word(p) == 8 && word(p + 2 * unit) == 8 && word(p + 4 * unit - 4) == 5);
	OK(cuMemcpyDtoD_v2(p + 4 * unit - 4, p, 4));
	CHECK(word(p + 2 * unit - 4) == 8);
	OK(cuMemsetD8_v2(p + unit, 1, 2 * unit)); /* across two mappings, which show the same */
	CHECK(word(p) == 0x01010101 && word(p + 4 * unit - 4) == 0x01010101);
	OK(cuMemGetAddressRange_v2(&base, &n, p + 3 * unit));
	CHECK(base == p + 2 * unit && n == 2 * unit);
	OK(cuMemGetAccess(&flags, &rw.location, p));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemSetAccess(p, 2 * unit, &none, 1));
	IS(cuMemsetD32_v2(p, 1, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)(p + 2 * unit)));
	CHECK(same == h);
	OK(cuMemRelease(h));
	OK(cuMemRelease(same));
	IS(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
	CHECK(word(p + 2 * unit) == 0x01010101);
	IS(cuMemAddressFree(p, 4 * unit), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(p, 4 * unit));
	OK(cuMemAddressFree(p, 4 * unit));
	OK(cuMemGetInfo_v2(&free1, &n));
	CHECK(free0 - free1 < KEPT);
}

/* ---- linking: a kernel that calls a function of another text */

static void linking(void)
{
	static char caller[] = PTX_HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
					".visible .entry go(.param .u64 p) { .reg .b32 %r<3>; .reg .b64 %d; "
					"ld.param.u64 %d,[p]; ld.u32 %r0,[%d];\n"
					" { .param .b32 a; .param .b32 b; st.param.b32 [a],%r0; call.uni "
					"(b), twice, (a); ld.param.b32 %r1,[b]; } st.u32 [%d],%r1; ret; }\n";
	static char callee[] = PTX_HEAD ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 "
					"%r<2>; ld.param.b32 %r0,[x];\n"
					" shl.b32 %r1,%r0,1; st.param.b32 [r],%r1; ret; }\n";
	char log[256] = "";
	CUjit_option o[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *v[] = {log, (void *)sizeof log}, *image;
	CUlinkState l;
	CUmodule m;
	CUfunction f;
	CUdeviceptr p;
	size_t n;
	OK(cuLinkCreate_v2(2, o, v, &l));
	OK(cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller", 0, NULL, NULL));
	IS(cuLinkComplete(l, &image, &n), CUDA_ERROR_INVALID_SOURCE);
	CHECK(strlen(log) > 0);
	OK(cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, callee, sizeof callee, "callee", 0, NULL, NULL));
	OK(cuLinkComplete(l, &image, &n));
	void *copy = malloc(n); /* the image needs nothing of the linker's */
	memcpy(copy, image, n);
	OK(cuLinkDestroy(l));
	OK(cuModuleLoadData(&m, copy));
	free(copy);
	OK(cuModuleGetFunction(&f, m, "go"));
	OK(cuMemAlloc_v2(&p, 4));
	OK(cuMemsetD32_v2(p, 21, 1));
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p}, NULL));
	CHECK(word(p) == 42);
	OK(cuMemFree_v2(p));
	OK(cuModuleUnload(m));
}

/* ---- arrays and mipmaps: boxes in and out */

/* Between contexts the one that is given with an array is not looked at, that of memory is. */
static void peer_array(CUarray a, const void *want)
{
	CUcontext c;
	CUdeviceptr p;
	unsigned char out[80];
	OK(cuCtxGetCurrent(&c));
	OK(cuMemAlloc_v2(&p, sizeof out));
	CUDA_MEMCPY3D_PEER k = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = a,
		.srcZ = 3,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = p,
		.WidthInBytes = sizeof out,
		.Height = 1,
		.Depth = 1};
	OK(cuMemcpy3DPeer(&k)); /* none is the current one */
	k.dstContext = (CUcontext)(uintptr_t)0xdead;
	IS(cuMemcpy3DPeer(&k), CUDA_ERROR_INVALID_CONTEXT);
	k.dstContext = c;
	OK(cuMemcpy3DPeer(&k));
	OK(cuMemcpyDtoH_v2(out, p, sizeof out));
	CHECK(!memcmp(out, want, sizeof out));
	OK(cuMemFree_v2(p));
}

static void arrays(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 20,
					.Height = 10,
					.Depth = 4,
					.Format = CU_AD_FORMAT_UNSIGNED_INT16,
					.NumChannels = 2},
				back;
	CUarray a, level;
	CUmipmappedArray mip;
	static unsigned char in[80 * 10 * 4], out[sizeof in];
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (unsigned char)(i * 7 + i / 256);
	OK(cuArray3DCreate_v2(&a, &d));
	OK(cuArray3DGetDescriptor_v2(&back, a));
	CHECK(back.Width == 20 && back.Height == 10 && back.Depth == 4 && back.Format == d.Format &&
		back.NumChannels == 2);
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = 80,
		.srcHeight = 10,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = a,
		.WidthInBytes = 80,
		.Height = 10,
		.Depth = 4};
	OK(cuMemcpy3D_v2(&c));
	CUDA_MEMCPY3D r = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = a,
		.srcXInBytes = 8,
		.srcY = 2,
		.srcZ = 1,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 80,
		.dstHeight = 10,
		.WidthInBytes = 40,
		.Height = 5,
		.Depth = 2};
	OK(cuMemcpy3D_v2(&r));
	for (int z = 0; z < 2; z++)
		for (int y = 0; y < 5; y++)
			CHECK(!memcmp(out + (z * 10 + y) * 80, in + ((z + 1) * 10 + y + 2) * 80 + 8, 40));
	r.srcXInBytes = 48;
	IS(cuMemcpy3D_v2(&r), CUDA_ERROR_INVALID_VALUE);
	peer_array(a, in + 80 * 10 * 3);
	OK(cuArrayDestroy(a));
	IS(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
	d = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = 16, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	OK(cuMipmappedArrayCreate(&mip, &d, 99));
	OK(cuMipmappedArrayGetLevel(&level, mip, 4));
	OK(cuArray3DGetDescriptor_v2(&back, level));
	CHECK(back.Width == 1 && back.Height == 1);
	IS(cuMipmappedArrayGetLevel(&level, mip, 5), CUDA_ERROR_INVALID_VALUE);
	OK(cuMipmappedArrayDestroy(mip));
	IS(cuArray3DGetDescriptor_v2(&back, level), CUDA_ERROR_INVALID_HANDLE);
}

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
	launch(p + 16, 1, s);
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

/* ---- a context dies while its stream works: the work is waited for, all its objects are gone */

/* exit() in a host function runs the program's destructors there, which end contexts: they do not wait for
 * the function. */
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
		launch(own, 1, s);
		OK(cuMemAlloc_v2(&back, 64));
		OK(cuMemcpyDtoDAsync_v2(back, own, 4, s));
		OK(cuMemFreeAsync(own, s));
		OK(cuEventRecord(turn[id], s));
		OK(cuStreamWaitEvent(s, turn[(id + 1) % THREADS], 0));
		OK(cuStreamSynchronize(s));
		CHECK(word(back) == id + 1);
		OK(cuMemFree_v2(back));
	}
	launch(shared_word, 1, CU_STREAM_LEGACY);
	launch(shared_word, 1, CU_STREAM_LEGACY);
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

/* ---- memory that a graph allocates has the same address in every launch and goes with the graph */

static void graph_memory(void)
{
	CUstream s;
	CUgraph g;
	CUgraphExec x;
	CUdeviceptr p, out;
	size_t free0, free1, n;
	OK(cuMemAlloc_v2(&out, 4));
	OK(cuMemGetInfo_v2(&free0, &n));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&p, 1 << 20, s));
	OK(cuMemsetD32Async(p, 30, 1, s));
	launch(p, 4, s);
	OK(cuMemcpyDtoDAsync_v2(out, p, 4, s));
	OK(cuMemFreeAsync(p, s));
	OK(cuStreamEndCapture(s, &g));
	OK(cuGraphInstantiateWithFlags(&x, g, 0));
	for (int i = 0; i < 3; i++) {
		OK(cuMemsetD32_v2(out, 0, 1));
		OK(cuGraphLaunch(x, s));
		OK(cuStreamSynchronize(s));
		CHECK(word(out) == 34);
	}
	OK(cuGraphExecDestroy(x));
	OK(cuGraphDestroy(g));
	OK(cuMemGetInfo_v2(&free1, &n));
	CHECK(free0 - free1 < KEPT);
	OK(cuStreamDestroy_v2(s));
	OK(cuMemFree_v2(out));
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

/* ---- kernels reach memory of the program's own while it is registered; one cannot be asked of an empty
 * image */

static void registered(void)
{
	static unsigned own[2048] __attribute__((aligned(4096)));
	CUdeviceptr d;
	own[5] = 40;
	OK(cuMemHostRegister_v2(own, sizeof own, CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemHostGetDevicePointer_v2(&d, own + 5, 0));
	launch(d, 2, NULL);
	OK(cuCtxSynchronize());
	CHECK(own[5] == 42);
	OK(cuMemHostUnregister(own));
	IS(cuMemHostGetDevicePointer_v2(&d, own, 0), CUDA_ERROR_INVALID_VALUE);
	static const uint32_t nothing[4] = {0xba55ed50u, 0x00100001u, 0, 0};
	CUlibrary l;
	CUkernel k;
	OK(cuLibraryLoadData(&l, nothing, NULL, NULL, 0, NULL, NULL, 0));
	IS(cuLibraryGetKernel(&k, l, "add"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	OK(cuLibraryUnload(l));
}

/* ---- batches of boxes: from a pitched buffer into an array and on into memory */

static void batches(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = 8, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	CUarray a;
	CUstream s;
	CUdeviceptr p;
	unsigned *pinned;
	OK(cuArray3DCreate_v2(&a, &d));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
	for (unsigned i = 0; i < 1024; i++)
		pinned[i] = i;
	CUDA_MEMCPY3D_BATCH_OP op[2] = {0};
	op[0].src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op[0].src.op.ptr.ptr = (uintptr_t)pinned;
	op[0].src.op.ptr.rowLength = 16;
	op[0].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	op[0].dst.op.array.array = a;
	op[0].extent = (CUextent3D){8, 4, 1};
	op[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	op[1] = op[0];
	op[1].src = op[0].dst;
	op[1].src.op.array.offset = (CUoffset3D){2, 1, 0};
	op[1].dst = op[0].src;
	op[1].dst.op.ptr.ptr = p;
	op[1].dst.op.ptr.rowLength = 0;
	op[1].extent = (CUextent3D){5, 3, 1};
	OK(cuMemcpy3DBatchAsync_v2(2, op, 0, s));
	OK(cuStreamSynchronize(s));
	CHECK(word(p) == 18 && word(p + 4 * 4) == 22 && word(p + 5 * 4) == 34 && word(p + 14 * 4) == 54);
	op[1].extent.width = 7;
	IS(cuMemcpy3DBatchAsync_v2(2, op, 0, s), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemcpy3DBatchAsync_v2(2, op, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(a));
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree_v2(p));
	OK(cuStreamDestroy_v2(s));
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

/* ---- reset: what lived in the primary context is gone, and it can be used again */

static void resets(void)
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
	add = function(add_ptx, "add");
	warm_up();
	event_of_the_dead(from, recorder);
	vmm();
	linking();
	arrays();
	memops();
	hosts();
	deaths();
	threads();
	graph_memory();
	registered();
	batches();
	pairs();
	forks();
	resets();
	puts("PASS features");
	return 0;
}
