// SPDX-License-Identifier: Apache-2.0
// Kernel parameters: 4 KiB in one struct, many small ones of every size, structs with padding, and values
// that change between launches that are all in flight at once.
#include "app.h"

struct large {
	unsigned words[1021];
};

struct padded {
	char c;
	double d;
	short s;
	int *p;
	unsigned char tail[3];
};

__global__ void sum_large(struct large l, unsigned *out)
{
	unsigned h = 0;

	for (int i = 0; i < 1021; i++)
		h = h * 31 + l.words[i];
	*out = h;
}

__global__ void mixed(char a, short b, int c, long long d, float e, double f, unsigned char g,
		struct padded p, bool q,
		      unsigned short r, int3 v, double *out)
{
	out[0] = a;
	out[1] = b;
	out[2] = c;
	out[3] = d;
	out[4] = e;
	out[5] = f;
	out[6] = g;
	out[7] = p.c + p.d + p.s + p.tail[2];
	out[8] = q;
	out[9] = r;
	out[10] = v.x * 10000 + v.y * 100 + v.z;
	*p.p = 99;
}

__global__ void put(int *p, int v)
{
	*p = v;
}

int main(void)
{
	struct large l;
	struct padded p = {'x', 2.5, -300, NULL, {1, 2, 3}};
	unsigned *d, h, want = 0;
	double *df, got[11];
	int *di, hi[1000];

	CK(cudaMalloc(&d, sizeof(*d)));
	CK(cudaMalloc(&df, sizeof(got)));
	CK(cudaMalloc(&di, sizeof(hi)));
	noise_fill(&l, sizeof(l), 21);
	for (int i = 0; i < 1021; i++)
		want = want * 31 + l.words[i];
	sum_large<<<1, 1>>>(l, d);
	CK(cudaGetLastError());
	memset(&l, 0, sizeof(l)); /* the launch has its own copy */
	CK(cudaMemcpy(&h, d, sizeof(h), cudaMemcpyDeviceToHost));
	if (h != want)
		fail("4 KiB of parameters hash to %#x, expected %#x", h, want);

	p.p = di;
	mixed<<<1, 1>>>(-5, -1234, 1 << 30, -(1ll << 40), 1.25f, 1e-3, 250, p, true, 65000, make_int3(1, 2,
			3), df);
	CK(cudaGetLastError());
	CK(cudaMemcpy(got, df, sizeof(got), cudaMemcpyDeviceToHost));
	const double expected[11] = {-5, -1234, 1 << 30, -(double)(1ll << 40), 1.25, 1e-3, 250,
			'x' + 2.5 - 300 + 3, 1, 65000, 10203};
	for (int i = 0; i < 11; i++)
		if (got[i] != expected[i])
			fail("parameter %d is %g, expected %g", i, got[i], expected[i]);
	CK(cudaMemcpy(hi, di, sizeof(int), cudaMemcpyDeviceToHost));
	if (hi[0] != 99)
		fail("through the pointer in a struct: %d, expected 99", hi[0]);

	for (int i = 0; i < 1000; i++)
		put<<<1, 1>>>(di + i, i * i);
	CK(cudaGetLastError());
	CK(cudaMemcpy(hi, di, sizeof(hi), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 1000; i++)
		if (hi[i] != i * i)
			fail("launch %d wrote %d, expected %d", i, hi[i], i * i);
	CK(cudaFree(d));
	CK(cudaFree(df));
	CK(cudaFree(di));
	return pass();
}
