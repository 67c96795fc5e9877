/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host: pinned with every flag, registered with every flag, read-only mappings, what cannot be
 * registered, and what the device sees of it. */
#include "check.h"

static void told(const char *what, void *p)
{
	CUmemorytype type = 99;
	unsigned flags = 99;
	CUdeviceptr d = 1;
	int managed = 99;
	CUresult r;

	r = cuMemHostGetFlags(&flags, p);
	SAY("%s: flags %s %#x", what, name_of(r), flags);
	r = cuMemHostGetDevicePointer(&d, p, 0);
	SAY("%s: device pointer %s same %d", what, name_of(r), d == ADDRESS(p));
	r = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ADDRESS(p));
	SAY("%s: type %s %d", what, name_of(r), type);
	r = cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, ADDRESS(p));
	SAY("%s: managed %s %d", what, name_of(r), managed);
}

/* A kernel writes n, the CPU reads it. */
static void written(const char *what, CUfunction store, void *p, unsigned n)
{
	CUdeviceptr d = 0;
	CUresult r = cuMemHostGetDevicePointer(&d, p, 0);

	if (!r)
		r = LAUNCH(store, NULL, &d, &n);
	if (!r)
		r = cuCtxSynchronize();
	SAY("%s: written %s %d", what, name_of(r), *(volatile unsigned *)p == n);
}

static void pinned(void)
{
	static const unsigned flags[] = {0, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP,
			CU_MEMHOSTALLOC_WRITECOMBINED,
		CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED};
	char what[16];
	void *p = NULL;

	begin();
	CUfunction store = kernel("store");
	for (unsigned i = 0; i < COUNT(flags); i++) {
		CUresult r = cuMemHostAlloc(&p, 8192, flags[i]);
		snprintf(what, sizeof what, "alloc %#x", flags[i]);
		SAY("%s -> %s", what, name_of(r));
		if (r)
			continue;
		told(what, p);
		written(what, store, p, 100 + i);
		ASK(cuMemFreeHost(p));
	}
	ASK(cuMemHostAlloc(&p, 4096, 8));
	ASK(cuMemHostAlloc(&p, 4096, 16));
	ASK(cuMemHostAlloc(&p, 0, 0));
	ASK(cuMemAllocHost(&p, 0));
	ASK(cuMemAllocHost(NULL, 4096));
	ASK(cuMemHostGetFlags(NULL, p));
	ASK(cuMemFreeHost(NULL));
	NEED(cuMemAllocHost(&p, 8192));
	ASK(cuMemFreeHost((char *)p + 64));
	ASK(cuMemHostUnregister(p));
	ASK(cuMemFree(ADDRESS(p)));
	ASK(cuMemFreeHost(p));
	ASK(cuMemFreeHost(p));
}

static void registered(void)
{
	static const unsigned flags[] = {0, CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP,
		CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP};
	unsigned char *heap = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *shared = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char what[24];
	CUdeviceptr d = 0;

	begin();
	CUfunction store = kernel("store");
	memset(heap, 1, 65536);
	for (unsigned i = 0; i < COUNT(flags); i++) {
		CUresult r = cuMemHostRegister(heap, 65536, flags[i]);
		snprintf(what, sizeof what, "register %#x", flags[i]);
		SAY("%s -> %s", what, name_of(r));
		if (r)
			continue;
		told(what, heap + 4096);
		written(what, store, heap + 4096, 200 + i);
		ASK(cuMemHostUnregister(heap));
	}
	VARY(cuMemHostRegister(heap, 65536, CU_MEMHOSTREGISTER_IOMEMORY));
	VARY(cuMemHostUnregister(heap));
	ASK(cuMemHostRegister(heap, 65536, 16));
	ASK(cuMemHostUnregister(heap + 4096));
	ASK(cuMemHostUnregister(NULL));
	/* A part, twice, overlapping, at an odd address and size. */
	ASK(cuMemHostRegister(heap + 8192, 8192, 0));
	ASK(cuMemHostRegister(heap + 8192, 8192, 0));
	ASK(cuMemHostRegister(heap + 12288, 8192, 0));
	ASK(cuMemHostRegister(heap, 65536, 0));
	ASK(cuMemHostUnregister(heap + 12288));
	ASK(cuMemHostUnregister(heap + 8192));
	ASK(cuMemHostRegister(heap + 100, 5000, 0));
	told("odd", heap + 104);
	ASK(cuMemHostUnregister(heap + 100));
	/* Pages that two processes share. */
	memset(shared, 2, 65536);
	ASK(cuMemHostRegister(shared, 65536, CU_MEMHOSTREGISTER_DEVICEMAP));
	written("shared", store, shared, 77);
	ASK(cuMemHostUnregister(shared));
	/* Pages that nobody has. */
	munmap(shared, 65536);
	ASK(cuMemHostRegister(shared, 65536, 0));
	ASK(cuMemHostGetDevicePointer(&d, heap, 0));
	ASK(cuMemHostGetDevicePointer(&d, heap, 5));
	ASK(cuMemHostGetDevicePointer(NULL, heap, 0));
}

static void read_only(void)
{
	unsigned char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr d;
	unsigned v = 0;

	begin();
	printf("~ read-only registration %d\n",
			attribute(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED));
	memset(p, 7, 65536);
	mprotect(p, 65536, PROT_READ);
	VARY(cuMemHostRegister(p, 65536, 0));
	VARY(cuMemHostUnregister(p));
	if (cuMemHostRegister(p, 65536, CU_MEMHOSTREGISTER_READ_ONLY) == CUDA_SUCCESS) {
		d = zeroed(64);
		NEED(cuMemcpyHtoDAsync(d, p, 64, NULL));
		NEED(cuMemcpyDtoH(&v, d, 4));
		SAY("read %x", v);
		ASK(cuMemHostUnregister(p));
	} else {
		SAY("read 7070707");
		SAY("cuMemHostUnregister(p) -> CUDA_SUCCESS");
	}
}

static void managed_flags(void)
{
	CUdeviceptr p = 0;
	CUmemorytype type = 99;
	int v = 99;
	unsigned *w;

	begin();
	CUfunction store = kernel("store");
	ASK(cuMemAllocManaged(&p, 4096, 0));
	ASK(cuMemAllocManaged(&p, 4096, 3));
	ASK(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
	ASK(cuMemAllocManaged(NULL, 4096, CU_MEM_ATTACH_GLOBAL));
	ASK(cuMemAllocManaged(&p, (size_t)1 << 60, CU_MEM_ATTACH_GLOBAL));
	ASK(cuMemAllocManaged(&p, 65536, CU_MEM_ATTACH_HOST));
	ASK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	ASK(cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	SAY("type %d managed %d", type, v);
	w = (unsigned *)(uintptr_t)p;
	*w = 5;
	ASK(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_GLOBAL));
	ASK(cuStreamAttachMemAsync(NULL, p, 0, 77));
	ASK(cuCtxSynchronize());
	v = 6;
	ASK(LAUNCH(store, NULL, &p, &v));
	ASK(cuCtxSynchronize());
	SAY("value %u", *w);
	ASK(cuMemHostRegister(w, 4096, 0));
	ASK(cuMemFree(p));
}

SECTIONS({"pinned", pinned}, {"registered", registered}, {"read_only", read_only},
		{"managed_flags", managed_flags})
