// SPDX-License-Identifier: Apache-2.0
// Thousands of allocations of many sizes, freed in another order and made again: none overlap, each keeps its
// bytes, and at the end as much memory is free as at the start.
#include "app.h"
#include <unistd.h>
#include <algorithm>
#include <vector>

__global__ void mark(unsigned *p, size_t words, unsigned v)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	if (i < words)
		p[i] = v;
}

__global__ void verify(const unsigned *p, size_t words, unsigned v, unsigned *bad)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	if (i < words && p[i] != v)
		atomicAdd(bad, 1u);
}

struct piece {
	unsigned *p;
	size_t words;
	unsigned value;
};

static int grid(size_t words)
{
	return (int)((words + 255) / 256);
}

int main(void)
{
	std::vector<struct piece> live;
	uint32_t seed = 33;
	unsigned *bad, h = 0, made = 0;
	size_t before, after, total;

	CK(cudaMalloc(&bad, sizeof(*bad)));
	CK(cudaMemset(bad, 0, sizeof(*bad)));
	CK(cudaMemGetInfo(&before, &total));
	for (int round = 0; round < 1500; round++) {
		if (live.size() < 300 || noise(&seed) % 2) {
			struct piece n = {NULL, (noise(&seed) % 4096 + 1) << (noise(&seed) % 5), ++made};

			CK(cudaMalloc(&n.p, n.words * 4));
			mark<<<grid(n.words), 256>>>(n.p, n.words, n.value);
			live.push_back(n);
		} else {
			size_t i = noise(&seed) % live.size();

			verify<<<grid(live[i].words), 256>>>(live[i].p, live[i].words, live[i].value, bad);
			CK(cudaFree(live[i].p));
			live[i] = live.back();
			live.pop_back();
		}
	}
	std::sort(live.begin(), live.end(), [](const struct piece &a,
			const struct piece &b) { return a.p < b.p; });
	for (size_t i = 0; i + 1 < live.size(); i++)
		if (live[i].p + live[i].words > live[i + 1].p)
			fail("allocations %zu and %zu overlap", i, i + 1);
	for (const struct piece &n : live) {
		verify<<<grid(n.words), 256>>>(n.p, n.words, n.value, bad);
		CK(cudaFree(n.p));
	}
	CK(cudaMemcpy(&h, bad, sizeof(h), cudaMemcpyDeviceToHost));
	if (h)
		fail("%u words were overwritten", h);
	/* Others may use the GPU just now: theirs ends within the time of a program. */
	for (int tries = 0; tries < 100; tries++) {
		CK(cudaMemGetInfo(&after, &total));
		if (after + (64 << 20) >= before)
			break;
		usleep(200000);
	}
	if (after + (64 << 20) < before) /* the driver may keep some */
		fail("%zu bytes were free at the start, %zu are now", before, after);
	CK(cudaFree(bad));
	return pass();
}
