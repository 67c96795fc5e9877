/* SPDX-License-Identifier: Apache-2.0 */
/* Connections in clear and under TLS: handshakes that succeed and that must not, large transfers in both
 * directions at once, servers that lie at the beginning.
 *
 * Each test has a listening socket; the server's side runs in a thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "wire/cuda_types.h"
#include "wire/frame.h"
#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/stream.h"
#include "wire/transport.h"

static int listener;
static char address[64];
static char key_path[] = "/tmp/check_stream.XXXXXX";
static struct keys *keys;
static struct key alice, mallory, stranger;

static void setup(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	char line[256];
	const char *why;
	int fd = mkstemp(key_path);

	ck_assert_int_eq(key_generate("alice", &alice), 0);
	ck_assert_int_eq(key_generate("alice", &mallory), 0);
	ck_assert_int_eq(key_generate("stranger", &stranger), 0);
	ck_assert_int_eq(write(fd, line, key_format(&alice, line, sizeof line)), (ssize_t)strlen(line));
	close(fd);
	ck_assert_int_eq(keys_load(key_path, &keys, &why), 0);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
	ck_assert_int_eq(listen(listener, 8), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(a.sin_port));
}

static void teardown(void)
{
	close(listener);
	keys_free(keys);
	unlink(key_path);
	strcpy(key_path + strlen(key_path) - 6, "XXXXXX");
}

/* ---- the server's side ---- */

enum behaviour { SERVE, BYE_FULL, BYE_KEY, GARBAGE, SILENT, CLOSE, PREAMBLE_THEN_SILENT, CLEAR_PONG };

struct server {
	enum behaviour behaviour;
	bool use_keys;
	unsigned flags;             /* of the client */
	struct preamble preamble;
	struct stream *stream;
	char identity[LIMIT_NAME + 1];
	int result;
	pthread_t thread;
};

