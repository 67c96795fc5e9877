/* SPDX-License-Identifier: Apache-2.0 */
/* Large transfers over a connection, in both directions at once, in clear, under TLS and compressed; when a
 * sender compresses, and what no honest one sends. Thread rule: the server's side runs in a thread, and each
 * direction's ends do. */
#include "tests/unit/stream_ends.h"

#define TRANSFER (24u << 20)

static uint8_t pattern(size_t i)
{
	/* Parts of it shrink, parts do not. */
	return i >> 18 & 1 ? i >> 12 : (i * 131 ^ i >> 9) * 2654435761u >> 13;
}

struct side {
	struct stream *s;
	unsigned seed;
	int result;
	size_t received;
};

/* Pieces of odd sizes in one to three parts, some as the daemon writes (what the socket takes), some as
 * the session does. */
static void *writer(void *arg)
{
	struct side *side = arg;
	uint8_t *data = malloc(TRANSFER);
	size_t at = 0;

	for (size_t i = 0; i < TRANSFER; i++)
		data[i] = pattern(i);
	while (at < TRANSFER && !side->result) {
		size_t n = 1 + rand_r(&side->seed) % (rand_r(&side->seed) % 4 ? 3000 : 700000), a, b;
		struct iovec v[3];

		if (n > TRANSFER - at)
			n = TRANSFER - at;
		a = rand_r(&side->seed) % (n + 1);
		b = rand_r(&side->seed) % (n - a + 1);
		v[0] = (struct iovec){data + at, a};
		v[1] = (struct iovec){data + at + a, b};
		v[2] = (struct iovec){data + at + a + b, n - a - b};
		if (rand_r(&side->seed) % 2) {
			side->result = stream_write_all(side->s, v, 3, 5000 * unit_slow());
			at += n;
		} else {
			ssize_t r = stream_writev(side->s, v, 3);

			if (r > 0)
				at += r;
			else if (r != -EAGAIN)
				side->result = r;
			else
				usleep(500);
		}
	}
	/* Whatever writev left under way. */
	while (!side->result && stream_writev(side->s, NULL, 0) == -EAGAIN)
		usleep(500);
	free(data);
	return NULL;
}

static void *reader(void *arg)
{
	struct side *side = arg;
	uint8_t *buf = malloc(300000);
	size_t at = 0;

	while (at < TRANSFER && !side->result) {
		size_t n = 1 + rand_r(&side->seed) % (rand_r(&side->seed) % 4 ? 2000 : 300000);
		ssize_t r;

		if (n > TRANSFER - at)
			n = TRANSFER - at;
		if (rand_r(&side->seed) % 2) {
			side->result = stream_read_all(side->s, buf, n, 5000 * unit_slow());
			r = n;
		} else {
			r = stream_read_wait(side->s, buf, n, 5000 * unit_slow());
			if (r <= 0)
				side->result = r ? (int)r : -ECONNRESET;
		}
		for (ssize_t i = 0; i < r && !side->result; i++)
			if (buf[i] != pattern(at + i))
				side->result = -EBADMSG;
		at += r;
	}
	free(buf);
	return NULL;
}

