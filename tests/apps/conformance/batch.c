/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: copies of bytes and of boxes, prefetches and discards of managed memory; which batch is refused,
 * and what a source that may be read early means. */
#include "check.h"
#include <stdbool.h>
#include <dlfcn.h>

#define N 4096

static CUstream stream;

static void start(void)
{
	begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static CUmemcpyAttributes attr(CUmemcpySrcAccessOrder order)
{
	return (CUmemcpyAttributes){.srcAccessOrder = order};
}

static unsigned sum(const unsigned char *p, size_t n)
{
	unsigned s = 0;

	for (size_t i = 0; i < n; i++)
		s = s * 31 + p[i];
	return s;
}

static void count_up(unsigned char *p, size_t n, unsigned from)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(from + i * 7);
}

static void linear(void)
{
	static unsigned char own[N], back[N];
	CUmemcpyAttributes a[2] = {attr(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM),
			attr(CU_MEMCPY_SRC_ACCESS_ORDER_ANY)};
	size_t start_at[2] = {0, 2};
	unsigned char *pinned;
	CUdeviceptr d, e, m, dst[5], src[5];
	size_t sizes[5] = {1000, 500, 700, 300, 64};

	start();
	d = zeroed(N), e = zeroed(N);
	NEED(cuMemAllocManaged(&m, N, CU_MEM_ATTACH_GLOBAL));
	NEED(cuMemAllocHost((void **)&pinned, N));
	count_up(own, N, 1), count_up(pinned, N, 50), count_up((unsigned char *)m, N, 99);
	NEED(cuMemsetD8(e, 42, N));
	NEED(cuCtxSynchronize());
	dst[0] = d, src[0] = ADDRESS(own);
	dst[1] = d + 1000, src[1] = ADDRESS(pinned);
	dst[2] = d + 1500, src[2] = m + 8;
	dst[3] = d + 2200, src[3] = e;
	dst[4] = d + 2500, src[4] = ADDRESS(own + 100);
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 5, a, start_at, 2, stream));
	NEED(cuStreamSynchronize(stream));
	NEED(cuMemcpyDtoH(back, d, N));
	SAY("device has %u %u %u %u %u", sum(back, 1000), sum(back + 1000, 500), sum(back + 1500, 700),
		sum(back + 2200, 300), sum(back + 2500, 64));
	/* and back */
	dst[0] = ADDRESS(own), src[0] = d + 64;
	dst[1] = ADDRESS(pinned), src[1] = d + 64;
	dst[2] = m, src[2] = d + 64;
	dst[3] = e, src[3] = d + 64;
	dst[4] = ADDRESS(own + 2000), src[4] = ADDRESS(pinned + 3000);
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 5, a, start_at, 1, stream));
	NEED(cuStreamSynchronize(stream));
	NEED(cuMemcpyDtoH(back, e, N));
	SAY("host has %u %u %u, device %u, host to host %u", sum(own, 1000), sum(pinned, 500),
		sum((unsigned char *)m, 700), sum(back, 300), sum(own + 2000, 64));
}

static void refused(void)
{
	CUmemcpyAttributes a[2] = {attr(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM),
			attr(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)};
	size_t at[2] = {0, 1}, sizes[2] = {16, 16}, failed = 77;
	CUdeviceptr d, dst[2], src[2];
	CUresult (*old)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *,
			size_t, size_t *,
		CUstream) = NULL;

	start();
	d = zeroed(N);
	dst[0] = d, dst[1] = d + 16, src[0] = d + 100, src[1] = d + 200;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 0, a, at, 1, stream));
	ASK(cuMemcpyBatchAsync(NULL, src, sizes, 2, a, at, 1, stream));
	ASK(cuMemcpyBatchAsync(dst, src, NULL, 2, a, at, 1, stream));
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 0, stream));
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, NULL, at, 1, stream));
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, NULL, 1, stream));
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 1, a, at, 2, stream));
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 1, NULL));
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 1, CU_STREAM_LEGACY));
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 1, CU_STREAM_PER_THREAD));
	at[0] = 1;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 1, stream));
	at[0] = 0, at[1] = 2;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 2, stream));
	at[1] = 0;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 2, stream));
	at[1] = 1;
	a[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 2, stream));
	a[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY + 1;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 2, stream));
	a[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	a[1].flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 2, stream));
	a[1].flags = 2;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 2, stream));
	a[1].flags = 0;
	sizes[1] = 0;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 1, stream));
	sizes[1] = 16;
	dst[1] = 0;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 1, stream));
	dst[1] = d + 16;
	sizes[1] = N;
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, a, at, 1, stream));
	/* the first version tells which one failed */
	*(void **)&old = dlsym(RTLD_DEFAULT, "cuMemcpyBatchAsync");
	if (old) {
		CUresult r = old(dst, src, sizes, 2, a, at, 1, &failed, stream);

		SAY("the first version -> %s, failed %zd", name_of(r), (ssize_t)failed);
		sizes[1] = 16, failed = 77;
		r = old(dst, src, sizes, 2, a, at, 1, &failed, stream);
		SAY("the first version -> %s, failed %zd", name_of(r), (ssize_t)failed);
		r = old(dst, src, sizes, 2, a, at, 0, &failed, stream);
		SAY("the first version -> %s, failed %zd", name_of(r), (ssize_t)failed);
	}
	ASK(cuStreamSynchronize(stream));
}

