/* SPDX-License-Identifier: Apache-2.0 */
/* Memset of every width by the driver API: 8, 16 and 32 bits, linear and 2D, synchronous and on a stream,
 * odd counts and offsets, and that nothing beside the range changes. */
#include <cuda.h>
#include "app.h"

enum { SIZE = 1 << 16 };
static unsigned char model[SIZE], got[SIZE];
static CUdeviceptr d;

static void compare(const char *what)
{
	DRV(cuMemcpyDtoH(got, d, SIZE));
	same_bytes(what, got, model, SIZE);
}

static void put(size_t at, unsigned value, unsigned width, size_t count)
{
	for (size_t i = 0; i < count; i++)
		memcpy(model + at + i * width, &value, width);
}

static void linear(CUstream s)
{
	static const size_t counts[] = {1, 2, 3, 31, 32, 33, 1000, 4097};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		size_t n = counts[i], at = 64 * (i + 1) + 4 * i;
		unsigned v = 0x9e3779b9u * (unsigned)(i + 1);

		DRV(s ? cuMemsetD8Async(d + at + 1, (unsigned char)v, n, s) : cuMemsetD8(d + at + 1,
				(unsigned char)v, n));
		put(at + 1, v, 1, n);
		DRV(s ? cuMemsetD16Async(d + at + 20002, (unsigned short)v, n, s)
				: cuMemsetD16(d + at + 20002, (unsigned short)v, n));
		put(at + 20002, v, 2, n);
		DRV(s ? cuMemsetD32Async(d + at + 40000, v, n, s) : cuMemsetD32(d + at + 40000, v, n));
		put(at + 40000, v, 4, n);
		if (s)
			DRV(cuStreamSynchronize(s));
		compare(s ? "linear on a stream" : "linear");
	}
}

static void rows(CUstream s, size_t pitch, size_t width, size_t height)
{
	unsigned v = (unsigned)(pitch * 2654435761u);

	DRV(s ? cuMemsetD2D8Async(d + 3, pitch, (unsigned char)v, width, height, s) :
		cuMemsetD2D8(d + 3, pitch, (unsigned char)v, width, height));
	DRV(s ? cuMemsetD2D16Async(d + 20000, pitch, (unsigned short)v, width / 2, height, s) :
		cuMemsetD2D16(d + 20000, pitch, (unsigned short)v, width / 2, height));
	DRV(s ? cuMemsetD2D32Async(d + 40000, pitch, v, width / 4, height, s) :
		cuMemsetD2D32(d + 40000, pitch, v, width / 4, height));
	for (size_t y = 0; y < height; y++) {
		put(3 + y * pitch, v, 1, width);
		put(20000 + y * pitch, v, 2, width / 2);
		put(40000 + y * pitch, v, 4, width / 4);
	}
	DRV(cuStreamSynchronize(s));
	compare(s ? "rows on a stream" : "rows");
}

int main(void)
{
	CUdevice dev;
	CUcontext ctx;
	CUstream s;

	DRV(cuInit(0));
	DRV(cuDeviceGet(&dev, 0));
	DRV(cuDevicePrimaryCtxRetain(&ctx, dev));
	DRV(cuCtxSetCurrent(ctx));
	DRV(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DRV(cuMemAlloc(&d, SIZE));
	noise_fill(model, SIZE, 11);
	DRV(cuMemcpyHtoD(d, model, SIZE));
	compare("copy");
	linear(NULL);
	linear(s);
	rows(NULL, 512, 100, 30);
	rows(s, 1024, 1024, 17);
	rows(s, 260, 61, 50);
	DRV_EXPECT(cuMemsetD16(d + 1, 0, 4), CUDA_ERROR_INVALID_VALUE);
	DRV_EXPECT(cuMemsetD32(d + 2, 0, 4), CUDA_ERROR_INVALID_VALUE);
	DRV_EXPECT(cuMemsetD8(d, 0, (size_t)1 << 40), CUDA_ERROR_INVALID_VALUE);
	compare("after refused calls");
	DRV(cuMemFree(d));
	DRV(cuStreamDestroy(s));
	DRV(cuDevicePrimaryCtxRelease(dev));
	return pass();
}
