// SPDX-License-Identifier: Apache-2.0
// cuFFT: complex and real transforms of one to three dimensions, powers of two and others, single and double,
// batched and with strides, on a stream with a workspace of one's own, in a graph; and a convolution by way
// of the spectrum. Against sums on the host.
#include "app.h"
#include "libs.h"
#include <complex>
#include <cufft.h>

typedef std::complex<double> cplx;

static void transform(
	std::vector<cplx> &x, size_t start, size_t stride, size_t n) /* a plain sum in one line of an array */
{
	std::vector<cplx> y(n);

	for (size_t k = 0; k < n; k++)
		for (size_t j = 0; j < n; j++)
			y[k] += x[start + j * stride] *
				std::polar(1.0, -2 * M_PI * (double)(j * k % n) / (double)n);
	for (size_t k = 0; k < n; k++)
		x[start + k * stride] = y[k];
}

static std::vector<cplx> reference(
	std::vector<cplx> x, size_t a, size_t b, size_t c) /* a planes of b rows of c */
{
	for (size_t i = 0; i < a * b; i++)
		transform(x, i * c, 1, c);
	for (size_t i = 0; b > 1 && i < a * c; i++)
		transform(x, i / c * b * c + i % c, c, b);
	for (size_t i = 0; a > 1 && i < b * c; i++)
		transform(x, i, b * c, a);
	return x;
}

template <typename C> static std::vector<cplx> wide(const std::vector<C> &v, double divisor = 1)
{
	std::vector<cplx> w;

	for (const C &c : v)
		w.push_back(cplx(c.x, c.y) / divisor);
	return w;
}

static void same(
	const char *what, const std::vector<cplx> &got, const std::vector<cplx> &want, double tolerance)
{
	if (got.size() != want.size())
		fail("%s: %zu values, expected %zu", what, got.size(), want.size());
	for (size_t i = 0; i < got.size(); i++) {
		close_to(what, i, got[i].real(), want[i].real(), tolerance);
		close_to(what, i, got[i].imag(), want[i].imag(), tolerance);
	}
}

static std::vector<cufftComplex> input(size_t n, uint32_t seed)
{
	std::vector<cufftComplex> x(n);
	std::vector<float> v = noise_vector<float>(2 * n, seed);

	for (size_t i = 0; i < n; i++)
		x[i] = make_cuFloatComplex(v[2 * i], v[2 * i + 1]);
	return x;
}

static void lengths()
{
	static const int sizes[] = {2, 7, 64, 100, 243, 256, 509};

	for (int n : sizes) {
		cufftHandle plan;
		std::vector<cufftComplex> x = input((size_t)n * 3, (uint32_t)n);
		dev<cufftComplex> d(x);

		LIB(cufftPlan1d(&plan, n, CUFFT_C2C, 3));
		LIB(cufftExecC2C(plan, d, d, CUFFT_FORWARD));
		std::vector<cplx> want, all = wide(x);
		for (int b = 0; b < 3; b++) {
			std::vector<cplx> one =
				reference(std::vector<cplx>(all.begin() + b * n, all.begin() + (b + 1) * n),
					1, 1, (size_t)n);
			want.insert(want.end(), one.begin(), one.end());
		}
		same("forwards", wide(d.get()), want, 1e-4);
		LIB(cufftExecC2C(plan, d, d, CUFFT_INVERSE));
		same("and back", wide(d.get(), n), all, 1e-5);
		LIB(cufftDestroy(plan));
	}
	puts("lengths");
}

static void dimensions()
{
	cufftHandle two, three, real, back, twice;
	std::vector<cufftComplex> x = input(12 * 10 * 16, 3);
	dev<cufftComplex> d(x), e(x);

	LIB(cufftPlan2d(&two, 120, 16, CUFFT_C2C));
	LIB(cufftExecC2C(two, d, d, CUFFT_FORWARD));
	same("two dimensions", wide(d.get()), reference(wide(x), 1, 120, 16), 1e-4);
	LIB(cufftPlan3d(&three, 12, 10, 16, CUFFT_C2C));
	LIB(cufftExecC2C(three, e, e, CUFFT_FORWARD));
	same("three dimensions", wide(e.get()), reference(wide(x), 12, 10, 16), 1e-4);

	std::vector<float> r = noise_vector<float>(40 * 30, 4);
	std::vector<cplx> wr(r.begin(), r.end()), full = reference(wr, 1, 40, 30), half;
	dev<float> dr(r);
	dev<cufftComplex> spectrum(40 * 16);
	LIB(cufftPlan2d(&real, 40, 30, CUFFT_R2C));
	LIB(cufftPlan2d(&back, 40, 30, CUFFT_C2R));
	LIB(cufftExecR2C(real, dr, spectrum));
	for (int i = 0; i < 40; i++)
		half.insert(half.end(), full.begin() + i * 30, full.begin() + i * 30 + 16);
	same("real numbers", wide(spectrum.get()), half, 1e-4);
	LIB(cufftExecC2R(back, spectrum, dr));
	std::vector<float> again = dr.get();
	for (float &v : again)
		v /= 1200;
	all_close("real numbers and back", again, r, 1e-5);

	std::vector<cufftDoubleComplex> z;
	for (const cufftComplex &c : x)
		z.push_back(make_cuDoubleComplex(c.x, c.y));
	dev<cufftDoubleComplex> dz(z);
	LIB(cufftPlan3d(&twice, 12, 10, 16, CUFFT_Z2Z));
	LIB(cufftExecZ2Z(twice, dz, dz, CUFFT_FORWARD));
	same("double", wide(dz.get()), reference(wide(x), 12, 10, 16), 1e-11);
	for (cufftHandle h : {two, three, real, back, twice})
		LIB(cufftDestroy(h));
	puts("dimensions");
}

