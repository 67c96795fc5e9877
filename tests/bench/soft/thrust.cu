// SPDX-License-Identifier: Apache-2.0
// A large module for the load benchmark: a few algorithms of Thrust make some ten thousand lines of PTX.
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

int work(thrust::device_vector<int> &k, thrust::device_vector<float> &v, thrust::device_vector<double> &w)
{
	thrust::sort(k.begin(), k.end());
	thrust::sort_by_key(k.begin(), k.end(), v.begin());
	thrust::stable_sort(v.begin(), v.end(), thrust::greater<float>());
	thrust::inclusive_scan(v.begin(), v.end(), v.begin());
	thrust::exclusive_scan(w.begin(), w.end(), w.begin());
	return (int)(thrust::unique(k.begin(), k.end()) - k.begin()) +
	       (int)thrust::reduce(w.begin(), w.end()) +
	       (int)thrust::reduce(v.begin(), v.end(), 0.0f, thrust::maximum<float>());
}
