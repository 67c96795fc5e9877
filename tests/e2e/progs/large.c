/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies of sizes and places that fit nothing, from and to pageable and pinned memory, waited for and
 * not: every byte checked. Says "right", waits for a word, copies once more with two threads at once, says
 * "over". */
#include <pthread.h>
#include "tests/e2e/progs/prog.h"

enum { MOST = 11 << 20, ROUNDS = 8, ODD = 4099 };
static const size_t less[] = {0, 1, 4097, 700001, 3 << 20, 1 << 20, 262144, 5};

/* To the device from one place, back to the other. */
static void once(CUdeviceptr device, uint8_t *from, uint8_t *to, size_t n, unsigned seed, bool async)
{
	prog_fill(from, n, seed);
	memset(to, 0, n);
	if (async) {
		CHECK(cuMemcpyHtoDAsync_v2(device, from, n, NULL));
		CHECK(cuMemcpyDtoHAsync_v2(to, device, n, NULL));
		CHECK(cuStreamSynchronize(NULL));
		REQUIRE(!memcmp(from, to, n));
		return;
	}
	CHECK(cuMemcpyHtoD_v2(device, from, n));
	/* A copy that has returned has read all it needs. */
	memset(from, 0xee, n);
	CHECK(cuMemcpyDtoH_v2(to, device, n));
	prog_fill(from, n, seed);
	REQUIRE(!memcmp(from, to, n));
}

static void rounds(unsigned seed)
{
	uint8_t *pageable = malloc(MOST + ODD);
	void *pinned;
	CUdeviceptr device;

	REQUIRE(pageable);
	CHECK(cuMemAlloc_v2(&device, MOST));
	CHECK(cuMemAllocHost_v2(&pinned, MOST + ODD));
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t *a = pageable + (i % 2 ? ODD : 0), *b = (uint8_t *)pinned + (i % 3 ? ODD : 0);

		once(device, i % 2 ? a : b, i % 2 ? b : a, MOST - less[i], seed + i, i % 4 > 1);
	}
	CHECK(cuMemFree_v2(device));
	CHECK(cuMemFreeHost(pinned));
	free(pageable);
}

static void *other(void *unused)
{
	CHECK(cuCtxSetCurrent(prog_context));
	rounds(1000);
	return unused;
}

int main(void)
{
	pthread_t t;

	prog_up();
	rounds(1);
	say("right");
	await();
	REQUIRE(!pthread_create(&t, NULL, other, NULL));
	rounds(2000);
	pthread_join(t, NULL);
	say("over");
	return 0;
}
