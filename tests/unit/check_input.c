/* SPDX-License-Identifier: Apache-2.0 */
/* The session's input without a session process: frames in pieces, and the look ahead for frames that
 * bypass the stream. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/state.h"
#include "tests/unit/unit.h"
#include "wire/transport.h"

static struct session *s;
static struct session_start start;
static struct report report;
static int peer;

static void setup(void)
{
	const char *identity, *why;
	int pair[2];

	s = calloc(1, sizeof *s);
	s->start = &start;
	start.report = s->report = &report;
	s->next_seq = 1;
	s->greeted = true;
	s->calls = 10;
	pthread_mutex_init(&s->input_lock, NULL);
	pthread_mutex_init(&s->write_lock, NULL);
	pthread_mutex_init(&s->upcall_lock, NULL);
	pthread_cond_init(&s->upcall_cond, NULL);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(stream_accept(pair[0], NULL, 1000, &s->stream, &identity, &why), 0);
	ck_assert(input_open(s, FIRST, s->stream));
	peer = pair[1];
}

static void teardown(void)
{
	stream_close(s->stream);
	close(peer);
	free(s->source[FIRST].bytes);
	free(s);
}

static void say(const void *p, size_t n)
{
	ck_assert_int_eq(send(peer, p, n, 0), (ssize_t)n);
}

static void say_frame(struct frame f, const void *body)
{
	say(&f, sizeof f);
	if (f.head_len + f.bulk_len)
		say(body, f.head_len + f.bulk_len);
}

static bool pong_came(uint64_t seq)
{
	struct frame f;

	if (recv(peer, &f, sizeof f, MSG_DONTWAIT) != sizeof f)
		return false;
	ck_assert_int_eq(f.kind, FRAME_PONG);
	ck_assert_uint_eq(f.seq, seq);
	return true;
}

static void expect_record(uint64_t seq, const char *body)
{
	struct frame f;
	char got[64];

	ck_assert(input_record(s, &f, true));
	ck_assert_uint_eq(f.seq, seq);
	ck_assert_uint_eq(f.head_len + f.bulk_len, strlen(body));
	input_take(s, got, f.head_len);
	input_take(s, got + f.head_len, f.bulk_len);
	ck_assert_mem_eq(got, body, strlen(body));
}

static const struct frame first = {.kind = FRAME_POST, .thread = 1, .seq = 1, .head_len = 4, .bulk_len = 3};
static const struct frame second = {.kind = FRAME_WAIT, .thread = 2, .seq = 2, .head_len = 2, .bulk_len = 4};

START_TEST(plain)
{
	struct frame f;

	ck_assert(!input_there(s));
	ck_assert(!input_record(s, &f, false));
	say_frame(first, "abcdefg");
	say_frame((struct frame){.kind = FRAME_PING, .seq = 9}, NULL);
	say_frame(second, "hijklm");
	expect_record(1, "abcdefg");
	ck_assert(input_buffered(s));
	expect_record(2, "hijklm");
	ck_assert(pong_came(9));
	ck_assert(!input_buffered(s));
	ck_assert(!input_record(s, &f, false));
	ck_assert_uint_eq(atomic_load(&report.records), 2);
}
END_TEST

/* The first record has been taken up to _i bytes of its body when the reader looks ahead. */
START_TEST(looked_ahead)
{
	struct frame f;
	char got[8];

	atomic_store(&report.records, 0);
	say_frame(first, "abcdefg");
	say_frame((struct frame){.kind = FRAME_PING, .seq = 8}, NULL);
	say_frame((struct frame){.kind = FRAME_UPCALL_DONE, .seq = 1}, NULL);
	say_frame((struct frame){.kind = FRAME_PING, .seq = 9}, NULL);
	say_frame(second, "hijklm");
	ck_assert(input_record(s, &f, true));
	input_take(s, got, _i);
	input_scan(s);
	/* One answer is enough for both. */
	ck_assert(pong_came(9));
	ck_assert(!pong_came(0));
	input_scan(s);
	ck_assert(!pong_came(0));
	input_take(s, got + _i, 7 - _i);
	ck_assert_mem_eq(got, "abcdefg", 7);
	expect_record(2, "hijklm");
	ck_assert(!pong_came(0));
	ck_assert_uint_eq(s->scanned, 0);
	ck_assert(!input_buffered(s));
}
END_TEST

/* Of records that may go ahead none overtakes one that could not: an exchange would wait for that. */
START_TEST(left_in_order)
{
	struct frame f;
	struct frame none = {.kind = FRAME_POST, .thread = 1, .flags = FRAME_ASIDE, .seq = 2, .call = 10};
	struct frame next = {.kind = FRAME_POST, .thread = 1, .flags = FRAME_ASIDE, .seq = 3, .call = 1};

	atomic_store(&s->upcalls_waiting, 1);
	say_frame((struct frame){.kind = FRAME_POST, .thread = 1, .seq = 1}, NULL);
	say_frame(none, NULL);
	say_frame((struct frame){.kind = FRAME_PING, .seq = 8}, NULL);
	say_frame(next, NULL);
	ck_assert(input_record(s, &f, true));
	input_scan(s);
	ck_assert(pong_came(8)); /* only the PING was dealt with */
	ck_assert_uint_eq(s->scanned, 1);
}
END_TEST

