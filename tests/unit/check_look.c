/* SPDX-License-Identifier: Apache-2.0 */
/* How long is looked for something before sleeping (wire/look.h), by a clock of the test's own. */
#include <time.h>

#include "tests/unit/unit.h"
#include "wire/look.h"

#define MS 1000000u

static uint64_t now = 1000 * (uint64_t)MS;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	*t = (struct timespec){.tv_sec = (time_t)(now / 1000000000u), .tv_nsec = (long)(now % 1000000000u)};
	return 0;
}

/* Microseconds for which is looked, at the clock every 10 of them. */
static unsigned looked(struct look *l)
{
	unsigned us = 0;

	while (look_on(l)) {
		now += 10000;
		us += 10;
	}
	return us;
}

START_TEST(as_long_as_asked)
{
	struct look l = look_begin(100000), none = look_begin(0);

	ck_assert(!look_on(&none));
	ck_assert_uint_eq(looked(&l), 100);
	ck_assert(!look_on(&l));
	now += 50 * MS; /* asleep */
	ck_assert(!look_on(&l));
	look_again(&l, 20000);
	ck_assert_uint_eq(looked(&l), 20);
}
END_TEST

START_TEST(without_a_processor)
{
	struct look l = look_begin(10 * MS), other = look_begin(10 * MS);

	ck_assert(look_on(&l));
	now += 2 * MS;
	ck_assert_msg(!look_on(&l), "it did not run for 2 ms");
	ck_assert(!look_on(&l));
	/* Nobody looks for a second, but who does already. */
	look_resume(&other);
	ck_assert(look_on(&other));
	l = look_begin(10 * MS);
	ck_assert(!look_on(&l));
	look_again(&l, 10 * MS);
	ck_assert(!look_on(&l));
	now += 999 * MS;
	l = look_begin(10 * MS);
	ck_assert(!look_on(&l));
	now += 2 * MS;
	l = look_begin(10 * MS);
	ck_assert_uint_eq(looked(&l), 10000);
}
END_TEST

/* What was done meanwhile took long: that says nothing about processors. */
START_TEST(with_work_between)
{
	struct look l = look_begin(10 * MS);

	ck_assert(look_on(&l));
	now += 5 * MS;
	look_resume(&l);
	ck_assert_uint_eq(looked(&l), 5000);
	l = look_begin(MS);
	ck_assert_uint_eq(looked(&l), 1000);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("look");
	TCase *t = tcase_create("look");

	tcase_add_test(t, as_long_as_asked);
	tcase_add_test(t, without_a_processor);
	tcase_add_test(t, with_work_between);
	suite_add_tcase(s, t);
	return unit_run(s);
}
