/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of every kind: bounds, frees of what is none, address ranges, pointer attributes,
 * registration, pools. */
#include "pointer.h"

static char heap[8192] __attribute__((aligned(4096)));

static void device_memory(void)
{
	CUdeviceptr p, q, b;
	size_t n = 0, pitch, total;

	begin();
	ASK(cuMemAlloc(&p, 0));
	ASK(cuMemAlloc(NULL, 4));
	ASK(cuMemAlloc(&p, (size_t)1 << 52));
	ASK(cuMemAlloc(&p, SIZE_MAX));
	ASK(cuMemAlloc(&p, 3));
	SAY("aligned to 256: %d", p % 256 == 0);
	ASK(cuMemGetAddressRange(&b, &n, p + 2));
	SAY("base %d, %zu bytes", b == p, n);
	ASK(cuMemAlloc(&q, 3 << 20));
	ASK(cuMemGetAddressRange(&b, &n, q + 12345));
	SAY("base %d, %zu bytes", b == q, n);
	ASK(cuMemGetAddressRange(NULL, NULL, q));
	ASK(cuMemGetAddressRange(&b, &n, 64));
	ASK(cuMemGetAddressRange(&b, &n, ADDRESS(heap)));
	ASK(cuMemFree(q + 64));
	ASK(cuMemFree(64));
	ASK(cuMemFree(ADDRESS(heap)));
	ASK(cuMemFree(0));
	ASK(cuMemFree(p));
	ASK(cuMemFree(p));
	ASK(cuMemFree(q));
	ASK(cuMemGetAddressRange(&b, &n, q));
	ASK(cuMemcpyHtoD(q, heap, 4));
	ASK(cuMemsetD8(q, 0, 4));
	ASK(cuMemAllocPitch(&p, &pitch, 300, 20, 16));
	SAY("pitch %d", pitch >= 300 && pitch % 64 == 0);
	ASK(cuMemGetAddressRange(&b, &n, p));
	SAY("whole %d", n == pitch * 20);
	ASK(cuMemAllocPitch(&q, &pitch, 300, 20, 5));
	ASK(cuMemAllocPitch(&q, &pitch, 0, 20, 4));
	ASK(cuMemAllocPitch(&q, NULL, 300, 20, 4));
	ASK(cuMemFree(p));
	ASK(cuMemGetInfo(&n, &total));
	SAY("free within total %d", n <= total);
	ASK(cuMemGetInfo(NULL, NULL));
}

