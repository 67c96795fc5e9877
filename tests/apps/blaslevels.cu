// SPDX-License-Identifier: Apache-2.0
// cuBLAS beyond the matrix product: vectors, matrix and vector, triangular solutions and updates, batches by
// arrays of pointers, complex and double numbers, scalars in device memory, TF32, a product inside a graph,
// and LU factors of many small matrices. Against the host.
#include "app.h"
#include "libs.h"
#include <cublas_v2.h>
#include <cuComplex.h>

enum { N = 64, COUNT = 1000 };

static void vectors(cublasHandle_t h)
{
	std::vector<float> x = noise_vector<float>(COUNT, 1), y = noise_vector<float>(COUNT, 2);
	dev<float> dx(x), dy(y);
	float alpha = 2.5f, norm, sum;
	double squares = 0, absolute = 0;
	int largest = 0, at;

	LIB(cublasSaxpy(h, COUNT, &alpha, dx, 1, dy, 1));
	std::vector<float> got = dy.get();
	for (int i = 0; i < COUNT; i++)
		close_to("axpy", i, got[i], y[i] + 2.5 * x[i], 1e-6);
	LIB(cublasSnrm2(h, COUNT, dx, 1, &norm));
	LIB(cublasSasum(h, COUNT, dx, 1, &sum));
	LIB(cublasIsamax(h, COUNT, dx, 1, &at));
	for (int i = 0; i < COUNT; i++) {
		squares += (double)x[i] * x[i];
		absolute += fabs(x[i]);
		if (fabsf(x[i]) > fabsf(x[largest]))
			largest = i;
	}
	close_to("norm", 0, norm, sqrt(squares), 1e-5);
	close_to("sum of magnitudes", 0, sum, absolute, 1e-5);
	if (at != largest + 1)
		fail("largest at %d, expected %d", at, largest + 1);

	/* Scalars on the device: nothing waits for them. */
	dev<float> result(1);
	LIB(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
	LIB(cublasSnrm2(h, COUNT, dx, 1, result));
	LIB(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST));
	close_to("norm on the device", 0, result.get()[0], sqrt(squares), 1e-5);
	puts("vectors");
}

static void matrices(cublasHandle_t h)
{
	std::vector<double> a = noise_vector<double>(N * N, 3), x = noise_vector<double>(N, 4),
			    b = noise_vector<double>(N * 8, 5);
	dev<double> da(a), dx(x), dy(N), db(b), dc(N * N);
	double one = 1, zero = 0;

	LIB(cublasDgemv(h, CUBLAS_OP_N, N, N, &one, da, N, dx, 1, &zero, dy, 1));
	all_close("gemv", dy.get(), product(a, x, N, 1, N), 1e-12);
	LIB(cublasDsyrk(h, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, N, N, &one, da, N, &zero, dc, N));
	std::vector<double> c = dc.get();
	for (int j = 0; j < N; j++)
		for (int i = j; i < N; i++) {
			double want = 0;
			for (int l = 0; l < N; l++)
				want += a[l * N + i] * a[l * N + j];
			close_to("syrk", j * N + i, c[j * N + i], want, 1e-12);
		}

	for (int i = 0; i < N; i++)
		a[i * N + i] = 4;
	dev<double> dt(a);
	LIB(cublasDtrsm(h, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, N, 8,
		&one, dt, N, db, N));
	for (int j = 0; j < N; j++)
		for (int i = 0; i < j; i++)
			a[j * N + i] = 0;
	all_close("trsm put back", product(a, db.get(), N, 8, N), b, 1e-11);
	puts("matrices");
}

static void complex_numbers(cublasHandle_t h)
{
	std::vector<cuFloatComplex> a(N * N), b(N * N);
	std::vector<float> n = noise_vector<float>(4 * N * N, 6);
	cuFloatComplex one = make_cuFloatComplex(1, 0), zero = make_cuFloatComplex(0, 0);

	for (int i = 0; i < N * N; i++) {
		a[i] = make_cuFloatComplex(n[4 * i], n[4 * i + 1]);
		b[i] = make_cuFloatComplex(n[4 * i + 2], n[4 * i + 3]);
	}
	dev<cuFloatComplex> da(a), db(b), dc(N * N);
	LIB(cublasCgemm(h, CUBLAS_OP_C, CUBLAS_OP_N, N, N, N, &one, da, N, db, N, &zero, dc, N));
	std::vector<cuFloatComplex> c = dc.get();
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++) {
			double re = 0, im = 0;
			for (int l = 0; l < N; l++) {
				cuFloatComplex u = a[i * N + l], v = b[j * N + l];
				re += (double)u.x * v.x + (double)u.y * v.y;
				im += (double)u.x * v.y - (double)u.y * v.x;
			}
			close_to("cgemm real", j * N + i, c[j * N + i].x, re, 1e-5);
			close_to("cgemm imaginary", j * N + i, c[j * N + i].y, im, 1e-5);
		}
	puts("complex numbers");
}

