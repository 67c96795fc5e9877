/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory in what is shared with the mount comes and goes. Thread rule: main's thread. */
#include "tests/unit/ring_server.h"
#include "tests/unit/unit.h"

static unsigned forks;

/* Pinned memory comes and goes: what is given back is there again, and in one piece. */
START_TEST(test_arena)
{
	void *p[64];
	uint64_t at[64], again;
	unsigned seed = 1;
	for (unsigned i = 0; i < 64; i++) {
		p[i] = arena_alloc((1 + i % 7) * 4096, &at[i], &forks);
		ck_assert_ptr_nonnull(p[i]);
		for (unsigned k = 0; k < i; k++)
			ck_assert(at[i] >= at[k] + (1 + k % 7) * 4096 || at[k] >= at[i] + (1 + i % 7) * 4096);
	}
	for (unsigned left = 64; left; left--) {
		unsigned i = (unsigned)rand_r(&seed) % 64;
		while (!p[i])
			i = (i + 1) % 64;
		arena_free(p[i], (1 + i % 7) * 4096, at[i], forks);
		p[i] = NULL;
	}
	ck_assert_ptr_nonnull(pinned_memory.free);
	ck_assert_ptr_null(pinned_memory.free->next);
	ck_assert_ptr_null(arena_alloc(LIMIT_ARENA, &again, &forks));
	p[0] = arena_alloc(pinned_memory.free->n, &again, &forks);
	ck_assert_ptr_nonnull(p[0]);
	ck_assert_ptr_null(pinned_memory.free);
	ck_assert_ptr_null(arena_alloc(4096, &again, &forks));
	arena_free(p[0], LIMIT_ARENA - PINNED - sizeof pattern, again, forks);
}
END_TEST

/* While one thread forks, what another frees may be in the child, whom nobody can see yet. */
START_TEST(test_forking)
{
	uint64_t at, other, again;
	void *p = arena_alloc(4096, &at, &forks), *q;

	ck_assert_ptr_nonnull(p);
	memset(p, 5, 4096);
	arena_forking();
	arena_free(p, 4096, at, forks);
	q = arena_alloc(4096, &other, &forks);
	ck_assert_ptr_nonnull(q);
	ck_assert_uint_ne(at, other);
	ck_assert_msg(*arena_map_at(at, 4096) == 5, "its pages are gone");
	arena_forked();
	/* There is no child after all. */
	p = arena_alloc(4096, &again, &forks);
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq(at, again);
	ck_assert_uint_eq(*(uint8_t *)p, 0);
	arena_free(p, 4096, again, forks);
	arena_free(q, 4096, other, forks);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("arena");
	TCase *t = tcase_create("arena");

	setenv("SCUDAFS_LANES", "2", 1);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_arena);
	tcase_add_test(t, test_forking);
	suite_add_tcase(s, t);
	return unit_run(s);
}
