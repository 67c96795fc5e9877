/* SPDX-License-Identifier: Apache-2.0 */
/* How a session's relay ends: by the program, by the server, by what a server may not say, by time. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "scudafs/clock.h"
#include "tests/unit/relay_ends.h"
#include "tests/unit/unit.h"

/* ---- ends ---- */

START_TEST(test_end_keeps_what_came)
{
	struct op *w = wait_record(1, 1, 200), *w2 = wait_record(2, 2, 200);
	expect_record(FRAME_WAIT, 1);
	expect_record(FRAME_WAIT, 2);
	relay_interrupt(relay_id(relay), w);
	check_result(w, -EINTR);
	put_reply(1, 10);
	put_data(4, 0, 100);
	if (_i == 0)
		close(peer);
	else
		put_frame((struct frame){.kind = FRAME_BYE, .head_len = 7}, "\x92\x01\xa4"
									    "done");
	check_result(w2, _i ? -ESHUTDOWN : -ECONNRESET);
	check_wait(wait_again(1, 200), 1, 10);
	check_data(data(4, 0, 100), 0, 100);
	check_result(data(4, 100, 1), _i ? -ESHUTDOWN : -ECONNRESET);
	check_result(wait_record(3, 3, 200), _i ? -ESHUTDOWN : -ECONNRESET);
	if (_i == 0)
		peer = open("/dev/null", O_RDONLY);
}
END_TEST

/* The connection ends at every byte of a frame, of a small one and of a large one. */
static void end_anywhere_once(int variant)
{
	static uint8_t b[200000], body[200000];
	size_t bulk = variant < 60 ? 20 : 150000;
	size_t n = variant < 60 ? (size_t)variant : (size_t)(variant - 59) * 15003;
	struct op *w = wait_record(1, 1, 200);
	expect_record(FRAME_WAIT, 1);
	frame_bytes(b, (struct frame){.kind = FRAME_REPLY, .seq = 1, .bulk_len = bulk}, body);
	put(b, n);
	if (variant % 2)
		ck_assert_int_eq(setsockopt(peer, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
					      sizeof(struct linger)),
			0);
	close(peer);
	check_result(w, -ECONNRESET);
	peer = open("/dev/null", O_RDONLY);
}

START_TEST(test_end_anywhere)
{
	in_turns(end_anywhere_once, _i, 23);
}
END_TEST

START_TEST(test_close_answers)
{
	struct op *w = wait_record(1, 1, 200), *d = data(1, 0, 10), *u = op_new();
	uint8_t b[64], end;
	relay_upcall(relay, LIMIT_UPCALL + sizeof(struct frame), &u->q);
	struct op *p = post(9, b, record(b, FRAME_POST, 9, 0));
	expect_record(FRAME_WAIT, 1);
	relay_close(relay);
	relay = NULL;
	check_result(w, -ECONNABORTED);
	check_result(d, -ECONNABORTED);
	check_result(u, -ECONNABORTED);
	check_result(p, -ECONNABORTED);
	ck_assert_int_eq(read(peer, &end, 1), 0);
}
END_TEST

static const struct {
	struct frame f;
	const char *what;
} lies[] = {
	{{.kind = FRAME_REPLY, .seq = 99}, "a reply to nothing"},
	{{.kind = FRAME_REPLY, .seq = 1, .bulk_len = LIMIT_REPLY + 1}, "too much bulk"},
	{{.kind = FRAME_DATA, .bulk_len = ~0ull}, "endless bulk"},
	{{.kind = FRAME_DATA, .seq = 1ull << 41, .bulk_len = 1}, "an offset that no read can name"},
	{{.kind = FRAME_UPCALL, .head_len = LIMIT_UPCALL}, "a long upcall"},
	{{.kind = FRAME_SNAPSHOT}, "a monitor's"},
	{{.kind = FRAME_PING}, "a program's"},
	{{.kind = FRAME_KINDS}, "unknown"},
};

START_TEST(test_lying_server)
{
	uint8_t byte = 0;
	struct op *w = wait_record(1, 1, 200);
	expect_record(FRAME_WAIT, 1);
	put(&lies[_i].f, sizeof(struct frame));
	put(&byte, 1);
	check_result(w, -EPROTO);
}
END_TEST

/* Frames with random changes: the session ends or goes on, and everybody is answered. */
static void random_server_once(int variant)
{
	uint8_t b[4096];
	srand((unsigned)variant);
	struct op *w = wait_record(1, 1, 200), *d = data(2, 0, 100);
	expect_record(FRAME_WAIT, 1);
	for (int k = 0; k < 30; k++) {
		struct frame f = {.kind = (uint8_t)(FRAME_PONG + rand() % 6),
			.seq = (uint64_t)(rand() % 3),
			.ctx = (uint64_t)(rand() % 3),
			.bulk_len = (uint64_t)(rand() % 200),
			.head_len = (uint32_t)(rand() % 50)};
		memset(b, rand(), sizeof(b));
		memcpy(b, &f, sizeof(f));
		if (rand() % 4 == 0)
			b[rand() % 40] ^= (uint8_t)(1 << rand() % 8);
		if (send(peer, b, sizeof(f) + f.head_len + f.bulk_len, MSG_NOSIGNAL) < 0)
			break;
	}
	shutdown(peer, SHUT_WR);
	result(w);
	result(d);
	op_free(w);
	op_free(d);
}

START_TEST(test_random_server)
{
	in_turns(random_server_once, _i, 25);
}
END_TEST