/* More waits than the buffer holds, and it ends inside a frame. */
START_TEST(large_look_ahead)
{
	static uint8_t body[1000];
	struct frame f = {.kind = FRAME_POST, .thread = 1, .head_len = 400, .bulk_len = 600};
	struct frame got;
	int n = 900, sent = 0;
	uint8_t back[1000];

	ck_assert_int_eq(fcntl(peer, F_SETFL, O_NONBLOCK), 0);
	f.seq = 1;
	say_frame(f, body);
	ck_assert(input_record(s, &got, true));
	for (int i = 2; i <= n; i++) {
		uint8_t bytes[sizeof f + sizeof body];

		f.seq = i;
		memcpy(bytes, &f, sizeof f);
		memset(bytes + sizeof f, i, sizeof body);
		for (size_t at = 0; at < sizeof bytes;) {
			ssize_t r = send(peer, bytes + at, sizeof bytes - at, 0);

			if (r > 0)
				at += r;
			else
				input_scan(s);
		}
		if (i % 100 == 0)
			say_frame((struct frame){.kind = FRAME_PING, .seq = i}, NULL), sent++;
	}
	input_scan(s);
	while (recv(peer, &got, sizeof got, 0) == sizeof got)
		sent--;
	ck_assert_int_ge(sent, 0);
	ck_assert_uint_gt(s->source[FIRST].cap, INPUT_BUFFER);
	ck_assert_uint_le(s->source[FIRST].cap, LIMIT_QUEUE);
	input_take(s, back, 1000);
	for (int i = 2; i <= n; i++) {
		ck_assert(input_record(s, &got, true));
		ck_assert_uint_eq(got.seq, (uint64_t)i);
		input_take(s, back, 1000);
		ck_assert_uint_eq(back[999], (uint8_t)i);
	}
	ck_assert(!input_record(s, &got, false));
	ck_assert_uint_eq(s->scanned, 0);
}
END_TEST

/* A program sends the mark itself, with sizes that lead the look ahead in front of the buffer or back to
 * where it was: such a frame, and what stands behind it, is left for who finds it bad. The same of a body
 * whose size is none. */
START_TEST(forged_mark)
{
	static const uint64_t sizes[] = {
		(uint64_t)-40, (uint64_t)-80, (uint64_t)-88, (uint64_t)-120, (uint64_t)-126, UINT64_MAX,
				1ull << 63};
	struct frame f, mark = {.thread = 1, .bulk_len = sizes[_i]};
	char got[8];

	say_frame(first, "abcdefg");
	say_frame((struct frame){.kind = FRAME_PING, .seq = 8}, NULL);
	ck_assert(input_record(s, &f, true));
	input_scan(s);
	ck_assert(pong_came(8));
	say(&mark, sizeof mark);
	say_frame((struct frame){.kind = FRAME_PING, .seq = 9}, NULL);
	for (int i = 0; i < 2; i++) {
		input_scan(s);
		ck_assert(!pong_came(0));
		ck_assert_uint_eq(s->scanned, 1);
	}
	input_take(s, got, 7);
	ck_assert_mem_eq(got, "abcdefg", 7);
	s->source[FIRST].left = sizes[_i];
	input_scan(s);
	ck_assert(!pong_came(0));
	ck_assert_uint_eq(s->scanned, 1);
}
END_TEST

static int second_peer;

static void open_second(void)
{
	const char *identity, *why;
	struct stream *second;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(stream_accept(pair[0], NULL, 1000, &second, &identity, &why), 0);
	ck_assert(input_open(s, SECOND, second));
	second_peer = pair[1];
}

static void close_second(void)
{
	close(second_peer);
	stream_close(s->source[SECOND].stream);
	free(s->source[SECOND].bytes);
}

#define PATTERN(i) ((uint8_t)((i) * 31 >> 7))

struct striped { uint64_t bulk; int fd; unsigned from; };

/* The stripes of one connection. */
static void *say_stripes(void *arg)
{
	const struct striped *w = arg;

	for (uint64_t at = w->from * STRIPE; at < w->bulk; at += 2 * STRIPE) {
		static _Thread_local uint8_t bytes[STRIPE];
		uint64_t n = w->bulk - at < STRIPE ? w->bulk - at : STRIPE;

		for (uint64_t i = 0; i < n; i++)
			bytes[i] = PATTERN(at + i);
		for (uint64_t done = 0; done < n;) {
			ssize_t r = send(w->fd, bytes + done, n - done, MSG_NOSIGNAL);

			if (r <= 0)
				return "send";
			done += (uint64_t)r;
		}
	}
	return NULL;
}

