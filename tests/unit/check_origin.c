// SPDX-License-Identifier: Apache-2.0
/* Who gives way when connections that have not shown who they are hold all places: the oldest of the origin
 * that has most, so that one crowd keeps nobody else out; and what an origin is. */
#include "server/origin.h"
#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/unit/unit.h"

static struct origin from(uint8_t who)
{
	return (struct origin){{who}};
}

START_TEST(oldest_of_the_most)
{
	struct claim c[] = {{from(1), 3}, {from(2), 2}, {from(1), 5}, {from(3), 1}, {from(1), 4}};

	ck_assert_int_eq(origin_gives_way(c, 5), 0);
	c[0].age = 9;
	ck_assert_int_eq(origin_gives_way(c, 5), 4);
	/* As many of each: the oldest of all. */
	ck_assert_int_eq(origin_gives_way(c, 2), 1);
	ck_assert_int_eq(origin_gives_way(c + 3, 1), 0);
}
END_TEST

/* One honest client among a crowd that renews itself: it stays while others come, and the crowd never has
 * more than its places. */
START_TEST(crowd)
{
	struct claim c[64];
	uint64_t age = 0;

	c[0] = (struct claim){from(1), age++};
	for (int i = 1; i < 64; i++)
		c[i] = (struct claim){from(2), age++};
	for (int i = 0; i < 1000; i++) {
		int gone = origin_gives_way(c, 64);

		ck_assert_int_ne(gone, 0);
		c[gone] = (struct claim){from(2), age++};
	}
}
END_TEST

static struct origin origin_over(const char *address, int family)
{
	struct sockaddr_in six4 = {.sin_family = AF_INET};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr *a = family == AF_INET ? (struct sockaddr *)&six4 : (struct sockaddr *)&six;
	socklen_t n = family == AF_INET ? sizeof six4 : sizeof six;
	int s = socket(AF_INET6, SOCK_STREAM, 0), c = socket(family, SOCK_STREAM, 0), off = 0;

	ck_assert(!setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off));
	ck_assert(!listen(s, 1));
	socklen_t m = sizeof six;
	struct sockaddr_in6 at;
	ck_assert(!getsockname(s, (struct sockaddr *)&at, &m));
	ck_assert_int_eq(inet_pton(family, address,
		family == AF_INET ? (void *)&six4.sin_addr : (void *)&six.sin6_addr), 1);
	ck_assert(!bind(c, a, n));
	six4.sin_port = six.sin6_port = at.sin6_port;
	ck_assert(!connect(c, a, n));
	int fd = accept(s, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	struct origin o = origin_of(fd);
	close(fd);
	close(c);
	close(s);
	return o;
}

static bool same(struct origin a, struct origin b) { return !memcmp(&a, &b, sizeof a); }

START_TEST(addresses)
{
	int pair[2];
	struct origin none = {{0}}, one, other;

	ck_assert(same(origin_of(-1), none));
	/* By a socket for both kinds an IPv4 client is what it is; its port does not count. */
	one = origin_over("127.0.0.1", AF_INET);
	other = origin_over("127.0.0.2", AF_INET);
	ck_assert(!same(one, other) && !same(one, none));
	ck_assert(same(one, origin_over("127.0.0.1", AF_INET)));
	ck_assert_int_eq(one.bytes[0], AF_INET);
	ck_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	other = origin_of(pair[0]);
	ck_assert(!same(one, other) && same(other, origin_of(pair[1])));
	close(pair[0]);
	close(pair[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("origin");
	TCase *t = tcase_create("origin");

	tcase_add_test(t, oldest_of_the_most);
	tcase_add_test(t, crowd);
	tcase_add_test(t, addresses);
	suite_add_tcase(s, t);
	return unit_run(s);
}
