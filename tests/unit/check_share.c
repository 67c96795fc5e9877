/* SPDX-License-Identifier: Apache-2.0 */
/* The listener's table of shared handles: who finds what, how long, and how much of it. */
#include "server/share.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "wire/limits.h"

static int ends[2];

static void setup(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
}

/* Asks as a session does; *fd goes along and is what came back. */
static int ask(uint64_t session, const char *identity, struct share_message *m, int *fd)
{
	ck_assert_int_eq(share_send(ends[0], m, *fd), 0);
	ck_assert(share_serve(ends[1], session, identity));
	ck_assert_int_eq(share_receive(ends[0], m, fd, 0), 0);
	return m->result;
}

static int put(uint64_t session, const char *identity, unsigned value, struct share_token *t)
{
	struct share_message m = {.op = SHARE_PUT, .kind = SHARE_MEMORY};
	int fd = -1, r;

	memcpy(m.bytes, &value, sizeof value);
	r = ask(session, identity, &m, &fd);
	*t = m.token;
	return r;
}

static int get(const char *identity, unsigned kind, const struct share_token *t, unsigned *value, int *fd)
{
	struct share_message m = {.op = SHARE_GET, .kind = kind, .token = *t};
	int r;

	*fd = -1;
	r = ask(99, identity, &m, fd);
	memcpy(value, m.bytes, sizeof *value);
	return r;
}

START_TEST(bytes)
{
	struct share_token a, b, again;
	unsigned v;
	int fd;

	ck_assert_int_eq(put(1, "ada", 5, &a), 0);
	ck_assert_int_eq(put(1, "ada", 6, &b), 0);
	ck_assert_int_eq(put(1, "ada", 5, &again), 0);
	ck_assert(!memcmp(&a, &again, sizeof a) && memcmp(&a, &b, sizeof a));
	ck_assert_int_eq(get("ada", SHARE_MEMORY, &b, &v, &fd), 0);
	ck_assert_uint_eq(v, 6);
	/* another key, another kind, another token */
	ck_assert_int_eq(get("bob", SHARE_MEMORY, &b, &v, &fd), -ENOENT);
	ck_assert_int_eq(get("ada", SHARE_EVENT, &b, &v, &fd), -ENOENT);
	b.word[1]++;
	ck_assert_int_eq(get("ada", SHARE_MEMORY, &b, &v, &fd), -ENOENT);
	/* they outlive their session */
	share_session_ended(1);
	ck_assert_int_eq(get("ada", SHARE_MEMORY, &a, &v, &fd), 0);
	ck_assert_uint_eq(v, 5);
}
END_TEST

START_TEST(oldest_go)
{
	struct share_token first, last, t;
	unsigned v;
	int fd;

	ck_assert_int_eq(put(2, "ada", 1, &first), 0);
	ck_assert_int_eq(put(3, "ada", 7, &last), 0);
	for (unsigned i = 0; i < LIMIT_SHARED_EACH; i++)
		ck_assert_int_eq(put(2, "ada", 1000 + i, &t), 0);
	ck_assert_int_eq(get("ada", SHARE_MEMORY, &first, &v, &fd), -ENOENT);
	ck_assert_int_eq(get("ada", SHARE_MEMORY, &last, &v, &fd), 0);
	/* a full table has room where sessions have ended, else none */
	for (unsigned s = 4; s < 4 + LIMIT_SHARED / LIMIT_SHARED_EACH; s++)
		for (unsigned i = 0; i < LIMIT_SHARED_EACH; i++)
			put(s, "ada", i, &t);
	ck_assert_int_eq(put(50, "ada", 1, &t), -ENOSPC);
	share_session_ended(3);
	ck_assert_int_eq(put(50, "ada", 1, &t), 0);
	ck_assert_int_eq(get("ada", SHARE_MEMORY, &last, &v, &fd), -ENOENT);
}
END_TEST

static bool closed(int fd)
{
	char c;

	return read(fd, &c, 1) == 0;
}

