// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic, 32 and 64 bits: high products, division and remainder with every sign, shifts beyond
// the width, bit counting and reversal, funnel shifts, byte permutation, saturating and SIMD-in-a-word
// functions, against C on the host.
#include "app.h"

enum { N = 4096, OPS = 22 };

__device__ __host__ static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

__global__ void compute(const uint64_t *in, uint64_t *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t a = in[2 * i], b = in[2 * i + 1] | 1;
	int64_t sa = (int64_t)a, sb = (int64_t)b;
	uint32_t u = (uint32_t)a, v = (uint32_t)b;

	out += i * OPS;
	out[0] = a * b;
	out[1] = __umul64hi(a, b);
	out[2] = (uint64_t)__mul64hi(sa, sb);
	out[3] = a / b;
	out[4] = a % b;
	out[5] = (uint64_t)(sa / (sb >> 20 | 1));
	out[6] = (uint64_t)(sa % (sb >> 20 | 1));
	out[7] = a << (b & 63);
	out[8] = (uint64_t)(sa >> (b & 63));
	out[9] = __popcll(a);
	out[10] = __clzll((int64_t)(a >> (b & 63)));
	out[11] = __ffsll((int64_t)(a << (b & 63)));
	out[12] = __brevll(a);
	out[13] = __umulhi(u, v);
	out[14] = (uint32_t)__mulhi((int)u, (int)v);
	out[15] = __funnelshift_l(u, v, (uint32_t)(a >> 40));
	out[16] = __byte_perm(u, v, (uint32_t)(b >> 32) & 0x7777);
	out[17] = (uint32_t)((int)u / (int)(v >> 8 | 1)) + (u % (v >> 5 | 1));
	out[18] = __brev(u) ^ (uint32_t)__clz((int)(u >> (v & 31))) ^ (uint32_t)__popc(v) << 8;
	out[19] = __vadd4(u, v);
	out[20] = __usad(u, v, 7);
	out[21] = mix(a + b);
}

static uint32_t permute(uint32_t x, uint32_t y, uint32_t s)
{
	uint64_t w = (uint64_t)y << 32 | x;
	uint32_t r = 0;

	for (int i = 0; i < 4; i++)
		r |= (uint32_t)(w >> ((s >> 4 * i & 7) * 8) & 255) << 8 * i;
	return r;
}

static uint64_t reverse(uint64_t a, int bits)
{
	uint64_t r = 0;

	for (int i = 0; i < bits; i++)
		r |= (a >> i & 1) << (bits - 1 - i);
	return r;
}

static uint32_t add4(uint32_t u, uint32_t v)
{
	uint32_t r = 0;

	for (int i = 0; i < 32; i += 8)
		r |= (((u >> i) + (v >> i)) & 255) << i;
	return r;
}

int main(void)
{
	static uint64_t in[2 * N], out[N * OPS];
	uint64_t *d, *o;
	uint32_t seed = 64;

	noise_fill(in, sizeof(in), seed);
	in[0] = in[2] = 1ull << 63;
	in[1] = ~0ull;
	in[3] = 0;
	in[4] = 0;
	in[5] = ~0ull >> 1;
	for (int i = 6; i < N; i += 5)
		in[i] >>= noise(&seed) & 63;
	CK(cudaMalloc(&d, sizeof(in)));
	CK(cudaMalloc(&o, sizeof(out)));
	CK(cudaMemcpy(d, in, sizeof(in), cudaMemcpyHostToDevice));
	compute<<<N / 128, 128>>>(d, o);
	CK(cudaGetLastError());
	CK(cudaMemcpy(out, o, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		uint64_t a = in[2 * i], b = in[2 * i + 1] | 1, sh = a << (b & 63), dn = a >> (b & 63);
		int64_t sa = (int64_t)a, sb = (int64_t)b, ds = sb >> 20 | 1;
		uint32_t u = (uint32_t)a, v = (uint32_t)b, k = (uint32_t)(a >> 40) & 31, un = u >> (v & 31);
		bool worst = sa == INT64_MIN && ds == -1;
		uint64_t want[OPS] = {
			a * b, (uint64_t)((unsigned __int128)a * b >> 64),
					(uint64_t)((__int128)sa * sb >> 64), a / b, a % b,
			worst ? a : (uint64_t)(sa / ds), worst ? 0 : (uint64_t)(sa % ds), sh,
					(uint64_t)(sa >> (b & 63)),
			(uint64_t)__builtin_popcountll(a), dn ? (uint64_t)__builtin_clzll(dn) : 64,
			(uint64_t)__builtin_ffsll((long long)sh), reverse(a, 64), (uint64_t)u * v >> 32,
			(uint32_t)((int64_t)(int)u * (int)v >> 32), k ? v << k | u >> (32 - k) : v,
			permute(u, v, (uint32_t)(b >> 32) & 0x7777),
					(uint32_t)((int)u / (int)(v >> 8 | 1)) + (u % (v >> 5 | 1)),
			(uint32_t)reverse(u, 32) ^ (un ? (uint32_t)__builtin_clz(un)
					: 32) ^ (uint32_t)__builtin_popcount(v) << 8,
			add4(u, v), (u > v ? u - v : v - u) + 7, mix(a + b)};

		for (int j = 0; j < OPS; j++)
			if (out[i * OPS + j] != want[j])
				fail("operation %d on %#llx and %#llx is %#llx, expected %#llx", j,
						(unsigned long long)a,
				     (unsigned long long)b, (unsigned long long)out[i * OPS + j],
						(unsigned long long)want[j]);
	}
	CK(cudaFree(d));
	CK(cudaFree(o));
	return pass();
}
