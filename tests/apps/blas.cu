// SPDX-License-Identifier: Apache-2.0
// cuBLAS, single and half precision and strided batches, and cuBLASLt by way of it, against the host:
// NVIDIA's libraries carry machine code only, so this needs a real GPU. Linked as a library, since that is
// how frameworks have it.
#include "app.h"
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <vector>

#define BLAS(x) blas((x), #x, __LINE__)
static void blas(cublasStatus_t s, const char *what, int line)
{
	if (s == CUBLAS_STATUS_SUCCESS)
		return;
	if (s == CUBLAS_STATUS_ARCH_MISMATCH || s == CUBLAS_STATUS_NOT_INITIALIZED ||
			s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_EXECUTION_FAILED) {
		cudaDeviceProp p;

		if (cudaGetDeviceProperties(&p, 0) == cudaSuccess && strstr(p.name, "software"))
			skip("the software device runs PTX only");
	}
	fail("line %d: %s -> %d", line, what, (int)s);
}

template <typename T>
static void check(const char *what, const std::vector<T> &a, const std::vector<T> &b, const std::vector<T> &c,
		int m, int n, int k,
		  double tolerance)
{
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			double want = 0;

			for (int l = 0; l < k; l++)
				want += (double)(float)a[l * m + i] * (double)(float)b[j * k + l];
			close_to(what, j * m + i, (float)c[j * m + i], want, tolerance);
		}
}

int main(void)
{
	enum { M = 200, N = 120, K = 300, BATCH = 4 };
	cublasHandle_t h;
	cudaStream_t s;
	std::vector<float> a(M * K * BATCH), b(K * N * BATCH), c(M * N * BATCH);
	std::vector<half> ha(M * K), hb(K * N), hc(M * N);
	float *da, *db, *dc, one = 1, zero = 0, dot = 0;
	uint32_t seed = 90;
	double want = 0;

	for (float &v : a)
		v = noise_float(&seed) - 0.5f;
	for (float &v : b)
		v = noise_float(&seed) - 0.5f;
	CK(cudaMalloc(&da, a.size() * 4));
	CK(cudaMalloc(&db, b.size() * 4));
	CK(cudaMalloc(&dc, c.size() * 4));
	CK(cudaMemcpy(da, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
	CK(cudaMemcpy(db, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
	CK(cudaStreamCreate(&s));
	BLAS(cublasCreate(&h));
	BLAS(cublasSetStream(h, s));
	BLAS(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, da, M, db, K, &zero, dc, M));
	CK(cudaMemcpyAsync(c.data(), dc, M * N * 4, cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	check("sgemm", a, b, c, M, N, K, 1e-4);
	BLAS(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, da, M, M * K, db, K, K * N,
			&zero, dc, M, M * N, BATCH));
	CK(cudaMemcpyAsync(c.data(), dc, c.size() * 4, cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	for (int i = 0; i < BATCH; i++)
		check("batched sgemm", std::vector<float>(a.begin() + i * M * K, a.begin() + (i + 1) * M * K),
		      std::vector<float>(b.begin() + i * K * N, b.begin() + (i + 1) * K * N),
		      std::vector<float>(c.begin() + i * M * N, c.begin() + (i + 1) * M * N), M, N, K, 1e-4);
	BLAS(cublasSdot(h, 1000, da, 1, db, 1, &dot));
	for (int i = 0; i < 1000; i++)
		want += (double)a[i] * b[i];
	close_to("dot", 0, dot, want, 1e-4);

	for (int i = 0; i < M * K; i++)
		ha[i] = __float2half(a[i]);
	for (int i = 0; i < K * N; i++)
		hb[i] = __float2half(b[i]);
	CK(cudaMemcpy(da, ha.data(), ha.size() * 2, cudaMemcpyHostToDevice));
	CK(cudaMemcpy(db, hb.data(), hb.size() * 2, cudaMemcpyHostToDevice));
	BLAS(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, da, CUDA_R_16F, M, db, CUDA_R_16F, K,
			&zero, dc, CUDA_R_16F, M,
			  CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
	CK(cudaMemcpyAsync(hc.data(), dc, hc.size() * 2, cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	check("half gemm", ha, hb, hc, M, N, K, 1e-2);
	BLAS(cublasDestroy(h));
	CK(cudaFree(da));
	CK(cudaFree(db));
	CK(cudaFree(dc));
	CK(cudaStreamDestroy(s));
	return pass();
}
