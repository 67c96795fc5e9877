// SPDX-License-Identifier: Apache-2.0
// C++ on the device: templates with values and types, classes with virtual functions made on the device,
// function pointers in a table and as an argument, recursion, lambdas, device-side new and delete, switch
// statements.
#include "app.h"

struct shape {
	__device__ virtual float area() const = 0;
	__device__ virtual int sides() const
	{
		return 0;
	}
	__device__ virtual ~shape() {}
};

struct circle : shape {
	float r;
	__device__ circle(float r) : r(r) {}
	__device__ float area() const override
	{
		return 3 * r * r;
	}
};

struct box : shape {
	float a, b;
	__device__ box(float a, float b) : a(a), b(b) {}
	__device__ float area() const override
	{
		return a * b;
	}
	__device__ int sides() const override
	{
		return 4;
	}
};

__global__ void shapes(float *areas, int *sides)
{
	int i = threadIdx.x;
	shape *s;

	if (i % 3 == 0)
		s = new circle(i);
	else
		s = new box(i, i % 3);
	if (!s) {
		areas[i] = -1;
		return;
	}
	areas[i] = s->area();
	sides[i] = s->sides();
	delete s;
}

typedef int (*operation)(int, int);
__device__ int plus(int a, int b)
{
	return a + b;
}
__device__ int minus(int a, int b)
{
	return a - b;
}
__device__ int times(int a, int b)
{
	return a * b;
}
__device__ operation operations[3] = {plus, minus, times};

__global__ void table(int *out)
{
	out[threadIdx.x] = operations[threadIdx.x % 3](threadIdx.x, 5);
}

__global__ void pointer(operation f, int *out)
{
	out[threadIdx.x] = f(threadIdx.x, 3);
}

__device__ int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void recursive(int *out)
{
	out[threadIdx.x] = fibonacci(threadIdx.x % 12);
}

template <int K, typename T>
struct power {
	__device__ static T of(T x)
	{
		return x * power<K - 1, T>::of(x);
	}
};
template <typename T>
struct power<0, T> {
	__device__ static T of(T)
	{
		return 1;
	}
};

template <typename T, typename F>
__global__ void apply(T *p, F f)
{
	p[threadIdx.x] = f(p[threadIdx.x]);
}

template <int K, typename T>
__global__ void powers(T *p)
{
	p[threadIdx.x] = power<K, T>::of(p[threadIdx.x]);
}

__global__ void choose(int *out)
{
	int v;

	switch (out[threadIdx.x] % 9) {
	case 0: v = 100; break;
	case 1: v = -3; break;
	case 2:
	case 3: v = 7; break;
	case 4: v = 55; /* falls through */
	case 5: v = 56; break;
	case 7: v = 2000; break;
	default: v = 1;
	}
	out[threadIdx.x] = v;
}

int main(void)
{
	enum { N = 96 };
	float areas[N], *df;
	int h[N], sides[N], *d, fib[12] = {0, 1};
	double hd[N], *dd;
	operation f;

	for (int i = 2; i < 12; i++)
		fib[i] = fib[i - 1] + fib[i - 2];
	CK(cudaMalloc(&df, sizeof(areas)));
	CK(cudaMalloc(&d, sizeof(h)));
	CK(cudaMalloc(&dd, sizeof(hd)));
	shapes<<<1, N>>>(df, d);
	CK(cudaMemcpy(areas, df, sizeof(areas), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(sides, d, sizeof(sides), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		if (areas[i] != (i % 3 ? (float)i * (i % 3) : 3.0f * i * i) || sides[i] != (i % 3 ? 4 : 0))
			fail("shape %d: area %g, %d sides", i, areas[i], sides[i]);
	table<<<1, N>>>(d);
	CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		if (h[i] != (i % 3 == 0 ? i + 5 : i % 3 == 1 ? i - 5 : i * 5))
			fail("table: %d for %d", h[i], i);
	CK(cudaMemcpyFromSymbol(&f, operations, sizeof(f), 2 * sizeof(f)));
	pointer<<<1, N>>>(f, d);
	CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		if (h[i] != i * 3)
			fail("pointer: %d for %d", h[i], i);
	recursive<<<1, N>>>(d);
	CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		if (h[i] != fib[i % 12])
			fail("fibonacci(%d) is %d", i % 12, h[i]);
	for (int i = 0; i < N; i++)
		h[i] = hd[i] = i;
	CK(cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(dd, hd, sizeof(hd), cudaMemcpyHostToDevice));
	powers<4><<<1, N>>>(d);
	powers<5><<<1, N>>>(dd);
	int add = 11;
	apply<<<1, N>>>(d, [=] __device__(int x) { return x % 1000 + add; });
	CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(hd, dd, sizeof(hd), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		if (h[i] != i * i * i * i % 1000 + 11 || hd[i] != (double)i * i * i * i * i)
			fail("powers of %d: %d and %g", i, h[i], hd[i]);
	for (int i = 0; i < N; i++)
		h[i] = i;
	CK(cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice));
	choose<<<1, N>>>(d);
	CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		static const int want[9] = {100, -3, 7, 7, 56, 56, 1, 2000, 1};

		if (h[i] != want[i % 9])
			fail("switch: %d for %d", h[i], i);
	}
	CK(cudaFree(df));
	CK(cudaFree(d));
	CK(cudaFree(dd));
	return pass();
}