START_TEST(both_ways)
{
	struct server s = {.behaviour = SERVE, .use_keys = _i % 2,
			.flags = _i < 2 ? 0 : PREAMBLE_PACK_ALWAYS};
	struct side side[4];
	pthread_t t[4];
	struct stream *c;

	ck_assert_int_eq(meet(&s, _i % 2 ? &alice : NULL, &c, NULL), 0);
	pthread_join(s.thread, NULL);
	ck_assert_int_eq(s.result, 0);
	if (_i >= 4) { /* one end compresses, the other has found that the link is fast */
		pack_free(c->pack);
		c->pack = pack_create(false, false);
	}
	for (int i = 0; i < 4; i++) {
		side[i] = (struct side){.s = i < 2 ? c : s.stream, .seed = (unsigned)i + 1};
		pthread_create(&t[i], NULL, i % 2 ? reader : writer, &side[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 4; i++)
		ck_assert_msg(!side[i].result, "side %d: %s", i, strerror(-side[i].result));
	ck_assert_int_eq(stream_pending(c), 0);
	stream_close(c);
	/* The other side sees a clean end. */
	ck_assert_int_eq(stream_read_wait(s.stream, &side, 1, 1000), 0);
	stream_close(s.stream);
}
END_TEST

/* The same host: not worth it unless it is asked for. */
START_TEST(packing)
{
	static const unsigned asked[] = {PREAMBLE_PACK, PREAMBLE_PACK_ALWAYS};

	for (int i = 0; i < 2; i++) {
		struct server s = {.behaviour = SERVE, .flags = asked[i]};
		struct stream *c;

		ck_assert_int_eq(meet(&s, NULL, &c, NULL), 0);
		pthread_join(s.thread, NULL);
		ck_assert_int_eq(s.preamble.flags, i ? PREAMBLE_PACK_ALWAYS : 0);
		stream_close(c);
		stream_close(s.stream);
	}
}
END_TEST

static void *count_bytes(void *arg)
{
	static char waste[1 << 16];
	struct side *side = arg;
	ssize_t n;

	while ((n = recv(stream_fd(side->s), waste, sizeof waste, 0)) > 0)
		side->received += (size_t)n;
	return NULL;
}

/* A sender that finds the link slow compresses by itself. The kernel's pacing of the socket stands for the
 * link. */
START_TEST(by_itself)
{
	static const unsigned rate = 40u << 20;
	enum { SENT = 32 << 20 };
	struct server s = {.behaviour = SERVE};
	struct side side = {.result = 0};
	struct stream *c;
	pthread_t t;
	uint8_t *data = calloc(1, 1 << 20);
	struct iovec v = {data, 1 << 20};

	ck_assert_int_eq(meet(&s, NULL, &c, NULL), 0);
	pthread_join(s.thread, NULL);
	side.s = s.stream;
	c->pack = pack_create(false, false);
	ck_assert_int_eq(setsockopt(stream_fd(c), SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate), 0);
	pthread_create(&t, NULL, count_bytes, &side);
	for (int i = 0; i < SENT >> 20; i++)
		ck_assert_int_eq(stream_write_all(c, &v, 1, 5000), 0);
	shutdown(stream_fd(c), SHUT_WR);
	pthread_join(t, NULL);
	ck_assert_msg(side.received < SENT / 2, "%zu bytes over a slow link", side.received);
	free(data);
	stream_close(c);
	stream_close(s.stream);
}
END_TEST

/* Blocks that no honest peer sends: larger than their limits, larger compressed than not, nothing at all,
 * rubbish in place of LZ4, and LZ4 of more or of less than was announced (four and five times 'a'). */
static const struct { uint32_t raw, wire; const char *bytes; size_t n; } blocks[] = {
	{2u << 20, 2u << 20, "", 0},
	{(64u << 10) + 1, 100, "", 0},
	{UINT32_MAX, 100, "", 0},
	{100, 101, "", 0},
	{0, 0, "", 0},
	{100, 0, "", 0},
	{0, 100, "", 0},
	{1000, 20, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20},
	{1000, 5, "\x10" "a" "\xff\xff\x00", 5},
	{100, 6, "\x50" "aaaaa", 6},
	{7, 6, "\x50" "aaaaa", 6},
	{65536, 6, "\x50" "aaaaa", 6},
};

START_TEST(bad_blocks)
{
	struct server s = {.behaviour = SERVE, .flags = PREAMBLE_PACK_ALWAYS};
	struct stream *c;
	uint32_t head[2] = {blocks[_i].raw, blocks[_i].wire};
	char buf[64];
	ssize_t r;

	ck_assert_int_eq(meet(&s, NULL, &c, NULL), 0);
	pthread_join(s.thread, NULL);
	say(stream_fd(c), head, sizeof head);
	if (blocks[_i].n)
		say(stream_fd(c), blocks[_i].bytes, blocks[_i].n);
	r = stream_read_wait(s.stream, buf, sizeof buf, 1000);
	ck_assert_msg(r == -EPROTO, "gave %zd", r);
	stream_close(c);
	stream_close(s.stream);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stream_bulk");
	TCase *t = tcase_create("connection");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, both_ways, 0, 6);
	tcase_add_test(t, packing);
	tcase_add_test(t, by_itself);
	tcase_add_loop_test(t, bad_blocks, 0, sizeof blocks / sizeof *blocks);
	suite_add_tcase(s, t);
	return unit_run(s);
}