/* Pinned memory is changed behind the call, while the stream is held; a batch with other memory would wait
 * for it. */
static void early(void)
{
	unsigned *pinned;
	start();
	NEED(cuMemAllocHost((void **)&pinned, N));
	for (CUmemcpySrcAccessOrder o = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM; o <=
			CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
		o++) {
		CUmemcpyAttributes a = attr(o);
		size_t at = 0, sizes[2] = {4, 4};
		CUdeviceptr d = zeroed(64), dst[2] = {d, d + 4},
				src[2] = {ADDRESS(pinned), ADDRESS(pinned + 1)};

		/* A call that is to have read its sources when it returns waits for the stream. */
		bool held = o == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;

		pinned[0] = 5;
		if (held)
			NEED(close_gate(stream));
		ASK(cuMemcpyBatchAsync(dst, src, sizes, 2, &a, &at, 1, stream));
		pinned[0] = 105;
		if (held)
			open_gate();
		NEED(cuStreamSynchronize(stream));
		SAY("order %d: %u of pinned memory", o, word(d));
	}
}

static void captured(void)
{
	CUmemcpyAttributes a = attr(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
	size_t at = 0, sizes[1] = {4};
	CUdeviceptr d, dst[1], src[1];
	CUgraph g = NULL;

	start();
	d = zeroed(64), dst[0] = d, src[0] = d + 8;
	NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(cuMemcpyBatchAsync(dst, src, sizes, 1, &a, &at, 1, stream));
	ASK(cuStreamEndCapture(stream, &g));
}

/* ---- boxes */

static CUmemcpy3DOperand pointer(CUdeviceptr p, size_t row, size_t height)
{
	CUmemcpy3DOperand o = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER};

	o.op.ptr.ptr = p;
	o.op.ptr.rowLength = row;
	o.op.ptr.layerHeight = height;
	return o;
}

static CUmemcpy3DOperand array(CUarray a, size_t x, size_t y, size_t z)
{
	CUmemcpy3DOperand o = {.type = CU_MEMCPY_OPERAND_TYPE_ARRAY};

	o.op.array.array = a;
	o.op.array.offset = (CUoffset3D){x, y, z};
	return o;
}

