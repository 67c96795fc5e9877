/* SPDX-License-Identifier: Apache-2.0 */
/* `iteration N HOW`: N times what one step of a network asks of the driver, by the calls that PyTorch, JAX,
 * Triton, cuBLAS and cuDNN were seen to make: state, attributes, occupancy, pointers, launches, memsets,
 * copies to the device, events, a graph. HOW says what follows in each: `none`, or `read`: a read-back of
 * four bytes, and then synchronizations and queries of what is known to be complete. What a step needs but
 * once is done ahead of the first. One thread. */
#include "prog.h"

static CUstream stream, other, aside;
static CUevent event, timed;
static CUfunction function;
static CUkernel kernel;
static CUgraphExec graph;
static CUdeviceptr memory;
static unsigned *pinned;

static size_t no_shared(int block)
{
	(void)block;
	return 0;
}

static void host_function(void *counter)
{
	__atomic_fetch_add((int *)counter, 1, __ATOMIC_RELAXED);
}

/* Answered by what the shim knows. */
static void ask(void)
{
	int n, active, least, greatest, block, blocks;
	unsigned flags, version;
	size_t size;
	const char *text;
	char bus[32];
	CUdevice device;
	CUcontext context;
	CUfunction f;
	CUstreamCaptureStatus status;
	cuuint64_t id;
	unsigned long long number;
	CUdeviceptr start;
	CUmemorytype type;

	for (int i = 0; i < 10; i++) {
		CHECK(cuCtxGetDevice(&device));
		CHECK(cuCtxGetDevice_v2(&device, prog_context));
		CHECK(cuDevicePrimaryCtxGetState(prog_device, &flags, &active));
		CHECK(cuCtxGetCurrent(&context));
		CHECK(cuKernelGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, prog_device));
		CHECK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
	}
	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuCtxPushCurrent_v2(prog_context));
	CHECK(cuCtxPopCurrent_v2(&context));
	CHECK(cuKernelGetFunction(&f, kernel));
	CHECK(cuModuleGetFunction(&f, prog_module, "add"));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDeviceGetCount(&n));
	CHECK(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, prog_device));
	CHECK(cuDeviceGetPCIBusId(bus, sizeof(bus), prog_device));
	CHECK(cuDeviceTotalMem_v2(&size, prog_device));
	CHECK(cuDriverGetVersion(&n));
	CHECK(cuGetErrorString(CUDA_SUCCESS, &text));
	CHECK(cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE));
	CHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
	CHECK(cuCtxGetApiVersion(prog_context, &version));
	CHECK(cuCtxGetFlags(&flags));
	CHECK(cuCtxGetId(prog_context, &number));
	CHECK(cuStreamGetPriority(stream, &n));
	CHECK(cuStreamGetFlags(stream, &flags));
	CHECK(cuStreamGetCtx(stream, &context));
	CHECK(cuStreamGetId(stream, &number));
	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, 0));
	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, 256, 0, 0));
	CHECK(cuOccupancyMaxPotentialBlockSize(&blocks, &block, function, NULL, 0, 0));
	CHECK(cuOccupancyMaxPotentialBlockSize(&blocks, &block, function, no_shared, 0, 0));
	CHECK(cuOccupancyAvailableDynamicSMemPerBlock(&size, function, 1, 128));
	CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 16));
	CHECK(cuPointerGetAttributes(2, (CUpointer_attribute[]){CU_POINTER_ATTRIBUTE_CONTEXT,
			CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
			(void *[]){&context, &n}, memory));
	CHECK(cuMemGetAddressRange_v2(&start, &size, memory + 4));
	CHECK(cuStreamIsCapturing(stream, &status));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_NONE);
	CHECK(cuStreamGetCaptureInfo_v2(stream, &status, &id, NULL, NULL, NULL));
	CHECK(cuThreadExchangeStreamCaptureMode(&(CUstreamCaptureMode){CU_STREAM_CAPTURE_MODE_RELAXED}));
	CHECK(cuThreadExchangeStreamCaptureMode(&(CUstreamCaptureMode){CU_STREAM_CAPTURE_MODE_GLOBAL}));
}

