// SPDX-License-Identifier: Apache-2.0
// PTX inside C++: special registers, three-input logic, bit fields, permutation, carries through a chain of
// additions, predicates, caching loads; and the device's clocks, which go forwards.
#include "app.h"

enum { N = 256 };

__global__ void registers(unsigned *lane, unsigned *warp, unsigned *threads)
{
	unsigned t = threadIdx.x, l, w, n;

	asm("mov.u32 %0, %%laneid;" : "=r"(l));
	asm("mov.u32 %0, %%tid.x;" : "=r"(w));
	asm("mov.u32 %0, %%ntid.x;" : "=r"(n));
	lane[t] = l;
	warp[t] = w / 32;
	threads[t] = n;
}

__global__ void logic(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *out)
{
	unsigned t = threadIdx.x, x, y, z, u, v, w;

	asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(x) : "r"(a[t]), "r"(b[t]), "r"(c[t]));
	asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(y) : "r"(a[t]), "r"(b[t]), "r"(c[t]));
	asm("bfe.u32 %0, %1, 5, 11;" : "=r"(z) : "r"(a[t]));
	asm("bfi.b32 %0, %1, %2, 8, 12;" : "=r"(u) : "r"(b[t]), "r"(a[t]));
	asm("prmt.b32 %0, %1, %2, 0x0426;" : "=r"(v) : "r"(a[t]), "r"(b[t]));
	asm("{\n\t.reg .pred p;\n\tsetp.lt.u32 p, %1, %2;\n\tselp.u32 %0, %1, %2, p;\n\t}"
		: "=r"(w)
		: "r"(a[t]), "r"(b[t]));
	out[t * 6 + 0] = x;
	out[t * 6 + 1] = y;
	out[t * 6 + 2] = z;
	out[t * 6 + 3] = u;
	out[t * 6 + 4] = v;
	out[t * 6 + 5] = w;
}

__global__ void wide_sum(const unsigned *a, const unsigned *b, unsigned *out)
{
	unsigned r0, r1, r2, r3;

	a += threadIdx.x * 4;
	b += threadIdx.x * 4;
	asm("add.cc.u32 %0, %4, %8;\n\t"
	    "addc.cc.u32 %1, %5, %9;\n\t"
	    "addc.cc.u32 %2, %6, %10;\n\t"
	    "addc.u32 %3, %7, %11;"
	    : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
	out[threadIdx.x * 4 + 0] = r0;
	out[threadIdx.x * 4 + 1] = r1;
	out[threadIdx.x * 4 + 2] = r2;
	out[threadIdx.x * 4 + 3] = r3;
}

__global__ void clocks(long long *cycles, unsigned long long *nanoseconds)
{
	long long start = clock64();
	unsigned long long a, b;
	float v = 1;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a));
	for (int i = 0; i < 1000; i++)
		v = v * 1.0001f + 0.5f;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b));
	cycles[threadIdx.x] = v > 0 ? clock64() - start : 0;
	nanoseconds[threadIdx.x] = b - a;
}

int main(void)
{
	unsigned *a, *b, *c, *out;
	long long *cycles;
	unsigned long long *nanoseconds;
	uint32_t seed = 9;

	CK(cudaMallocManaged(&a, 4 * N * 4));
	CK(cudaMallocManaged(&b, 4 * N * 4));
	CK(cudaMallocManaged(&c, 4 * N * 4));
	CK(cudaMallocManaged(&out, 6 * N * 4));
	CK(cudaMallocManaged(&cycles, 32 * 8));
	CK(cudaMallocManaged(&nanoseconds, 32 * 8));
	registers<<<1, N>>>(a, b, c);
	CK(cudaDeviceSynchronize());
	for (unsigned i = 0; i < N; i++)
		if (a[i] != i % 32 || b[i] != i / 32 || c[i] != N)
			fail("thread %u: lane %u, warp %u, %u threads", i, a[i], b[i], c[i]);
	puts("registers");

	for (int i = 0; i < 4 * N; i++) {
		a[i] = noise(&seed);
		b[i] = i % 5 ? noise(&seed) : ~a[i];
		c[i] = noise(&seed);
	}
	logic<<<1, N>>>(a, b, c, out);
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++) {
		const unsigned x = a[i], y = b[i], z = c[i],
			       want[6] = {x ^ y ^ z, (x & y) | (x & z) | (y & z), x >> 5 & 0x7ff,
				       (x & ~(0xfffu << 8)) | (y & 0xfff) << 8,
				       (x & 0xff) << 24 | (y & 0xff) << 16 | (x >> 16 & 0xff) << 8 |
					       (y >> 16 & 0xff),
				       x < y ? x : y};
		same_bytes("logic", out + i * 6, want, sizeof(want));
	}
	puts("logic");
	wide_sum<<<1, N>>>(a, b, out);
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++) {
		unsigned want[4];
		uint64_t carry = 0;

		for (int k = 0; k < 4; k++) {
			carry += (uint64_t)a[i * 4 + k] + b[i * 4 + k];
			want[k] = (unsigned)carry;
			carry >>= 32;
		}
		same_bytes("128-bit sum", out + i * 4, want, sizeof(want));
	}
	puts("128-bit sums");
	clocks<<<1, 32>>>(cycles, nanoseconds);
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < 32; i++)
		if (cycles[i] <= 0 || nanoseconds[i] > 1000000000ull)
			fail("thread %d took %lld cycles, %llu ns", i, cycles[i], nanoseconds[i]);
	printf("~ %lld cycles\n", cycles[0]);
	puts("clocks");
	for (void *p : {(void *)a, (void *)b, (void *)c, (void *)out, (void *)cycles, (void *)nanoseconds})
		CK(cudaFree(p));
	return pass();
}
