/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU that is elsewhere cannot do: graphics, external memory and semaphores, checkpoints,
 * decompression, functions of both sides. The codes that a real driver gives a program that only looks
 * whether they are there. */
#include "check.h"

static void graphics(void)
{
	CUgraphicsResource none = NULL;
	CUarray a;
	CUmipmappedArray m;
	CUdeviceptr p;
	size_t n;

	begin();
	VARY(cuGraphicsMapResources(0, NULL, NULL));
	ASK(cuGraphicsMapResources(1, &none, NULL));
	VARY(cuGraphicsMapResources(1, NULL, NULL));
	VARY(cuGraphicsUnmapResources(0, NULL, NULL));
	ASK(cuGraphicsUnmapResources(1, &none, NULL));
	ASK(cuGraphicsUnregisterResource(NULL));
	ASK(cuGraphicsSubResourceGetMappedArray(&a, NULL, 0, 0));
	ASK(cuGraphicsResourceGetMappedMipmappedArray(&m, NULL));
	ASK(cuGraphicsResourceGetMappedPointer(&p, &n, NULL));
	ASK(cuGraphicsResourceSetMapFlags(NULL, 0));
}

static void external(void)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC memory = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
			.size = 65536};
	CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC semaphore = {.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD};
	CUexternalMemory em = NULL;
	CUexternalSemaphore es = NULL;
	int v = -1;

	begin();
	memory.handle.fd = -1;
	semaphore.handle.fd = -1;
	VARY(cuImportExternalMemory(NULL, &memory));
	VARY(cuImportExternalMemory(&em, NULL));
	VARY(cuImportExternalMemory(&em, &memory));
	memory.type = 77;
	VARY(cuImportExternalMemory(&em, &memory));
	ASK(cuDestroyExternalMemory(NULL));
	VARY(cuImportExternalSemaphore(NULL, &semaphore));
	VARY(cuImportExternalSemaphore(&es, NULL));
	VARY(cuImportExternalSemaphore(&es, &semaphore));
	semaphore.type = 77;
	VARY(cuImportExternalSemaphore(&es, &semaphore));
	ASK(cuDestroyExternalSemaphore(NULL));
	ASK(cuSignalExternalSemaphoresAsync(NULL, NULL, 0, NULL));
	ASK(cuWaitExternalSemaphoresAsync(NULL, NULL, 0, NULL));
	ASK(cuSignalExternalSemaphoresAsync(NULL, NULL, 1, NULL));
	ASK(cuWaitExternalSemaphoresAsync(NULL, NULL, 1, NULL));
	VARY(cuDeviceGetNvSciSyncAttributes(NULL, device, CUDA_NVSCISYNC_ATTR_SIGNAL));
	VARY(cuDeviceGetNvSciSyncAttributes(NULL, device, 0));
	VARY(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device));
	printf("~ dma-buf %d\n", v);
}

static void external_nodes(void)
{
	CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal = {0};
	CUDA_EXT_SEM_WAIT_NODE_PARAMS wait = {0};
	CUexternalSemaphore one = NULL;
	CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS sp = {0};
	CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wp = {0};
	CUgraph g;
	CUgraphNode n = NULL, empty;
	CUgraphExec e;

	begin();
	NEED(cuGraphCreate(&g, 0));
	NEED(cuGraphAddEmptyNode(&empty, g, NULL, 0));
	VARY(cuGraphAddExternalSemaphoresSignalNode(&n, g, NULL, 0, NULL));
	VARY(cuGraphAddExternalSemaphoresSignalNode(&n, g, NULL, 0, &signal));
	VARY(cuGraphAddExternalSemaphoresWaitNode(&n, g, NULL, 0, NULL));
	VARY(cuGraphAddExternalSemaphoresWaitNode(&n, g, NULL, 0, &wait));
	signal.extSemArray = wait.extSemArray = &one;
	signal.numExtSems = wait.numExtSems = 1;
	signal.paramsArray = &sp;
	wait.paramsArray = &wp;
	VARY(cuGraphAddExternalSemaphoresSignalNode(&n, g, NULL, 0, &signal));
	VARY(cuGraphAddExternalSemaphoresWaitNode(&n, g, NULL, 0, &wait));
	ASK(cuGraphExternalSemaphoresSignalNodeGetParams(empty, &signal));
	ASK(cuGraphExternalSemaphoresSignalNodeSetParams(empty, &signal));
	ASK(cuGraphExternalSemaphoresWaitNodeGetParams(empty, &wait));
	ASK(cuGraphExternalSemaphoresWaitNodeSetParams(empty, &wait));
	NEED(cuGraphInstantiate(&e, g, 0));
	ASK(cuGraphExecExternalSemaphoresSignalNodeSetParams(e, empty, &signal));
	ASK(cuGraphExecExternalSemaphoresWaitNodeSetParams(e, empty, &wait));
}

