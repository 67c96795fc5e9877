/* SPDX-License-Identifier: Apache-2.0 */
/* What no honest client sends ends its session, with the reason in the report, and never by a crash: bad
 * frames, hellos and calls, a conversation cut anywhere, rubbish. Thread rule: main's. */
#include "tests/unit/session_client.h"
#include "tests/unit/unit.h"

static const struct bad {
	struct frame f;
	const char *reason;
} bad[] = {
	{{.kind = 0, .thread = 1}, "unknown frame kind"},
	{{.kind = 200, .thread = 1}, "unknown frame kind"},
	{{.kind = FRAME_REPLY, .seq = 3}, "other direction"},
	{{.kind = FRAME_HELLO, .thread = 1, .seq = 3, .head_len = 1}, "second HELLO"},
	{{.kind = FRAME_WAIT, .thread = 1, .seq = 4}, "record 4 where 3 was due"},
	{{.kind = FRAME_WAIT, .thread = 1, .seq = 2}, "record 2 where 3 was due"},
	{{.kind = FRAME_WAIT, .thread = 1, .seq = 3, .call = CALL_COUNT}, "call"},
	{{.kind = FRAME_WAIT, .thread = 1, .seq = 3, .call = UINT16_MAX}, "call"},
	{{.kind = FRAME_WAIT, .thread = 0, .seq = 3}, "no thread"},
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .head_len = LIMIT_HEAD + 1}, "head too long"},
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .bulk_len = UINT64_MAX}, "bulk too long"},
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .flags = FRAME_CHANGED}, "unknown flags"},
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .flags = FRAME_LENT}, "nothing is lent"},
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .bulk_len = 9, .flags = FRAME_LENT},
		"bytes of no memory that is lent"},
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .flags = FRAME_STRIPED}, "stripes of no connection"},
	{{.kind = FRAME_SECOND, .seq = SECOND_SERVES}, "SECOND says 1 of no connection"},
	{{.kind = FRAME_SECOND, .seq = SECOND_ENDS}, "SECOND says 2 of no connection"},
	{{.kind = FRAME_SECOND, .seq = 77}, "SECOND says 77 of no connection"},
	{{.kind = FRAME_GET_SNAPSHOT}, "in a session"},
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .call = CALL_cuMemAlloc_v2},
			"malformed call of cuMemAlloc_v2"},
};

START_TEST(bad_frames)
{
	struct client c;

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	client_raw(&c, &bad[_i].f, sizeof bad[_i].f);
	client_bye(&c, bad[_i].reason);
}
END_TEST

START_TEST(bad_hellos)
{
	static const struct { const char *bytes; size_t n; } heads[] = {
		{"", 0}, {"\x80", 1}, {"\xc1", 1}, {"\x81\xa8protocol\x01", 11}, {"\xdf\xff\xff\xff\xff", 5},
		{"\x81\xa5" "calls\xdd\xff\xff\xff\xff", 12}, {"\x81\xa5" "calls\x91\x91\xa1x", 11},
				{"\x81\xa5" "calls\x91\x92\x01\x01", 11},
		{"\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91", 13},
				{"\x81\xa1x\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91", 15},
	};
	struct client c;
	struct msg m;

	client_start(&c);
	msg_init(&m, (void *)heads[_i].bytes, heads[_i].n);
	m.len = heads[_i].n;
	client_send(&c, (struct frame){.kind = FRAME_HELLO, .thread = 1}, &m, NULL, 0);
	client_bye(&c, strstr(heads[_i].bytes, "protocol") ? "speaks protocol 1" : "malformed hello");
}
END_TEST

START_TEST(record_before_hello)
{
	struct client c;

	client_start(&c);
	client_call(&c, FRAME_WAIT, 0, 1, 0, 0, NULL);
	client_bye(&c, "before HELLO");
}
END_TEST

START_TEST(too_many_threads)
{
	struct client c;

	client_start(&c);
	client_hello(&c);
	for (unsigned i = 1; i <= LIMIT_THREADS + 1; i++)
		client_call(&c, FRAME_POST, CALL_cuMemGetInfo_v2, i, 0, 0, NULL);
	client_bye(&c, "threads");
}
END_TEST

