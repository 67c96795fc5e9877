/* SPDX-License-Identifier: Apache-2.0 */
/* The server's table of handles: types, foreign and dropped ids, what belongs to what, growth. One thread,
 * but for the last test. */
#include <pthread.h>
#include <stdlib.h>

#include "server/handle.h"
#include "tests/unit/unit.h"

enum { STREAM = 12, EVENT = 11, MODULE = 2, FUNCTION = 3 };
#define NEXT(id) HANDLE_ID(HANDLE_TYPE(id), HANDLE_NUMBER(id) + 1)
#define REAL(n) ((void *)(uintptr_t)(0x10000 + 16 * (n)))

static struct handles *h;

static void setup(void)
{
	h = handles_create();
	ck_assert_ptr_nonnull(h);
}

static void teardown(void)
{
	handles_destroy(h);
	handles_destroy(NULL);
}

START_TEST(server_chosen)
{
	uint64_t a = handle_add(h, EVENT, REAL(1), 0), b = handle_add(h, EVENT, REAL(2), 0);

	ck_assert_uint_eq(HANDLE_TYPE(a), EVENT);
	ck_assert_uint_ge(HANDLE_NUMBER(a), HANDLE_SERVER);
	ck_assert_uint_ne(a, b);
	ck_assert_uint_eq(handle_add(h, EVENT, REAL(1), 0), a);
	ck_assert_uint_eq(handle_id(h, EVENT, REAL(2)), b);
	ck_assert_uint_eq(handle_id(h, STREAM, REAL(2)), 0);
	ck_assert_ptr_eq(handle_real(h, EVENT, a), REAL(1));
	/* The same number with another type is another handle. */
	ck_assert_ptr_null(handle_real(h, STREAM, a));
	ck_assert_ptr_null(handle_real(h, STREAM, HANDLE_ID(STREAM, HANDLE_NUMBER(a))));
	ck_assert_uint_ne(handle_add(h, STREAM, REAL(1), 0), a);
	handle_drop(h, a);
	ck_assert_ptr_null(handle_real(h, EVENT, a));
	ck_assert_uint_eq(handle_id(h, EVENT, REAL(1)), 0);
	ck_assert_uint_ne(handle_add(h, EVENT, REAL(1), 0), a);
	handle_drop(h, a);
	ck_assert_ptr_eq(handle_real(h, EVENT, b), REAL(2));
}
END_TEST

START_TEST(replaced)
{
	uint64_t id = handle_add(h, EVENT, REAL(1), 0);

	ck_assert_ptr_eq(handle_real(h, EVENT, id), REAL(1));
	ck_assert(!handle_changed(h, id));
	handle_change(h, id);
	ck_assert(handle_changed(h, id) && !handle_changed(h, NEXT(id)));
	handle_replace(h, id, REAL(2));
	ck_assert_ptr_eq(handle_real(h, EVENT, id), REAL(2));
	ck_assert_uint_eq(handle_id(h, EVENT, REAL(2)), id);
	ck_assert_uint_eq(handle_id(h, EVENT, REAL(1)), 0);
	handle_replace(h, NEXT(id), REAL(1));
	ck_assert_ptr_null(handle_real(h, EVENT, NEXT(id)));
	handle_drop(h, id);
	ck_assert_uint_eq(handle_id(h, EVENT, REAL(2)), 0);
}
END_TEST

/* The driver gives a handle again before the call that ended its last bearer has returned. */
START_TEST(given_again)
{
	uint64_t a = handle_add(h, EVENT, REAL(1), 0), b;

	handle_ending(h, a, true);
	ck_assert_ptr_eq(handle_real(h, EVENT, a), REAL(1));
	b = handle_add(h, EVENT, REAL(1), 0);
	ck_assert_uint_ne(b, a);
	handle_drop(h, a);
	ck_assert_uint_eq(handle_id(h, EVENT, REAL(1)), b);
	ck_assert_ptr_eq(handle_real(h, EVENT, b), REAL(1));
	ck_assert(handle_bind(h, STREAM, HANDLE_ID(STREAM, 0x2000), REAL(2)));
	handle_ending(h, HANDLE_ID(STREAM, 0x2000), true);
	ck_assert(handle_bind(h, STREAM, HANDLE_ID(STREAM, 0x2001), REAL(2)));
	ck_assert_ptr_eq(handle_real(h, STREAM, HANDLE_ID(STREAM, 0x2000)), REAL(2));
	handle_drop(h, HANDLE_ID(STREAM, 0x2000));
	ck_assert_ptr_eq(handle_real(h, STREAM, HANDLE_ID(STREAM, 0x2001)), REAL(2));
	/* The call has failed. */
	handle_ending(h, b, true);
	handle_ending(h, b, false);
	ck_assert_uint_eq(handle_add(h, EVENT, REAL(1), 0), b);
}
END_TEST

