// SPDX-License-Identifier: Apache-2.0
// 2D and 3D copies between host, device and pinned memory, pitched allocations, sub-rectangles and boxes with
// offsets, and 2D and 3D memset; every byte of the destination, padding included, against a model on the
// host.
#include "app.h"

static void rectangles(void)
{
	enum { W = 333, H = 47, HOST = 400, SUBW = 101, SUBH = 13, X = 57, Y = 9 };
	unsigned char *h = (unsigned char *)malloc(HOST * H), *back = (unsigned char *)malloc(HOST * H),
			*pinned, *d, *e;
	unsigned char *want = (unsigned char *)malloc(HOST * H);
	size_t pitch, pitch2;

	noise_fill(h, HOST * H, 1);
	CK(cudaMallocPitch(&d, &pitch, W, H));
	CK(cudaMallocPitch(&e, &pitch2, W + 100, H));
	CK(cudaMallocHost(&pinned, HOST * H));
	if (pitch < W || pitch2 < W + 100)
		fail("pitches %zu and %zu", pitch, pitch2);
	CK(cudaMemcpy2D(d, pitch, h, HOST, W, H, cudaMemcpyHostToDevice));
	CK(cudaMemset2D(e, pitch2, 0xee, W + 100, H));
	CK(cudaMemcpy2D(e + 3, pitch2, d, pitch, W, H, cudaMemcpyDeviceToDevice));
	memset(back, 0xaa, HOST * H);
	CK(cudaMemcpy2D(back, HOST, e + 3, pitch2, W, H, cudaMemcpyDeviceToHost));
	memset(want, 0xaa, HOST * H);
	for (int y = 0; y < H; y++)
		memcpy(want + y * HOST, h + y * HOST, W);
	same_bytes("whole rectangle", back, want, HOST * H);

	memset(pinned, 0x55, HOST * H);
	memset(want, 0x55, HOST * H);
	CK(cudaMemcpy2DAsync(pinned + Y * HOST + X, HOST, d + Y * pitch + X, pitch, SUBW, SUBH,
			cudaMemcpyDeviceToHost, 0));
	CK(cudaStreamSynchronize(0));
	for (int y = Y; y < Y + SUBH; y++)
		memcpy(want + y * HOST + X, h + y * HOST + X, SUBW);
	same_bytes("sub-rectangle to pinned memory", pinned, want, HOST * H);

	CK(cudaMemset2D(d + 2 * pitch + 5, pitch, 7, 11, 3));
	CK(cudaMemcpy2D(back, HOST, d, pitch, W, H, cudaMemcpyDeviceToHost));
	memset(want, 0xaa, HOST * H);
	for (int y = 0; y < H; y++) {
		memcpy(want + y * HOST, h + y * HOST, W);
		if (y >= 2 && y < 5)
			memset(want + y * HOST + 5, 7, 11);
	}
	same_bytes("2D memset", back, want, HOST * H);
	EXPECT(cudaMemcpy2D(back, W - 1, d, pitch, W, H, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
	cudaGetLastError();
	CK(cudaFree(d));
	CK(cudaFree(e));
	CK(cudaFreeHost(pinned));
	free(h);
	free(back);
	free(want);
}

static void boxes(void)
{
	enum { W = 40, H = 21, D = 9, BYTES = W * H * D, SW = 13, SH = 7, SD = 4 };
	static unsigned char h[BYTES], back[BYTES], want[BYTES];
	struct cudaPitchedPtr d, e;
	struct cudaExtent all = make_cudaExtent(W, H, D);
	struct cudaMemcpy3DParms c = {};

	noise_fill(h, sizeof(h), 3);
	CK(cudaMalloc3D(&d, all));
	CK(cudaMalloc3D(&e, all));
	c.srcPtr = make_cudaPitchedPtr(h, W, W, H);
	c.dstPtr = d;
	c.extent = all;
	c.kind = cudaMemcpyHostToDevice;
	CK(cudaMemcpy3D(&c));
	CK(cudaMemset3D(e, 0x33, all));
	memset(&c, 0, sizeof(c));
	c.srcPtr = d;
	c.dstPtr = e;
	c.srcPos = make_cudaPos(5, 6, 2);
	c.dstPos = make_cudaPos(20, 3, 1);
	c.extent = make_cudaExtent(SW, SH, SD);
	c.kind = cudaMemcpyDeviceToDevice;
	CK(cudaMemcpy3DAsync(&c, 0));
	memset(&c, 0, sizeof(c));
	c.srcPtr = e;
	c.dstPtr = make_cudaPitchedPtr(back, W, W, H);
	c.extent = all;
	c.kind = cudaMemcpyDeviceToHost;
	CK(cudaMemcpy3D(&c));
	memset(want, 0x33, sizeof(want));
	for (int z = 0; z < SD; z++)
		for (int y = 0; y < SH; y++)
			memcpy(want + ((z + 1) * H + y + 3) * W + 20, h + ((z + 2) * H + y + 6) * W + 5, SW);
	same_bytes("box", back, want, sizeof(want));

	memset(&c, 0, sizeof(c));
	memset(back, 0x11, sizeof(back));
	memset(want, 0x11, sizeof(want));
	c.srcPtr = d;
	c.srcPos = make_cudaPos(1, 2, 3);
	c.dstPtr = make_cudaPitchedPtr(back, W, W, H);
	c.dstPos = make_cudaPos(4, 5, 0);
	c.extent = make_cudaExtent(SW, SH, SD);
	c.kind = cudaMemcpyDefault;
	CK(cudaMemcpy3D(&c));
	for (int z = 0; z < SD; z++)
		for (int y = 0; y < SH; y++)
			memcpy(want + (z * H + y + 5) * W + 4, h + ((z + 3) * H + y + 2) * W + 1, SW);
	same_bytes("box to the host", back, want, sizeof(want));
	CK(cudaFree(d.ptr));
	CK(cudaFree(e.ptr));
}

int main(void)
{
	rectangles();
	boxes();
	return pass();
}
