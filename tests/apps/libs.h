/* SPDX-License-Identifier: Apache-2.0 */
/* For the programs that use NVIDIA's libraries: one check for all their status types, which skips where the
 * software device lacks the libraries' machine code, and vectors that live on the device. Include it after
 * app.h. */
#pragma once
#include <vector>

#define LIB(x) lib_check((int)(x), #x, __LINE__)

__attribute__((unused)) static bool on_software_device(void)
{
	cudaDeviceProp p;

	return cudaGetDeviceProperties(&p, 0) == cudaSuccess && strstr(p.name, "software");
}

/* Every library's success is 0. */
__attribute__((unused)) static void lib_check(int status, const char *what, int line)
{
	if (!status)
		return;
	if (on_software_device())
		skip("the software device runs PTX only");
	fail("line %d: %s -> %d", line, what, status);
}

/* Memory of the device with the content of a vector; freed at the end. */
template <typename T> struct dev {
	T *p = nullptr;
	size_t n;

	explicit dev(size_t count) : n(count)
	{
		CK(cudaMalloc(&p, (n ? n : 1) * sizeof(T)));
		CK(cudaMemset(p, 0, (n ? n : 1) * sizeof(T)));
	}
	explicit dev(const std::vector<T> &v) : dev(v.size())
	{
		CK(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice));
	}
	dev(const dev &) = delete;
	~dev()
	{
		cudaFree(p);
	}
	operator T *() const
	{
		return p;
	}
	std::vector<T> get() const
	{
		std::vector<T> v(n);

		CK(cudaDeviceSynchronize());
		CK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
		return v;
	}
};

/* Numbers from -0.5 to 0.5. */
template <typename T> static std::vector<T> noise_vector(size_t n, uint32_t seed)
{
	std::vector<T> v(n);

	for (T &x : v)
		x = (T)(noise_float(&seed) - 0.5f);
	return v;
}

/* A number of any type; those of 16 and 8 bits know only the way to single precision. */
__attribute__((unused)) static double number(double v)
{
	return v;
}
template <typename T> static double number(T v)
{
	return (float)v;
}

/* Column-major C = A B on the host, in double. */
template <typename T>
static std::vector<double> product(const std::vector<T> &a, const std::vector<T> &b, int m, int n, int k)
{
	std::vector<double> c((size_t)m * n);

	for (int j = 0; j < n; j++)
		for (int l = 0; l < k; l++)
			for (int i = 0; i < m; i++)
				c[(size_t)j * m + i] +=
					number(a[(size_t)l * m + i]) * number(b[(size_t)j * k + l]);
	return c;
}

template <typename T, typename U>
static void all_close(
	const char *what, const std::vector<T> &got, const std::vector<U> &want, double tolerance)
{
	if (got.size() != want.size())
		fail("%s: %zu values, expected %zu", what, got.size(), want.size());
	for (size_t i = 0; i < got.size(); i++)
		close_to(what, i, number(got[i]), number(want[i]), tolerance);
}
