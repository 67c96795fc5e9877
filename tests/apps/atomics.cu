// SPDX-License-Identifier: Apache-2.0
// Atomics: every operation and width on global and shared memory, compare-and-swap loops (float maximum,
// double product), a spin lock between blocks and one within a warp, and a ticket that gives each thread its
// own number.
#include "app.h"

enum { BLOCKS = 16, THREADS = 128, N = BLOCKS * THREADS };

struct cells {
	int add, sub, min, max, exch;
	unsigned and_, or_, xor_, inc, dec, umin, umax;
	float fadd, fmax;
	double dadd;
	unsigned long long ladd, lmax, lcas;
	long long lmin;
};

__device__ float atomic_fmax(float *p, float v)
{
	int old = *(int *)p, seen;

	do {
		seen = old;
		if (__int_as_float(seen) >= v)
			break;
		old = atomicCAS((int *)p, seen, __float_as_int(v));
	} while (old != seen);
	return __int_as_float(old);
}

__device__ void change(struct cells *c, int i)
{
	unsigned long long old, seen;

	atomicAdd(&c->add, i);
	atomicSub(&c->sub, 2 * i);
	atomicMin(&c->min, 500 - i);
	atomicMax(&c->max, i * 3);
	atomicAnd(&c->and_, ~(1u << (i % 29)));
	atomicOr(&c->or_, 1u << (i % 31));
	atomicXor(&c->xor_, (unsigned)i * 2654435761u);
	atomicInc(&c->inc, 99);
	atomicDec(&c->dec, 77);
	atomicMin(&c->umin, 0xfffffff0u - i);
	atomicMax(&c->umax, (unsigned)i);
	atomicAdd(&c->fadd, 1.0f);
	atomic_fmax(&c->fmax, (float)(i % 1000) * 0.5f);
	atomicAdd(&c->dadd, 0.25);
	atomicAdd(&c->ladd, (unsigned long long)i << 30);
	atomicMax(&c->lmax, (unsigned long long)i * i * i);
	atomicMin(&c->lmin, -(long long)i * 1000000);
	atomicExch(&c->exch, 5);
	old = c->lcas;
	do {
		seen = old;
		old = atomicCAS(&c->lcas, seen, seen + i * 3ull);
	} while (old != seen);
}

__device__ void start(struct cells *c)
{
	memset(c, 0, sizeof(*c));
	c->and_ = 0xffffffffu;
	c->umin = 0xffffffffu;
}

__global__ void global_cells(struct cells *c)
{
	change(c, blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void prepare(struct cells *c)
{
	start(c);
}

__global__ void shared_cells(struct cells *out)
{
	__shared__ struct cells c;

	if (!threadIdx.x)
		start(&c);
	__syncthreads();
	for (int i = threadIdx.x; i < N; i += blockDim.x)
		change(&c, i);
	__syncthreads();
	if (!threadIdx.x)
		*out = c;
}

__global__ void locked(int *lock, volatile long long *sum, unsigned *tickets, unsigned *next)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	bool done = false;

	while (!done) {
		if (atomicCAS(lock, 0, 1) == 0) {
			__threadfence();
			*sum = *sum * 3 % 1000003 + 1;
			__threadfence();
			atomicExch(lock, 0);
			done = true;
		}
	}
	tickets[i] = atomicAdd(next, 1u);
}

static void check(const char *where, const struct cells *c)
{
	unsigned and_ = 0xffffffffu, or_ = 0, xor_ = 0, inc = 0, dec = 0;
	long long sum = 0;

	for (int i = 0; i < N; i++) {
		and_ &= ~(1u << (i % 29));
		or_ |= 1u << (i % 31);
		xor_ ^= (unsigned)i * 2654435761u;
		inc = inc >= 99 ? 0 : inc + 1;
		dec = dec == 0 || dec > 77 ? 77 : dec - 1;
		sum += i;
	}
#define IS(field, want) \
	do { \
		if (c->field != (want)) \
			fail("%s: " #field " is %.17g, expected %.17g", where, (double)c->field, \
			     (double)(want)); \
	} while (0)
	IS(add, (int)sum);
	IS(sub, (int)(-2 * sum));
	IS(min, 500 - (N - 1));
	IS(max, (N - 1) * 3);
	IS(exch, 5);
	IS(and_, and_);
	IS(or_, or_);
	IS(xor_, xor_);
	IS(inc, inc);
	IS(dec, dec);
	IS(umin, 0xfffffff0u - (N - 1));
	IS(umax, (unsigned)N - 1);
	IS(fadd, (float)N);
	IS(fmax, 999 * 0.5f);
	IS(dadd, N * 0.25);
	IS(ladd, (unsigned long long)sum << 30);
	IS(lmax, (unsigned long long)(N - 1) * (N - 1) * (N - 1));
	IS(lmin, -(long long)(N - 1) * 1000000);
	IS(lcas, (unsigned long long)sum * 3);
}

int main(void)
{
	struct cells *d, h;
	int *lock;
	long long *sum, got, want = 0;
	unsigned *tickets, *next;
	static unsigned t[N];
	static bool had[N];

	CK(cudaMalloc(&d, sizeof(*d)));
	prepare<<<1, 1>>>(d);
	global_cells<<<BLOCKS, THREADS>>>(d);
	CK(cudaMemcpy(&h, d, sizeof(h), cudaMemcpyDeviceToHost));
	check("global", &h);
	shared_cells<<<1, THREADS>>>(d);
	CK(cudaMemcpy(&h, d, sizeof(h), cudaMemcpyDeviceToHost));
	check("shared", &h);

	CK(cudaMalloc(&lock, 64));
	CK(cudaMalloc(&tickets, sizeof(t)));
	CK(cudaMemset(lock, 0, 64));
	sum = (long long *)(lock + 4);
	next = (unsigned *)(lock + 8);
	locked<<<BLOCKS, THREADS>>>(lock, sum, tickets, next);
	CK(cudaMemcpy(&got, sum, sizeof(got), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(t, tickets, sizeof(t), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		want = want * 3 % 1000003 + 1;
	if (got != want)
		fail("under the lock: %lld, expected %lld", got, want);
	for (int i = 0; i < N; i++) {
		if (t[i] >= N || had[t[i]])
			fail("ticket %u was given twice or is none", t[i]);
		had[t[i]] = true;
	}
	CK(cudaFree(d));
	CK(cudaFree(lock));
	CK(cudaFree(tickets));
	return pass();
}
