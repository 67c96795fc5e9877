// SPDX-License-Identifier: Apache-2.0
// thrust on the device: sort, sort by key, stable sort of pairs, scans, reduce, transform-reduce, unique,
// copy_if; the results against the standard library.
#include "app.h"
#include <algorithm>
#include <numeric>
#include <vector>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

struct square {
	__host__ __device__ long long operator()(int x) const
	{
		return (long long)x * x;
	}
};

struct is_odd {
	__host__ __device__ bool operator()(int x) const
	{
		return x & 1;
	}
};

static void same(const char *what, const thrust::device_vector<int> &got, const std::vector<int> &want)
{
	thrust::host_vector<int> h = got;

	if (h.size() != want.size())
		fail("%s: %zu elements, expected %zu", what, h.size(), want.size());
	for (size_t i = 0; i < want.size(); i++)
		if (h[i] != want[i])
			fail("%s: element %zu is %d, expected %d", what, i, h[i], want[i]);
}

int main(void)
{
	enum { N = 50000 };
	std::vector<int> h(N), keys(N), values(N), want;
	uint32_t seed = 17;

	for (int i = 0; i < N; i++) {
		h[i] = (int)noise(&seed) >> 8;
		keys[i] = noise(&seed) % 1000;
		values[i] = i;
	}
	thrust::device_vector<int> d(h.begin(), h.end()), out(N);

	thrust::inclusive_scan(d.begin(), d.end(), out.begin());
	want.resize(N);
	std::partial_sum(h.begin(), h.end(), want.begin());
	same("inclusive scan", out, want);
	thrust::exclusive_scan(d.begin(), d.end(), out.begin(), 5);
	std::exclusive_scan(h.begin(), h.end(), want.begin(), 5);
	same("exclusive scan", out, want);

	long long squares = thrust::transform_reduce(d.begin(), d.end(), square(), 0ll,
			thrust::plus<long long>()), expected = 0;
	for (int v : h)
		expected += (long long)v * v;
	if (squares != expected)
		fail("sum of squares is %lld, expected %lld", squares, expected);
	int most = thrust::reduce(d.begin(), d.end(), -2147483647, thrust::maximum<int>());
	if (most != *std::max_element(h.begin(), h.end()))
		fail("maximum is %d", most);

	thrust::device_vector<int> odd(N);
	odd.resize(thrust::copy_if(d.begin(), d.end(), odd.begin(), is_odd()) - odd.begin());
	want.clear();
	std::copy_if(h.begin(), h.end(), std::back_inserter(want), is_odd());
	same("copy_if", odd, want);

	thrust::sort(d.begin(), d.end());
	want = h;
	std::sort(want.begin(), want.end());
	same("sort", d, want);
	thrust::sort(d.begin(), d.end(), thrust::greater<int>());
	std::reverse(want.begin(), want.end());
	same("sort, descending", d, want);

	thrust::device_vector<int> k(keys.begin(), keys.end()), v(values.begin(), values.end());
	thrust::stable_sort_by_key(k.begin(), k.end(), v.begin());
	std::stable_sort(values.begin(), values.end(), [&](int a, int b) { return keys[a] < keys[b]; });
	same("stable sort by key", v, values);
	k.resize(thrust::unique(k.begin(), k.end()) - k.begin());
	std::sort(keys.begin(), keys.end());
	keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
	same("unique", k, keys);
	return pass();
}
