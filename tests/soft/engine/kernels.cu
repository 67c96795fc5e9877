/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that check_kernels.c runs on the engine: memory, barriers, divergence, calls, warp functions,
 * atomics, halves, matrices, grid barriers.
 *
 * Thread rule: device code. */
#include <cstdint>
#include <cstdio>
#include <cassert>
#include <mma.h>
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;
using namespace nvcuda;

extern "C" {
__global__ void vecadd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		c[i] = a[i] + b[i];
}
#define MM(T)                                                                                                \
	__global__ void matmul##T(const float *A, const float *B, float *C, int n)                           \
	{                                                                                                    \
		__shared__ float As[T][T], Bs[T][T];                                                         \
		int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;                      \
		float s = 0;                                                                                 \
		for (int t = 0; t < n / T; t++) {                                                            \
			As[threadIdx.y][threadIdx.x] = A[y * n + t * T + threadIdx.x];                       \
			Bs[threadIdx.y][threadIdx.x] = B[(t * T + threadIdx.y) * n + x];                     \
			__syncthreads();                                                                     \
			for (int k = 0; k < T; k++)                                                          \
				s += As[threadIdx.y][k] * Bs[k][threadIdx.x];                                \
			__syncthreads();                                                                     \
		}                                                                                            \
		C[y * n + x] = s;                                                                            \
	}
