/* SPDX-License-Identifier: Apache-2.0 */
/* The software device's memory, where the recorded answers of real drivers do not reach: virtual memory
 * management, arrays, batches of boxes, memory of graphs, the program's own memory registered.
 *
 * Thread rule: main's thread. */
#include "tests/soft/driver/test.h"

static CUfunction add;

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
	launch(add, p + 2 * unit, 3, NULL);
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
	launch(add, p, 4, s);
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

/* ---- kernels reach memory of the program's own while it is registered */

static void registered(void)
{
	static unsigned own[2048] __attribute__((aligned(4096)));
	CUdeviceptr d;
	own[5] = 40;
	OK(cuMemHostRegister_v2(own, sizeof own, CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemHostGetDevicePointer_v2(&d, own + 5, 0));
	launch(add, d, 2, NULL);
	OK(cuCtxSynchronize());
	CHECK(own[5] == 42);
	OK(cuMemHostUnregister(own));
	IS(cuMemHostGetDevicePointer_v2(&d, own, 0), CUDA_ERROR_INVALID_VALUE);
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

int main(void)
{
	device_up();
	add = function(add_ptx, "add");
	warm_up(add);
	vmm();
	arrays();
	graph_memory();
	registered();
	batches();
	puts("PASS memory");
	return 0;
}
