/* SPDX-License-Identifier: Apache-2.0 */
/* Connections in clear and under TLS: handshakes that succeed and that must not, servers that lie at the
 * beginning, changed bytes, waits that end. Thread rule: the server's side runs in a thread. */
#include "tests/unit/stream_ends.h"

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
	int r;

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
	tcase_add_test(t, tampered);
	tcase_add_loop_test(t, time_out, 0, 2);
	suite_add_tcase(s, t);
	return unit_run(s);
}