/* The connection ends after each prefix of a conversation: the process ends cleanly each time. */
START_TEST(truncated)
{
	static uint8_t buf[LIMIT_HEAD];
	uint8_t *all = malloc(2 * LIMIT_HEAD);
	struct frame f = {.kind = FRAME_HELLO, .thread = 1, .seq = 1};
	size_t n = 0, hello, step;
	struct msg m;

	msg_init(&m, buf, sizeof buf);
	client_hello_head(&m);
	f.head_len = m.len;
	memcpy(all, &f, sizeof f);
	memcpy(all + sizeof f, buf, m.len);
	hello = n = sizeof f + m.len;
	for (int i = 0; i < 3; i++) {
		f = (struct frame){.kind = FRAME_POST, .thread = 1 + i, .seq = 2 + i,
				.call = CALL_cuMemAlloc_v2, .head_len = 3,
			.bulk_len = 20};
		memcpy(all + n, &f, sizeof f);
		memcpy(all + n + sizeof f, "\xcd\x01\x00", 3);
		memset(all + n + sizeof f + 3, 'b', 20);
		n += sizeof f + 23;
	}
	/* The hello's long list of names in larger steps. */
	for (size_t cut = _i; cut <= n; cut += step) {
		struct client c;

		step = cut > 60 && cut + 60 < hello ? 997 : 4;
		client_start(&c);
		client_raw(&c, all, cut);
		client_close(&c);
	}
	free(all);
}
END_TEST

/* Random bytes behind a hello; some look like frames. */
START_TEST(garbage)
{
	srand(_i);
	for (int round = 0; round < 12; round++) {
		struct client c;
		uint8_t junk[600];

		client_start(&c);
		client_hello(&c);
		for (size_t i = 0; i < sizeof junk; i++)
			junk[i] = rand() % 4 ? 0 : rand();
		for (size_t at = 0; _i % 2 && at + 48 < sizeof junk; at += 48) {
			struct frame f = {.kind = rand() % FRAME_KINDS, .thread = rand() % 3,
					.seq = 2 + at / 48, .head_len = rand() % 20,
				.bulk_len = rand() % 9, .call = rand() % CALL_COUNT};

			memcpy(junk + at, &f, sizeof f);
		}
		client_raw(&c, junk, sizeof junk);
		client_close(&c);
	}
}
END_TEST

/* Every call with an argument that no decoder accepts: refused, never run, never a crash. */
START_TEST(malformed_calls)
{
	for (unsigned call = _i; call < CALL_COUNT; call += 8) {
		static uint8_t never[] = {0xc1};
		struct msg m = {.buf = never, .len = 1};
		struct client c;
		struct reply r = {0};

		if (!serve_table[call].serve)
			continue;
		client_start(&c);
		client_hello(&c);
		client_context(&c);
		client_send(&c, (struct frame){.kind = FRAME_WAIT, .thread = 1, .call = call,
				.ctx = PRIMARY}, &m, NULL, 0);
		client_frame(&c, &r);
		ck_assert_msg(r.f.kind == FRAME_BYE, "%s: %s", serve_table[call].name,
				frame_kind_name(r.f.kind));
		free(r.bulk);
		close(c.fd);
		c.fd = -1;
		client_finish(&c, "malformed call");
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("session_hostile");
	TCase *t = tcase_create("process");

	if (access(test_library(), R_OK)) {
		printf("SKIP: no %s\n", test_library());
		return 77;
	}
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, bad_frames, 0, sizeof bad / sizeof *bad);
	tcase_add_loop_test(t, bad_hellos, 0, 10);
	tcase_add_test(t, record_before_hello);
	tcase_add_test(t, too_many_threads);
	tcase_add_loop_test(t, truncated, 0, 4);
	tcase_add_loop_test(t, garbage, 0, 4);
	tcase_add_loop_test(t, malformed_calls, 0, 8);
	suite_add_tcase(s, t);
	return unit_run(s);
}
