/* SPDX-License-Identifier: Apache-2.0 */
/* The server's staging memory as the mount sees it: what is lent when, when it may be used again, and what
 * becomes of a mount that lies about what it has taken. Thread rule: main's thread is the session's and the
 * mount's, another one the mount's where the session waits; a session that ends is a child. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/lend.h"
#include "server/staging.h"
#include "server/state.h"
#include "tests/unit/unit.h"
#include "wire/lending.h"

static struct session *s;
static struct session_start start;
static int peer, second_peer;

static struct stream *stream_over(int *other)
{
	const char *identity, *why;
	struct stream *stream;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(stream_accept(pair[0], NULL, 1000, &stream, &identity, &why), 0);
	*other = pair[1];
	return stream;
}

static void setup(void)
{
	s = session_self();
	s->start = &start;
	start.report = s->report =
		mmap(NULL, sizeof *start.report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->stream = stream_over(&peer);
}

/* The mount has the memory: where it sees it. */
static const uint8_t *begin(void)
{
	const char *why = NULL;
	const uint8_t *seen;
	uint64_t size;
	int fd = lend_offer(s, &size);

	ck_assert_int_ge(fd, 0);
	ck_assert_uint_le(size, LIMIT_LENT);
	ck_assert_ptr_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	seen = lending_map(fd, size, &why);
	ck_assert_msg(seen != NULL, "%s", why);
	close(fd);
	lend_begin(stream_over(&second_peer));
	return seen;
}

static void say_taken(uint64_t count)
{
	ck_assert_int_eq(send(second_peer, &count, sizeof count, 0), sizeof count);
}

/* The DATA frame that has come by its place. */
static uint64_t place(uint64_t transfer, uint64_t offset, size_t n)
{
	struct frame f;
	uint64_t at;

	ck_assert_int_eq(recv(peer, &f, sizeof f, MSG_DONTWAIT), sizeof f);
	ck_assert_int_eq(frame_check(&f, false, NULL), 0);
	ck_assert(f.kind == FRAME_DATA && frame_is_lent(&f));
	ck_assert_uint_eq(f.ctx, transfer);
	ck_assert_uint_eq(f.seq, offset);
	ck_assert_uint_eq(f.bulk_len, n);
	ck_assert_int_eq(recv(peer, &at, sizeof at, MSG_DONTWAIT), sizeof at);
	return at;
}

