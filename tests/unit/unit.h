/* SPDX-License-Identifier: Apache-2.0 */
/* What all unit tests end with. Thread rule: main's thread. */
#pragma once
#include <check.h>
#include <stdlib.h>

/* SLOW, the factor of all the tests' time limits. */
static inline int unit_slow(void)
{
	const char *slow = getenv("SLOW");

	return slow && atoi(slow) > 1 ? atoi(slow) : 1;
}

/* Runs the suite, which is freed, and returns the exit status. CK_RUN_CASE and the like choose,
 * CK_VERBOSITY tells. */
static inline int unit_run(Suite *s)
{
	SRunner *r = srunner_create(s);

	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
