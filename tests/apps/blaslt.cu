// SPDX-License-Identifier: Apache-2.0
// cuBLASLt: products in single precision, half, bfloat16 and 8 bits (with scales), with epilogues that add a
// bias and apply RELU or GELU, strided batches, and the best algorithm that the heuristic names. Against the
// host.
#include "app.h"
#include "libs.h"
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

enum { M = 96, N = 80, K = 128, APART = 64 }; /* scales are aligned like allocations */

static cublasLtHandle_t lt;

/* D = epilogue(A^T B), or A B where not transposed. */
template <typename T, typename O>
static std::vector<O> multiply(const T *a, const T *b, cudaDataType_t in, cudaDataType_t out, bool transposed,
	cublasLtEpilogue_t epilogue, const void *bias, const float *scales, int batch)
{
	cublasLtMatmulDesc_t op;
	cublasLtMatrixLayout_t la, lb, ld;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t best;
	cublasOperation_t t = CUBLAS_OP_T;
	size_t space = 16 << 20;
	dev<O> d((size_t)M * N * batch);
	dev<char> workspace(space);
	float one = 1, zero = 0;
	int found = 0;

	LIB(cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	if (transposed)
		LIB(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof(t)));
	LIB(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
	if (bias)
		LIB(cublasLtMatmulDescSetAttribute(
			op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
	if (scales) {
		const float *second = scales + APART;

		LIB(cublasLtMatmulDescSetAttribute(
			op, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scales, sizeof(scales)));
		LIB(cublasLtMatmulDescSetAttribute(
			op, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &second, sizeof(second)));
	}
	LIB(cublasLtMatrixLayoutCreate(&la, in, transposed ? K : M, transposed ? M : K, transposed ? K : M));
	LIB(cublasLtMatrixLayoutCreate(&lb, in, K, N, K));
	LIB(cublasLtMatrixLayoutCreate(&ld, out, M, N, M));
	if (batch > 1) {
		const cublasLtMatrixLayout_t layouts[] = {la, lb, ld};
		const int64_t strides[] = {M * K, K * N, M * N};

		for (int i = 0; i < 3; i++) {
			LIB(cublasLtMatrixLayoutSetAttribute(
				layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)));
			LIB(cublasLtMatrixLayoutSetAttribute(layouts[i],
				CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &strides[i], sizeof(int64_t)));
		}
	}
	LIB(cublasLtMatmulPreferenceCreate(&preference));
	LIB(cublasLtMatmulPreferenceSetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &space, sizeof(space)));
	LIB(cublasLtMatmulAlgoGetHeuristic(lt, op, la, lb, ld, ld, preference, 1, &best, &found));
	if (!found)
		fail("the heuristic knows no algorithm for type %d", (int)in);
	LIB(cublasLtMatmul(lt, op, &one, a, la, b, lb, &zero, d, ld, d, ld, &best.algo, workspace, space, 0));
	std::vector<O> result = d.get();
	cublasLtMatmulPreferenceDestroy(preference);
	cublasLtMatrixLayoutDestroy(la);
	cublasLtMatrixLayoutDestroy(lb);
	cublasLtMatrixLayoutDestroy(ld);
	cublasLtMatmulDescDestroy(op);
	return result;
}

template <typename T> static std::vector<T> rounded(const std::vector<float> &v)
{
	std::vector<T> r;

	for (float x : v)
		r.push_back((T)x);
	return r;
}

template <typename T> static std::vector<T> transpose(const std::vector<T> &a) /* M x K to K x M */
{
	std::vector<T> t(a.size());

	for (int i = 0; i < M; i++)
		for (int l = 0; l < K; l++)
			t[(size_t)i * K + l] = a[(size_t)l * M + i];
	return t;
}

static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

template <typename T> static void precision(const char *name, cudaDataType_t type, double tolerance)
{
	std::vector<T> a = rounded<T>(noise_vector<float>(M * K, 11)),
		       b = rounded<T>(noise_vector<float>(K * N, 12));
	std::vector<T> bias = rounded<T>(noise_vector<float>(M, 13));
	std::vector<double> plain = product(a, b, M, N, K), want(plain.size());
	dev<T> da(a), db(b), dt(transpose(a)), dbias(bias);

	all_close(name,
		multiply<T, T>(da, db, type, type, false, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 1),
		plain, tolerance);
	all_close(name,
		multiply<T, T>(dt, db, type, type, true, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 1),
		plain, tolerance);
	for (size_t i = 0; i < want.size(); i++)
		want[i] = fmax(0, plain[i] + (double)(float)bias[i % M]);
	all_close(name,
		multiply<T, T>(da, db, type, type, false, CUBLASLT_EPILOGUE_RELU_BIAS, dbias, nullptr, 1),
		want, tolerance);
	for (size_t i = 0; i < want.size(); i++)
		want[i] = gelu(plain[i] + (double)(float)bias[i % M]);
	all_close(name,
		multiply<T, T>(da, db, type, type, false, CUBLASLT_EPILOGUE_GELU_BIAS, dbias, nullptr, 1),
		want, tolerance);
	printf("%s: plain, transposed, bias with RELU, bias with GELU\n", name);
}

static void batch()
{
	std::vector<float> a = noise_vector<float>(3 * M * K, 14), b = noise_vector<float>(3 * K * N, 15);
	dev<float> da(a), db(b);
	std::vector<float> d = multiply<float, float>(
		da, db, CUDA_R_32F, CUDA_R_32F, false, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 3);

	for (int i = 0; i < 3; i++)
		all_close("batch", std::vector<float>(d.begin() + i * M * N, d.begin() + (i + 1) * M * N),
			product(std::vector<float>(a.begin() + i * M * K, a.begin() + (i + 1) * M * K),
				std::vector<float>(b.begin() + i * K * N, b.begin() + (i + 1) * K * N), M, N,
				K),
			1e-4);
	puts("batch");
}

static void eight_bits()
{
	std::vector<__nv_fp8_e4m3> a = rounded<__nv_fp8_e4m3>(noise_vector<float>(M * K, 16)),
				   b = rounded<__nv_fp8_e4m3>(noise_vector<float>(K * N, 17));
	dev<__nv_fp8_e4m3> dt(transpose(a)), db(b);
	std::vector<float> two(APART + 1);

	two[0] = 0.5f;
	two[APART] = 3.0f;
	dev<float> scales(two);
	std::vector<double> want = product(a, b, M, N, K);

	for (double &x : want)
		x *= 1.5;
	all_close("8 bits to bfloat16",
		multiply<__nv_fp8_e4m3, __nv_bfloat16>(dt, db, CUDA_R_8F_E4M3, CUDA_R_16BF, true,
			CUBLASLT_EPILOGUE_DEFAULT, nullptr, scales, 1),
		want, 1e-2);
	all_close("8 bits to single",
		multiply<__nv_fp8_e4m3, float>(dt, db, CUDA_R_8F_E4M3, CUDA_R_32F, true,
			CUBLASLT_EPILOGUE_DEFAULT, nullptr, scales, 1),
		want, 1e-2);
	puts("8 bits");
}

int main(void)
{
	cudaDeviceProp p;

	CK(cudaGetDeviceProperties(&p, 0));
	LIB(cublasLtCreate(&lt));
	precision<float>("single", CUDA_R_32F, 1e-4);
	precision<__half>("half", CUDA_R_16F, 1e-2);
	if (p.major >= 8)
		precision<__nv_bfloat16>("bfloat16", CUDA_R_16BF, 5e-2);
	batch();
	if (p.major >= 9)
		eight_bits();
	LIB(cublasLtDestroy(lt));
	return pass();
}