static bool nothing_came(void)
{
	uint8_t byte;

	return recv(peer, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* What is lent where and when. */
START_TEST(lends)
{
	uint8_t *a = lend_map(s), *b = lend_map(s), other[STAGE_SLOT];
	const uint8_t *seen;

	ck_assert(a && b);
	memset(a, 1, STAGE_BYTES);
	memset(b, 2, STAGE_BYTES);
	/* Nobody has it yet. */
	ck_assert_uint_eq(lend_data(s, 7, 0, a, STAGE_SLOT), 0);
	seen = begin();
	ck_assert_uint_eq(lend_data(s, 7, 0, other, STAGE_SLOT), 0);
	ck_assert_uint_eq(lend_data(s, 7, 0, a, 100), 0);
	ck_assert_uint_eq(lend_data(s, 7, 0, a + STAGE_BYTES - 100, STAGE_SLOT), 0);
	ck_assert_uint_eq(lend_data(s, 7, 0, a, STAGE_SLOT + 1), 0);
	ck_assert(nothing_came());
	a[STAGE_SLOT] = 11;
	ck_assert_uint_eq(lend_data(s, 7, 1234, a + STAGE_SLOT, STAGE_SLOT), 1);
	ck_assert_int_eq(seen[place(7, 1234, STAGE_SLOT)], 11);
	b[0] = 22;
	ck_assert_uint_eq(lend_data(s, 8, 0, b, STAGE_SLOT - 5), 2);
	ck_assert_int_eq(seen[place(8, 0, STAGE_SLOT - 5)], 22);
	ck_assert(nothing_came());
	ck_assert(lend_is_over(0, false) && !lend_is_over(1, false) && !lend_is_over(2, false));
	say_taken(1);
	ck_assert(lend_is_over(1, false) && !lend_is_over(2, false));
	say_taken(2);
	ck_assert(lend_is_over(2, true));
}
END_TEST

/* In parts of a number, too, as a socket may have it. */
static void *says_late(void *unused)
{
	uint64_t count = 2;

	usleep(100000);
	say_taken(1);
	usleep(100000);
	ck_assert_int_eq(send(second_peer, &count, 3, 0), 3);
	usleep(100000);
	ck_assert_int_eq(send(second_peer, (uint8_t *)&count + 3, 5, 0), 5);
	return unused;
}

static void *waits(void *ticket)
{
	return lend_is_over((uint64_t)(uintptr_t)ticket, true) ? ticket : NULL;
}

START_TEST(waited_for)
{
	uint8_t *a = lend_map(s);
	pthread_t mount, thread[4];
	void *done;

	begin();
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(lend_data(s, 7, 0, a + i * STAGE_SLOT, STAGE_SLOT), i + 1);
	ck_assert_int_eq(pthread_create(&mount, NULL, says_late, NULL), 0);
	for (uintptr_t i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, waits, (void *)(2 - i % 2)), 0);
	for (uintptr_t i = 0; i < 4; i++) {
		pthread_join(thread[i], &done);
		ck_assert_ptr_eq(done, (void *)(2 - i % 2));
	}
	pthread_join(mount, NULL);
}
END_TEST

/* Memory that the mount may still look at is nobody else's; there is an end of it. */
START_TEST(memory)
{
	uint8_t *a = lend_map(s), *b;
	const uint8_t *seen = begin();
	uint64_t first, n = 1;

	ck_assert_uint_eq(lend_data(s, 7, 0, a, STAGE_SLOT), 1);
	first = place(7, 0, STAGE_SLOT);
	lend_unmap(a, 1);
	b = lend_map(s);
	ck_assert_uint_eq(lend_data(s, 7, 0, b, STAGE_SLOT), 2);
	ck_assert_uint_ne(place(7, 0, STAGE_SLOT), first);
	say_taken(1);
	a = lend_map(s);
	ck_assert_uint_eq(lend_data(s, 7, 0, a, STAGE_SLOT), 3);
	ck_assert_uint_eq(place(7, 0, STAGE_SLOT), first);
	a[0] = 33;
	ck_assert_int_eq(seen[first], 33);
	for (n = 2; lend_map(s); n++)
		;
	ck_assert_uint_eq(n, LIMIT_LENT / STAGE_BYTES);
	lend_unmap(b, 0);
	ck_assert_ptr_nonnull(lend_map(s));
}
END_TEST

/* Over a network nothing is. */
START_TEST(far)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	const char *identity, *why;
	uint64_t size;

	ck_assert_int_eq(listen(listener, 1), 0);
	struct sockaddr_storage a;
	socklen_t n = sizeof a;

	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, n), 0);
	fd = accept(listener, NULL, NULL);
	stream_close(s->stream);
	ck_assert_int_eq(stream_accept(fd, NULL, 1000, &s->stream, &identity, &why), 0);
	ck_assert_ptr_null(lend_map(s));
	ck_assert_int_eq(lend_offer(s, &size), -1);
	ck_assert_uint_eq(size, 0);
}
END_TEST

/* ---- lies ---- */

static uint64_t word;

static void hears(void)
{
	if (word)
		say_taken(word);
	else
		shutdown(second_peer, SHUT_RDWR);
	for (;;)
		lend_is_over(3, true);
}

static void ends(const char *reason)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		hears();
		_exit(7);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status %#x", status);
	ck_assert_str_eq(s->report->reason, reason);
}

START_TEST(lies)
{
	uint8_t *a = lend_map(s);

	begin();
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(lend_data(s, 7, 0, a + i * STAGE_SLOT, STAGE_SLOT), i + 1);
	say_taken(2);
	ck_assert(lend_is_over(2, true));
	word = 4;
	ends("bad frame: 4 of 3 lent pieces are taken, after 2");
	word = 1;
	ends("bad frame: 1 of 3 lent pieces are taken, after 2");
	word = UINT64_MAX;
	ends("bad frame: 18446744073709551615 of 3 lent pieces are taken, after 2");
	word = 0;
	ends("the program closed the second connection");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lend");
	TCase *t = tcase_create("lend");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, lends);
	tcase_add_test(t, waited_for);
	tcase_add_test(t, memory);
	tcase_add_test(t, far);
	tcase_add_test(t, lies);
	suite_add_tcase(suite, t);
	return unit_run(suite);
}
