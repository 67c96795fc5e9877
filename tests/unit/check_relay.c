/* SPDX-License-Identifier: Apache-2.0 */
/* A session's relay: what goes to the server and what comes back, whole or in pieces, early, late or too
 * much. */
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

/* ---- to the server ---- */

START_TEST(test_echo)
{
	for (uint64_t i = 1; i <= 50; i++) {
		struct op *o = wait_record(i, i, 200);
		expect_record(FRAME_WAIT, i);
		put_reply(i, i);
		check_wait(o, i, i);
	}
}
END_TEST

START_TEST(test_order)
{
	uint8_t b[64];
	struct op *o[6];
	for (uint64_t i = 5; i >= 1; i--)
		o[i] = post(i, b, record(b, FRAME_POST, i, 0));
	for (uint64_t i = 1; i <= 5; i++) {
		check_result(o[i], 44);
		expect_record(FRAME_POST, i);
	}
	/* a wait before its turn */
	struct op *w = wait_record(7, 7, 200);
	ck_assert(!is_done(w));
	check_result(post(6, b, record(b, FRAME_POST, 6, 0)), 44);
	expect_record(FRAME_POST, 6);
	expect_record(FRAME_WAIT, 7);
	put_reply(7, 0);
	check_wait(w, 7, 0);
}
END_TEST

START_TEST(test_repeated_number)
{
	uint8_t b[64];
	size_t n = record(b, FRAME_POST, 1, 0);
	check_result(post(1, b, n), 44);
	check_result(post(1, b, n), 44);
	struct op *o = wait_record(2, 2, 200);
	expect_record(FRAME_POST, 1);
	expect_record(FRAME_WAIT, 2);
	relay_interrupt(relay_id(relay), o);
	check_result(o, -EINTR);
	put_reply(2, 3);
	check_wait(wait_record(2, 2, 200), 2, 3);
	/* given once, it is gone */
	check_result(wait_again(2, 200), -EPROTO);
	check_result(wait_again(77, 200), -EPROTO);
}
END_TEST

START_TEST(test_interrupted_early)
{
	struct op *o = op_new();
	uint8_t b[64];
	o->early = true;
	relay_wait(relay, 1, 1, b, record(b, FRAME_WAIT, 1, 0), 200, &o->q);
	check_result(o, -EINTR);
	expect_record(FRAME_WAIT, 1);
	put_reply(1, 0);
	check_wait(wait_again(1, 200), 1, 0);
	o = op_new();
	o->early = true;
	relay_post(relay, 5, b, 44, &o->q);
	check_result(o, -EINTR);
	relay_interrupt(relay_id(relay), o);
	relay_interrupt(12345, o);
}
END_TEST

/* Records cut at every byte by the batches. */
START_TEST(test_cut_anywhere)
{
	uint8_t b[256];
	size_t n = 0;
	for (uint64_t i = 1; i <= 3; i++)
		n += record(b + n, FRAME_POST, i, 0);
	for (size_t i = 0; i < n; i++)
		check_result(post(i + 1, b + i, 1), 1);
	for (uint64_t i = 1; i <= 3; i++)
		expect_record(FRAME_POST, i);
}
END_TEST

