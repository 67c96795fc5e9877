/* SPDX-License-Identifier: Apache-2.0 */
/* See relay_ends.h. */
#include "tests/unit/relay_ends.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the program's side ---- */

void answered(struct request *q, int r, const struct iovec *v, int n)
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

bool early(struct request *q)
{
	return ((struct op *)q)->early;
}

struct op *op_new(void)
{
	struct op *o = calloc(1, sizeof(*o));
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->cond, NULL);
	o->q.answer = answered;
	o->q.interrupted = early;
	o->q.token = o;
	return o;
}

void op_free(struct op *o)
{
	free(o->bytes);
	free(o);
}

bool is_done(struct op *o)
{
	pthread_mutex_lock(&o->lock);
	bool done = o->done;
	pthread_mutex_unlock(&o->lock);
	return done;
}

/* Waits for the answer; returns its result. The operation stays for a look at its bytes. */
int result(struct op *o)
{
	pthread_mutex_lock(&o->lock);
	while (!o->done)
		pthread_cond_wait(&o->cond, &o->lock);
	pthread_mutex_unlock(&o->lock);
	return o->r;
}

void check_result(struct op *o, int expected)
{
	ck_assert_int_eq(result(o), expected);
	op_free(o);
}

/* ---- the server's side ---- */

static int listener;
static char address[64];
int peer;
struct relay *relay;

void get(void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = read(peer, (char *)p + at, n - at);
		ck_assert_msg(r > 0, "the connection ended");
		at += (size_t)r;
	}
}

void put(const void *p, size_t n)
{
	ck_assert_int_eq(send(peer, p, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* The next frame's header, heartbeats apart, which are answered. */
struct frame get_frame(void)
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

size_t frame_bytes(uint8_t *to, struct frame f, const void *body)
{
	memcpy(to, &f, sizeof(f));
	if (body && f.head_len + f.bulk_len)
		memcpy(to + sizeof(f), body, f.head_len + f.bulk_len);
	return sizeof(f) + f.head_len + f.bulk_len;
}

void put_frame(struct frame f, const void *body)
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

const char *closed_address(void)
{
	listen_anywhere();
	close(listener);
	return address;
}

void setup(void)
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

void teardown(void)
{
	relay_close(relay);
	close(peer);
	close(listener);
	ck_assert(relay_end_all(3000));
}

/* `count` variants of a test, each with a session of its own, in one process. */
void in_turns(void (*once)(int variant), int turn, int count)
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

size_t record(uint8_t *b, unsigned kind, uint64_t seq, size_t bulk)
{
	uint8_t body[4] = {1, 2, 3, (uint8_t)seq};
	struct frame f = {.kind = (uint8_t)kind, .thread = 1, .seq = seq, .head_len = 4};
	size_t n = frame_bytes(b, f, body);
	f.bulk_len = bulk;
	memcpy(b, &f, sizeof(f));
	return n;
}

struct op *post(uint64_t batch, const void *p, size_t n)
{
	struct op *o = op_new();
	relay_post(relay, batch, p, n, &o->q);
	return o;
}

struct op *wait_record(uint64_t batch, uint64_t seq, size_t room)
{
	uint8_t b[64];
	struct op *o = op_new();
	relay_wait(relay, batch, seq, b, record(b, FRAME_WAIT, seq, 0), room, &o->q);
	return o;
}

struct op *wait_again(uint64_t seq, size_t room)
{
	struct op *o = op_new();
	relay_wait(relay, 0, seq, NULL, 0, room, &o->q);
	return o;
}

struct op *data(uint64_t transfer, uint64_t offset, size_t n)
{
	struct op *o = op_new();
	relay_data(relay, transfer, offset, n, &o->q);
	return o;
}

void expect_record(unsigned kind, uint64_t seq)
{
	uint8_t head[4];
	struct frame f = get_frame();
	ck_assert_int_eq(f.kind, kind);
	ck_assert_int_eq(f.seq, seq);
	get(head, sizeof(head));
	ck_assert_int_eq(head[3], (uint8_t)seq);
}

uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 7 + (offset >> 9));
}

void put_data(uint64_t transfer, uint64_t offset, size_t n)
{
	uint8_t *b = malloc(n);
	for (size_t i = 0; i < n; i++)
		b[i] = byte_at(offset + i);
	put_frame((struct frame){.kind = FRAME_DATA, .ctx = transfer, .seq = offset, .bulk_len = n}, b);
	free(b);
}

/* One assertion for all bytes: each costs a system call. */
void check_bytes(const uint8_t *p, uint64_t offset, size_t n)
{
	size_t i = 0;
	while (i < n && p[i] == byte_at(offset + i))
		i++;
	ck_assert_uint_eq(i, n);
}

void check_data(struct op *o, uint64_t offset, size_t n)
{
	ck_assert_int_eq(result(o), 0);
	ck_assert_uint_eq(o->n, n);
	check_bytes(o->bytes, offset, n);
	op_free(o);
}

void put_reply(uint64_t seq, size_t bulk)
{
	uint8_t *b = calloc(1, bulk + 1);
	for (size_t i = 0; i < bulk; i++)
		b[i] = byte_at(i);
	put_frame((struct frame){.kind = FRAME_REPLY, .seq = seq, .bulk_len = bulk}, b);
	free(b);
}

struct ctl_wait check_wait(struct op *o, uint64_t seq, size_t bulk)
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
