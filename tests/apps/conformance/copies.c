/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: bounds, null pointers, kinds that the driver finds out, pitched rectangles and boxes, what is
 * complete when an asynchronous copy returns, batches. */
#include "check.h"

enum { SIZE = 1 << 20 };
static unsigned char plain[SIZE], back[SIZE];

static unsigned hash(const void *p, size_t n)
{
	const unsigned char *b = p;
	unsigned h = 5381;

	for (size_t i = 0; i < n; i++)
		h = h * 33 ^ b[i];
	return h;
}

static void pattern(unsigned seed)
{
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

static void linear(void)
{
	CUdeviceptr d, e, freed;
	void *pin;

	begin();
	d = zeroed(SIZE);
	e = zeroed(SIZE);
	NEED(cuMemAllocHost(&pin, SIZE));
	NEED(cuMemAlloc(&freed, 4 << 20));
	NEED(cuMemFree(freed));
	pattern(1);
	ASK(cuMemcpyHtoD(d, plain, SIZE));
	ASK(cuMemcpyDtoD(e, d, SIZE));
	ASK(cuMemcpyDtoH(back, e, SIZE));
	SAY("same %d", !memcmp(plain, back, SIZE));
	ASK(cuMemcpyHtoD(d, plain, 0));
	ASK(cuMemcpyHtoD(d, NULL, 4));
	ASK(cuMemcpyHtoD(0, plain, 4));
	ASK(cuMemcpyDtoH(NULL, d, 4));
	ASK(cuMemcpyDtoH(back, 0, 4));
	ASK(cuMemcpyDtoD(0, d, 4));
	ASK(cuMemcpyHtoD(freed, plain, 4));
	ASK(cuMemcpyDtoH(back, freed, 4));
	ASK(cuMemcpyDtoD(d, freed, 4));
	ASK(cuMemcpyDtoD(d, d + 64, 256));
	ASK(cuMemcpy(d, ADDRESS(plain), 100));
	ASK(cuMemcpy(ADDRESS(back), d, 100));
	ASK(cuMemcpy(ADDRESS(back), ADDRESS(plain), 100));
	ASK(cuMemcpy(ADDRESS(pin), d, 100));
	ASK(cuMemcpy(d, 0, 4));
	ASK(cuMemcpyPeer(d, context, e, context, 100));
	ASK(cuMemcpyHtoD(ADDRESS(pin), plain, 100));
	ASK(cuMemcpyDtoH(back, ADDRESS(pin), 100));
	SAY("same %d", !memcmp(plain, back, 100));
}

static void rectangles(void)
{
	CUdeviceptr d;
	CUDA_MEMCPY2D c, o;

	begin();
	d = zeroed(64 * 1024);
	pattern(2);
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = plain;
	c.srcPitch = 300;
	c.srcXInBytes = 7;
	c.srcY = 3;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = d;
	c.dstPitch = 512;
	c.dstXInBytes = 16;
	c.dstY = 2;
	c.WidthInBytes = 200;
	c.Height = 40;
	ASK(cuMemcpy2D(&c));
	ASK(cuMemcpy2DUnaligned(&c));
	ASK(cuMemcpy2DAsync(&c, NULL));
	ASK(cuCtxSynchronize());
	NEED(cuMemcpyDtoH(back, d, 64 * 1024));
	SAY("%08x", hash(back, 64 * 1024));
#define BUT(field, value) \
	do { \
		CUresult r_; \
		o = c; \
		o.field = (value); \
		r_ = cuMemcpy2D(&o); \
		SAY("2D but " #field " = " #value " -> %s", name_of(r_)); \
	} while (0)
	BUT(dstPitch, 100);
	BUT(srcPitch, 100);
	BUT(dstPitch, 215);
	BUT(WidthInBytes, 0);
	BUT(Height, 0);
	BUT(Height, 4000);
	BUT(srcHost, NULL);
	BUT(dstDevice, 0);
	BUT(dstMemoryType, 0);
	BUT(dstMemoryType, 9);
	BUT(dstMemoryType, CU_MEMORYTYPE_ARRAY);
	BUT(dstMemoryType, CU_MEMORYTYPE_UNIFIED);
	BUT(dstPitch, (size_t)1 << 40);
}

static void boxes(void)
{
	CUdeviceptr d;
	CUDA_MEMCPY3D c, o;

	begin();
	d = zeroed(128 * 1024);
	pattern(3);
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = plain;
	c.srcPitch = 64;
	c.srcHeight = 20;
	c.srcXInBytes = 1;
	c.srcY = 2;
	c.srcZ = 1;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = d;
	c.dstPitch = 128;
	c.dstHeight = 16;
	c.dstXInBytes = 8;
	c.dstZ = 2;
	c.WidthInBytes = 48;
	c.Height = 12;
	c.Depth = 6;
	ASK(cuMemcpy3D(&c));
	ASK(cuMemcpy3DAsync(&c, NULL));
	ASK(cuCtxSynchronize());
	NEED(cuMemcpyDtoH(back, d, 128 * 1024));
	SAY("%08x", hash(back, 128 * 1024));
#undef BUT
#define BUT(field, value) \
	do { \
		CUresult r_; \
		o = c; \
		o.field = (value); \
		r_ = cuMemcpy3D(&o); \
		SAY("3D but " #field " = " #value " -> %s", name_of(r_)); \
	} while (0)
	BUT(dstPitch, 40);
	BUT(dstHeight, 8);
	BUT(Depth, 0);
	BUT(Depth, 500);
	BUT(srcMemoryType, 9);
	BUT(srcMemoryType, CU_MEMORYTYPE_ARRAY);
	BUT(srcHost, NULL);
}

static void asynchronous(void)
{
	CUdeviceptr d;
	CUstream s;
	CUevent e;
	unsigned char *pin;
	unsigned words[4] = {1, 2, 3, 4}, got[4] = {0};

	begin();
	d = zeroed(SIZE);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	NEED(cuMemAllocHost((void **)&pin, SIZE));
	for (size_t n = 1000; n <= SIZE; n *= 10) {
		pattern((unsigned)n);
		ASK(cuMemcpyHtoDAsync(d, plain, n, s));
		memset(plain, 0, n);
		ASK(cuMemcpyDtoHAsync(back, d, n, s));
		pattern((unsigned)n);
		SAY("%zu pageable bytes: complete on return %d", n, !memcmp(back, plain, n));
	}
	memcpy(pin, plain, SIZE);
	ASK(cuMemcpyHtoDAsync(d, pin, SIZE, s));
	ASK(cuStreamSynchronize(s));
	memset(pin, 0, SIZE);
	ASK(close_gate(s));
	ASK(cuMemcpyDtoHAsync(pin, d, SIZE, s));
	ASK(cuEventRecord(e, s));
	ASK(cuEventQuery(e));
	SAY("held: first byte %u, last %u", pin[0], pin[SIZE - 1]);
	open_gate();
	ASK(cuEventSynchronize(e));
	SAY("pinned: complete %d", !memcmp(pin, plain, SIZE));
	ASK(cuMemcpyHtoDAsync(0, pin, 4, s));
	ASK(cuMemcpyHtoDAsync(d, NULL, 4, s));
	ASK(cuMemcpyDtoHAsync(NULL, d, 4, s));
	ASK(cuMemcpyDtoHAsync(pin, d, 0, s));
	ASK(cuMemcpyAsync(d, ADDRESS(words), 16, s));
	ASK(cuMemcpyAsync(ADDRESS(got), d, 16, s));
	ASK(cuStreamSynchronize(s));
	SAY("%u %u %u %u", got[0], got[1], got[2], got[3]);
}

static void arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR desc = {.Width = 32, .Height = 8, .Format = CU_AD_FORMAT_FLOAT,
			.NumChannels = 1}, got;
	CUarray a;
	float in[32], out[32] = {0};

	begin();
	ASK(cuArrayCreate(&a, &desc));
	ASK(cuArrayGetDescriptor(&got, a));
	SAY("%zu x %zu, format %#x, %u channels", got.Width, got.Height, got.Format, got.NumChannels);
	for (int i = 0; i < 32; i++)
		in[i] = (float)i / 2;
	ASK(cuMemcpyHtoA(a, 0, in, sizeof(in)));
	ASK(cuMemcpyAtoH(out, a, 0, sizeof(out)));
	SAY("same %d", !memcmp(in, out, sizeof(in)));
	ASK(cuMemcpyHtoA(a, 64, in, sizeof(in)));
	ASK(cuArrayDestroy(a));
	desc.NumChannels = 3;
	ASK(cuArrayCreate(&a, &desc));
	desc.NumChannels = 1;
	desc.Width = 0;
	ASK(cuArrayCreate(&a, &desc));
	desc.Width = 32;
	desc.Format = 0x77;
	ASK(cuArrayCreate(&a, &desc));
	ASK(cuArrayCreate(NULL, &desc));
	ASK(cuArrayDestroy(NULL));
}

SECTIONS({"linear", linear}, {"rectangles", rectangles}, {"boxes", boxes}, {"asynchronous", asynchronous},
		{"arrays", arrays})
