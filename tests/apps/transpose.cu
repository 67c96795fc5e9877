// SPDX-License-Identifier: Apache-2.0
// Matrix transposition: plain, and through a padded shared tile by blocks of 32x8 threads, for elements of 1
// to 16 bytes and sizes that do not divide; two-dimensional grids and blocks.
#include "app.h"

enum { TILE = 32, ROWS = 8 };

template <typename T>
__global__ void plain(const T *in, T *out, int w, int h)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < w && y < h)
		out[x * h + y] = in[y * w + x];
}

template <typename T>
__global__ void tiled(const T *in, T *out, int w, int h)
{
	__shared__ T tile[TILE][TILE + 1];
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

	for (int j = 0; j < TILE; j += ROWS)
		if (x < w && y + j < h)
			tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
	__syncthreads();
	x = blockIdx.y * TILE + threadIdx.x;
	y = blockIdx.x * TILE + threadIdx.y;
	for (int j = 0; j < TILE; j += ROWS)
		if (x < h && y + j < w)
			out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}

template <typename T>
static void run(int w, int h)
{
	size_t n = (size_t)w * h * sizeof(T);
	T *in = (T *)malloc(n), *got = (T *)malloc(n), *want = (T *)malloc(n), *di, *od;

	noise_fill(in, n, 9);
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++)
			want[x * h + y] = in[y * w + x];
	CK(cudaMalloc(&di, n));
	CK(cudaMalloc(&od, n));
	CK(cudaMemcpy(di, in, n, cudaMemcpyHostToDevice));
	CK(cudaMemset(od, 0, n));
	plain<T><<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(di, od, w, h);
	CK(cudaMemcpy(got, od, n, cudaMemcpyDeviceToHost));
	same_bytes("plain", got, want, n);
	CK(cudaMemset(od, 0, n));
	tiled<T><<<dim3((w + TILE - 1) / TILE, (h + TILE - 1) / TILE), dim3(TILE, ROWS)>>>(di, od, w, h);
	CK(cudaGetLastError());
	CK(cudaMemcpy(got, od, n, cudaMemcpyDeviceToHost));
	same_bytes("tiled", got, want, n);
	CK(cudaFree(di));
	CK(cudaFree(od));
	free(in);
	free(got);
	free(want);
}

int main(void)
{
	run<unsigned char>(300, 200);
	run<short>(33, 129);
	run<float>(512, 256);
	run<double>(101, 203);
	run<float4>(64, 97);
	return pass();
}
