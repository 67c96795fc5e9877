// SPDX-License-Identifier: Apache-2.0
// __device__ and __constant__ variables: initial values, copies to and from them whole and in part, their
// addresses and sizes, the asynchronous forms, and a pointer kept in one.
#include "app.h"

struct pair {
	double x;
	int n;
};

__device__ int counter = 41;
__device__ float table[64] = {1.5f, 2.5f, 3.5f};
__device__ struct pair pairs[3] = {{0.25, 1}, {0.5, 2}, {0.75, 3}};
__device__ int *where;
__constant__ int factors[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__constant__ struct pair limit = {9.5, 77};
static __device__ unsigned char big[1 << 20];

__global__ void use(int *out)
{
	int i = threadIdx.x;

	out[i] = factors[i % 8] * 1000 + (int)(table[i] * 2) + limit.n;
	if (!i) {
		counter++;
		pairs[1].n += (int)(limit.x * 2);
		where[0] = 4711;
		big[777777] = 42;
	}
}

int main(void)
{
	int *d, out[64], v, replaced[8], *p;
	float part[4] = {10, 20, 30, 40}, back[64];
	struct pair ps[3], newlimit = {1.5, 5};
	unsigned char b;
	size_t size;
	void *addr;
	cudaStream_t s;

	CK(cudaMalloc(&d, sizeof(out)));
	CK(cudaMemcpyFromSymbol(&v, counter, sizeof(v)));
	if (v != 41)
		fail("counter starts at %d, expected 41", v);
	p = d;
	CK(cudaMemcpyToSymbol(where, &p, sizeof(p)));
	use<<<1, 64>>>(d);
	CK(cudaMemcpy(out, d, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 1; i < 64; i++) {
		int want = (i % 8 + 1) * 1000 + (i == 1 ? 5 : i == 2 ? 7 : 0) + 77;

		if (out[i] != want)
			fail("out[%d] is %d, expected %d", i, out[i], want);
	}
	CK(cudaMemcpyFromSymbol(&v, counter, sizeof(v)));
	CK(cudaMemcpyFromSymbol(ps, pairs, sizeof(ps)));
	CK(cudaMemcpyFromSymbol(&b, big, 1, 777777));
	if (v != 42 || ps[0].x != 0.25 || ps[1].n != 21 || ps[2].x != 0.75 || b != 42)
		fail("after the kernel: counter %d, pairs %g %d %g, big %d", v, ps[0].x, ps[1].n, ps[2].x, b);

	CK(cudaMemcpyToSymbol(table, part, sizeof(part), 8 * sizeof(float)));
	for (int i = 0; i < 8; i++)
		replaced[i] = 100 - i;
	CK(cudaStreamCreate(&s));
	CK(cudaMemcpyToSymbolAsync(factors, replaced, sizeof(replaced), 0, cudaMemcpyHostToDevice, s));
	CK(cudaMemcpyToSymbolAsync(limit, &newlimit, sizeof(newlimit), 0, cudaMemcpyHostToDevice, s));
	use<<<1, 64, 0, s>>>(d);
	CK(cudaMemcpyFromSymbolAsync(back, table, sizeof(back), 0, cudaMemcpyDeviceToHost, s));
	CK(cudaMemcpyAsync(out, d, sizeof(out), cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	for (int i = 1; i < 64; i++) {
		int t = i == 1 ? 5 : i == 2 ? 7 : i >= 8 && i < 12 ? (i - 7) * 20 : 0,
				want = (100 - i % 8) * 1000 + t + 5;

		if (out[i] != want)
			fail("second out[%d] is %d, expected %d", i, out[i], want);
		if (back[i] != (float)t / 2)
			fail("table[%d] is %g, expected %g", i, back[i], t / 2.0);
	}
	CK(cudaGetSymbolSize(&size, pairs));
	if (size != sizeof(ps))
		fail("size of pairs is %zu, expected %zu", size, sizeof(ps));
	CK(cudaGetSymbolAddress(&addr, table));
	CK(cudaMemset(addr, 0, sizeof(back)));
	CK(cudaMemcpyFromSymbol(back, table, sizeof(back)));
	for (int i = 0; i < 64; i++)
		if (back[i])
			fail("table[%d] is %g after memset through its address", i, back[i]);
	EXPECT(cudaMemcpyToSymbol(counter, ps, sizeof(ps)), cudaErrorInvalidValue);
	CK(cudaStreamDestroy(s));
	CK(cudaFree(d));
	return pass();
}
