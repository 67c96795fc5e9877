// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of a symmetric tridiagonal matrix by bisection: each thread narrows the interval of one of them
// by counting sign changes. The matrix of second differences has known ones; a random one is checked by its
// trace, its squares, and the counts on the host.
#include "app.h"
#include <vector>

enum { N = 256 };

__host__ __device__ static int below(const double *d, const double *e, int n, double x)
{
	double q = 1;
	int count = 0;

	for (int i = 0; i < n; i++) {
		q = d[i] - x - (i ? e[i - 1] * e[i - 1] / q : 0);
		if (fabs(q) < 1e-300)
			q = -1e-300;
		count += q < 0;
	}
	return count;
}

__global__ void bisect(const double *d, const double *e, int n, double low, double high, double *out)
{
	int k = blockIdx.x * blockDim.x + threadIdx.x;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (below(d, e, n, middle) > k)
			high = middle;
		else
			low = middle;
	}
	out[k] = (low + high) / 2;
}

static std::vector<double> eigenvalues(const std::vector<double> &d, const std::vector<double> &e)
{
	double *dd, *de, *out, low = 0, high = 0;
	std::vector<double> v(N);

	for (int i = 0; i < N; i++) {
		double r = (i ? fabs(e[i - 1]) : 0) + (i + 1 < N ? fabs(e[i]) : 0);

		low = fmin(low, d[i] - r);
		high = fmax(high, d[i] + r);
	}
	CK(cudaMalloc(&dd, N * 8));
	CK(cudaMalloc(&de, N * 8));
	CK(cudaMalloc(&out, N * 8));
	CK(cudaMemcpy(dd, d.data(), N * 8, cudaMemcpyHostToDevice));
	CK(cudaMemcpy(de, e.data(), N * 8, cudaMemcpyHostToDevice));
	bisect<<<N / 64, 64>>>(dd, de, N, low, high, out);
	CK(cudaGetLastError());
	CK(cudaMemcpy(v.data(), out, N * 8, cudaMemcpyDeviceToHost));
	CK(cudaFree(dd));
	CK(cudaFree(de));
	CK(cudaFree(out));
	return v;
}

int main(void)
{
	std::vector<double> d(N, 2), e(N, -1), v = eigenvalues(d, e);
	uint32_t seed = 15;
	double trace = 0, squares = 0, sum = 0, sum2 = 0;

	for (int k = 0; k < N; k++)
		close_to("second differences", (size_t)k, v[k], 2 - 2 * cos((k + 1) * M_PI / (N + 1)), 1e-12);
	puts("second differences");
	for (int i = 0; i < N; i++) {
		d[i] = 4 * noise_float(&seed) - 2;
		e[i] = i + 1 < N ? 2 * noise_float(&seed) - 1 : 0;
		trace += d[i];
		squares += d[i] * d[i] + 2 * e[i] * e[i];
	}
	v = eigenvalues(d, e);
	for (int k = 0; k < N; k++) {
		sum += v[k];
		sum2 += v[k] * v[k];
		if (below(d.data(), e.data(), N, v[k] - 1e-9) > k ||
			below(d.data(), e.data(), N, v[k] + 1e-9) <= k)
			fail("eigenvalue %d is not %.17g", k, v[k]);
	}
	close_to("trace", 0, sum, trace, 1e-9);
	close_to("squares", 0, sum2, squares, 1e-9);
	puts("a random matrix");
	return pass();
}