MM(16) MM(32) __global__ void reduce(const float *a, float *o, int n)
{
	__shared__ float s[32];
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float v = i < n ? a[i] : 0;
	for (int d = 16; d; d >>= 1)
		v += __shfl_down_sync(~0u, v, d);
	if (threadIdx.x % 32 == 0)
		s[threadIdx.x / 32] = v;
	__syncthreads();
	if (threadIdx.x < 32) {
		v = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0;
		for (int d = 16; d; d >>= 1)
			v += __shfl_down_sync(~0u, v, d);
		if (!threadIdx.x)
			atomicAdd(o, v);
	}
}
__global__ void hist(const unsigned char *a, unsigned *h, int n)
{
	__shared__ unsigned s[256];
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		s[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&s[a[i]], 1);
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		atomicAdd(&h[i], s[i]);
}
__device__ int gcount = 3;
__constant__ float coef[4] = {1, 2, 3, 4};
__device__ int garr[8] = {1, 2, 3};
__global__ void sym(float *o)
{
	int i = threadIdx.x;
	o[i] = coef[i & 3] + gcount + garr[i & 7];
	__syncthreads();
	if (!i)
		gcount++;
}
struct big {
	int v[1000];
};
__global__ void bigp(struct big b, int *o)
{
	int i = threadIdx.x;
	o[i] = b.v[i * 3] + b.v[999];
}
__global__ void mandel(int *o, int w, int h, int it)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	if (x >= w || y >= h)
		return;
	float cr = -2 + 3.f * x / w, ci = -1.5f + 3.f * y / h, zr = 0, zi = 0;
	int k = 0;
	while (k < it && zr * zr + zi * zi < 4) {
		float t = zr * zr - zi * zi + cr;
		zi = 2 * zr * zi + ci;
		zr = t;
		k++;
	}
	o[y * w + x] = k;
}
__global__ void softmax(const float *a, float *o, int n)
{
	__shared__ float s[256];
	const float *r = a + (size_t)blockIdx.x * n;
	float m = -1e30f;
	for (int i = threadIdx.x; i < n; i += 256)
		m = fmaxf(m, r[i]);
	s[threadIdx.x] = m;
	__syncthreads();
	for (int d = 128; d; d >>= 1) {
		if (threadIdx.x < d)
			s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + d]);
		__syncthreads();
	}
	m = s[0];
	__syncthreads();
	float t = 0;
	for (int i = threadIdx.x; i < n; i += 256)
		t += expf(r[i] - m);
	s[threadIdx.x] = t;
	__syncthreads();
	for (int d = 128; d; d >>= 1) {
		if (threadIdx.x < d)
			s[threadIdx.x] += s[threadIdx.x + d];
		__syncthreads();
	}
	t = s[0];
	for (int i = threadIdx.x; i < n; i += 256)
		o[(size_t)blockIdx.x * n + i] = expf(r[i] - m) / t;
}
__global__ void pr(int n)
{
	printf("thread %d of %d: %s %f %lld\n", threadIdx.x, n, "str", threadIdx.x * 0.5, (long long)n << 33);
}
__device__ __noinline__ int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
__global__ void recur(int *o)
{
	o[threadIdx.x] = fib(threadIdx.x % 10);
}
struct P {
	int a;
	double b;
	char c[5];
};
__device__ __noinline__ P mk(P p, int k)
{
	p.a += k;
	p.b *= 2;
	p.c[k % 5] = k;
	return p;
}
__global__ void structs(P *o)
{
	P p;
	p.a = threadIdx.x;
	p.b = threadIdx.x * .5;
	for (int i = 0; i < 5; i++)
		p.c[i] = i;
	o[threadIdx.x] = mk(p, threadIdx.x);
}
}
typedef int (*fp)(int);
__device__ int f1(int x)
{
	return x + 1;
}
__device__ int f2(int x)
{
	return x * 2;
}
__device__ fp tab[2] = {f1, f2};
extern "C" __global__ void fptr(int *o)
{
	o[threadIdx.x] = tab[threadIdx.x & 1](threadIdx.x);
}
struct B {
	__device__ virtual int f(int) = 0;
};
struct D1 : B {
	__device__ int f(int x) { return x + 100; }
};
struct D2 : B {
	int k;
	__device__ int f(int x) { return x * k; }
};
extern "C" __global__ void virt(int *o)
{
	D1 a;
	D2 b;
	b.k = 7;
	B *p = threadIdx.x % 3 ? (B *)&a : (B *)&b;
	o[threadIdx.x] = p->f(threadIdx.x);
}
extern "C" __global__ void spin(int *lock, int *c)
{
	bool d = false;
	while (!d) {
		if (atomicCAS(lock, 0, 1) == 0) {
			*(volatile int *)c = *(volatile int *)c + 1;
			__threadfence();
			atomicExch(lock, 0);
			d = true;
		}
	}
}
extern "C" __global__ void sw(int *o)
{
	int x = threadIdx.x, r;
	switch (x % 12) {
	case 0: r = x * 3; break;
	case 1: r = x ^ 5; break;
	case 2: r = x - 9; break;
	case 3: r = x << 2; break;
	case 4: r = 7 * x + 1; break;
	case 5: r = ~x; break;
	case 6: r = x / 3; break;
	case 7: r = x % 5; break;
	case 8: r = x | 64; break;
	default: r = -x;
	}
	o[x] = r;
}
extern "C" __global__ void gsync(int *a, int n)
{
	cg::grid_group g = cg::this_grid();
	for (int k = 0; k < n; k++) {
		if (threadIdx.x == 0)
			a[blockIdx.x + k * gridDim.x] =
				k ? a[(blockIdx.x + 1) % gridDim.x + (k - 1) * gridDim.x] + 1 : blockIdx.x;
		g.sync();
	}
}
extern "C" __global__ void halfs(
	const __half *a, const __half *b, __half *c, __half2 *d, float *e, __nv_bfloat16 *f)
{
	int i = threadIdx.x;
	c[i] = __hfma(a[i], b[i], a[i]);
	d[i] = __hmul2(__halves2half2(a[i], b[i]), __float2half2_rn(1.5f));
	e[i] = __half2float(a[i]) / __half2float(b[i]);
	f[i] = __hadd(__float2bfloat16(e[i]), __float2bfloat16(1.f));
	if (__hgt(a[i], b[i]))
		e[i] += 1;
}
extern "C" __global__ void asrt(int k)
{
	assert(threadIdx.x != k);
}
extern "C" __global__ void mall(int **o)
{
	int *p = (int *)malloc(16);
	p[0] = threadIdx.x;
	o[threadIdx.x] = p;
}
extern "C" __global__ void mfree(int **o)
{
	if (o[threadIdx.x][0] != threadIdx.x)
		__trap();
	free(o[threadIdx.x]);
}
extern "C" __global__ void warpf(unsigned *o)
{
	unsigned t = threadIdx.x;
	o[t] = __ballot_sync(~0u, t & 1) + __popc(t) + __clz(t) + __ffs(t) + __brev(t) +
	       __byte_perm(t, ~t, 0x1234) + __funnelshift_l(t, t * 7, t & 31);
	o[t] += __match_any_sync(~0u, t % 5) + __activemask() + __any_sync(~0u, t == 3) +
		__all_sync(~0u, t < 40);
	o[t] ^= __shfl_xor_sync(~0u, t * 3, 5) + __shfl_up_sync(~0u, t, 3, 8) +
		__shfl_sync(~0u, t * t, t + 9);
}
extern "C" __global__ void dbl(double *o)
{
	int i = threadIdx.x;
	double x = i * 0.37 + .1;
	o[i] = sin(x) + exp(x) * log(x) + sqrt(x) / pow(x, 1.3) + fma(x, x, x) + __dadd_ru(x, 1e-17) +
	       erf(x) + tanh(x);
}
extern "C" __global__ void fl(float *o)
{
	int i = threadIdx.x;
	float x = i * 0.37f + .1f;
	o[i] = sinf(x) + expf(x) * logf(x) + sqrtf(x) / powf(x, 1.3f) + __sinf(x) + rsqrtf(x) +
	       __fdividef(x, 3) + tanhf(x) + atan2f(x, 2);
}
extern "C" __global__ void i64(long long *o)
{
	long long i = threadIdx.x;
	o[i] = (i * 123456789123LL) / (i + 7) + (i << 40) % (i + 3) + __mul64hi(i << 40, i << 41) +
	       __popcll(i * 77) + __clzll(i) + llrintf(i * .7f);
}
extern "C" __global__ void divg(int *o)
{
	int x = threadIdx.x, s = 0;
	for (int i = 0; i < x; i++) {
		if (i % 3 == x % 3)
			continue;
		if (i > 20 && x & 1)
			break;
		s += i;
	}
	o[x] = s;
}
extern "C" __global__ void wm(const half *a, const half *b, float *c)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
	wmma::fill_fragment(fc, 0.f);
	wmma::load_matrix_sync(fa, a, 16);
	wmma::load_matrix_sync(fb, b, 16);
	wmma::mma_sync(fc, fa, fb, fc);
	wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
