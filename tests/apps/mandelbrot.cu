// SPDX-License-Identifier: Apache-2.0
// Mandelbrot: loops of very different lengths within a warp. In integer fixed point, so that every pixel is
// exact, and in single precision without contraction, which the host can repeat bit for bit.
#include "app.h"

enum { W = 200, H = 150, LIMIT = 200 };

__host__ __device__ static int fixed_point(int px, int py)
{
	long long cx = (long long)(px - 140) * (1 << 24) / 60, cy = (long long)(py - 75) * (1 << 24) / 60,
			x = 0, y = 0;
	int n = 0;

	while (n < LIMIT && x * x + y * y <= 4ll << 48) {
		long long t = (x * x - y * y) / (1 << 24) + cx;

		y = 2 * x * y / (1 << 24) + cy;
		x = t;
		n++;
	}
	return n;
}

__global__ void exact(int *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < W && y < H)
		out[y * W + x] = fixed_point(x, y);
}

__global__ void single(int *out)
{
	int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y, n = 0;
	float cx = (px - 140) / 64.0f, cy = (py - 75) / 64.0f, x = 0, y = 0;

	if (px >= W || py >= H)
		return;
	while (n < LIMIT && __fadd_rn(__fmul_rn(x, x), __fmul_rn(y, y)) <= 4) {
		float t = __fadd_rn(__fadd_rn(__fmul_rn(x, x), -__fmul_rn(y, y)), cx);

		y = __fadd_rn(__fmul_rn(__fmul_rn(2, x), y), cy);
		x = t;
		n++;
	}
	out[py * W + px] = n;
}

static int single_host(int px, int py)
{
	volatile float cx = (px - 140) / 64.0f, cy = (py - 75) / 64.0f, x = 0, y = 0, xx, yy, xy;
	int n = 0;

	for (;;) {
		volatile float sum;

		xx = x * x;
		yy = y * y;
		sum = xx + yy;
		if (n >= LIMIT || sum > 4)
			return n;
		xy = 2 * x;
		xy = xy * y;
		y = xy + cy;
		xx = xx - yy;
		x = xx + cx;
		n++;
	}
}

int main(void)
{
	static int h[W * H];
	dim3 block(16, 16), grid((W + 15) / 16, (H + 15) / 16);
	int *d;
	long long sum = 0;

	CK(cudaMalloc(&d, sizeof(h)));
	for (int way = 0; way < 2; way++) {
		if (way)
			single<<<grid, block>>>(d);
		else
			exact<<<grid, block>>>(d);
		CK(cudaGetLastError());
		CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++) {
				int want = way ? single_host(x, y) : fixed_point(x, y);

				if (h[y * W + x] != want)
					fail("%s: pixel %d,%d is %d, expected %d", way ? "single" : "fixed",
							x, y, h[y * W + x], want);
				sum += want;
			}
	}
	printf("%lld iterations\n", sum);
	CK(cudaFree(d));
	return pass();
}