/* A striped record, taken in pieces that fit nothing; what stands behind it is found by the look ahead. */
START_TEST(striped)
{
	static const uint64_t bulks[] = {0, 1, STRIPE - 1, STRIPE, STRIPE + 1, 2 * STRIPE,
		 3 * STRIPE + 7, 10 * STRIPE - 3};
	struct frame f = {.kind = FRAME_POST, .thread = 1, .seq = 1, .head_len = 4, .bulk_len = bulks[_i],
		.flags = FRAME_STRIPED};
	struct striped by[2];
	pthread_t thread[2];
	uint8_t piece[70001];
	void *bad;

	open_second();
	by[0] = (struct striped){f.bulk_len, peer, 0};
	by[1] = (struct striped){f.bulk_len, second_peer, 1};
	say(&f, sizeof f);
	say("head", 4);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, say_stripes, &by[i]), 0);
	struct frame got;

	ck_assert(input_record(s, &got, true));
	ck_assert_uint_eq(input_left(s), 4 + f.bulk_len);
	input_take(s, piece, 4);
	ck_assert_mem_eq(piece, "head", 4);
	for (uint64_t at = 0, n; at < f.bulk_len; at += n) {
		n = f.bulk_len - at < sizeof piece ? f.bulk_len - at : sizeof piece;
		if (at % 3 == 0)
			input_scan(s);
		input_bulk(s, &got, at, piece, n);
		for (uint64_t i = 0; i < n; i++)
			if (piece[i] != PATTERN(at + i))
				ck_abort_msg("byte %llu", (unsigned long long)(at + i));
	}
	ck_assert_uint_eq(input_left(s), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], &bad);
		ck_assert_ptr_null(bad);
	}
	say_frame(second, "hijklm");
	expect_record(2, "hijklm");
	close_second();
}
END_TEST

/* Whether the session would be ended when nothing has come for longer than it may. */
static bool silence_ends(void)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		alive_check(s, false);
		_exit(7);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7));
	return !WEXITSTATUS(status);
}

/* Bytes of the first connection that nobody reads excuse a silence where the session is not reading, and not
 * where it waits for the second connection. */
START_TEST(silence)
{
	static uint8_t bytes[64 << 10];

	say(bytes, sizeof bytes);
	s->seen = sizeof bytes;
	s->heard = transport_now_ms() - TIME_SILENCE - 1;
	ck_assert(!silence_ends());
	atomic_store(&s->receiving, true);
	ck_assert(silence_ends());
}
END_TEST

/* Nobody takes the record, and both connections' bytes are more than their sockets hold: the look ahead takes
 * in what both have, and finds what stands behind; then all is as it was sent. */
START_TEST(striped_look_ahead)
{
	struct frame f = {.kind = FRAME_POST, .thread = 1, .seq = 1, .bulk_len = 24 * STRIPE + 5,
		.flags = FRAME_STRIPED};
	struct striped by[2];
	pthread_t thread[2];
	static uint8_t bytes[24 * STRIPE + 5];
	struct frame got;

	open_second();
	by[0] = (struct striped){f.bulk_len, peer, 0};
	by[1] = (struct striped){f.bulk_len, second_peer, 1};
	say_frame(first, "abcdefg");
	ck_assert(input_record(s, &got, true));
	f.seq = 2;
	say(&f, sizeof f);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, say_stripes, &by[i]), 0);
	void *bad;

	/* It is not over before its bytes are in. */
	for (int i = 0; i < 2; i++)
		while (pthread_tryjoin_np(thread[i], &bad)) {
			input_scan(s);
			usleep(1000);
		}
	say_frame((struct frame){.kind = FRAME_PING, .seq = 9}, NULL);
	input_scan(s);
	ck_assert(pong_came(9));
	ck_assert_uint_le(s->source[SECOND].cap, LIMIT_QUEUE);
	input_take(s, bytes, 7);
	ck_assert_mem_eq(bytes, "abcdefg", 7);
	ck_assert(input_record(s, &got, true));
	input_bulk(s, &got, 0, bytes, f.bulk_len);
	for (uint64_t i = 0; i < f.bulk_len; i++)
		if (bytes[i] != PATTERN(i))
			ck_abort_msg("byte %llu", (unsigned long long)i);
	ck_assert(!input_record(s, &got, false));
	ck_assert_uint_eq(s->scanned, 0);
	close_second();
}
END_TEST

/* The second connection ends while nobody needs it: that is no end of the session, nor is the look ahead. */
START_TEST(second_ended)
{
	struct frame got;

	open_second();
	shutdown(second_peer, SHUT_RDWR);
	say_frame(first, "abcdefg");
	ck_assert(input_record(s, &got, true));
	input_scan(s);
	input_skip(s, &got, 0, 7);
	say_frame(second, "hijklm");
	expect_record(2, "hijklm");
	close_second();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("input");
	TCase *t = tcase_create("frames");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, plain);
	tcase_add_loop_test(t, looked_ahead, 0, 8);
	tcase_add_test(t, left_in_order);
	tcase_add_test(t, large_look_ahead);
	tcase_add_loop_test(t, forged_mark, 0, 7);
	tcase_add_loop_test(t, striped, 0, 8);
	tcase_add_test(t, silence);
	tcase_add_test(t, striped_look_ahead);
	tcase_add_test(t, second_ended);
	suite_add_tcase(s, t);
	return unit_run(s);
}
