/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that go over a local socket: those that were not asked for are not kept. Thread rule: main's
 * thread. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "wire/fds.h"

START_TEST(test_descriptors)
{
	int pair[2], two[2], got[FDS_MOST] = {-1, -1, -1, -1};
	char c = 7, d = 0;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(pipe(two), 0);
	int next = dup(0);
	close(next);
	for (unsigned sent = 0; sent <= 2; sent++)
		for (unsigned asked = 0; asked <= FDS_MOST; asked++) {
			ck_assert_int_eq(fds_send(pair[0], &c, 1, two, sent, 0), 0);
			ck_assert_int_eq(fds_receive(pair[1], &d, 1, got, asked, 0),
					sent == asked ? 0 : -EPROTO);
			ck_assert_int_eq(d, 7);
			for (unsigned i = 0; i < sent && sent == asked; i++)
				ck_assert_int_eq(close(got[i]), 0);
			int now = dup(0);
			ck_assert_int_eq(now, next);
			close(now);
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fds");
	TCase *t = tcase_create("descriptors");

	tcase_add_test(t, test_descriptors);
	suite_add_tcase(s, t);
	return unit_run(s);
}
