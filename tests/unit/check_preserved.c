/* SPDX-License-Identifier: Apache-2.0 */
/* Images that the driver reads as long as their library lives (server/image.h). */
#include <stdlib.h>

#include "server/image.h"
#include "tests/unit/unit.h"

static struct image *preserve(uint64_t library)
{
	struct image *i = calloc(1, sizeof *i);

	ck_assert_ptr_nonnull(i);
	i->bytes = calloc(1, 1);
	image_preserve(i, library);
	return i;
}

START_TEST(each_of_its_library)
{
	struct image *one = preserve(1), *two = preserve(2), *three = preserve(3);

	ck_assert_ptr_null(image_release(4));
	ck_assert_ptr_eq(image_release(2), two);
	ck_assert_ptr_null(image_release(2));
	image_free(two);
	ck_assert_ptr_eq(image_release(1), one);
	ck_assert_ptr_eq(image_release(3), three);
	image_free(one);
	image_free(three);
}
END_TEST

/* While one thread unloads a library, the driver gives its handle to another thread's. */
START_TEST(handle_given_again)
{
	struct image *old = preserve(7), *released = image_release(7), *new = preserve(7);

	ck_assert_ptr_eq(released, old);
	image_free(released);
	ck_assert_ptr_eq(image_release(7), new);
	image_free(new);
}
END_TEST

/* The driver would not unload it. */
START_TEST(put_back)
{
	struct image *i = preserve(7);

	image_preserve(image_release(7), 7);
	ck_assert_ptr_eq(image_release(7), i);
	image_free(i);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("preserved");
	TCase *t = tcase_create("preserved");

	tcase_add_test(t, each_of_its_library);
	tcase_add_test(t, handle_given_again);
	tcase_add_test(t, put_back);
	suite_add_tcase(s, t);
	return unit_run(s);
}
