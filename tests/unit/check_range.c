// SPDX-License-Identifier: Apache-2.0
/* The shim's table of address ranges: who holds an address, who may free it, what goes with an owner; and
 * reservations, which keep the program's own mappings out. */
#include "devshim/range.c"
#include "tests/unit/unit.h"

static bool add(uint64_t base, size_t size, enum range_kind kind, uintptr_t owner)
{
	struct range r = {.base = base, .size = size, .kind = kind, .ctx = (CUcontext)owner};

	return range_add(&r);
}

START_TEST(holder_of)
{
	struct range r;

	ck_assert(add(0x1000, 0x100, RANGE_DEVICE, 1) && add(0x3000, 0x1000, RANGE_HOST, 1) &&
		  add(0x2000, 0, RANGE_DEVICE, 1));
	ck_assert(!range_find(0xfff, &r) && !range_find(0x1100, &r) && !range_find(0, &r) &&
		  !range_find(~0ull, &r));
	ck_assert(range_find(0x1000, &r) && range_find(0x10ff, &r) && r.base == 0x1000);
	ck_assert(range_is_device(&r) && range_is_whole(&r) && range_has(&r, 0x10f0, 16) &&
		  !range_has(&r, 0x10f0, 17));
	ck_assert(!range_has(&r, 0x1000, SIZE_MAX));
	ck_assert(range_find(0x2000, &r) && !range_find(0x2001, &r));
	ck_assert(range_find(0x3fff, &r) && range_is_host(&r) && !range_is_whole(&r));
}
END_TEST

START_TEST(free_once)
{
	struct range r;

	add(0x1000, 0x100, RANGE_DEVICE, 1);
	ck_assert(!range_take(0x1001, RANGE_DEVICE, &r) && !range_take(0x1000, RANGE_POOL, &r));
	ck_assert(range_take(0x1000, RANGE_DEVICE, &r) && r.size == 0x100);
	ck_assert(!range_take(0x1000, RANGE_DEVICE, &r));
	uint64_t id = r.id;

	add(0x1000, 0x200, RANGE_DEVICE, 1);
	ck_assert(range_find(0x1100, &r) && r.id != id);
}
END_TEST

START_TEST(owners)
{
	struct range r;

	add(0x1000, 16, RANGE_DEVICE, 1);
	add(0x2000, 16, RANGE_HOST, 1);
	add(0x3000, 16, RANGE_GLOBAL, 7);
	add(0x4000, 16, RANGE_DEVICE, 2);
	range_drop_owner(RANGE_GLOBAL, (CUcontext)7);
	ck_assert(!range_find(0x3000, &r));
	range_drop_owner(RANGE_NONE, (CUcontext)1);
	ck_assert(!range_find(0x1000, &r) && range_find(0x2000, &r) && range_find(0x4000, &r));
	range_set_sync_memops(0x4008, true);
	ck_assert(range_find(0x4000, &r) && r.sync_memops);
}
END_TEST

START_TEST(many)
{
	enum { N = 20000 };
	struct range r;
	unsigned right = 0; /* libcheck notes each assertion: not one for each range */

	for (unsigned i = 0; i < N; i++)
		right += add(0x100000 + (uint64_t)(i * 7919 % N) * 0x200, 0x180, RANGE_DEVICE, 1);
	ck_assert_uint_eq(right, N);
	for (unsigned i = 0; i < N; i++) {
		uint64_t p = 0x100000 + (uint64_t)i * 0x200;

		right += range_find(p + 0x17f, &r) && r.base == p && !range_find(p + 0x180, &r);
	}
	ck_assert_uint_eq(right, 2 * N);
	for (unsigned i = 0; i < N; i++)
		right += range_take(0x100000 + (uint64_t)(i * 104729 % N) * 0x200, RANGE_DEVICE, NULL);
	ck_assert_uint_eq(right, 3 * N);
	ck_assert(!range_find(0x100000, &r));
}
END_TEST

static bool is_held(uint64_t p)
{
	void *m = mmap((void *)p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (m == MAP_FAILED)
		return true;
	munmap(m, 4096);
	return false;
}

START_TEST(reservation)
{
	uint64_t base = 0x7e9000000000; /* where the thread sanitizer allows mappings, too */
	void *mine = mmap((void *)(base + 3 * CHUNK), 4096, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	ck_assert_ptr_ne(mine, MAP_FAILED);
	range_reserve(base + 100, 10);
	range_reserve(base + 200, 10); /* the same chunk */
	ck_assert(is_held(base) && is_held(base + CHUNK - 4096) && !is_held(base + CHUNK));
	/* Where something of ours lies the rest of what was given is still held. */
	range_reserve(base + 3 * CHUNK + 0x10000, 0x5000);
	ck_assert(is_held(base + 3 * CHUNK + 0x10000) && is_held(base + 3 * CHUNK + 0x14000));
	ck_assert(!is_held(base + 3 * CHUNK + 0x15000));
	ck_assert_int_eq(*(volatile char *)mine, 0);
	range_reserve(base, 0);
	range_reserve(~0ull - 5, 100);
	range_reserve((uint64_t)1 << 47, 100);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("range");
	TCase *t = tcase_create("range");

	suite_add_tcase(s, t);
	tcase_add_test(t, holder_of);
	tcase_add_test(t, free_once);
	tcase_add_test(t, owners);
	tcase_add_test(t, many);
	tcase_add_test(t, reservation);
	return unit_run(s);
}