static CUDA_MEMCPY3D_BATCH_OP op(CUmemcpy3DOperand src, CUmemcpy3DOperand dst, size_t w, size_t h, size_t d)
{
	return (CUDA_MEMCPY3D_BATCH_OP){.src = src,
		.dst = dst,
		.extent = {w, h, d},
		.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
}

static void boxes(void)
{
	static unsigned char own[N], back[N];
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 16, .Height = 8, .Depth = 4,
			.Format = CU_AD_FORMAT_UNSIGNED_INT16,
		.NumChannels = 2};
	CUDA_MEMCPY3D_BATCH_OP o[3];
	CUdeviceptr d, e;
	CUarray a, b;

	start();
	d = zeroed(N), e = zeroed(N);
	count_up(own, N, 3);
	NEED(cuArray3DCreate(&a, &desc));
	desc.Format = CU_AD_FORMAT_UNSIGNED_INT8;
	NEED(cuArray3DCreate(&b, &desc));
	/* bytes between pointers, tight and with room */
	o[0] = op(pointer(ADDRESS(own), 0, 0), pointer(d, 0, 0), 10, 4, 3);
	o[1] = op(pointer(ADDRESS(own), 32, 6), pointer(d + 1000, 20, 5), 10, 4, 3);
	/* elements of four bytes */
	o[2] = op(pointer(ADDRESS(own), 16, 8), array(a, 0, 0, 0), 16, 8, 4);
	ASK(cuMemcpy3DBatchAsync(3, o, 0, stream));
	NEED(cuStreamSynchronize(stream));
	NEED(cuMemcpyDtoH(back, d, N));
	SAY("pointers %u %u %u", sum(back, 120), sum(back + 120, 880), sum(back + 1000, 400));
	o[0] = op(array(a, 3, 2, 1), pointer(e, 0, 0), 5, 4, 2);
	ASK(cuMemcpy3DBatchAsync(1, o, 0, stream));
	NEED(cuStreamSynchronize(stream));
	NEED(cuMemcpyDtoH(back, e, N));
	SAY("array %u %u", sum(back, 160), sum(back + 160, 200));
	o[0] = op(array(a, 0, 0, 0), array(a, 8, 0, 2), 4, 4, 1);
	o[1] = op(array(a, 8, 4, 3), pointer(ADDRESS(back), 0, 0), 4, 4, 1);
	ASK(cuMemcpy3DBatchAsync(2, o, 0, stream));
	NEED(cuStreamSynchronize(stream));
	SAY("array to array and back %u", sum(back, 64));
	o[0] = op(array(a, 0, 0, 0), array(b, 0, 0, 0), 4, 4, 1);
	ASK(cuMemcpy3DBatchAsync(1, o, 0, stream));
	o[0] = op(pointer(d, 9, 0), pointer(e, 0, 0), 10, 4, 3);
	ASK(cuMemcpy3DBatchAsync(1, o, 0, stream));
	o[0] = op(pointer(d, 0, 3), pointer(e, 0, 0), 10, 4, 3);
	ASK(cuMemcpy3DBatchAsync(1, o, 0, stream));
	o[0] = op(pointer(d, 0, 0), pointer(e, 0, 0), 10, 0, 3);
	ASK(cuMemcpy3DBatchAsync(1, o, 0, stream));
	o[0] = op(array(a, 10, 0, 0), pointer(e, 0, 0), 10, 1, 1);
	ASK(cuMemcpy3DBatchAsync(1, o, 0, stream));
	o[0] = op(pointer(d, 0, 0), pointer(e, 0, 0), 10, 4, 3);
	o[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	ASK(cuMemcpy3DBatchAsync(1, o, 0, stream));
	o[0] = op(pointer(d, 0, 0), pointer(e, 0, 0), 10, 4, 3);
	o[0].src.type = 3;
	ASK(cuMemcpy3DBatchAsync(1, o, 0, stream));
	o[0].src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	ASK(cuMemcpy3DBatchAsync(0, o, 0, stream));
	ASK(cuMemcpy3DBatchAsync(1, NULL, 0, stream));
	ASK(cuMemcpy3DBatchAsync(1, o, 1, stream));
	ASK(cuMemcpy3DBatchAsync(1, o, 0, NULL));
	ASK(cuMemcpy3DBatchAsync(1, o, 0, stream));
	ASK(cuStreamSynchronize(stream));
}

/* ---- managed memory */

static void managed(void)
{
	CUmemLocation l[2] = {{.type = CU_MEM_LOCATION_TYPE_DEVICE}, {.type = CU_MEM_LOCATION_TYPE_HOST}};
	size_t sizes[3] = {4096, 8192, 100}, at[2] = {0, 1};
	CUdeviceptr p[3], d;
	unsigned *words;

	start();
	if (!attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)) {
		SAY("not supported by this device");
		return;
	}
	for (int i = 0; i < 3; i++)
		NEED(cuMemAllocManaged(&p[i], 1 << 16, CU_MEM_ATTACH_GLOBAL));
	words = (unsigned *)p[0];
	words[0] = 11;
	ASK(cuMemPrefetchBatchAsync(p, sizes, 3, l, at, 2, 0, stream));
	ASK(cuStreamSynchronize(stream));
	SAY("reads %u", words[0]);
	ASK(cuMemPrefetchBatchAsync(p, sizes, 0, l, at, 1, 0, stream));
	ASK(cuMemPrefetchBatchAsync(p, sizes, 3, l, at, 0, 0, stream));
	ASK(cuMemPrefetchBatchAsync(p, sizes, 3, l, at, 2, 1, stream));
	ASK(cuMemPrefetchBatchAsync(p, sizes, 3, l, at, 2, 0, NULL));
	at[0] = 1;
	ASK(cuMemPrefetchBatchAsync(p, sizes, 3, l, at, 1, 0, stream));
	at[0] = 0;
	ASK(cuMemDiscardBatchAsync(p, sizes, 3, 0, stream));
	ASK(cuMemDiscardAndPrefetchBatchAsync(p, sizes, 3, l, at, 2, 0, stream));
	ASK(cuStreamSynchronize(stream));
	words[0] = 12;
	words[1] = 0;
	NEED(cuMemsetD32Async(p[0] + 4, 13, 1, stream));
	NEED(cuStreamSynchronize(stream));
	SAY("reads %u %u", words[0], words[1]);
	d = zeroed(1 << 16);
	p[2] = d;
	ASK(cuMemPrefetchBatchAsync(p, sizes, 3, l, at, 2, 0, stream));
	ASK(cuMemDiscardBatchAsync(p, sizes, 3, 0, stream));
	ASK(cuStreamSynchronize(stream));
}

SECTIONS({"linear", linear}, {"refused", refused}, {"boxes", boxes}, {"captured", captured},
		{"managed", managed},
	{"early", early})
