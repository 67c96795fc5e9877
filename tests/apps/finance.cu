// SPDX-License-Identifier: Apache-2.0
// The price of an option four ways: the closed formula, a binomial tree in shared memory, Monte Carlo with
// numbers of the device's generator, and with quasi-random points made on the device. All agree with the
// formula on the host within the error of each way.
#include "app.h"
#include <curand_kernel.h>
#include <vector>

enum { OPTIONS = 256, TREE = 512, PATHS = 1 << 15, WAYS = 4 };
static const double rate = 0.03, volatility = 0.25;

struct option {
	float price, strike, years;
};

__host__ __device__ static double normal(double x)
{
	return 0.5 * erfc(-x * 0.7071067811865476);
}

__host__ __device__ static double call(option o, double r, double v)
{
	double d = (log(o.price / o.strike) + (r + v * v / 2) * o.years) / (v * sqrt(o.years));

	return o.price * normal(d) - o.strike * exp(-r * o.years) * normal(d - v * sqrt(o.years));
}

__global__ void formula(const option *o, double *out, double r, double v)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = call(o[i], r, v);
}

__global__ void tree(const option *o, double *out, double r, double v)
{
	__shared__ double value[TREE + 1];
	option p = o[blockIdx.x];
	double dt = p.years / TREE, up = exp(v * sqrt(dt)), q = (exp(r * dt) - 1 / up) / (up - 1 / up),
	       discount = exp(-r * dt);

	for (int i = threadIdx.x; i <= TREE; i += blockDim.x)
		value[i] = fmax(p.price * exp(v * sqrt(dt) * (2 * i - TREE)) - p.strike, 0.0);
	__syncthreads();
	for (int level = TREE - 1; level >= 0; level--) {
		double mine[(TREE + 127) / 128];

		for (int i = threadIdx.x, k = 0; i <= level; i += blockDim.x, k++)
			mine[k] = discount * (q * value[i + 1] + (1 - q) * value[i]);
		__syncthreads();
		for (int i = threadIdx.x, k = 0; i <= level; i += blockDim.x, k++)
			value[i] = mine[k];
		__syncthreads();
	}
	if (!threadIdx.x)
		out[blockIdx.x] = value[0];
}

__device__ static double block_sum(double v)
{
	__shared__ double part[32];

	for (int k = 16; k; k /= 2)
		v += __shfl_down_sync(~0u, v, k);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
	for (int k = 16; k && threadIdx.x < 32; k /= 2)
		v += __shfl_down_sync(~0u, v, k);
	return v;
}

__global__ void monte_carlo(const option *o, double *out, double r, double v)
{
	option p = o[blockIdx.x];
	curandStatePhilox4_32_10_t s;
	double sum = 0;

	curand_init(2026, blockIdx.x * blockDim.x + threadIdx.x, 0, &s);
	for (int i = threadIdx.x; i < PATHS; i += blockDim.x) {
		double z = curand_normal_double(&s), move = v * sqrt(p.years);

		/* Each number with its opposite. */
		for (int sign = -1; sign <= 1; sign += 2)
			sum += fmax(p.price * exp((r - v * v / 2) * p.years + sign * z * move) - p.strike,
				       0.0) /
			       2;
	}
	sum = block_sum(sum);
	if (!threadIdx.x)
		out[blockIdx.x] = exp(-r * p.years) * sum / PATHS;
}

__global__ void quasi_random(const option *o, double *out, double r, double v)
{
	option p = o[blockIdx.x];
	double sum = 0;

	for (unsigned i = threadIdx.x; i < PATHS; i += blockDim.x) {
		double u = (__brev(i) + 0.5) / 4294967296.0, z = normcdfinv(u);

		sum += fmax(p.price * exp((r - v * v / 2) * p.years + z * v * sqrt(p.years)) - p.strike, 0.0);
	}
	sum = block_sum(sum);
	if (!threadIdx.x)
		out[blockIdx.x] = exp(-r * p.years) * sum / PATHS;
}

int main(void)
{
	static const char *const names[] = {"formula", "tree", "Monte Carlo", "quasi-random points"};
	static const double tolerance[] = {1e-12, 5e-3, 2e-2, 2e-3};
	std::vector<option> o(OPTIONS);
	std::vector<double> got(OPTIONS);
	uint32_t seed = 8;
	option *d;
	double *out;
	int few = 16; /* options of the ways that take long */

	for (option &p : o)
		p = {10 + 90 * noise_float(&seed), 10 + 90 * noise_float(&seed),
			0.25f + 2 * noise_float(&seed)};
	CK(cudaMalloc(&d, OPTIONS * sizeof(option)));
	CK(cudaMalloc(&out, OPTIONS * 8));
	CK(cudaMemcpy(d, o.data(), OPTIONS * sizeof(option), cudaMemcpyHostToDevice));
	for (int w = 0; w < WAYS; w++) {
		int n = w ? few : OPTIONS;

		switch (w) {
		case 0: formula<<<OPTIONS / 64, 64>>>(d, out, rate, volatility); break;
		case 1: tree<<<few, 128>>>(d, out, rate, volatility); break;
		case 2: monte_carlo<<<few, 128>>>(d, out, rate, volatility); break;
		case 3: quasi_random<<<few, 128>>>(d, out, rate, volatility); break;
		}
		CK(cudaGetLastError());
		CK(cudaMemcpy(got.data(), out, (size_t)n * 8, cudaMemcpyDeviceToHost));
		for (int i = 0; i < n; i++)
			close_to(names[w], (size_t)i, got[i], call(o[i], rate, volatility), tolerance[w]);
		puts(names[w]);
	}
	CK(cudaFree(d));
	CK(cudaFree(out));
	return pass();
}
