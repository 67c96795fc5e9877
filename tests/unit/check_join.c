/* SPDX-License-Identifier: Apache-2.0 */
/* The listener's table of expected second connections: a token opens one connection, once, of the session
 * that it was made for, while that lives. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/join.h"
#include "tests/unit/unit.h"
#include "wire/fds.h"
#include "wire/limits.h"

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += !fcntl(fd, F_GETFD) || errno != EBADF;
	return n;
}

/* The session's end of what join_expect takes. */
static int expect(uint64_t session, struct share_token *token)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(join_expect(session, pair[1], token), 0);
	return pair[0];
}

static int arrives(const struct share_token *token)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	int r = join_arrived((const uint8_t *)token, pair[0]);
	close(pair[0]);
	close(pair[1]);
	return r;
}

static bool came(int from)
{
	char byte;
	int fd, r = fds_receive(from, &byte, 1, &fd, 1, MSG_DONTWAIT);

	if (!r)
		close(fd);
	return !r;
}

START_TEST(once)
{
	struct share_token a, b, none = {{0}}, wrong;
	int before = descriptors(), first = expect(7, &a), second = expect(8, &b);

	ck_assert(memcmp(&a, &b, sizeof a));
	ck_assert_int_eq(arrives(&none), -ENOENT);
	wrong = a;
	wrong.word[1] ^= 1ull << 63;
	ck_assert_int_eq(arrives(&wrong), -ENOENT);
	ck_assert_int_eq(arrives(&b), 0);
	ck_assert(!came(first));
	ck_assert(came(second));
	ck_assert_int_eq(arrives(&b), -ENOENT); /* again */
	ck_assert_int_eq(arrives(&a), 0);
	ck_assert(came(first));
	ck_assert_int_eq(arrives(&none), -ENOENT); /* free places have no token */
	close(first);
	close(second);
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

START_TEST(over)
{
	struct share_token a, later, dead;
	int before = descriptors(), first = expect(7, &a), second = expect(7, &later);
	int third = expect(9, &dead);

	ck_assert_int_eq(arrives(&a), -ENOENT); /* a session expects one */
	join_forget(7);
	ck_assert_int_eq(arrives(&later), -ENOENT);
	close(third); /* the session has gone, and the listener does not know yet */
	ck_assert_int_lt(arrives(&dead), 0);
	ck_assert_int_eq(arrives(&dead), -ENOENT);
	join_forget(0);
	close(first);
	close(second);
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

START_TEST(full)
{
	struct share_token t;
	int before = descriptors(), end[LIMIT_SESSIONS], pair[2];

	for (unsigned i = 0; i < LIMIT_SESSIONS; i++)
		end[i] = expect(i + 1, &t);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(join_expect(LIMIT_SESSIONS + 1, pair[1], &t), -EUSERS);
	close(pair[0]);
	for (unsigned i = 0; i < LIMIT_SESSIONS; i++) {
		join_forget(i + 1);
		close(end[i]);
	}
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("join");
	TCase *t = tcase_create("table");

	tcase_add_test(t, once);
	tcase_add_test(t, over);
	tcase_add_test(t, full);
	suite_add_tcase(s, t);
	return unit_run(s);
}
