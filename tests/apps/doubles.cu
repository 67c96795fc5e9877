// SPDX-License-Identifier: Apache-2.0
// Double and single precision: directed rounding, fused multiply-add, division and square root bit for bit
// against the host; the mathematical library within its documented error; conversions to integers with
// saturation and NaN (the integer of which is what a real GPU made of it).
#include "app.h"
#include <cfenv>

enum { N = 2048, EXACT = 10, MATH = 12 };

__global__ void exact(const double *x, double *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double a = x[2 * i], b = x[2 * i + 1];

	out += i * EXACT;
	out[0] = __dadd_rn(a, b);
	out[1] = __dmul_rn(a, b);
	out[2] = fma(a, b, a);
	out[3] = a / b;
	out[4] = sqrt(fabs(a));
	out[5] = __dadd_ru(a, b);
	out[6] = __dmul_rd(a, b);
	out[7] = __ddiv_rz(a, b);
	out[8] = (double)(float)a;
	out[9] = rint(a) + trunc(b) + floor(a) - ceil(b);
}

__global__ void math(const double *x, double *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double a = x[2 * i], p = fabs(a) + 1e-3;

	out += i * MATH;
	out[0] = exp(a / 50);
	out[1] = log(p);
	out[2] = sin(a);
	out[3] = cos(a);
	out[4] = atan2(a, p + 1);
	out[5] = pow(p, 0.3);
	out[6] = tanh(a / 10);
	out[7] = cbrt(a);
	out[8] = erf(a / 30);
	out[9] = expf((float)a / 50);
	out[10] = sinf((float)a);
	out[11] = logf((float)p);
}

__global__ void convert(const double *x, long long *out)
{
	int i = threadIdx.x;

	out[i * 4] = (int)x[i];
	out[i * 4 + 1] = (long long)x[i];
	out[i * 4 + 2] = (unsigned)x[i];
	out[i * 4 + 3] = __double2int_rn(x[i]);
}

static double rounded(int mode, int op, double a, double b)
{
	volatile double x = a, y = b, r;

	fesetround(mode);
	r = op == 0 ? x + y : op == 1 ? x * y : x / y;
	fesetround(FE_TONEAREST);
	return r;
}

int main(void)
{
	static double x[2 * N], out[N * MATH];
	static const char *const names[] = {"exp", "log", "sin", "cos", "atan2", "pow", "tanh", "cbrt", "erf",
			"expf", "sinf", "logf"};
	double *dx, *dout;
	uint32_t seed = 77;

	for (int i = 0; i < 2 * N; i++) {
		x[i] = ((double)noise(&seed) / 4294967296.0 - 0.5) * 100;
		x[i] += (double)noise(&seed) * 1e-15;
	}
	CK(cudaMalloc(&dx, sizeof(x)));
	CK(cudaMalloc(&dout, sizeof(out)));
	CK(cudaMemcpy(dx, x, sizeof(x), cudaMemcpyHostToDevice));
	exact<<<N / 128, 128>>>(dx, dout);
	CK(cudaMemcpy(out, dout, N * EXACT * sizeof(double), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double a = x[2 * i], b = x[2 * i + 1];
		double want[EXACT] = {a + b, a * b, fma(a, b, a), a / b, sqrt(fabs(a)), rounded(FE_UPWARD, 0,
				a, b),
				      rounded(FE_DOWNWARD, 1, a, b), rounded(FE_TOWARDZERO, 2, a, b),
						(double)(float)a,
				      rint(a) + trunc(b) + floor(a) - ceil(b)};

		for (int k = 0; k < EXACT; k++)
			if (memcmp(&out[i * EXACT + k], &want[k], 8))
				fail("operation %d on %a and %a is %a, expected %a", k, a, b,
						out[i * EXACT + k], want[k]);
	}
	math<<<N / 128, 128>>>(dx, dout);
	CK(cudaMemcpy(out, dout, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double a = x[2 * i], p = fabs(a) + 1e-3;
		double want[MATH] = {exp(a / 50), log(p), sin(a), cos(a), atan2(a, p + 1), pow(p, 0.3),
				tanh(a / 10), cbrt(a),
				     erf(a / 30), expf((float)a / 50), sinf((float)a), logf((float)p)};

		for (int k = 0; k < MATH; k++)
			close_to(names[k], i, out[i * MATH + k], want[k], k < 9 ? 1e-14 : 1e-6);
	}

	const double odd[8] = {1.5, -2.5, 1e10, -1e10, 1e300, NAN, INFINITY, -0.99};
	const long long want[8][4] = {
		{1, 1, 1, 2},
		{-2, -2, 0, -2},
		{2147483647, 10000000000ll, 4294967295ll, 2147483647},
		{-2147483648ll, -10000000000ll, 0, -2147483648ll},
		{2147483647, 9223372036854775807ll, 4294967295ll, 2147483647},
		{-2147483648ll, -9223372036854775807ll - 1, 2147483648ll, -2147483648ll},
		{2147483647, 9223372036854775807ll, 4294967295ll, 2147483647},
		{0, 0, 0, -1},
	};
	long long got[8][4];
	CK(cudaMemcpy(dx, odd, sizeof(odd), cudaMemcpyHostToDevice));
	convert<<<1, 8>>>(dx, (long long *)dout);
	CK(cudaMemcpy(got, dout, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 4; k++)
			if (got[i][k] != want[i][k])
				fail("conversion %d of %g is %lld, expected %lld", k, odd[i], got[i][k],
						want[i][k]);
	CK(cudaFree(dx));
	CK(cudaFree(dout));
	return pass();
}
