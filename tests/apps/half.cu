// SPDX-License-Identifier: Apache-2.0
// half and bfloat16: conversions of every bit pattern both ways, arithmetic and comparisons of scalars and
// pairs, against the host's conversion functions and float arithmetic rounded once.
#include "app.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void widen(float *h, float *b)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	h[i] = __half2float(__ushort_as_half((unsigned short)i));
	b[i] = __bfloat162float(__ushort_as_bfloat16((unsigned short)i));
}

__global__ void narrow(const float *in, unsigned short *h, unsigned short *b, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n) {
		h[i] = __half_as_ushort(__float2half(in[i]));
		b[i] = __bfloat16_as_ushort(__float2bfloat16(in[i]));
	}
}

__global__ void arithmetic(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i + 1 >= n)
		return;
	half a = __float2half(in[i]), b = __float2half(in[i + 1]);
	half2 p = __halves2half2(a, b), q = __halves2half2(b, a), s = __hadd2(p, q), m = __hmul2(p, q),
			f = __hfma2(p, q, p);
	__nv_bfloat16 c = __float2bfloat16(in[i]), d = __float2bfloat16(in[i + 1]);

	out += i * 9;
	out[0] = __half2float(__hadd(a, b));
	out[1] = __half2float(__hsub(a, b));
	out[2] = __half2float(__hmul(a, b));
	out[3] = __low2float(s) + __high2float(m);
	out[4] = __high2float(f);
	out[5] = __hlt(a, b) + 2 * __heq(a, a) + 4 * __hge(a, b);
	out[6] = __bfloat162float(__hadd(c, d));
	out[7] = __bfloat162float(__hmul(c, d));
	out[8] = __half2float(__hmax(a, b)) + (float)(int)a;
}

static float h2f(unsigned short v)
{
	return __half2float(__ushort_as_half(v));
}

static float round_half(float v)
{
	return __half2float(__float2half(v));
}

static float round_bf(float v)
{
	return __bfloat162float(__float2bfloat16(v));
}

int main(void)
{
	enum { N = 4096 };
	static float wide[65536], bwide[65536], in[N], out[N * 9];
	static unsigned short nh[N], nb[N];
	float *a, *b, *c;
	unsigned short *s, *t;
	uint32_t seed = 8;

	CK(cudaMalloc(&a, sizeof(wide)));
	CK(cudaMalloc(&b, sizeof(wide)));
	CK(cudaMalloc(&c, sizeof(out)));
	CK(cudaMalloc(&s, sizeof(nh)));
	CK(cudaMalloc(&t, sizeof(nb)));
	widen<<<256, 256>>>(a, b);
	CK(cudaMemcpy(wide, a, sizeof(wide), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(bwide, b, sizeof(wide), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < 65536; i++) {
		float wh = h2f((unsigned short)i), wb;
		uint32_t bits = i << 16;

		memcpy(&wb, &bits, 4);
		if (wide[i] != wh && !(wide[i] != wide[i] && wh != wh))
			fail("half %#x is %g, expected %g", i, wide[i], wh);
		if (bwide[i] != wb && !(bwide[i] != bwide[i] && wb != wb))
			fail("bfloat16 %#x is %g, expected %g", i, bwide[i], wb);
	}
	for (int i = 0; i < N; i++)
		in[i] = (noise_float(&seed) - 0.5f) * powf(2, (float)(i % 17) - 6);
	in[0] = 65519;
	in[1] = 65520;
	in[2] = 6e-8f;
	in[3] = -1e-9f;
	CK(cudaMemcpy(a, in, sizeof(in), cudaMemcpyHostToDevice));
	narrow<<<N / 256, 256>>>(a, s, t, N);
	CK(cudaMemcpy(nh, s, sizeof(nh), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(nb, t, sizeof(nb), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		unsigned short wh = __half_as_ushort(__float2half(in[i])),
				wb = __bfloat16_as_ushort(__float2bfloat16(in[i]));

		if (nh[i] != wh || nb[i] != wb)
			fail("%g narrows to %#x and %#x, expected %#x and %#x", in[i], nh[i], nb[i], wh, wb);
	}
	in[0] = 1;
	in[1] = -2;
	CK(cudaMemcpy(a, in, sizeof(in), cudaMemcpyHostToDevice));
	arithmetic<<<N / 256, 256>>>(a, c, N);
	CK(cudaMemcpy(out, c, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i + 1 < N; i++) {
		float x = round_half(in[i]), y = round_half(in[i + 1]), p = round_bf(in[i]),
				q = round_bf(in[i + 1]);
		float want[9] = {round_half(x + y), round_half(x - y), round_half(x * y),
				round_half(x + y) + round_half(x * y),
				 round_half(fmaf(x, y, y)), (float)((x < y) + 2 + 4 * (x >= y)),
						round_bf(p + q), round_bf(p * q),
				 fmaxf(x, y) + (float)(int)x};

		for (int k = 0; k < 9; k++)
			if (out[i * 9 + k] != want[k])
				fail("operation %d on %g and %g is %.9g, expected %.9g", k, in[i], in[i + 1],
						out[i * 9 + k], want[k]);
	}
	CK(cudaFree(a));
	CK(cudaFree(b));
	CK(cudaFree(c));
	CK(cudaFree(s));
	CK(cudaFree(t));
	return pass();
}