static void say(int fd, const void *p, size_t n)
{
	ck_assert_int_eq(send(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void say_bye(int fd, int code)
{
	uint8_t bytes[128];
	struct frame f = {.kind = FRAME_BYE};
	struct msg m;

	msg_init(&m, bytes + sizeof f, sizeof bytes - sizeof f);
	put_array(&m, 2);
	put_i64(&m, code);
	put_text(&m, "no");
	f.head_len = m.len;
	memcpy(bytes, &f, sizeof f);
	say(fd, bytes, sizeof f + m.len);
}

static void answer_ping(struct server *s)
{
	struct frame f;
	struct iovec v = {&f, sizeof f};

	s->result = stream_read_all(s->stream, &f, sizeof f, 3000);
	if (s->result)
		return;
	ck_assert_int_eq(f.kind, FRAME_PING);
	f.kind = FRAME_PONG;
	s->result = stream_write_all(s->stream, &v, 1, 3000);
}

static void *server_main(void *arg)
{
	struct server *s = arg;
	const char *identity = "", *why = "";
	struct frame pong = {.kind = FRAME_PONG};
	char junk[200];
	int fd = accept(listener, NULL, NULL);

	ck_assert_int_ge(fd, 0);
	if (s->behaviour != SILENT)
		ck_assert_int_eq(recv(fd, &s->preamble, sizeof s->preamble, MSG_WAITALL), sizeof s->preamble);
	switch (s->behaviour) {
	case SERVE:
		s->result = stream_accept(fd, s->use_keys ? keys : NULL, 3000, &s->stream, &identity, &why);
		if (s->result)
			return NULL;
		snprintf(s->identity, sizeof s->identity, "%s", identity);
		if (s->preamble.flags & (PREAMBLE_PACK | PREAMBLE_PACK_ALWAYS))
			ck_assert_int_eq(stream_pack(s->stream, s->preamble.flags & PREAMBLE_PACK_ALWAYS), 0);
		answer_ping(s);
		return NULL;
	case BYE_FULL:
		say_bye(fd, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
		break;
	case BYE_KEY:
		say_bye(fd, CUDA_ERROR_MPS_CONNECTION_FAILED);
		break;
	case GARBAGE:
		memset(junk, 'x', sizeof junk);
		say(fd, junk, sizeof junk);
		break;
	case CLEAR_PONG:
		say(fd, &pong, sizeof pong);
		break;
	default:
		break;
	}
	if (s->behaviour != CLOSE) {
		shutdown(fd, SHUT_WR);
		while (recv(fd, junk, sizeof junk, 0) > 0)
			;
		if (s->behaviour == SILENT || s->behaviour == PREAMBLE_THEN_SILENT)
			usleep(700000);
	}
	close(fd);
	return NULL;
}

static int meet(struct server *s, const struct key *key, struct stream **client, const char **why)
{
	int r;

	ck_assert_int_eq(pthread_create(&s->thread, NULL, server_main, s), 0);
	r = stream_connect(address, key, s->flags, 3000, client, why);
	return r;
}

static void part(struct server *s, struct stream *client)
{
	pthread_join(s->thread, NULL);
	stream_close(client);
	stream_close(s->stream);
}

/* ---- tests ---- */

START_TEST(in_clear)
{
	struct server s = {.behaviour = SERVE};
	struct stream *c;

	ck_assert_int_eq(meet(&s, NULL, &c, NULL), 0);
	pthread_join(s.thread, NULL);
	ck_assert_int_eq(s.result, 0);
	ck_assert_mem_eq(s.preamble.magic, "SCUD", 4);
	ck_assert_int_eq(s.preamble.flags, 0);
	ck_assert_str_eq(s.identity, "anonymous");
	ck_assert_str_eq(stream_security(c), "none");
	stream_close(c);
	stream_close(s.stream);
	stream_close(NULL);
}
END_TEST

START_TEST(with_key)
{
	struct server s = {.behaviour = SERVE, .use_keys = true};
	struct stream *c;

	ck_assert_int_eq(meet(&s, &alice, &c, NULL), 0);
	pthread_join(s.thread, NULL);
	ck_assert_int_eq(s.result, 0);
	ck_assert_int_eq(s.preamble.flags, PREAMBLE_TLS);
	ck_assert_str_eq(s.identity, "alice");
	ck_assert_str_eq(stream_security(c), "TLSv1.3 TLS_AES_128_GCM_SHA256 psk");
	ck_assert_str_eq(stream_security(s.stream), stream_security(c));
	stream_close(c);
	stream_close(s.stream);
}
END_TEST

static const struct refusal {
	struct server s;
	const struct key *key;
	int r;
} refusals[] = {
	{{.behaviour = SERVE, .use_keys = true}, &mallory, -EACCES},
	{{.behaviour = SERVE, .use_keys = true}, &stranger, -EACCES},
	{{.behaviour = BYE_FULL}, NULL, -EUSERS},
	{{.behaviour = BYE_FULL}, &alice, -EUSERS},
	{{.behaviour = BYE_KEY}, NULL, -EACCES},
	{{.behaviour = BYE_KEY}, &alice, -EACCES},
	{{.behaviour = GARBAGE}, NULL, -EPROTO},
	{{.behaviour = GARBAGE}, &alice, -EACCES},
	{{.behaviour = CLEAR_PONG}, &alice, -EACCES},
	{{.behaviour = CLOSE}, NULL, -ECONNRESET},
	{{.behaviour = CLOSE}, &alice, -ECONNRESET},
};

START_TEST(refused)
{
	struct server s = refusals[_i].s;
	const char *why = NULL;
	struct stream *c = NULL;
	int r = meet(&s, refusals[_i].key, &c, &why);

	ck_assert_msg(r == refusals[_i].r, "case %d gave %d: %s", _i, r, why);
	ck_assert_ptr_nonnull(why);
	ck_assert_ptr_null(c);
	if (s.behaviour == SERVE) {
		pthread_join(s.thread, NULL);
		ck_assert_int_ne(s.result, 0);
		return;
	}
	part(&s, NULL);
}
END_TEST

START_TEST(never_hangs)
{
	static const enum behaviour how[] = {SILENT, PREAMBLE_THEN_SILENT};
	struct server s = {.behaviour = how[_i / 2]};
	struct stream *c = NULL;
	int fd, r;

	(void)fd;
	ck_assert_int_eq(pthread_create(&s.thread, NULL, server_main, &s), 0);
	/* The server's half-close ends it early; a server that keeps the connection open runs into the
	 * deadline. */
	r = stream_connect(address, _i % 2 ? &alice : NULL, 0, 500, &c, NULL);
	ck_assert_msg(r == -ETIMEDOUT || r == -ECONNRESET, "gave %d", r);
	part(&s, NULL);
}
END_TEST

START_TEST(addresses)
{
	static const struct { const char *text; int r; } table[] = {
		{"", -EINVAL}, {"unix:", -EINVAL}, {"[::1", -EINVAL}, {"[::1]x", -EINVAL}, {"host:port",
				-EINVAL}, {"127.0.0.1:", -EINVAL},
		{"unix:/nonexistent/socket", -ENOENT}, {"127.0.0.1:1", -ECONNREFUSED},
	};
	struct stream *c;
	const char *why;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		int r = stream_connect(table[i].text, NULL, 0, 1000, &c, &why);

		ck_assert_msg(r == table[i].r, "%s gave %d", table[i].text, r);
	}
}
END_TEST

/* ---- transfers ---- */

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

/* Bytes changed on the way are noticed. */
START_TEST(tampered)
{
	struct server s = {.behaviour = SERVE, .use_keys = true};
	struct stream *c;
	char junk[64], buf[64];

	ck_assert_int_eq(meet(&s, &alice, &c, NULL), 0);
	pthread_join(s.thread, NULL);
	memset(junk, 0x17, sizeof junk);
	junk[1] = junk[2] = 3;
	junk[3] = 0;
	junk[4] = sizeof junk - 5;
	say(stream_fd(c), junk, sizeof junk);
	ck_assert_int_eq(stream_read_wait(s.stream, buf, sizeof buf, 1000), -EPROTO);
	stream_close(c);
	stream_close(s.stream);
}
END_TEST

START_TEST(time_out)
{
	struct server s = {.behaviour = SERVE, .use_keys = _i};
	struct stream *c;
	uint8_t *big = calloc(1, 64 << 20), b;
	struct iovec v = {big, 64 << 20};

	ck_assert_int_eq(meet(&s, _i ? &alice : NULL, &c, NULL), 0);
	pthread_join(s.thread, NULL);
	ck_assert_int_eq(stream_read_wait(c, &b, 1, 100), -ETIMEDOUT);
	ck_assert_int_eq(stream_read_all(c, &b, 1, 100), -ETIMEDOUT);
	ck_assert_int_eq(stream_read(c, &b, 1), -EAGAIN);
	/* Nobody reads: the socket fills up. */
	ck_assert_int_eq(stream_write_all(c, &v, 1, 200), -ETIMEDOUT);
	free(big);
	stream_close(c);
	stream_close(s.stream);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stream");
	TCase *t = tcase_create("connection");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, in_clear);
	tcase_add_test(t, with_key);
	tcase_add_loop_test(t, refused, 0, sizeof refusals / sizeof *refusals);
	tcase_add_loop_test(t, never_hangs, 0, 4);
	tcase_add_test(t, addresses);
	tcase_add_loop_test(t, both_ways, 0, 6);
	tcase_add_test(t, packing);
	tcase_add_test(t, by_itself);
	tcase_add_loop_test(t, bad_blocks, 0, sizeof blocks / sizeof *blocks);
	tcase_add_test(t, tampered);
	tcase_add_loop_test(t, time_out, 0, 2);
	suite_add_tcase(s, t);
	return unit_run(s);
}
