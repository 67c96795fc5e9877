// SPDX-License-Identifier: Apache-2.0
// cuSPARSE by its generic interface: a sparse matrix in three formats times a vector and a matrix, times
// another sparse one (SpGEMM), a triangular solution, and to and from dense. And conjugate gradients made of
// it with cuBLAS. Against the host.
#include "app.h"
#include "libs.h"
#include <cublas_v2.h>
#include <cusparse.h>

enum { N = 120, COLUMNS = 6 };

struct csr {
	std::vector<int> rows, columns;
	std::vector<double> values;
	std::vector<double> dense; /* column-major */
};

static csr make(uint32_t seed, bool triangular)
{
	csr m;

	m.dense.assign(N * N, 0);
	m.rows.push_back(0);
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < (triangular ? i + 1 : N); j++) {
			bool diagonal = i == j;
			if (noise_float(&seed) > 0.06f && !(triangular && diagonal))
				continue;
			double v = triangular && diagonal ? 3 : noise_float(&seed) - 0.5;
			m.columns.push_back(j);
			m.values.push_back(v);
			m.dense[j * N + i] = v;
		}
		m.rows.push_back((int)m.columns.size());
	}
	return m;
}

static cusparseHandle_t h;
static double one = 1, zero;

static void times_vector()
{
	csr m = make(31, false);
	std::vector<double> x = noise_vector<double>(N, 32), want = product(m.dense, x, N, 1, N);
	dev<int> rows(m.rows), columns(m.columns);
	dev<double> values(m.values), dx(x), dy(N);
	cusparseSpMatDescr_t a, b;
	cusparseDnVecDescr_t vx, vy;
	size_t size;

	LIB(cusparseCreateDnVec(&vx, N, dx, CUDA_R_64F));
	LIB(cusparseCreateDnVec(&vy, N, dy, CUDA_R_64F));
	LIB(cusparseCreateCsr(&a, N, N, (int64_t)m.values.size(), rows, columns, values, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	LIB(cusparseSpMV_bufferSize(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, vx, &zero, vy, CUDA_R_64F,
		CUSPARSE_SPMV_ALG_DEFAULT, &size));
	dev<char> work(size);
	LIB(cusparseSpMV(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, vx, &zero, vy, CUDA_R_64F,
		CUSPARSE_SPMV_ALG_DEFAULT, work));
	all_close("csr times a vector", dy.get(), want, 1e-12);

	std::vector<int> each;
	for (int i = 0; i < N; i++)
		each.insert(each.end(), (size_t)(m.rows[i + 1] - m.rows[i]), i);
	dev<int> row_of(each);
	LIB(cusparseCreateCoo(&b, N, N, (int64_t)m.values.size(), row_of, columns, values, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	LIB(cusparseSpMV_bufferSize(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, b, vx, &zero, vy, CUDA_R_64F,
		CUSPARSE_SPMV_ALG_DEFAULT, &size));
	dev<char> more(size);
	LIB(cusparseSpMV(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, b, vx, &zero, vy, CUDA_R_64F,
		CUSPARSE_SPMV_ALG_DEFAULT, more));
	all_close("coo times a vector", dy.get(), want, 1e-12);
	LIB(cusparseDestroySpMat(a));
	LIB(cusparseDestroySpMat(b));
	LIB(cusparseDestroyDnVec(vx));
	LIB(cusparseDestroyDnVec(vy));
	puts("times a vector");
}

static void times_matrix()
{
	csr m = make(33, false);
	std::vector<double> b = noise_vector<double>(N * COLUMNS, 34);
	dev<int> rows(m.rows), columns(m.columns);
	dev<double> values(m.values), db(b), dc(N * COLUMNS), dense(N * N);
	cusparseSpMatDescr_t a;
	cusparseDnMatDescr_t mb, mc, md;
	size_t size;

	LIB(cusparseCreateCsr(&a, N, N, (int64_t)m.values.size(), rows, columns, values, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	LIB(cusparseCreateDnMat(&mb, N, COLUMNS, N, db, CUDA_R_64F, CUSPARSE_ORDER_COL));
	LIB(cusparseCreateDnMat(&mc, N, COLUMNS, N, dc, CUDA_R_64F, CUSPARSE_ORDER_COL));
	LIB(cusparseCreateDnMat(&md, N, N, N, dense, CUDA_R_64F, CUSPARSE_ORDER_COL));
	LIB(cusparseSpMM_bufferSize(h, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE,
		&one, a, mb, &zero, mc, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, &size));
	dev<char> work(size);
	LIB(cusparseSpMM(h, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, mb,
		&zero, mc, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, work));
	all_close("times a matrix", dc.get(), product(m.dense, b, N, COLUMNS, N), 1e-12);
	LIB(cusparseSparseToDense_bufferSize(h, a, md, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, &size));
	dev<char> more(size);
	LIB(cusparseSparseToDense(h, a, md, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, more));
	all_close("to dense", dense.get(), m.dense, 0);
	LIB(cusparseDestroySpMat(a));
	LIB(cusparseDestroyDnMat(mb));
	LIB(cusparseDestroyDnMat(mc));
	LIB(cusparseDestroyDnMat(md));
	puts("times a matrix");
}

static void times_sparse()
{
	csr m = make(35, false), n = make(36, false);
	dev<int> rows(m.rows), columns(m.columns), rows2(n.rows), columns2(n.columns), rows3(N + 1);
	dev<double> values(m.values), values2(n.values);
	cusparseSpMatDescr_t a, b, c;
	cusparseSpGEMMDescr_t d;
	size_t first = 0, second = 0;
	int64_t r, k, count;
	const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;

	LIB(cusparseCreateCsr(&a, N, N, (int64_t)m.values.size(), rows, columns, values, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	LIB(cusparseCreateCsr(&b, N, N, (int64_t)n.values.size(), rows2, columns2, values2,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	LIB(cusparseCreateCsr(&c, N, N, 0, rows3, nullptr, nullptr, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	LIB(cusparseSpGEMM_createDescr(&d));
	LIB(cusparseSpGEMM_workEstimation(h, plain, plain, &one, a, b, &zero, c, CUDA_R_64F,
		CUSPARSE_SPGEMM_DEFAULT, d, &first, nullptr));
	dev<char> work(first);
	LIB(cusparseSpGEMM_workEstimation(
		h, plain, plain, &one, a, b, &zero, c, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, d, &first, work));
	LIB(cusparseSpGEMM_compute(h, plain, plain, &one, a, b, &zero, c, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT,
		d, &second, nullptr));
	dev<char> more(second);
	LIB(cusparseSpGEMM_compute(h, plain, plain, &one, a, b, &zero, c, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT,
		d, &second, more));
	LIB(cusparseSpMatGetSize(c, &r, &k, &count));
	dev<int> columns3((size_t)count);
	dev<double> values3((size_t)count);
	LIB(cusparseCsrSetPointers(c, rows3, columns3, values3));
	LIB(cusparseSpGEMM_copy(
		h, plain, plain, &one, a, b, &zero, c, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, d));

	std::vector<int> i3 = rows3.get(), j3 = columns3.get();
	std::vector<double> v3 = values3.get(), got(N * N);
	if (i3[N] != count)
		fail("the product has %d values, expected %lld", i3[N], (long long)count);
	for (int i = 0; i < N; i++)
		for (int at = i3[i]; at < i3[i + 1]; at++)
			got[j3[at] * N + i] += v3[at];
	all_close("times a sparse matrix", got, product(m.dense, n.dense, N, N, N), 1e-12);
	LIB(cusparseSpGEMM_destroyDescr(d));
	LIB(cusparseDestroySpMat(a));
	LIB(cusparseDestroySpMat(b));
	LIB(cusparseDestroySpMat(c));
	puts("times a sparse matrix");
}

static void triangular()
{
	csr m = make(37, true);
	std::vector<double> b = noise_vector<double>(N, 38);
	dev<int> rows(m.rows), columns(m.columns);
	dev<double> values(m.values), db(b), dx(N);
	cusparseSpMatDescr_t a;
	cusparseDnVecDescr_t vb, vx;
	cusparseSpSVDescr_t d;
	cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
	cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
	size_t size;

	LIB(cusparseCreateCsr(&a, N, N, (int64_t)m.values.size(), rows, columns, values, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	LIB(cusparseSpMatSetAttribute(a, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
	LIB(cusparseSpMatSetAttribute(a, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof(diagonal)));
	LIB(cusparseCreateDnVec(&vb, N, db, CUDA_R_64F));
	LIB(cusparseCreateDnVec(&vx, N, dx, CUDA_R_64F));
	LIB(cusparseSpSV_createDescr(&d));
	LIB(cusparseSpSV_bufferSize(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, vb, vx, CUDA_R_64F,
		CUSPARSE_SPSV_ALG_DEFAULT, d, &size));
	dev<char> work(size);
	LIB(cusparseSpSV_analysis(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, vb, vx, CUDA_R_64F,
		CUSPARSE_SPSV_ALG_DEFAULT, d, work));
	LIB(cusparseSpSV_solve(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, vb, vx, CUDA_R_64F,
		CUSPARSE_SPSV_ALG_DEFAULT, d));
	all_close("triangular solution", product(m.dense, dx.get(), N, 1, N), b, 1e-10);
	LIB(cusparseSpSV_destroyDescr(d));
	LIB(cusparseDestroySpMat(a));
	LIB(cusparseDestroyDnVec(vb));
	LIB(cusparseDestroyDnVec(vx));
	puts("triangular solution");
}

static void conjugate_gradients()
{
	enum { S = 900, W = 30 }; /* the five-point grid */
	std::vector<int> rows{0}, columns;
	std::vector<double> values, b = noise_vector<double>(S, 39);

	for (int i = 0; i < S; i++) {
		const int neighbours[] = {i - W, i % W ? i - 1 : -1, i, i % W < W - 1 ? i + 1 : -1, i + W};
		for (int j : neighbours)
			if (j >= 0 && j < S) {
				columns.push_back(j);
				values.push_back(j == i ? 4 : -1);
			}
		rows.push_back((int)columns.size());
	}
	dev<int> dr(rows), dc(columns);
	dev<double> dv(values), x(S), r(b), p(b), q(S);
	cublasHandle_t blas;
	cusparseSpMatDescr_t a;
	cusparseDnVecDescr_t vp, vq;
	size_t size;
	double rho, next, dot;
	int steps = 0;

	LIB(cublasCreate(&blas));
	LIB(cusparseCreateCsr(&a, S, S, (int64_t)values.size(), dr, dc, dv, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	LIB(cusparseCreateDnVec(&vp, S, p, CUDA_R_64F));
	LIB(cusparseCreateDnVec(&vq, S, q, CUDA_R_64F));
	LIB(cusparseSpMV_bufferSize(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, vp, &zero, vq, CUDA_R_64F,
		CUSPARSE_SPMV_ALG_DEFAULT, &size));
	dev<char> work(size);
	LIB(cublasDdot(blas, S, r, 1, r, 1, &rho));
	for (; rho > 1e-20 && steps < 300; steps++) {
		LIB(cusparseSpMV(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, vp, &zero, vq, CUDA_R_64F,
			CUSPARSE_SPMV_ALG_DEFAULT, work));
		LIB(cublasDdot(blas, S, p, 1, q, 1, &dot));
		double alpha = rho / dot, minus = -alpha, beta;
		LIB(cublasDaxpy(blas, S, &alpha, p, 1, x, 1));
		LIB(cublasDaxpy(blas, S, &minus, q, 1, r, 1));
		LIB(cublasDdot(blas, S, r, 1, r, 1, &next));
		beta = next / rho;
		LIB(cublasDscal(blas, S, &beta, p, 1));
		LIB(cublasDaxpy(blas, S, &one, r, 1, p, 1));
		rho = next;
	}
	std::vector<double> solution = x.get(), back(S);
	for (int i = 0; i < S; i++)
		for (int at = rows[i]; at < rows[i + 1]; at++)
			back[i] += values[at] * solution[columns[at]];
	all_close("conjugate gradients", back, b, 1e-8);
	printf("~ %d steps\n", steps);
	LIB(cusparseDestroySpMat(a));
	LIB(cusparseDestroyDnVec(vp));
	LIB(cusparseDestroyDnVec(vq));
	LIB(cublasDestroy(blas));
	puts("conjugate gradients");
}

int main(void)
{
	LIB(cusparseCreate(&h));
	times_vector();
	times_matrix();
	times_sparse();
	triangular();
	conjugate_gradients();
	LIB(cusparseDestroy(h));
	return pass();
}