START_TEST(test_nobody_there)
{
	struct op *o = op_new();
	struct relay_options options = {.id = relay_new_id(), .address = closed_address()};
	relay_create(&options, &o->q);
	ck_assert_int_eq(result(o), -ECONNREFUSED);
	relay_close(o->q.relay);
	op_free(o);
	ck_assert(relay_end_all(3000));
}
END_TEST

/* ---- times ---- */

START_TEST(test_park_is_bounded)
{
	uint64_t start = clock_ms();
	struct op *w = wait_record(1, 1, 200), *d = data(1, 0, 10), *u = op_new();
	uint8_t b[64];
	relay_upcall(relay, LIMIT_UPCALL + sizeof(struct frame), &u->q);
	struct op *p = post(9, b, record(b, FRAME_POST, 9, 0));
	expect_record(FRAME_WAIT, 1);
	while (!is_done(w) && clock_ms() - start < 3 * TIME_PARK) {
		struct pollfd f = {.fd = peer, .events = POLLIN};
		if (poll(&f, 1, 100) > 0) {
			struct frame ping;
			get(&ping, sizeof(ping));
			ck_assert_int_eq(ping.kind, FRAME_PING);
			put_frame((struct frame){.kind = FRAME_PONG, .seq = ping.seq}, NULL);
		}
	}
	ck_assert_uint_ge(clock_ms() - start, TIME_PARK - 10);
	ck_assert_uint_eq(check_wait(w, 1, 0).flags, CTL_AGAIN);
	check_result(d, -EAGAIN);
	check_result(u, -EAGAIN);
	check_result(p, -EINTR);
	w = wait_again(1, 200);
	put_reply(1, 0);
	check_wait(w, 1, 0);
}
END_TEST

START_TEST(test_silence)
{
	uint64_t start = clock_ms();
	struct op *w = wait_record(1, 1, 200);
	int r;
	while ((r = result(w)) == 0) {
		op_free(w);
		w = wait_again(1, 200);
	}
	check_result(w, -ETIMEDOUT);
	ck_assert_uint_ge(clock_ms() - start, TIME_DEAD - TIME_HEARTBEAT);
	ck_assert_uint_le(clock_ms() - start, TIME_DEAD + 2000u * (unsigned)unit_slow());
}
END_TEST

/* The peer takes what is sent, and says no more in the middle of a frame: that is an end, too. */
START_TEST(test_left_off)
{
	const struct frame f = {.kind = FRAME_DATA, .ctx = 5, .bulk_len = 100000};
	static uint8_t bytes[LIMIT_BATCH], taken[64 << 10];
	uint64_t start = clock_ms(), seq = 0;
	struct op *d = data(5, 0, f.bulk_len), *p = NULL;
	int r = -EAGAIN;
	put(&f, sizeof f);
	put(bytes, 1000);
	while (r == -EAGAIN && clock_ms() - start < 3 * TIME_DEAD) {
		if (is_done(d) && (r = result(d)) == -EAGAIN) {
			op_free(d);
			d = data(5, 0, f.bulk_len);
		}
		if (p && is_done(p)) {
			op_free(p);
			p = NULL;
		}
		if (!p) {
			size_t n = record(bytes, FRAME_POST, ++seq, LIMIT_BATCH - sizeof f - 4);
			ck_assert_uint_le(n, LIMIT_BATCH);
			p = post(seq, bytes, LIMIT_BATCH);
		}
		(void)!recv(peer, taken, sizeof taken, MSG_DONTWAIT);
		usleep(20000);
	}
	check_result(d, -ETIMEDOUT);
	ck_assert_uint_ge(clock_ms() - start, TIME_DEAD);
	(void)result(p);
	op_free(p);
}
END_TEST

/* A frame that is said to be longer than it is: the answers to pings, which come all the same, are taken for
 * the rest of it, and are no sign that it will ever come. */
START_TEST(test_length_lies)
{
	const struct frame f = {.kind = FRAME_REPLY, .seq = 1, .head_len = LIMIT_HEAD - 1, .bulk_len = 12000};
	static uint8_t bytes[12000];
	uint64_t start = clock_ms();
	struct op *w = wait_record(1, 1, 20000);
	int r = 0;
	expect_record(FRAME_WAIT, 1);
	put(&f, sizeof f);
	put(bytes, sizeof bytes);
	while (!r && clock_ms() - start < 3 * TIME_DEAD) {
		struct frame ping;
		if (recv(peer, &ping, sizeof ping, MSG_DONTWAIT) == (ssize_t)sizeof ping)
			put_frame((struct frame){.kind = FRAME_PONG, .seq = ping.seq}, NULL);
		if (is_done(w) && !(r = result(w))) {
			op_free(w);
			w = wait_again(1, 20000);
		}
		usleep(20000);
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
	op_free(w);
	ck_assert_uint_ge(clock_ms() - start, TIME_DEAD);
	ck_assert_uint_le(clock_ms() - start, TIME_DEAD + 2 * TIME_HEARTBEAT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("relay_end");
	TCase *t = tcase_create("relay"), *plain = tcase_create("plain");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_end_keeps_what_came, 0, 2);
	tcase_add_loop_test(t, test_end_anywhere, 0, 3);
	tcase_add_test(t, test_close_answers);
	tcase_add_loop_test(t, test_lying_server, 0, sizeof(lies) / sizeof(*lies));
	tcase_add_loop_test(t, test_random_server, 0, 8);
	tcase_add_test(t, test_park_is_bounded);
	tcase_add_test(t, test_silence);
	tcase_add_test(t, test_left_off);
	tcase_add_test(t, test_length_lies);
	suite_add_tcase(s, t);
	tcase_add_test(plain, test_nobody_there);
	suite_add_tcase(s, plain);
	return unit_run(s);
}
