// SPDX-License-Identifier: Apache-2.0
// Tiled matrix product in shared memory with two barriers per tile, ragged edges included; single and double
// precision.
#include "app.h"

enum { TILE = 16 };

template <typename T>
__global__ void product(const T *a, const T *b, T *c, int rows, int inner, int cols)
{
	__shared__ T ta[TILE][TILE], tb[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
	T sum = 0;

	for (int t = 0; t < inner; t += TILE) {
		ta[threadIdx.y][threadIdx.x] = row < rows && t + threadIdx.x < inner
				? a[row * inner + t + threadIdx.x] : 0;
		tb[threadIdx.y][threadIdx.x] = col < cols && t + threadIdx.y < inner
				? b[(t + threadIdx.y) * cols + col] : 0;
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
		__syncthreads();
	}
	if (row < rows && col < cols)
		c[row * cols + col] = sum;
}

template <typename T>
static void run(const char *type, int rows, int inner, int cols, double tolerance)
{
	size_t na = rows * inner, nb = inner * cols, nc = rows * cols;
	T *a = (T *)malloc(na * sizeof(T)), *b = (T *)malloc(nb * sizeof(T)),
			*c = (T *)malloc(nc * sizeof(T));
	T *da, *db, *dc;
	uint32_t seed = 7;

	for (size_t i = 0; i < na; i++)
		a[i] = noise_float(&seed) - 0.5f;
	for (size_t i = 0; i < nb; i++)
		b[i] = noise_float(&seed) - 0.5f;
	CK(cudaMalloc(&da, na * sizeof(T)));
	CK(cudaMalloc(&db, nb * sizeof(T)));
	CK(cudaMalloc(&dc, nc * sizeof(T)));
	CK(cudaMemcpy(da, a, na * sizeof(T), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(db, b, nb * sizeof(T), cudaMemcpyHostToDevice));
	product<T><<<dim3((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE), dim3(TILE, TILE)>>>(da, db, dc,
			rows, inner, cols);
	CK(cudaGetLastError());
	CK(cudaMemcpy(c, dc, nc * sizeof(T), cudaMemcpyDeviceToHost));
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < cols; j++) {
			double want = 0;

			for (int k = 0; k < inner; k++)
				want += (double)a[i * inner + k] * b[k * cols + j];
			close_to(type, i * cols + j, c[i * cols + j], want, tolerance);
		}
	CK(cudaFree(da));
	CK(cudaFree(db));
	CK(cudaFree(dc));
	free(a);
	free(b);
	free(c);
	printf("%s %dx%d by %dx%d\n", type, rows, inner, inner, cols);
}

int main(void)
{
	run<float>("float", 256, 256, 256, 1e-5);
	run<float>("float", 100, 77, 133, 1e-5);
	run<double>("double", 96, 112, 80, 1e-13);
	return pass();
}