extern "C" __global__ void wmh(const half *a, const half *b, half *c)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, half> fc;
	wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
	wmma::load_matrix_sync(fa, a, 16);
	wmma::load_matrix_sync(fb, b, 16);
	wmma::mma_sync(fc, fa, fb, fc);
	wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
extern "C" __global__ void wmi(const signed char *a, const signed char *b, int *c)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
	wmma::fill_fragment(fc, 0);
	wmma::load_matrix_sync(fa, a, 16);
	wmma::load_matrix_sync(fb, b, 16);
	wmma::mma_sync(fc, fa, fb, fc);
	wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
extern "C" __global__ void pipek(const float4 *a, float4 *o)
{
	__shared__ float4 s[64];
	__pipeline_memcpy_async(&s[threadIdx.x], &a[threadIdx.x], 16);
	__pipeline_commit();
	__pipeline_wait_prior(0);
	__syncthreads();
	o[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void barr(int *o)
{
	__shared__ cuda::barrier<cuda::thread_scope_block> b;
	if (!threadIdx.x)
		init(&b, blockDim.x);
	__syncthreads();
	__shared__ int s[128];
	for (int k = 0; k < 3; k++) {
		s[threadIdx.x] = threadIdx.x + k;
		b.arrive_and_wait();
		o[threadIdx.x] = s[127 - threadIdx.x];
		b.arrive_and_wait();
	}
}
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void mma16816(
	const uint32_t *a, const uint32_t *b, float *c, const uint16_t *am, const uint16_t *bm)
{ // via ldmatrix from shared
	__shared__ __align__(16) uint16_t A[16][16], B[8][16];
	for (int i = threadIdx.x; i < 256; i += 32)
		A[i / 16][i % 16] = am[i];
	for (int i = threadIdx.x; i < 128; i += 32)
		B[i / 16][i % 16] = bm[i];
	__syncwarp();
	uint32_t r[4], q[2];
	uint32_t pa = __cvta_generic_to_shared(&A[threadIdx.x % 16][threadIdx.x / 16 * 8]),
		 pb = __cvta_generic_to_shared(&B[threadIdx.x % 8][threadIdx.x / 8 % 2 * 8]);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(pa));
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1},[%2];"
		     : "=r"(q[0]), "=r"(q[1])
		     : "r"(pb));
	float d[4] = {0, 0, 0, 0};
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
		     "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(q[0]), "r"(q[1]));
	int g = threadIdx.x / 4, t = threadIdx.x % 4;
	c[g * 8 + t * 2] = d[0];
	c[g * 8 + t * 2 + 1] = d[1];
	c[(g + 8) * 8 + t * 2] = d[2];
	c[(g + 8) * 8 + t * 2 + 1] = d[3];
}
extern "C" __global__ void imma(const int8_t *A, const int8_t *B, int *c)
{ // m16n8k32 s8: A row-major 16x32, B col-major (8 x 32)
	int g = threadIdx.x / 4, t = threadIdx.x % 4;
	const uint32_t *a = (const uint32_t *)A, *b = (const uint32_t *)B;
	uint32_t r[4] = {a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4]},
		 q[2] = {b[g * 8 + t], b[g * 8 + t + 4]};
	int d[4] = {0, 0, 0, 0};
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
		     "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
		     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
		     : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(q[0]), "r"(q[1]));
	c[g * 8 + t * 2] = d[0];
	c[g * 8 + t * 2 + 1] = d[1];
	c[(g + 8) * 8 + t * 2] = d[2];
	c[(g + 8) * 8 + t * 2 + 1] = d[3];
}
#endif