/* What is sent aside waits for the end of the record on its way. */
START_TEST(test_aside)
{
	uint8_t b[4096] = {0}, in[4096];
	struct frame done = {.kind = FRAME_UPCALL_DONE, .seq = 9};
	size_t upcalls = 0;
	struct op *o;
	for (int i = 0; i < 3; i++)
		put_frame((struct frame){.kind = FRAME_UPCALL, .seq = 9}, NULL);
	for (; upcalls < 3 * sizeof(struct frame); op_free(o)) {
		o = op_new();
		relay_upcall(relay, LIMIT_UPCALL + sizeof(struct frame), &o->q);
		ck_assert_int_eq(result(o), 0);
		upcalls += o->n;
	}
	o = op_new();
	size_t n = record(b, FRAME_POST, 1, 1000);
	check_result(post(1, b, n + 400), (int)n + 400);
	relay_aside(relay, &done, sizeof(done), &o->q);
	check_result(o, sizeof(done));
	/* the rest of the record, and another one behind it */
	memset(b, 0, 600);
	size_t m = record(b + 600, FRAME_POST, 2, 0);
	check_result(post(2, b, 600 + m), (int)(600 + m));
	expect_record(FRAME_POST, 1);
	get(in, 1000);
	struct frame f = get_frame();
	ck_assert_int_eq(f.kind, FRAME_UPCALL_DONE);
	ck_assert_int_eq(f.seq, 9);
	expect_record(FRAME_POST, 2);
	o = op_new();
	relay_aside(relay, &done, sizeof(done), &o->q);
	check_result(o, sizeof(done));
	ck_assert_int_eq(get_frame().kind, FRAME_UPCALL_DONE);
	/* a record that ends with its batch */
	n = record(b, FRAME_POST, 3, 100);
	check_result(post(3, b, n), (int)n);
	o = op_new();
	relay_aside(relay, &done, sizeof(done), &o->q);
	check_result(o, sizeof(done));
	check_result(post(4, b, 100), 100);
	expect_record(FRAME_POST, 3);
	get(in, 100);
	ck_assert_int_eq(get_frame().kind, FRAME_UPCALL_DONE);
	check_result(post(5, b, record(b, FRAME_POST, 4, 0)), 44);
	expect_record(FRAME_POST, 4);
	/* one more than there were upcalls */
	o = op_new();
	relay_aside(relay, &done, sizeof(done), &o->q);
	check_result(o, -EPROTO);
}
END_TEST

static const struct {
	unsigned kind, thread;
	size_t head;
	const char *what;
} bad_records[] = {
	{FRAME_PING, 0, 0, "a heartbeat of the program's own"},
	{FRAME_UPCALL_DONE, 0, 0, "aside only"},
	{FRAME_REPLY, 0, 0, "the other direction"},
	{FRAME_POST, 0, 0, "no thread"},
	{FRAME_POST, 1, LIMIT_HEAD + 1, "head too long"},
	{FRAME_GET_SNAPSHOT, 0, 0, "a monitor's"},
	{77, 1, 0, "unknown"},
};

START_TEST(test_bad_record)
{
	struct frame f = {.kind = (uint8_t)bad_records[_i].kind,
		.thread = bad_records[_i].thread,
		.head_len = (uint32_t)bad_records[_i].head,
		.seq = 1};
	check_result(post(1, &f, sizeof(f)), -EPROTO);
	check_result(post(2, &f, sizeof(f)), -EPROTO);
	check_result(data(1, 0, 10), -EPROTO);
}
END_TEST

START_TEST(test_far_ahead)
{
	uint8_t b[64];
	check_result(post(1000000, b, record(b, FRAME_POST, 1, 0)), -EPROTO);
}
END_TEST

enum { SLOW_COUNT = 40 };
struct slow {
	struct op *o[SLOW_COUNT];
	int r[SLOW_COUNT];
};

static struct op *slow_post(unsigned i)
{
	uint8_t *bulk = malloc(MIB);
	memset(bulk, (int)i, MIB);
	struct op *o = post(2 + i, bulk, MIB);
	free(bulk);
	return o;
}

/* A batch that nobody took for TIME_PARK, as on a busy machine, is sent again, as a program does. */
static void *slow_writer(void *arg)
{
	struct slow *s = arg;
	for (unsigned i = 0; i < SLOW_COUNT; i++) {
		while ((s->r[i] = result(s->o[i])) == -EINTR) {
			op_free(s->o[i]);
			s->o[i] = slow_post(i);
		}
		op_free(s->o[i]);
	}
	return NULL;
}

/* Slow, but not silent, however long a busy machine takes here. */
static void put_life(void)
{
	struct frame f = {.kind = FRAME_PONG};
	put(&f, sizeof(f));
}

/* A server that does not read: the queue fills, then writers wait, and nothing is lost. */
START_TEST(test_slow_reader)
{
	uint8_t b[64], *in = malloc(MIB);
	struct slow s;
	unsigned parked = 0;
	struct frame f;
	pthread_t writer;
	check_result(post(1, b, record(b, FRAME_POST, 1, (size_t)SLOW_COUNT * MIB)), 44);
	for (unsigned i = 0; i < SLOW_COUNT; i++) {
		put_life();
		s.o[i] = slow_post(i);
		parked += !is_done(s.o[i]);
	}
	ck_assert_uint_gt(parked, SLOW_COUNT / 4);
	ck_assert_uint_lt(parked, SLOW_COUNT);
	ck_assert(!pthread_create(&writer, NULL, slow_writer, &s));
	get(&f, sizeof(f));
	get(in, 4);
	for (unsigned i = 0; i < SLOW_COUNT; i++) {
		put_life();
		get(in, MIB);
		ck_assert(in[0] == i && !memcmp(in, in + 1, MIB - 1));
	}
	pthread_join(writer, NULL);
	for (unsigned i = 0; i < SLOW_COUNT; i++)
		ck_assert_int_eq(s.r[i], MIB);
	free(in);
}
END_TEST