static void host_memory(void)
{
	CUdeviceptr p;
	void *h = NULL, *g = NULL;
	unsigned flags = 99;

	begin();
	ASK(cuMemAllocHost(&h, 3000));
	ASK(cuMemHostGetFlags(&flags, h));
	SAY("flags %#x", flags);
	ASK(cuMemHostGetDevicePointer(&p, h, 1));
	ASK(cuMemHostGetDevicePointer(&p, heap, 0));
	ASK(cuMemHostGetFlags(&flags, heap));
	memset(h, 7, 3000);
	ASK(cuMemFreeHost(h));
	ASK(cuMemHostAlloc(&h, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	ASK(cuMemHostGetFlags(&flags, h));
	SAY("flags %#x", flags);
	ASK(cuMemHostAlloc(&g, 4096, 0x40));
	ASK(cuMemHostAlloc(NULL, 4096, 0));
	ASK(cuMemHostAlloc(&g, (size_t)1 << 59, 0));
	ASK(cuMemFreeHost(heap));
	ASK(cuMemFreeHost(NULL));
	ASK(cuMemFree(ADDRESS(h)));
	ASK(cuMemFreeHost(h));
	ASK(cuMemHostRegister(heap, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	ASK(cuMemHostRegister(heap, 4096, 0));
	ASK(cuMemHostRegister(heap + 100, 100, 0));
	ASK(cuMemHostRegister(NULL, 4096, 0));
	ASK(cuMemHostRegister(heap + 4096, 0, 0));
	ASK(cuMemHostRegister(heap + 4096, 4096, 0x80));
	ASK(cuMemFreeHost(heap));
	ASK(cuMemHostUnregister(heap + 64));
	ASK(cuMemHostUnregister(heap));
	ASK(cuMemHostUnregister(heap));
	ASK(cuMemHostUnregister(NULL));
}

static void pointers(void)
{
	CUdeviceptr d;
	void *h, *out[2];
	unsigned type = 9;
	unsigned long long id1 = 0, id2 = 0;
	int is_managed = 9, on = 1;
	CUpointer_attribute both[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};

	begin();
	NEED(cuMemAlloc(&d, 5000));
	NEED(cuMemAllocHost(&h, 6000));
	NEED(cuMemHostRegister(heap, 8192, 0));
	show("device", d);
	show("inside device", d + 300);
	show("pinned", ADDRESS(h));
	show("registered", ADDRESS(heap + 40));
	show("none", ADDRESS(&d));
	show("zero", 0);
	ASK(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
	ASK(cuPointerGetAttribute(&type, 999, d));
	out[0] = &type;
	out[1] = &is_managed;
	ASK(cuPointerGetAttributes(2, both, out, d));
	SAY("%u %d", type, is_managed);
	ASK(cuPointerGetAttributes(2, both, out, ADDRESS(&d)));
	SAY("%u %d", type, is_managed);
	ASK(cuPointerGetAttributes(0, both, out, d));
	ASK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, d));
	ASK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ADDRESS(&d)));
	ASK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
	ASK(cuPointerGetAttribute(&id1, CU_POINTER_ATTRIBUTE_BUFFER_ID, d));
	ASK(cuMemFree(d));
	NEED(cuMemAlloc(&d, 5000));
	ASK(cuPointerGetAttribute(&id2, CU_POINTER_ATTRIBUTE_BUFFER_ID, d));
	SAY("another id %d", id1 != id2);
}

static void pools(void)
{
	CUmemoryPool def, cur, pool;
	CUmemPoolProps props;
	CUdeviceptr p, q;
	CUstream s;
	cuuint64_t v = 77;
	int on = 1;

	begin();
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ASK(cuDeviceGetDefaultMemPool(&def, device));
	ASK(cuDeviceGetMemPool(&cur, device));
	SAY("the default is current %d", def == cur);
	ASK(cuDeviceGetDefaultMemPool(&def, 4096));
	ASK(cuMemPoolGetAttribute(cur, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v));
	SAY("threshold %llu", (unsigned long long)v);
	v = 1 << 20;
	ASK(cuMemPoolSetAttribute(cur, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v));
	ASK(cuMemPoolSetAttribute(cur, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
	ASK(cuMemPoolGetAttribute(cur, 999, &v));
	ASK(cuMemAllocAsync(&p, 1000, s));
	ASK(cuMemsetD8Async(p, 1, 1000, s));
	ASK(cuMemFreeAsync(p, s));
	ASK(cuStreamSynchronize(s));
	ASK(cuMemFreeAsync(p, s));
	ASK(cuMemFree(p));
	ASK(cuMemAllocAsync(&p, 0, s));
	ASK(cuMemAllocAsync(NULL, 16, s));
	ASK(cuMemAllocAsync(&p, (size_t)1 << 50, s));
	ASK(cuMemFreeAsync(0, s));
	ASK(cuMemFreeAsync(64, s));
	ASK(cuMemAllocAsync(&p, 1000, s));
	ASK(cuMemFree(p));
	NEED(cuMemAlloc(&q, 1000));
	ASK(cuMemFreeAsync(q, s));
	ASK(cuStreamSynchronize(s));
	memset(&props, 0, sizeof(props));
	ASK(cuMemPoolCreate(&pool, &props));
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	ASK(cuMemPoolCreate(&pool, &props));
	ASK(cuMemAllocFromPoolAsync(&p, 5000, pool, s));
	ASK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v));
	SAY("used at least what was asked %d", v >= 5000);
	ASK(cuMemFreeAsync(p, s));
	ASK(cuStreamSynchronize(s));
	ASK(cuMemPoolTrimTo(pool, 0));
	ASK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &v));
	SAY("reserved %llu", (unsigned long long)v);
	ASK(cuDeviceSetMemPool(device, pool));
	ASK(cuMemAllocAsync(&p, 5000, s));
	ASK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v));
	SAY("from the pool that is set %d", v >= 5000);
	ASK(cuMemFreeAsync(p, s));
	ASK(cuStreamSynchronize(s));
	ASK(cuMemPoolDestroy(pool));
	ASK(cuMemPoolDestroy(NULL));
	ASK(cuMemPoolDestroy(def));
}

static void fill(void)
{
	CUdeviceptr p;
	CUstream s;

	begin();
	p = zeroed(4096);
	NEED(cuStreamCreate(&s, 0));
	ASK(cuMemsetD8(p, 1, 0));
	ASK(cuMemsetD8(p, 1, 4096));
	ASK(cuMemsetD8(p, 1, 4097));
	ASK(cuMemsetD8(p + 4000, 1, 97));
	ASK(cuMemsetD16(p + 2, 1, 10));
	ASK(cuMemsetD16(p + 1, 1, 10));
	ASK(cuMemsetD32(p + 4, 0x01020304, 10));
	ASK(cuMemsetD32(p + 2, 1, 10));
	ASK(cuMemsetD32(0, 1, 10));
	ASK(cuMemsetD32Async(p, 9, 1, s));
	ASK(cuMemsetD32Async(p, 9, 1025, s));
	ASK(cuMemsetD2D8(p, 64, 7, 32, 64));
	ASK(cuMemsetD2D8(p, 16, 7, 32, 4));
	ASK(cuMemsetD2D8(p, 64, 7, 32, 65));
	ASK(cuMemsetD2D32(p, 64, 7, 8, 4));
	ASK(cuMemsetD2D32(p, 62, 7, 8, 4));
	ASK(cuMemsetD2D32(p, 64, 7, 0, 4));
	ASK(cuStreamSynchronize(s));
	SAY("%#x", word(p));
}

SECTIONS({"device_memory", device_memory}, {"host_memory", host_memory}, {"pointers", pointers}, {"pools",
		pools}, {"fill", fill})
