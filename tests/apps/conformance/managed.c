/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that both sides use: managed allocations and the device's view of pinned memory. A program of its
 * own, since a device may have none of it: then it says so and nothing else. */
#include "pointer.h"

static char heap[8192] __attribute__((aligned(4096)));

static void managed(void)
{
	CUdeviceptr m;

	ASK(cuMemAllocManaged(&m, 7000, CU_MEM_ATTACH_GLOBAL));
	show("managed", m + 8);
	ASK(cuMemAllocManaged(&m, 0, CU_MEM_ATTACH_GLOBAL));
	ASK(cuMemAllocManaged(&m, 64, 0));
	ASK(cuMemAllocManaged(&m, 64, CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST));
	ASK(cuMemAllocManaged(&m, 64, CU_MEM_ATTACH_HOST));
}

static void mapped(void)
{
	CUdeviceptr p;
	void *h;
	unsigned v = 31, *words;
	CUfunction f = kernel("store");

	NEED(cuMemAllocHost(&h, 3000));
	ASK(cuMemHostGetDevicePointer(&p, h, 0));
	SAY("same address %d", p == ADDRESS(h));
	words = h;
	words[0] = 0;
	ASK(LAUNCH(f, NULL, &p, &v));
	ASK(cuCtxSynchronize());
	SAY("a kernel wrote %u", words[0]);
	ASK(cuMemHostRegister(heap, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	ASK(cuMemHostGetDevicePointer(&p, heap + 64, 0));
	SAY("same address %d", p == ADDRESS(heap + 64));
	ASK(LAUNCH(f, NULL, &p, &v));
	ASK(cuCtxSynchronize());
	SAY("a kernel wrote %u", *(unsigned *)(heap + 64));
	ASK(cuMemHostUnregister(heap));
	ASK(cuMemFreeHost(h));
}

static void both(void)
{
	CUdeviceptr p;

	begin();
	if (cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_NOT_SUPPORTED) {
		SAY("not supported by this device");
		return;
	}
	managed();
	mapped();
}

SECTIONS({"both", both})
