/* SPDX-License-Identifier: Apache-2.0 */
/* The table of allocations: ranges, neighbours, guard pages, registered memory, many threads at once.
 *
 * Thread rule: the threads work on allocations of their own, in one table. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include "server/soft/allocation.h"
#include "server/soft/reserved.h"
#include "tests/soft/driver/test.h"

enum { THREADS = 4, ROUNDS = 3000, HELD = 64 };

static sigjmp_buf back;
static void caught(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

static bool faults(volatile char *p)
{
	if (sigsetjmp(back, 1))
		return true;
	(void)*p;
	return false;
}

static void *churn(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	uint64_t held[HELD] = {0};
	size_t size[HELD] = {0};
	for (int i = 0; i < ROUNDS; i++) {
		unsigned k = (unsigned)rand_r(&seed) % HELD;
		if (held[k]) {
			CHECK(*(uint64_t *)(uintptr_t)held[k] == held[k]);
			CHECK(allocation_remove(held[k]));
			CHECK(!allocation_remove(held[k]));
			held[k] = 0;
			continue;
		}
		struct allocation a = {.kind = ALLOCATION_DEVICE};
		size[k] = 8 + (unsigned)rand_r(&seed) % 20000;
		held[k] = allocation_create(&a, size[k], 512);
		CHECK(held[k] && held[k] % 512 == 0);
		CHECK(*(uint64_t *)(uintptr_t)held[k] == 0);
		*(uint64_t *)(uintptr_t)held[k] = held[k];
		CHECK(allocation_find(held[k] + size[k] - 1, &a) && a.base == held[k] && a.bytes == size[k]);
		CHECK(allocation_covers(held[k], size[k]) && !allocation_covers(held[k], size[k] + 1));
	}
	for (int k = 0; k < HELD; k++)
		CHECK(!held[k] || allocation_remove(held[k]));
	return NULL;
}

int main(void)
{
	size_t limit = 64 << 20, f, t;
	CHECK(!soft_mem_init(limit) && !soft_mem_init(1));
	allocation_info(0, &f, &t);
	CHECK(f == limit && t == limit);
	signal(SIGSEGV, caught);

	uint64_t p = soft_alloc(5000, 256);
	CHECK(p && !faults((char *)(uintptr_t)p + 4999) && faults((char *)(uintptr_t)p + 8192));
	CHECK(soft_free(p) && faults((char *)(uintptr_t)p));
	struct allocation whole = {.kind = ALLOCATION_DEVICE};
	CHECK(!allocation_create(&whole, limit + 1, 256) && !soft_alloc(0, 256));
	p = allocation_create(&whole, limit, 256);
	CHECK(p && !allocation_create(&whole, 1, 256));
	uint64_t engine = soft_alloc(4096, 256); /* kernels still find a little */
	CHECK(engine && soft_free(engine));
	allocation_info(0, &f, &t);
	CHECK(!f && soft_free(p));
	uint64_t big = soft_alloc(4096, 2 << 20);
	CHECK(big && big % (2 << 20) == 0 && soft_free(big));

	static char own[16384] __attribute__((aligned(4096)));
	struct allocation r = {.base = (uintptr_t)own, .bytes = 8192, .kind = ALLOCATION_REGISTERED}, got;
	CHECK(allocation_enter(&r) && !allocation_enter(&r));
	r.base += 8192;
	CHECK(allocation_enter(&r) && allocation_covers((uintptr_t)own + 1, 16383) &&
		!allocation_covers((uintptr_t)own, 16385));
	CHECK(allocation_find((uintptr_t)own + 9000, &got) && got.base == r.base);
	CHECK(allocation_remove(r.base) && !allocation_find(r.base, &got) &&
		!allocation_covers((uintptr_t)own, 8193));
	CHECK(allocation_remove((uintptr_t)own));

	uint64_t range = range_reserve(4 << 20, 2 << 20, 0), other = range_reserve(2 << 20, 2 << 20, range);
	CHECK(range && other && other != range && range_reserved(range + (1 << 20), 3 << 20) &&
		!range_reserved(range, 5 << 20));
	CHECK(!range_release(range, 2 << 20) && range_release(range, 4 << 20) &&
		range_release(other, 2 << 20));

	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, churn, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	allocation_info(0, &f, &t);
	CHECK(f == limit);
	puts("PASS table");
	return 0;
}