static void *arguments[] = {&memory, &(unsigned){1}, &(unsigned){64}};

/* Sent on without an answer. */
static void work(int *calls)
{
	CUevent made;
	CUlaunchAttribute wait = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 0};
	CUlaunchConfig shape = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 64, .blockDimY = 1,
			.blockDimZ = 1,
		.hStream = stream, .attrs = &wait, .numAttrs = 1};
	unsigned word = 5;

	CHECK(cuMemcpyHtoDAsync_v2(memory, &word, sizeof(word), stream));
	CHECK(cuMemcpyHtoDAsync_v2(memory + 4, pinned, 252, stream));
	CHECK(cuMemsetD8Async(memory + 1024, 7, 100, stream));
	CHECK(cuMemsetD32Async(memory + 2048, 7, 100, stream));
	CHECK(cuMemcpyDtoDAsync_v2(memory + 3072, memory, 256, stream));
	CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
	CHECK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2048, kernel,
			prog_device));
	CHECK(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_L1));
	for (int i = 0; i < 10; i++)
		CHECK(prog_launch(function, memory, 1, 64, 64, i % 2 ? stream : NULL));
	CHECK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
	CHECK(cuLaunchKernelEx(&shape, function, arguments, NULL));
	CHECK(cuEventRecord(event, stream));
	CHECK(cuStreamWaitEvent(other, event, 0));
	CHECK(prog_launch(function, memory, 1, 64, 64, other));
	CHECK(cuEventRecordWithFlags(timed, other, CU_EVENT_RECORD_DEFAULT));
	CHECK(cuStreamWaitEvent(stream, timed, 0));
	CHECK(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventRecord(made, stream));
	CHECK(cuEventDestroy_v2(made));
	CHECK(cuGraphLaunch(graph, stream));
	CHECK(cuLaunchHostFunc(aside, host_function, calls));
	CHECK(cuMemcpyDtoHAsync_v2(pinned + 64, memory, 256, stream));
}

/* One wait, and what is known after it. */
static void read_back(void)
{
	unsigned word;

	CHECK(cuMemcpyDtoH_v2(&word, memory, sizeof(word)));
	REQUIRE(word > 5);
	CHECK(cuMemcpyHtoD_v2(memory + 512, pinned, 256));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuStreamSynchronize(NULL));
	CHECK(cuStreamQuery(stream));
	CHECK(cuStreamQuery(NULL));
	CHECK(cuEventQuery(event));
	CHECK(cuEventSynchronize(event));
}

static void prepare(void)
{
	CUlibrary library;
	CUgraph g;

	prog_up();
	function = prog_function("add");
	CHECK(cuLibraryLoadData(&library, prog_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&kernel, library, "add"));
	CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	CHECK(cuStreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, 0));
	CHECK(cuStreamCreate(&aside, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&timed, CU_EVENT_DEFAULT));
	CHECK(cuMemAlloc_v2(&memory, 1 << 20));
	CHECK(cuMemHostAlloc((void **)&pinned, 4096, 0));
	CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(prog_launch(function, memory, 1, 64, 64, stream));
	CHECK(cuStreamEndCapture(stream, &g));
	CHECK(cuGraphInstantiateWithFlags(&graph, g, 0));
}

int main(int argc, char **argv)
{
	int n, done = 0;

	REQUIRE(argc == 3);
	n = atoi(argv[1]);
	prepare();
	for (int i = 0; i <= n; i++) {
		ask();
		work(&done);
		if (i == 0 || !strcmp(argv[2], "read"))
			read_back();
	}
	CHECK(cuCtxSynchronize());
	REQUIRE(done == n + 1);
	return 0;
}