static void checkpoints(void)
{
	CUprocessState state = 77;
	int tid = -7;

	begin();
	VARY(cuCheckpointProcessGetState(0, &state));
	VARY(cuCheckpointProcessGetState(-1, &state));
	VARY(cuCheckpointProcessGetState(0x3ffffffe, &state));
	VARY(cuCheckpointProcessGetState(0x3ffffffe, NULL));
	VARY(cuCheckpointProcessGetRestoreThreadId(0x3ffffffe, &tid));
	VARY(cuCheckpointProcessGetRestoreThreadId(0x3ffffffe, NULL));
	SAY("untouched %d %d", state == 77, tid == -7);
	VARY(cuCheckpointProcessLock(0x3ffffffe, NULL));
	VARY(cuCheckpointProcessCheckpoint(0x3ffffffe, NULL));
	VARY(cuCheckpointProcessRestore(0x3ffffffe, NULL));
	VARY(cuCheckpointProcessUnlock(0x3ffffffe, NULL));
	VARY(cuCheckpointProcessGetState(getpid(), &state));
	VARY(cuCheckpointProcessGetRestoreThreadId(getpid(), &tid));
	printf("~ state %d, thread %d\n", state, tid > 0);
}

static void decompression(void)
{
	CUmemDecompressParams params = {0};
	CUdeviceptr p;
	size_t at = 7;
	int v = -1;
	CUstream s;

	begin();
	p = zeroed(65536);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ASK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, device));
	printf("~ algorithms %d\n", v);
	ASK(cuMemBatchDecompressAsync(NULL, 0, 0, &at, s));
	ASK(cuMemBatchDecompressAsync(NULL, 1, 0, &at, s));
	params.algo = CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE;
	params.srcNumBytes = 64;
	params.dstNumBytes = 64;
	params.src = (void *)(uintptr_t)p;
	params.dst = (void *)(uintptr_t)(p + 32768);
	ASK(cuMemBatchDecompressAsync(&params, 1, 0, &at, s));
	ASK(cuMemBatchDecompressAsync(&params, 1, 5, &at, s));
	ASK(cuMemBatchDecompressAsync(&params, 1, 0, NULL, s));
	ASK(cuStreamSynchronize(s));
}

static void both_sides(void)
{
	CUlibrary l;
	void *f = &f;
	int fd = -7;
	CUdeviceptr p;

	begin();
	NEED(cuLibraryLoadData(&l, kernels, NULL, NULL, 0, NULL, NULL, 0));
	ASK(cuLibraryGetUnifiedFunction(&f, l, "nobody"));
	ASK(cuLibraryGetUnifiedFunction(&f, l, "store"));
	ASK(cuLibraryGetUnifiedFunction(NULL, l, "store"));
	SAY("untouched %d", f == &f);
	NEED(cuMemAlloc(&p, 2 << 20));
	VARY(cuMemGetHandleForAddressRange(&fd, p, 2 << 20, 77, 0));
	VARY(cuMemGetHandleForAddressRange(NULL, p, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	VARY(cuMemGetHandleForAddressRange(&fd, p, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	printf("~ file %d\n", fd >= 0);
}

SECTIONS({"graphics", graphics}, {"external", external}, {"external_nodes", external_nodes},
	{"checkpoints", checkpoints}, {"decompression", decompression}, {"both_sides", both_sides})
