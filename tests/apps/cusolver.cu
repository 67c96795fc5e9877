// SPDX-License-Identifier: Apache-2.0
// cuSOLVER: LU, Cholesky and QR factors and what they solve, singular values, eigenvalues of symmetric
// matrices, and the 64-bit interface. Each result is multiplied out or put back into its equation on the
// host.
#include "app.h"
#include "libs.h"
#include <cusolverDn.h>

enum { N = 50, R = 4 };

static cusolverDnHandle_t h;

static std::vector<double> transposed(const std::vector<double> &a, int rows, int columns)
{
	std::vector<double> t(a.size());

	for (int j = 0; j < columns; j++)
		for (int i = 0; i < rows; i++)
			t[(size_t)i * columns + j] = a[(size_t)j * rows + i];
	return t;
}

static std::vector<double> definite(uint32_t seed)
{
	std::vector<double> a = noise_vector<double>(N * N, seed),
			    s = product(a, transposed(a, N, N), N, N, N);

	for (int i = 0; i < N; i++)
		s[i * N + i] += 1;
	return s;
}

static void no_error(const char *what, const dev<int> &info)
{
	if (info.get()[0])
		fail("%s: info %d", what, info.get()[0]);
}

static void lu()
{
	std::vector<double> a = noise_vector<double>(N * N, 21), b = noise_vector<double>(N * R, 22);
	dev<double> da(a), db(b);
	dev<int> pivots(N), info(1);
	int size;

	LIB(cusolverDnDgetrf_bufferSize(h, N, N, da, N, &size));
	dev<double> work(size);
	LIB(cusolverDnDgetrf(h, N, N, da, N, work, pivots, info));
	no_error("getrf", info);
	LIB(cusolverDnDgetrs(h, CUBLAS_OP_N, N, R, da, N, pivots, db, N, info));
	no_error("getrs", info);
	all_close("LU solution", product(a, db.get(), N, R, N), b, 1e-9);
	puts("LU");
}

static void cholesky()
{
	std::vector<double> a = definite(23), b = noise_vector<double>(N * R, 24);
	dev<double> da(a), db(b);
	dev<int> info(1);
	int size;

	LIB(cusolverDnDpotrf_bufferSize(h, CUBLAS_FILL_MODE_LOWER, N, da, N, &size));
	dev<double> work(size);
	LIB(cusolverDnDpotrf(h, CUBLAS_FILL_MODE_LOWER, N, da, N, work, size, info));
	no_error("potrf", info);
	LIB(cusolverDnDpotrs(h, CUBLAS_FILL_MODE_LOWER, N, R, da, N, db, N, info));
	all_close("Cholesky solution", product(a, db.get(), N, R, N), b, 1e-9);
	std::vector<double> l = da.get();
	for (int j = 0; j < N; j++)
		for (int i = 0; i < j; i++)
			l[j * N + i] = 0;
	all_close("Cholesky product", product(l, transposed(l, N, N), N, N, N), a, 1e-10);

	/* A matrix that is not positive tells where. */
	a[7 * N + 7] = -100;
	dev<double> bad(a);
	LIB(cusolverDnDpotrf(h, CUBLAS_FILL_MODE_LOWER, N, bad, N, work, size, info));
	if (info.get()[0] != 8)
		fail("potrf of a matrix that is not positive: info %d, expected 8", info.get()[0]);
	puts("Cholesky");
}

