/* SPDX-License-Identifier: Apache-2.0 */
/* A session's relay without a mount: the test is the program, which calls relay_*, and the server, which
 * has the other end of the connection. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "scudafs/clock.h"
#include "scudafs/relay.h"
#include "wire/frame.h"
#include "wire/limits.h"

#define MIB (1u << 20)

/* ---- the program's side ---- */

struct op {
	struct request q;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done, early; /* answered; was interrupted before it parked */
	int r;
	size_t n;
	uint8_t *bytes; /* of the answer */
};

static void answered(struct request *q, int r, const struct iovec *v, int n)
{
	struct op *o = (struct op *)q;
	pthread_mutex_lock(&o->lock);
	ck_assert(!o->done);
	o->r = r;
	size_t total = 1;
	for (int i = 0; i < n; i++)
		total += v[i].iov_len;
	o->bytes = malloc(total);
	for (int i = 0; i < n; i++) {
		memcpy(o->bytes + o->n, v[i].iov_base, v[i].iov_len);
		o->n += v[i].iov_len;
	}
	o->done = true;
	pthread_cond_signal(&o->cond);
	pthread_mutex_unlock(&o->lock);
}

static bool early(struct request *q)
{
	return ((struct op *)q)->early;
}

static struct op *op_new(void)
{
	struct op *o = calloc(1, sizeof(*o));
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->cond, NULL);
	o->q.answer = answered;
	o->q.interrupted = early;
	o->q.token = o;
	return o;
}

static void op_free(struct op *o)
{
	free(o->bytes);
	free(o);
}

static bool is_done(struct op *o)
{
	pthread_mutex_lock(&o->lock);
	bool done = o->done;
	pthread_mutex_unlock(&o->lock);
	return done;
}

/* Waits for the answer; returns its result. The operation stays for a look at its bytes. */
static int result(struct op *o)
{
	pthread_mutex_lock(&o->lock);
	while (!o->done)
		pthread_cond_wait(&o->cond, &o->lock);
	pthread_mutex_unlock(&o->lock);
	return o->r;
}

static void check_result(struct op *o, int expected)
{
	ck_assert_int_eq(result(o), expected);
	op_free(o);
}

/* ---- the server's side ---- */

static int listener, peer;
static char address[64];
static struct relay *relay;

static void get(void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = read(peer, (char *)p + at, n - at);
		ck_assert_msg(r > 0, "the connection ended");
		at += (size_t)r;
	}
}

static void put(const void *p, size_t n)
{
	ck_assert_int_eq(send(peer, p, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* The next frame's header, heartbeats apart, which are answered. */
static struct frame get_frame(void)
{
	struct frame f;
	for (;;) {
		get(&f, sizeof(f));
		if (f.kind != FRAME_PING)
			return f;
		struct frame pong = {.kind = FRAME_PONG, .seq = f.seq};
		put(&pong, sizeof(pong));
	}
}

static size_t frame_bytes(uint8_t *to, struct frame f, const void *body)
{
	memcpy(to, &f, sizeof(f));
	if (body && f.head_len + f.bulk_len)
		memcpy(to + sizeof(f), body, f.head_len + f.bulk_len);
	return sizeof(f) + f.head_len + f.bulk_len;
}

static void put_frame(struct frame f, const void *body)
{
	uint8_t *b = malloc(sizeof(f) + f.head_len + f.bulk_len);
	put(b, frame_bytes(b, f, body));
	free(b);
}

static void listen_anywhere(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(listener, 8), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(a.sin_port));
}

static void setup(void)
{
	struct preamble p;
	struct frame f;
	struct op *o = op_new();
	listen_anywhere();
	struct relay_options options = {
		.id = relay_new_id(), .address = address, .pid = getpid(), .uid = getuid()};
	relay_create(&options, &o->q);
	peer = accept(listener, NULL, NULL);
	get(&p, sizeof(p));
	ck_assert_int_eq(memcmp(p.magic, PREAMBLE_MAGIC, 4), 0);
	ck_assert_int_eq(p.flags, 0);
	get(&f, sizeof(f));
	ck_assert_int_eq(f.kind, FRAME_PING);
	f.kind = FRAME_PONG;
	put(&f, sizeof(f));
	ck_assert_int_eq(result(o), 0);
	relay = o->q.relay;
	op_free(o);
}

static void teardown(void)
{
	relay_close(relay);
	close(peer);
	close(listener);
	ck_assert(relay_end_all(3000));
}

/* `count` variants of a test, each with a session of its own, in one process. */
static void in_turns(void (*once)(int variant), int turn, int count)
{
	for (int i = 0; i < count; i++) {
		once(turn * count + i);
		if (i < count - 1) {
			teardown();
			setup();
		}
	}
}

/* ---- records ---- */

static size_t record(uint8_t *b, unsigned kind, uint64_t seq, size_t bulk)
{
	uint8_t body[4] = {1, 2, 3, (uint8_t)seq};
	struct frame f = {.kind = (uint8_t)kind, .thread = 1, .seq = seq, .head_len = 4};
	size_t n = frame_bytes(b, f, body);
	f.bulk_len = bulk;
	memcpy(b, &f, sizeof(f));
	return n;
}

static struct op *post(uint64_t batch, const void *p, size_t n)
{
	struct op *o = op_new();
	relay_post(relay, batch, p, n, &o->q);
	return o;
}

static struct op *wait_record(uint64_t batch, uint64_t seq, size_t room)
{
	uint8_t b[64];
	struct op *o = op_new();
	relay_wait(relay, batch, seq, b, record(b, FRAME_WAIT, seq, 0), room, &o->q);
	return o;
}

static struct op *wait_again(uint64_t seq, size_t room)
{
	struct op *o = op_new();
	relay_wait(relay, 0, seq, NULL, 0, room, &o->q);
	return o;
}

static struct op *data(uint64_t transfer, uint64_t offset, size_t n)
{
	struct op *o = op_new();
	relay_data(relay, transfer, offset, n, &o->q);
	return o;
}

static void expect_record(unsigned kind, uint64_t seq)
{
	uint8_t head[4];
	struct frame f = get_frame();
	ck_assert_int_eq(f.kind, kind);
	ck_assert_int_eq(f.seq, seq);
	get(head, sizeof(head));
	ck_assert_int_eq(head[3], (uint8_t)seq);
}

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 7 + (offset >> 9));
}

