// SPDX-License-Identifier: Apache-2.0
// Matrix products by the warp-wide fragments of tensor cores, of every type that the code was compiled for:
// half with single or half sums, signed and unsigned bytes; from capability 8.0 bfloat16, TF32 and double as
// well. Against the host.
#include "app.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <vector>
using namespace nvcuda;

enum { TILES = 3 }; /* of the matrices' sides */

/* TF32 has a name only where the code is for a device that has it. */
struct tf32;
template <typename F> struct named {
	typedef F type;
};
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template <> struct named<tf32> {
	typedef wmma::precision::tf32 type;
};
#endif

template <int M, int N, int K, typename F, typename T, typename S>
__global__ void multiply(const T *a, const T *b, S *c, int *ran)
{
#if __CUDA_ARCH__ >= 800
	constexpr bool able = true;
#else
	constexpr bool able = sizeof(T) <= 2 && !std::is_same<F, __nv_bfloat16>::value;
#endif
	if constexpr (able) {
		int i = blockIdx.x, j = blockIdx.y;
		typedef typename named<F>::type P;
		wmma::fragment<wmma::matrix_a, M, N, K, P, wmma::row_major> fa;
		wmma::fragment<wmma::matrix_b, M, N, K, P, wmma::row_major> fb;
		wmma::fragment<wmma::accumulator, M, N, K, S> fc;

		wmma::fill_fragment(fc, (S)0);
		for (int l = 0; l < TILES; l++) {
			wmma::load_matrix_sync(fa, a + i * M * TILES * K + l * K, TILES * K);
			wmma::load_matrix_sync(fb, b + l * K * TILES * N + j * N, TILES * N);
			wmma::mma_sync(fc, fa, fb, fc);
		}
		wmma::store_matrix_sync(c + i * M * TILES * N + j * N, fc, TILES * N, wmma::mem_row_major);
		*ran = 1;
	}
}

template <typename T> static double value(T v)
{
	return (double)(float)v;
}
template <> double value(double v)
{
	return v;
}

template <int M, int N, int K, typename F, typename T, typename S>
static void check(const char *name, bool integers, double tolerance)
{
	const int m = M * TILES, n = N * TILES, k = K * TILES;
	T *a, *b;
	S *c;
	int *ran;
	uint32_t seed = 77;

	CK(cudaMallocManaged(&a, m * k * sizeof(T)));
	CK(cudaMallocManaged(&b, k * n * sizeof(T)));
	CK(cudaMallocManaged(&c, m * n * sizeof(S)));
	CK(cudaMallocManaged(&ran, sizeof(int)));
	*ran = 0;
	for (int i = 0; i < m * k; i++)
		a[i] = (T)(integers ? (float)(noise(&seed) % 100) : noise_float(&seed) - 0.5f);
	for (int i = 0; i < k * n; i++)
		b[i] = (T)(integers ? (float)(noise(&seed) % 100) : noise_float(&seed) - 0.5f);
	multiply<M, N, K, F, T, S><<<dim3(TILES, TILES), 32>>>(a, b, c, ran);
	CK(cudaDeviceSynchronize());
	if (!*ran) {
		printf("~ %s: not in this code\n", name);
	} else {
		for (int i = 0; i < m; i++)
			for (int j = 0; j < n; j++) {
				double want = 0;

				for (int l = 0; l < k; l++)
					want += value(a[i * k + l]) * value(b[l * n + j]);
				close_to(name, (size_t)(i * n + j), value(c[i * n + j]), want, tolerance);
			}
		puts(name);
	}
	for (void *p : {(void *)a, (void *)b, (void *)c, (void *)ran})
		CK(cudaFree(p));
}

int main(void)
{
	check<16, 16, 16, half, half, float>("half, sums in single", false, 1e-4);
	check<16, 16, 16, half, half, half>("half, sums in half", false, 1e-2);
	check<32, 8, 16, half, half, float>("half, tall tiles", false, 1e-4);
	check<16, 16, 16, signed char, signed char, int>("bytes", true, 0);
	check<8, 32, 16, unsigned char, unsigned char, int>("unsigned bytes, wide tiles", true, 0);
	check<16, 16, 16, __nv_bfloat16, __nv_bfloat16, float>("bfloat16", false, 1e-4);
	check<16, 16, 8, tf32, float, float>("TF32", false, 5e-3);
	check<8, 8, 4, double, double, double>("double", false, 1e-12);
	return pass();
}
