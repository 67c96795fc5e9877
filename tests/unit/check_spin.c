// SPDX-License-Identifier: Apache-2.0
/* How many threads of the mount look long for an answer: one of every eight processors, and none where a
 * thread that looks would take a processor from somebody. */
#include "tests/unit/unit.h"
#include <sched.h>

static unsigned cpus;

static int some_cpus(pid_t pid, size_t n, cpu_set_t *set)
{
	(void)pid, (void)n;
	CPU_ZERO(set);
	for (unsigned i = 0; i < cpus; i++)
		CPU_SET(i, set);
	return 0;
}
#define sched_getaffinity some_cpus
#include "scudafs/spin.c"

static const struct { unsigned cpus, us, awaiting; const char *asked; } machines[] = {
	{1, 0, 0, NULL}, {3, 0, 0, NULL}, {4, 100, 0, NULL}, {8, 100, 1, NULL}, {17, 100, 2, NULL},
	{16, 0, 0, "0"}, {16, 3000, 2, "3000"}, {16, 100, 2, "100001"}, {16, 100, 2, "1s"}, {2, 50, 0, "50"},
};

START_TEST(test_machine)
{
	cpus = machines[_i].cpus;
	if (machines[_i].asked)
		setenv("SCUDAFS_SPIN_US", machines[_i].asked, 1);
	ck_assert_uint_eq(spin_us(), machines[_i].us);
	ck_assert_uint_eq(spin_cpus(), cpus);
	for (unsigned twice = 0; twice < 2; twice++) {
		unsigned n = 0;
		while (spin_await_begin())
			ck_assert_uint_le(++n, cpus);
		ck_assert_uint_eq(n, machines[_i].awaiting);
		while (n--)
			spin_await_end();
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spin");
	TCase *t = tcase_create("machines");
	tcase_add_loop_test(t, test_machine, 0, sizeof machines / sizeof *machines);
	suite_add_tcase(s, t);
	return unit_run(s);
}
