// SPDX-License-Identifier: Apache-2.0
// cuRAND's device generators: Philox against the published algorithm computed on the host, word for word;
// XORWOW against its recurrence by skipping ahead consistently; uniform and normal numbers by their ranges
// and moments.
#include "app.h"
#include <curand_kernel.h>

enum { THREADS = 256, WORDS = 8 };

__global__ void philox(unsigned *out, unsigned long long seed)
{
	int i = threadIdx.x;
	curandStatePhilox4_32_10_t s;

	curand_init(seed, i, 0, &s);
	for (int k = 0; k < WORDS; k++)
		out[i * WORDS + k] = curand(&s);
}

/* One sequence, and the same read from an offset: the second must be the first's tail. */
__global__ void xorwow(unsigned *out, int skip)
{
	curandState s;

	curand_init(1234, threadIdx.x, 0, &s);
	for (int k = 0; k < skip; k++)
		curand(&s);
	for (int k = 0; k < WORDS; k++)
		out[threadIdx.x * WORDS + k] = curand(&s);
	curand_init(1234, threadIdx.x, skip, &s);
	for (int k = 0; k < WORDS; k++)
		out[(THREADS + threadIdx.x) * WORDS + k] = curand(&s);
}

__global__ void moments(float *uniform, float *normal, int n)
{
	curandStatePhilox4_32_10_t s;
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	curand_init(99, i, 0, &s);
	if (i < n) {
		uniform[i] = curand_uniform(&s);
		normal[i] = curand_normal(&s);
	}
}

static void philox_host(unsigned c[4], unsigned k0, unsigned k1)
{
	for (int r = 0; r < 10; r++) {
		uint64_t a = (uint64_t)0xd2511f53u * c[0], b = (uint64_t)0xcd9e8d57u * c[2];
		unsigned n[4] = {(unsigned)(b >> 32) ^ c[1] ^ k0, (unsigned)b,
				(unsigned)(a >> 32) ^ c[3] ^ k1, (unsigned)a};

		memcpy(c, n, sizeof(n));
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
}

int main(void)
{
	enum { N = 65536 };
	static unsigned h[2 * THREADS * WORDS];
	static float u[N], g[N];
	unsigned *d;
	float *du, *dg;
	double mean = 0, square = 0, umean = 0;

	CK(cudaMalloc(&d, sizeof(h)));
	philox<<<1, THREADS>>>(d, 0x123456789abcull);
	CK(cudaMemcpy(h, d, sizeof(h) / 2, cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k < WORDS; k++) {
			unsigned c[4] = {(unsigned)k / 4, 0, (unsigned)i, 0};

			philox_host(c, 0x56789abcu, 0x1234u);
			if (h[i * WORDS + k] != c[k % 4])
				fail("philox sequence %d word %d is %#x, expected %#x", i, k,
						h[i * WORDS + k], c[k % 4]);
		}
	xorwow<<<1, THREADS>>>(d, 37);
	CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	same_bytes("xorwow after skipping", h + THREADS * WORDS, h, sizeof(h) / 2);
	for (int i = 1; i < THREADS; i++)
		if (!memcmp(h + i * WORDS, h, WORDS * 4))
			fail("xorwow sequences 0 and %d are equal", i);

	CK(cudaMalloc(&du, sizeof(u)));
	CK(cudaMalloc(&dg, sizeof(g)));
	moments<<<N / 256, 256>>>(du, dg, N);
	CK(cudaMemcpy(u, du, sizeof(u), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(g, dg, sizeof(g), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		if (!(u[i] > 0 && u[i] <= 1))
			fail("uniform[%d] is %g", i, u[i]);
		umean += u[i] / N;
		mean += g[i] / N;
		square += (double)g[i] * g[i] / N;
	}
	if (fabs(umean - 0.5) > 0.01 || fabs(mean) > 0.02 || fabs(square - 1) > 0.03)
		fail("moments: uniform mean %g, normal mean %g, square %g", umean, mean, square);
	CK(cudaFree(d));
	CK(cudaFree(du));
	CK(cudaFree(dg));
	return pass();
}