START_TEST(program_chosen)
{
	uint64_t id = HANDLE_ID(STREAM, 0x2000);

	ck_assert(handle_bind(h, STREAM, id, REAL(1)));
	ck_assert(handle_bind(h, STREAM, id, REAL(1)));
	ck_assert(!handle_bind(h, STREAM, id, REAL(2)));
	ck_assert(!handle_bind(h, EVENT, id, REAL(1)));
	ck_assert(!handle_bind(h, STREAM, HANDLE_ID(STREAM, 0xfff), REAL(3)));
	ck_assert(!handle_bind(h, STREAM, HANDLE_ID(STREAM, HANDLE_SERVER), REAL(3)));
	ck_assert(!handle_bind(h, STREAM, 0, REAL(3)));
	ck_assert(!handle_bind(h, STREAM, UINT64_MAX, REAL(3)));
	/* The driver used the number again after its bearer had died unseen. */
	ck_assert(handle_bind(h, STREAM, NEXT(id), REAL(1)));
	ck_assert(!handle_bind(h, STREAM, NEXT(id) + 1, REAL(3)));
	ck_assert_ptr_null(handle_real(h, STREAM, id));
	ck_assert_ptr_eq(handle_real(h, STREAM, NEXT(id)), REAL(1));
}
END_TEST

START_TEST(belonging)
{
	uint64_t module = handle_add(h, MODULE, REAL(1), 0), other = handle_add(h, MODULE, REAL(2), 0);
	uint64_t f[3], g = handle_add(h, FUNCTION, REAL(9), other);
	uint64_t deep;

	for (int i = 0; i < 3; i++)
		f[i] = handle_add(h, FUNCTION, REAL(3 + i), module);
	deep = handle_add(h, EVENT, REAL(3), f[0]);
	handle_drop(h, f[1]);
	handle_drop(h, module);
	ck_assert_ptr_null(handle_real(h, FUNCTION, f[0]));
	ck_assert_ptr_null(handle_real(h, FUNCTION, f[2]));
	ck_assert_ptr_null(handle_real(h, EVENT, deep));
	ck_assert_ptr_eq(handle_real(h, FUNCTION, g), REAL(9));
	/* A parent that is not there is no parent. */
	handle_add(h, FUNCTION, REAL(20), module);
	handle_drop(h, module);
	ck_assert_uint_ne(handle_id(h, FUNCTION, REAL(20)), 0);
}
END_TEST

START_TEST(many)
{
	enum { N = 20000 };
	uint64_t *id = calloc(N, sizeof *id);

	for (int i = 0; i < N; i++)
		id[i] = handle_add(h, EVENT, REAL(i), 0);
	for (int i = 0; i < N; i += 2)
		handle_drop(h, id[i]);
	for (int i = 0; i < N; i++)
		ck_assert_ptr_eq(handle_real(h, EVENT, id[i]), i % 2 ? REAL(i) : NULL);
	for (int i = 0; i < N; i += 2)
		ck_assert(handle_bind(h, EVENT, HANDLE_ID(EVENT, 0x2000 + i), REAL(i)));
	for (int i = 0; i < N; i += 2)
		ck_assert_ptr_eq(handle_real(h, EVENT, HANDLE_ID(EVENT, 0x2000 + i)), REAL(i));
	free(id);
}
END_TEST

static void *churn(void *arg)
{
	for (uintptr_t i = 0; i < 20000; i++) {
		void *real = REAL((uintptr_t)arg * 1000 + i % 50);
		uint64_t id = handle_add(h, EVENT, real, 0);

		if (!id || handle_real(h, EVENT, id) != real)
			return (void *)1;
		handle_drop(h, id);
	}
	return NULL;
}

START_TEST(threads)
{
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, churn, (void *)i), 0);
	for (int i = 0; i < 4; i++) {
		void *bad;

		pthread_join(t[i], &bad);
		ck_assert_ptr_null(bad);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("handle");
	TCase *t = tcase_create("table");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, server_chosen);
	tcase_add_test(t, replaced);
	tcase_add_test(t, given_again);
	tcase_add_test(t, program_chosen);
	tcase_add_test(t, belonging);
	tcase_add_test(t, many);
	tcase_add_test(t, threads);
	suite_add_tcase(s, t);
	return unit_run(s);
}