static void ways()
{
	enum { N = 128, BATCH = 4 };
	cufftHandle plan, strided;
	int n = N, embed = N;
	size_t size = 0;
	cudaStream_t s;
	std::vector<cufftComplex> x = input(N * BATCH, 5);
	dev<cufftComplex> d(x), e(N * BATCH);

	/* Signals interleaved: element j of signal b at j * BATCH + b. */
	LIB(cufftPlanMany(&strided, 1, &n, &embed, BATCH, 1, &embed, BATCH, 1, CUFFT_C2C, BATCH));
	LIB(cufftExecC2C(strided, d, e, CUFFT_FORWARD));
	std::vector<cplx> want = wide(x);
	for (int b = 0; b < BATCH; b++)
		transform(want, (size_t)b, BATCH, N);
	same("strided", wide(e.get()), want, 1e-4);

	CK(cudaStreamCreate(&s));
	LIB(cufftCreate(&plan));
	LIB(cufftSetAutoAllocation(plan, 0));
	LIB(cufftMakePlan1d(plan, N, CUFFT_C2C, BATCH, &size));
	dev<char> workspace(size);
	LIB(cufftSetWorkArea(plan, workspace));
	LIB(cufftSetStream(plan, s));
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	LIB(cufftExecC2C(plan, d, e, CUFFT_FORWARD));
	LIB(cufftExecC2C(plan, e, e, CUFFT_INVERSE));
	CK(cudaStreamEndCapture(s, &graph));
	CK(cudaGraphInstantiate(&exec, graph, 0));
	CK(cudaGraphLaunch(exec, s));
	CK(cudaStreamSynchronize(s));
	same("in a graph", wide(e.get(), N), wide(x), 1e-5);
	CK(cudaGraphExecDestroy(exec));
	CK(cudaGraphDestroy(graph));
	LIB(cufftDestroy(plan));
	LIB(cufftDestroy(strided));
	CK(cudaStreamDestroy(s));
	puts("ways");
}

__global__ void multiply(cufftComplex *a, const cufftComplex *b, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		a[i] = cuCmulf(a[i], make_cuFloatComplex(b[i].x / 1024, b[i].y / 1024));
}

static void convolution()
{
	enum { N = 1024, A = 700, B = 300 };
	cufftHandle forward, inverse;
	std::vector<float> a = noise_vector<float>(N, 6), b = noise_vector<float>(N, 7);
	std::vector<double> want(N);

	std::fill(a.begin() + A, a.end(), 0);
	std::fill(b.begin() + B, b.end(), 0);
	for (int i = 0; i < A; i++)
		for (int j = 0; j < B; j++)
			want[i + j] += (double)a[i] * b[j];
	dev<float> da(a), db(b);
	dev<cufftComplex> sa(N / 2 + 1), sb(N / 2 + 1);
	LIB(cufftPlan1d(&forward, N, CUFFT_R2C, 1));
	LIB(cufftPlan1d(&inverse, N, CUFFT_C2R, 1));
	LIB(cufftExecR2C(forward, da, sa));
	LIB(cufftExecR2C(forward, db, sb));
	multiply<<<(N / 2 + 256) / 256, 256>>>(sa, sb, N / 2 + 1);
	LIB(cufftExecC2R(inverse, sa, da));
	all_close("convolution", da.get(), want, 1e-4);
	LIB(cufftDestroy(forward));
	LIB(cufftDestroy(inverse));
	puts("convolution");
}

int main(void)
{
	lengths();
	dimensions();
	ways();
	convolution();
	return pass();
}