/* ---- from the server ---- */

START_TEST(test_large_reply)
{
	const size_t n = LIMIT_REPLY - 5;
	struct op *o = wait_record(1, 1, 200);
	expect_record(FRAME_WAIT, 1);
	put_reply(1, n);
	struct ctl_wait w = check_wait(o, 1, n);
	ck_assert_uint_eq(w.flags, CTL_LARGE);
	ck_assert_uint_eq(w.len, n + sizeof(struct frame));
	/* asked again, it is still there, and fits now */
	w = check_wait(wait_again(1, 200), 1, n);
	ck_assert_uint_eq(w.flags, CTL_LARGE);
	size_t at = 0;
	while (at < w.len) {
		o = op_new();
		relay_reply(relay, 1, at, 300000, &o->q);
		ck_assert_int_eq(result(o), 0);
		size_t skip = at ? 0 : sizeof(struct frame);
		check_bytes(o->bytes + skip, at + skip - sizeof(struct frame), o->n - skip);
		at += o->n;
		op_free(o);
	}
	ck_assert_uint_eq(at, w.len);
	o = op_new();
	relay_reply(relay, 1, 0, 10, &o->q);
	check_result(o, -EPROTO);
}
END_TEST

/* Everything that a server sends, in pieces of every size. */
static void split_anywhere_once(int variant)
{
	uint8_t b[512], body[64] = {0};
	struct op *w[2], *d, *u;
	size_t n = 0, piece = (size_t)variant + 1;
	for (unsigned i = 0; i < 2; i++) {
		w[i] = wait_record(i + 1, i + 1, 200);
		expect_record(FRAME_WAIT, i + 1);
	}
	u = op_new();
	relay_upcall(relay, LIMIT_UPCALL + sizeof(struct frame), &u->q);
	d = data(3, 10, 20);
	for (unsigned i = 0; i < 20; i++)
		body[i] = byte_at(10 + i);
	n += frame_bytes(
		b + n, (struct frame){.kind = FRAME_REPLY, .seq = 2, .head_len = 3, .bulk_len = 2}, body);
	n += frame_bytes(
		b + n, (struct frame){.kind = FRAME_DATA, .ctx = 3, .seq = 10, .bulk_len = 20}, body);
	n += frame_bytes(b + n, (struct frame){.kind = FRAME_PONG}, NULL);
	n += frame_bytes(b + n, (struct frame){.kind = FRAME_UPCALL, .seq = 5, .head_len = 4}, body);
	n += frame_bytes(b + n, (struct frame){.kind = FRAME_REPLY, .seq = 1}, NULL);
	for (size_t at = 0; at < n; at += piece) {
		put(b + at, n - at < piece ? n - at : piece);
		if (piece < 32)
			usleep(200);
	}
	check_wait(w[1], 2, 5);
	check_wait(w[0], 1, 0);
	check_data(d, 10, 20);
	ck_assert_int_eq(result(u), 0);
	ck_assert_uint_eq(u->n, sizeof(struct frame) + 4);
	op_free(u);
}

START_TEST(test_split_anywhere)
{
	in_turns(split_anywhere_once, _i, 16);
}
END_TEST

START_TEST(test_data)
{
	struct op *o[4];
	/* several readers, later parts first */
	for (unsigned i = 0; i < 4; i++)
		o[3 - i] = data(5, (3 - i) * 100000ull, 100000);
	for (uint64_t at = 0; at < 400000; at += 30000)
		put_data(5, at, at + 30000 <= 400000 ? 30000 : 400000 - at);
	for (unsigned i = 0; i < 4; i++)
		check_data(o[i], i * 100000ull, 100000);
	/* here before anybody asks; tiny pieces; another transfer between */
	for (uint64_t at = 0; at < 5000; at += 50) {
		put_data(6, at, 50);
		put_data(7, at, 50);
	}
	check_data(data(7, 0, 5000), 0, 5000);
	check_data(data(6, 2500, 2500), 2500, 2500);
	check_data(data(6, 0, 2500), 0, 2500);
	/* an offset far beyond 4 GiB */
	put_data(8, 1ull << 39, MIB);
	check_data(data(8, 1ull << 39, MIB), 1ull << 39, MIB);
	check_result(data(8, 0, 0), -EINVAL);
	check_result(data(8, 0, MIB + 1), -EINVAL);
}
END_TEST

