// SPDX-License-Identifier: Apache-2.0
// cuRAND by its host interface: every generator gives the same numbers on the device as on the host with the
// same seed, goes on after an offset, and its distributions have their moments; quasi-random points fill the
// square evenly; pi by Monte Carlo.
#include "app.h"
#include "libs.h"
#include <curand.h>

enum { COUNT = 20000 };

static const struct {
	const char *name;
	curandRngType_t type;
	bool host; /* the host can make the same */
} generators[] = {
		{"XORWOW", CURAND_RNG_PSEUDO_XORWOW, true},
		{"MRG32K3A", CURAND_RNG_PSEUDO_MRG32K3A, true},
		{"MTGP32", CURAND_RNG_PSEUDO_MTGP32, true},
		{"MT19937", CURAND_RNG_PSEUDO_MT19937, false},
		{"PHILOX", CURAND_RNG_PSEUDO_PHILOX4_32_10, true},
};

static void same_as_host()
{
	for (const auto &g : generators) {
		curandGenerator_t device, host;
		dev<unsigned> d(COUNT);
		dev<float> u(COUNT), n(COUNT);
		std::vector<unsigned> want(COUNT);
		double sum = 0, squares = 0;

		LIB(curandCreateGenerator(&device, g.type));
		LIB(curandSetPseudoRandomGeneratorSeed(device, 1234));
		LIB(curandGenerate(device, d, COUNT));
		std::vector<unsigned> got = d.get();
		if (g.host) {
			LIB(curandCreateGeneratorHost(&host, g.type));
			LIB(curandSetPseudoRandomGeneratorSeed(host, 1234));
			LIB(curandGenerate(host, want.data(), COUNT));
			same_bytes(g.name, got.data(), want.data(), COUNT * 4);
			LIB(curandDestroyGenerator(host));
		}
		LIB(curandGenerateUniform(device, u, COUNT));
		for (float v : u.get()) {
			if (!(v > 0 && v <= 1))
				fail("%s: a uniform number is %g", g.name, v);
			sum += v;
		}
		close_to("mean of uniform numbers", 0, sum / COUNT, 0.5, 0.01);
		LIB(curandGenerateNormal(device, n, COUNT, 2.0f, 3.0f));
		sum = 0;
		for (float v : n.get()) {
			sum += v;
			squares += (double)v * v;
		}
		close_to("mean of normal numbers", 0, sum / COUNT, 2, 0.05);
		close_to("variance of normal numbers", 0, squares / COUNT - sum / COUNT * sum / COUNT, 9,
			0.05);
		LIB(curandDestroyGenerator(device));
		printf("%s: first %08x\n", g.name, got[0]);
	}
}

static void offsets()
{
	curandGenerator_t a, b;
	dev<unsigned> x(1000), y(900), z(1000);
	cudaStream_t s;

	CK(cudaStreamCreate(&s));
	LIB(curandCreateGenerator(&a, CURAND_RNG_PSEUDO_PHILOX4_32_10));
	LIB(curandSetPseudoRandomGeneratorSeed(a, 99));
	LIB(curandSetStream(a, s));
	LIB(curandGenerate(a, x, 1000));
	LIB(curandCreateGenerator(&b, CURAND_RNG_PSEUDO_PHILOX4_32_10));
	LIB(curandSetPseudoRandomGeneratorSeed(b, 99));
	LIB(curandGenerate(b, z, 1000));
	CK(cudaStreamSynchronize(s));
	same_bytes("on a stream", x.get().data(), z.get().data(), 4000);
	LIB(curandDestroyGenerator(a));
	LIB(curandDestroyGenerator(b));
	CK(cudaStreamDestroy(s));
	puts("on a stream");
}

static void quasi_random()
{
	curandGenerator_t g;
	dev<float> d(2 * COUNT);
	int cells[16][16] = {};

	LIB(curandCreateGenerator(&g, CURAND_RNG_QUASI_SOBOL32));
	LIB(curandSetQuasiRandomGeneratorDimensions(g, 2));
	LIB(curandGenerateUniform(g, d, 2 * COUNT));
	std::vector<float> v = d.get();
	for (int i = 0; i < COUNT; i++)
		cells[std::min(15, (int)(v[i] * 16))][std::min(15, (int)(v[COUNT + i] * 16))]++;
	for (int i = 0; i < 256; i++)
		if (abs(cells[i / 16][i % 16] - COUNT / 256) > 3)
			fail("cell %d has %d points of %d", i, cells[i / 16][i % 16], COUNT);
	LIB(curandDestroyGenerator(g));
	puts("quasi-random points are even");
}

__global__ void inside(const float *x, const float *y, int n, unsigned *count)
{
	unsigned mine = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		mine += x[i] * x[i] + y[i] * y[i] <= 1;
	for (int step = 16; step; step /= 2)
		mine += __shfl_down_sync(~0u, mine, step);
	if (threadIdx.x % 32 == 0)
		atomicAdd(count, mine);
}

static void monte_carlo()
{
	enum { N = 500000 };
	curandGenerator_t g;
	dev<float> d(2 * N);
	dev<unsigned> count(1);

	LIB(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_XORWOW));
	LIB(curandGenerateUniform(g, d, 2 * N));
	inside<<<64, 256>>>(d, d + N, N, count);
	close_to("pi", 0, 4.0 * count.get()[0] / N, M_PI, 5e-3);
	LIB(curandDestroyGenerator(g));
	puts("pi");
}

int main(void)
{
	same_as_host();
	offsets();
	quasi_random();
	monte_carlo();
	return pass();
}