static void put_data(uint64_t transfer, uint64_t offset, size_t n)
{
	uint8_t *b = malloc(n);
	for (size_t i = 0; i < n; i++)
		b[i] = byte_at(offset + i);
	put_frame((struct frame){.kind = FRAME_DATA, .ctx = transfer, .seq = offset, .bulk_len = n}, b);
	free(b);
}

/* One assertion for all bytes: each costs a system call. */
static void check_bytes(const uint8_t *p, uint64_t offset, size_t n)
{
	size_t i = 0;
	while (i < n && p[i] == byte_at(offset + i))
		i++;
	ck_assert_uint_eq(i, n);
}

static void check_data(struct op *o, uint64_t offset, size_t n)
{
	ck_assert_int_eq(result(o), 0);
	ck_assert_uint_eq(o->n, n);
	check_bytes(o->bytes, offset, n);
	op_free(o);
}

static void put_reply(uint64_t seq, size_t bulk)
{
	uint8_t *b = calloc(1, bulk + 1);
	for (size_t i = 0; i < bulk; i++)
		b[i] = byte_at(i);
	put_frame((struct frame){.kind = FRAME_REPLY, .seq = seq, .bulk_len = bulk}, b);
	free(b);
}

static struct ctl_wait check_wait(struct op *o, uint64_t seq, size_t bulk)
{
	struct ctl_wait w;
	struct frame f;
	ck_assert_int_eq(result(o), 0);
	memcpy(&w, o->bytes, sizeof(w));
	ck_assert_uint_eq(w.seq, seq);
	if (!w.flags) {
		ck_assert_uint_eq(w.len, sizeof(f) + bulk);
		ck_assert_uint_eq(o->n, sizeof(w) + w.len);
		memcpy(&f, o->bytes + sizeof(w), sizeof(f));
		ck_assert_uint_eq(f.seq, seq);
	} else {
		ck_assert_uint_eq(o->n, sizeof(w));
	}
	op_free(o);
	return w;
}

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

/* A server that does not read: the queue fills, then writers wait, and nothing is lost. */
START_TEST(test_slow_reader)
{
	enum { COUNT = 40 };
	uint8_t b[64], *bulk = malloc(MIB), *in = malloc(MIB);
	struct op *o[COUNT];
	unsigned parked = 0;
	struct frame f;
	check_result(post(1, b, record(b, FRAME_POST, 1, (size_t)COUNT * MIB)), 44);
	for (unsigned i = 0; i < COUNT; i++) {
		memset(bulk, (int)i, MIB);
		o[i] = post(2 + i, bulk, MIB);
		parked += !is_done(o[i]);
	}
	ck_assert_uint_gt(parked, COUNT / 4);
	ck_assert_uint_lt(parked, COUNT);
	get(&f, sizeof(f));
	get(in, 4);
	for (unsigned i = 0; i < COUNT; i++) {
		get(in, MIB);
		/* Not each byte: a writer waits no longer than TIME_PARK, which a sanitizer would use up here. */
		size_t at = 0;
		while (at < MIB && in[at] == i)
			at += 1021;
		ck_assert(at >= MIB && in[MIB - 1] == i);
	}
	for (unsigned i = 0; i < COUNT; i++)
		check_result(o[i], MIB);
	free(bulk);
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
			if (!poll(&p, 1, 500)) {
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
	listen_anywhere();
	close(listener);
	struct relay_options options = {.id = relay_new_id(), .address = address};
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
	ck_assert_uint_le(clock_ms() - start, TIME_DEAD + 2000);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("relay");
	TCase *t = tcase_create("relay"), *plain = tcase_create("plain");
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
	tcase_add_loop_test(t, test_end_keeps_what_came, 0, 2);
	tcase_add_loop_test(t, test_end_anywhere, 0, 3);
	tcase_add_test(t, test_close_answers);
	tcase_add_loop_test(t, test_lying_server, 0, sizeof(lies) / sizeof(*lies));
	tcase_add_loop_test(t, test_random_server, 0, 8);
	tcase_add_test(t, test_park_is_bounded);
	tcase_add_test(t, test_silence);
	suite_add_tcase(s, t);
	tcase_add_test(plain, test_nobody_there);
	suite_add_tcase(s, plain);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