START_TEST(test_data_out_of_order)
{
	put_data(5, 100, 100);
	put_data(5, 150, 100);
	check_result(data(5, 500, 10), -EPROTO);
}
END_TEST

/* Data that nobody reads stops the server; a program that waits for a reply behind it makes it go on. */
START_TEST(test_data_piles_up)
{
	enum { COUNT = 48 };
	uint8_t *b = calloc(1, sizeof(struct frame) + MIB);
	unsigned sent = 0;
	struct op *w = NULL;
	fcntl(peer, F_SETFL, O_NONBLOCK);
	for (uint64_t i = 0; i < COUNT; i++) {
		struct frame f = {.kind = FRAME_DATA, .ctx = 1, .seq = i * MIB, .bulk_len = MIB};
		size_t n = sizeof(f) + MIB, at = 0;
		memcpy(b, &f, sizeof(f));
		while (at < n) {
			struct pollfd p = {.fd = peer, .events = POLLOUT};
			if (!poll(&p, 1, 500 * unit_slow())) {
				ck_assert_msg(!w, "the relay has stopped reading");
				sent = (unsigned)i;
				ck_assert_uint_ge(sent, LIMIT_QUEUE / MIB);
				w = wait_record(1, 1, 200);
			}
			ssize_t r = send(peer, b + at, n - at, MSG_NOSIGNAL);
			ck_assert(r > 0 || errno == EAGAIN);
			at += r > 0 ? (size_t)r : 0;
		}
	}
	ck_assert_uint_gt(sent, 0);
	fcntl(peer, F_SETFL, 0);
	put_reply(1, 0);
	check_wait(w, 1, 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		struct op *o = data(1, i * MIB, MIB);
		ck_assert_int_eq(result(o), 0);
		ck_assert_uint_eq(o->n, MIB);
		op_free(o);
	}
	free(b);
}
END_TEST

START_TEST(test_upcalls)
{
	uint8_t body[100] = {0};
	for (uint64_t i = 1; i <= 20; i++)
		put_frame((struct frame){.kind = i % 2 ? FRAME_UPCALL : FRAME_OUTPUT,
				  .seq = i,
				  .head_len = i % 2 ? 4 : 0,
				  .bulk_len = i % 2 ? 0 : 60},
			body);
	uint64_t next = 1;
	while (next <= 20) {
		struct op *o = op_new();
		relay_upcall(relay, LIMIT_UPCALL + sizeof(struct frame), &o->q);
		ck_assert_int_eq(result(o), 0);
		ck_assert_uint_gt(o->n, 0);
		for (size_t at = 0; at < o->n; next++) {
			struct frame f;
			memcpy(&f, o->bytes + at, sizeof(f));
			ck_assert_uint_eq(f.seq, next);
			at += sizeof(f) + f.head_len + f.bulk_len;
		}
		op_free(o);
	}
	struct op *o = op_new();
	relay_upcall(relay, 100, &o->q);
	check_result(o, -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("relay");
	TCase *t = tcase_create("relay");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_echo);
	tcase_add_test(t, test_order);
	tcase_add_test(t, test_repeated_number);
	tcase_add_test(t, test_interrupted_early);
	tcase_add_test(t, test_cut_anywhere);
	tcase_add_test(t, test_aside);
	tcase_add_loop_test(t, test_bad_record, 0, sizeof(bad_records) / sizeof(*bad_records));
	tcase_add_test(t, test_far_ahead);
	tcase_add_test(t, test_slow_reader);
	tcase_add_test(t, test_large_reply);
	tcase_add_loop_test(t, test_split_anywhere, 0, 4);
	tcase_add_test(t, test_data);
	tcase_add_test(t, test_data_out_of_order);
	tcase_add_test(t, test_data_piles_up);
	tcase_add_test(t, test_upcalls);
	suite_add_tcase(s, t);
	return unit_run(s);
}