static void batches(cublasHandle_t h)
{
	enum { BATCH = 20, S = 16 };
	std::vector<float> a = noise_vector<float>(BATCH * S * S, 7);
	std::vector<float *> pointers(BATCH), more(BATCH), inverses(BATCH);
	float one = 1, zero = 0;

	for (int i = 0; i < BATCH * S; i++)
		a[i / S * S * S + i % S * S + i % S] += 3;
	dev<float> da(a), dc(a.size()), di(a.size());
	for (int i = 0; i < BATCH; i++) {
		pointers[i] = da + i * S * S;
		more[i] = dc + i * S * S;
		inverses[i] = di + i * S * S;
	}
	dev<float *> dp(pointers), dm(more), dinv(inverses);
	LIB(cublasSgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, S, S, S, &one, (const float *const *)(float **)dp,
		S, (const float *const *)(float **)dp, S, &zero, dm, S, BATCH));
	std::vector<float> c = dc.get();
	for (int i = 0; i < BATCH; i++) {
		std::vector<float> m(a.begin() + i * S * S, a.begin() + (i + 1) * S * S);
		all_close("batch", std::vector<float>(c.begin() + i * S * S, c.begin() + (i + 1) * S * S),
			product(m, m, S, S, S), 1e-5);
	}
	dev<int> pivots(BATCH * S), info(BATCH);
	LIB(cublasSgetrfBatched(h, S, dp, S, pivots, info, BATCH));
	LIB(cublasSgetriBatched(h, S, (const float *const *)(float **)dp, S, pivots, dinv, S, info, BATCH));
	std::vector<float> inverse = di.get();
	for (int i = 0; i < BATCH; i++) {
		std::vector<float> m(a.begin() + i * S * S, a.begin() + (i + 1) * S * S);
		std::vector<double> p = product(m,
			std::vector<float>(inverse.begin() + i * S * S, inverse.begin() + (i + 1) * S * S), S,
			S, S);
		for (int k = 0; k < S * S; k++)
			close_to("inverse", i * S * S + k, p[k], k / S == k % S, 1e-4);
	}
	puts("batches");
}

static void modes(cublasHandle_t h)
{
	std::vector<float> a = noise_vector<float>(N * N, 8);
	dev<float> da(a), dc(N * N);
	float one = 1, zero = 0;
	cudaStream_t s;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	LIB(cublasSetMathMode(h, CUBLAS_TF32_TENSOR_OP_MATH));
	LIB(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, da, N, da, N, &zero, dc, N));
	all_close("TF32", dc.get(), product(a, a, N, N, N), 5e-3);
	LIB(cublasSetMathMode(h, CUBLAS_DEFAULT_MATH));

	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	dev<char> workspace(8 << 20);
	LIB(cublasSetStream(h, s));
	LIB(cublasSetWorkspace(h, workspace, 8 << 20));
	CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	LIB(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, N, N, N, &one, da, N, da, N, &zero, dc, N));
	CK(cudaStreamEndCapture(s, &graph));
	CK(cudaGraphInstantiate(&exec, graph, 0));
	CK(cudaMemset(dc, 0, N * N * 4));
	CK(cudaGraphLaunch(exec, s));
	CK(cudaStreamSynchronize(s));
	std::vector<float> t(N * N);
	for (int i = 0; i < N * N; i++)
		t[i] = a[i % N * N + i / N];
	all_close("in a graph", dc.get(), product(a, t, N, N, N), 1e-5);
	CK(cudaGraphExecDestroy(exec));
	CK(cudaGraphDestroy(graph));
	LIB(cublasSetStream(h, 0));
	CK(cudaStreamDestroy(s));
	puts("modes");
}

int main(void)
{
	cublasHandle_t h;
	int version;

	LIB(cublasCreate(&h));
	LIB(cublasGetVersion(h, &version));
	printf("~ cuBLAS %d\n", version);
	vectors(h);
	matrices(h);
	complex_numbers(h);
	batches(h);
	modes(h);
	LIB(cublasDestroy(h));
	return pass();
}