START_TEST(files)
{
	struct share_message keep = {.op = SHARE_KEEP, .connection = 1, .token = {{11, 12}}}, drop = keep, m;
	int pipes[2], fd;
	unsigned v;

	drop.op = SHARE_DROP;
	ck_assert_int_eq(pipe(pipes), 0);
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	/* not before the mount has told of it */
	m = (struct share_message){.op = SHARE_PUT, .kind = SHARE_ALLOCATION, .token = keep.token};
	fd = pipes[1];
	ck_assert_int_eq(ask(1, "ada", &m, &fd), -ENOENT);
	share_monitor(&keep);
	ck_assert_int_eq(get("ada", SHARE_ALLOCATION, &keep.token, &v, &fd), -ENOENT);
	m = (struct share_message){.op = SHARE_PUT, .kind = SHARE_ALLOCATION, .token = keep.token};
	fd = -1;
	ck_assert_int_eq(ask(1, "ada", &m, &fd), -EMFILE);
	m = (struct share_message){.op = SHARE_PUT, .kind = SHARE_ALLOCATION, .token = keep.token};
	fd = pipes[1];
	ck_assert_int_eq(ask(1, "ada", &m, &fd), 0);
	close(pipes[1]);
	/* once */
	m = (struct share_message){.op = SHARE_PUT, .kind = SHARE_ALLOCATION, .token = keep.token};
	fd = pipes[0];
	ck_assert_int_eq(ask(1, "ada", &m, &fd), -ENOENT);
	share_session_ended(1);
	ck_assert_int_eq(get("bob", SHARE_ALLOCATION, &keep.token, &v, &fd), -ENOENT);
	ck_assert_int_eq(get("ada", SHARE_POOL, &keep.token, &v, &fd), -ENOENT);
	ck_assert_int_eq(get("ada", SHARE_ALLOCATION, &keep.token, &v, &fd), 0);
	ck_assert_int_ge(fd, 0);
	close(fd);
	/* another mount cannot drop it */
	drop.connection = 2;
	share_monitor(&drop);
	ck_assert(!closed(pipes[0]));
	drop.connection = 1;
	share_monitor(&drop);
	ck_assert(closed(pipes[0]));
	ck_assert_int_eq(get("ada", SHARE_ALLOCATION, &keep.token, &v, &fd), -ENOENT);
}
END_TEST

START_TEST(mount_ends)
{
	struct share_message keep = {.op = SHARE_KEEP, .connection = 3, .token = {{1, 2}}},
			end = {.op = SHARE_END}, m;
	int pipes[2], fd;

	ck_assert_int_eq(pipe(pipes), 0);
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	share_monitor(&keep);
	m = (struct share_message){.op = SHARE_PUT, .kind = SHARE_POOL, .token = keep.token};
	fd = pipes[1];
	ck_assert_int_eq(ask(1, "", &m, &fd), 0);
	close(pipes[1]);
	end.connection = 4;
	share_monitor(&end);
	ck_assert(!closed(pipes[0]));
	end.connection = 3;
	share_monitor(&end);
	ck_assert(closed(pipes[0]));
}
END_TEST

/* A mount that drops what it never had, and tells of a file twice, has no more room for it; others have
 * theirs. */
START_TEST(mount_is_greedy)
{
	struct share_message keep = {.op = SHARE_KEEP, .connection = 5},
			drop = {.op = SHARE_DROP, .connection = 5}, m;
	const struct share_token other = {{7, 0}};
	int pipes[2], fd;

	drop.token.word[0] = 6;
	for (unsigned i = 0; i < LIMIT_SHARED; i++) {
		keep.token.word[0] = i % 2 ? i : i + 1;
		keep.token.word[1] = 1;
		share_monitor(&keep);
		share_monitor(&drop);
	}
	keep.connection = 6;
	keep.token = other;
	share_monitor(&keep);
	ck_assert_int_eq(pipe(pipes), 0);
	m = (struct share_message){.op = SHARE_PUT, .kind = SHARE_POOL,
			.token = {{2 * LIMIT_SHARED_EACH - 1, 1}}};
	fd = pipes[1];
	ck_assert_int_eq(ask(1, "ada", &m, &fd), 0);
	m = (struct share_message){.op = SHARE_PUT, .kind = SHARE_POOL,
			.token = {{2 * LIMIT_SHARED_EACH + 1, 1}}};
	fd = pipes[1];
	ck_assert_int_eq(ask(1, "ada", &m, &fd), -ENOENT);
	m = (struct share_message){.op = SHARE_PUT, .kind = SHARE_POOL, .token = other};
	fd = pipes[1];
	ck_assert_int_eq(ask(1, "ada", &m, &fd), 0);
}
END_TEST

/* More than one descriptor, or half a packet: the session's socket is given up, and nothing stays open. */
START_TEST(nonsense)
{
	union { struct cmsghdr align; char bytes[CMSG_SPACE(2 * sizeof(int))]; } control = {0};
	struct share_message m = {.op = SHARE_PUT, .kind = SHARE_MEMORY};
	struct iovec v = {&m, sizeof m};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			.msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	int pipes[2], two[2];

	ck_assert_int_eq(pipe(pipes), 0);
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	two[0] = two[1] = pipes[1];
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof two);
	memcpy(CMSG_DATA(c), two, sizeof two);
	ck_assert_int_gt(sendmsg(ends[0], &h, 0), 0);
	ck_assert(!share_serve(ends[1], 1, "ada"));
	close(pipes[1]);
	ck_assert(closed(pipes[0]));
	ck_assert_int_eq(send(ends[0], &m, 10, 0), 10);
	ck_assert(!share_serve(ends[1], 1, "ada"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("share");
	TCase *t = tcase_create("share");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, bytes);
	tcase_add_test(t, oldest_go);
	tcase_add_test(t, files);
	tcase_add_test(t, mount_ends);
	tcase_add_test(t, mount_is_greedy);
	tcase_add_test(t, nonsense);
	suite_add_tcase(s, t);
	return unit_run(s);
}
