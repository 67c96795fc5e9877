// SPDX-License-Identifier: Apache-2.0
// 64 MiB to the device and back, bit for bit, from and to pageable, pinned and registered memory, by blocking
// and by asynchronous copies, and device to device; then every size around the limits where transports change
// their ways.
#include "app.h"

enum { BIG = 64 << 20 };

int main(void)
{
	static const size_t around[] = {1, 4, 100, 4095, 4096, 4097, 16000, 16384, 65535, 65536, 65537,
			262144, 1048575, 1048576, 1048577, 3000001};
	unsigned char *src = (unsigned char *)malloc(BIG), *dst = (unsigned char *)malloc(BIG), *pin, *d, *e;
	unsigned char *pages = (unsigned char *)aligned_alloc(4096, 8 << 20);
	cudaStream_t s;

	noise_fill(src, BIG, 64);
	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaMalloc(&d, BIG));
	CK(cudaMalloc(&e, BIG));
	CK(cudaMallocHost(&pin, BIG));

	CK(cudaMemcpy(d, src, BIG, cudaMemcpyHostToDevice));
	CK(cudaMemcpy(dst, d, BIG, cudaMemcpyDeviceToHost));
	same_bytes("pageable", dst, src, BIG);

	memset(dst, 0, BIG);
	CK(cudaMemset(d, 0, BIG));
	CK(cudaDeviceSynchronize());
	memcpy(pin, src, BIG);
	CK(cudaMemcpyAsync(d, pin, BIG, cudaMemcpyHostToDevice, s));
	CK(cudaMemcpyAsync(e, d, BIG, cudaMemcpyDeviceToDevice, s));
	CK(cudaStreamSynchronize(s));
	memset(pin, 0, BIG);
	CK(cudaMemcpyAsync(pin, e, BIG, cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	same_bytes("pinned", pin, src, BIG);

	CK(cudaMemset(e, 0, BIG));
	CK(cudaDeviceSynchronize());
	CK(cudaMemcpyAsync(e, src, BIG, cudaMemcpyDefault, s));
	CK(cudaMemcpyAsync(dst, e, BIG, cudaMemcpyDefault, s));
	CK(cudaStreamSynchronize(s));
	same_bytes("pageable on a stream", dst, src, BIG);

	CK(cudaHostRegister(pages, 8 << 20, cudaHostRegisterDefault));
	memcpy(pages, src + 12345, 8 << 20);
	CK(cudaMemcpyAsync(d, pages, 8 << 20, cudaMemcpyHostToDevice, s));
	CK(cudaStreamSynchronize(s));
	memset(pages, 0, 8 << 20);
	CK(cudaMemcpyAsync(pages, d, 8 << 20, cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	same_bytes("registered", pages, src + 12345, 8 << 20);
	CK(cudaHostUnregister(pages));

	for (size_t i = 0; i < sizeof(around) / sizeof(*around); i++) {
		size_t n = around[i], at = i * 7 + 1;

		memset(dst, 0xcc, n + 64);
		CK(cudaMemcpy(d + at, src + i, n, cudaMemcpyHostToDevice));
		CK(cudaMemcpy(e + 3 * at, d + at, n, cudaMemcpyDeviceToDevice));
		CK(cudaMemcpy(dst + 32, e + 3 * at, n, cudaMemcpyDeviceToHost));
		same_bytes("odd size", dst + 32, src + i, n);
		for (int k = 0; k < 32; k++)
			if (dst[k] != 0xcc || dst[32 + n + k] != 0xcc)
				fail("a copy of %zu bytes wrote beside its destination", n);
		memset(pin, 0, n);
		CK(cudaMemcpyAsync(pin, d + at, n, cudaMemcpyDeviceToHost, s));
		CK(cudaStreamSynchronize(s));
		same_bytes("odd size, pinned", pin, src + i, n);
	}
	CK(cudaFree(d));
	CK(cudaFree(e));
	CK(cudaFreeHost(pin));
	CK(cudaStreamDestroy(s));
	free(src);
	free(dst);
	free(pages);
	return pass();
}