static void qr()
{
	enum { ROWS = 70 };
	std::vector<double> a = noise_vector<double>(ROWS * N, 25), b = noise_vector<double>(ROWS, 26);
	dev<double> da(a), db(b), tau(N);
	dev<int> info(1);
	int size, more, third;

	LIB(cusolverDnDgeqrf_bufferSize(h, ROWS, N, da, ROWS, &size));
	LIB(cusolverDnDormqr_bufferSize(
		h, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, ROWS, 1, N, da, ROWS, tau, db, ROWS, &more));
	LIB(cusolverDnDorgqr_bufferSize(h, ROWS, N, N, da, ROWS, tau, &third));
	dev<double> work(std::max(std::max(size, more), third));
	LIB(cusolverDnDgeqrf(h, ROWS, N, da, ROWS, tau, work, size, info));
	no_error("geqrf", info);
	LIB(cusolverDnDormqr(
		h, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, ROWS, 1, N, da, ROWS, tau, db, ROWS, work, more, info));
	std::vector<double> f = da.get(), y = db.get(), r(N * N), x(N);
	for (int j = 0; j < N; j++)
		for (int i = 0; i <= j; i++)
			r[j * N + i] = f[j * ROWS + i];
	for (int i = N; i-- > 0;) {
		x[i] = y[i];
		for (int j = i + 1; j < N; j++)
			x[i] -= r[j * N + i] * x[j];
		x[i] /= r[i * N + i];
	}
	/* The residue of least squares is orthogonal to the columns. */
	std::vector<double> residue = product(a, x, ROWS, 1, N);
	for (int i = 0; i < ROWS; i++)
		residue[i] -= b[i];
	all_close("least squares", product(transposed(a, ROWS, N), residue, N, 1, ROWS),
		std::vector<double>(N), 1e-9);
	LIB(cusolverDnDorgqr(h, ROWS, N, N, da, ROWS, tau, work, third, info));
	all_close("QR product", product(da.get(), r, ROWS, N, N), a, 1e-10);
	puts("QR");
}

static void singular_values()
{
	enum { ROWS = 60 };
	std::vector<double> a = noise_vector<double>(ROWS * N, 27);
	dev<double> da(a), s(N), u(ROWS * ROWS), v(N * N);
	dev<int> info(1);
	int size;

	LIB(cusolverDnDgesvd_bufferSize(h, ROWS, N, &size));
	dev<double> work(size);
	LIB(cusolverDnDgesvd(h, 'A', 'A', ROWS, N, da, ROWS, s, u, ROWS, v, N, work, size, nullptr, info));
	no_error("gesvd", info);
	std::vector<double> us = u.get(), sv = s.get();
	us.resize(ROWS * N);
	for (int j = 0; j < N; j++) {
		if (sv[j] < 0 || (j && sv[j] > sv[j - 1] + 1e-12))
			fail("singular value %d is %g after %g", j, sv[j], j ? sv[j - 1] : 0);
		for (int i = 0; i < ROWS; i++)
			us[j * ROWS + i] *= sv[j];
	}
	all_close("singular values", product(us, v.get(), ROWS, N, N), a, 1e-9);
	puts("singular values");
}

static void eigenvalues()
{
	std::vector<double> a = definite(28);
	dev<double> da(a), w(N);
	dev<int> info(1);
	int size;

	LIB(cusolverDnDsyevd_bufferSize(
		h, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, da, N, w, &size));
	dev<double> work(size);
	LIB(cusolverDnDsyevd(
		h, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, da, N, w, work, size, info));
	no_error("syevd", info);
	std::vector<double> v = da.get(), values = w.get(), scaled = v;
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			scaled[j * N + i] *= values[j];
	all_close("eigenvalues", product(scaled, transposed(v, N, N), N, N, N), a, 1e-9);
	puts("eigenvalues");
}

static void wide_interface()
{
	std::vector<double> a = noise_vector<double>(N * N, 29), b = noise_vector<double>(N * R, 30);
	dev<double> da(a), db(b);
	dev<int64_t> pivots(N);
	dev<int> info(1);
	cusolverDnParams_t params;
	size_t device, host;

	LIB(cusolverDnCreateParams(&params));
	LIB(cusolverDnXgetrf_bufferSize(h, params, N, N, CUDA_R_64F, da, N, CUDA_R_64F, &device, &host));
	dev<char> work(device);
	std::vector<char> local(host + 1);
	LIB(cusolverDnXgetrf(h, params, N, N, CUDA_R_64F, da, N, pivots, CUDA_R_64F, work, device,
		local.data(), host, info));
	no_error("Xgetrf", info);
	LIB(cusolverDnXgetrs(
		h, params, CUBLAS_OP_N, N, R, CUDA_R_64F, da, N, pivots, CUDA_R_64F, db, N, info));
	all_close("64-bit solution", product(a, db.get(), N, R, N), b, 1e-9);
	LIB(cusolverDnDestroyParams(params));
	puts("64-bit interface");
}

int main(void)
{
	LIB(cusolverDnCreate(&h));
	lu();
	cholesky();
	qr();
	singular_values();
	eigenvalues();
	wide_interface();
	LIB(cusolverDnDestroy(h));
	return pass();
}
