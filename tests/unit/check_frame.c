/* SPDX-License-Identifier: Apache-2.0 */
/* Which frame headers are accepted, by direction. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "wire/frame.h"
#include "wire/limits.h"

static const struct case_ {
	struct frame f;
	bool to_server, ok;
} cases[] = {
	{{.kind = FRAME_POST, .thread = 1, .seq = 1, .head_len = LIMIT_HEAD, .bulk_len = LIMIT_BULK}, true,
			true},
	{{.kind = FRAME_POST, .thread = 1, .flags = FRAME_PTDS}, true, true},
	{{.kind = FRAME_WAIT, .thread = UINT32_MAX, .ctx = UINT64_MAX, .call = UINT16_MAX}, true, true},
	{{.kind = FRAME_HELLO, .thread = 1, .head_len = 5}, true, true},
	{{.kind = FRAME_THREAD_END, .thread = 1}, true, true},
	{{.kind = FRAME_UPCALL_DONE, .seq = 3}, true, true},
	{{.kind = FRAME_PING}, true, true},
	{{.kind = FRAME_GET_SNAPSHOT, .seq = 1}, true, true},
	{{.kind = FRAME_REPLY, .head_len = 1, .bulk_len = LIMIT_REPLY, .deliveries = 4,
			.flags = FRAME_MORE}, false, true},
	{{.kind = FRAME_DATA, .bulk_len = LIMIT_REPLY}, false, true},
	{{.kind = FRAME_UPCALL, .head_len = 9, .bulk_len = 32, .deliveries = 2}, false, true},
	{{.kind = FRAME_OUTPUT, .bulk_len = LIMIT_UPCALL - sizeof(struct frame)}, false, true},
	{{.kind = FRAME_BYE, .head_len = 10}, false, true},
	{{.kind = FRAME_SNAPSHOT, .head_len = LIMIT_SNAPSHOT}, false, true},
	{{.kind = FRAME_PONG}, false, true},

	{{.kind = 0, .thread = 1}, true, false},
	{{.kind = FRAME_KINDS, .thread = 1}, true, false},
	{{.kind = 255, .thread = 1}, true, false},
	{{.kind = FRAME_POST, .thread = 0}, true, false},
	{{.kind = FRAME_POST, .thread = 1, .head_len = LIMIT_HEAD + 1}, true, false},
	{{.kind = FRAME_POST, .thread = 1, .bulk_len = LIMIT_BULK + 1}, true, false},
	{{.kind = FRAME_POST, .thread = 1, .bulk_len = UINT64_MAX}, true, false},
	{{.kind = FRAME_POST, .thread = 1, .flags = FRAME_MORE}, true, false},
	{{.kind = FRAME_POST, .thread = 1, .flags = FRAME_STRIPED, .bulk_len = STRIPE}, true, true},
	{{.kind = FRAME_WAIT, .thread = 1, .flags = FRAME_STRIPED | FRAME_ASIDE}, true, false},
	{{.kind = FRAME_HELLO, .thread = 1, .flags = FRAME_STRIPED}, true, false},
	{{.kind = FRAME_POST, .thread = 1, .flags = FRAME_LENT, .bulk_len = LIMIT_BULK}, true, true},
	{{.kind = FRAME_WAIT, .thread = 1, .flags = FRAME_LENT | FRAME_PTDS, .bulk_len = 1}, true, true},
	{{.kind = FRAME_DATA, .flags = FRAME_LENT, .bulk_len = LIMIT_REPLY}, false, true},
	{{.kind = FRAME_DATA, .flags = FRAME_LENT, .bulk_len = LIMIT_REPLY + 1}, false, false},
	{{.kind = FRAME_DATA, .flags = FRAME_LENT}, false, false},
	{{.kind = FRAME_DATA, .flags = FRAME_LENT | FRAME_STRIPED, .bulk_len = LIMIT_REPLY}, false, false},
	{{.kind = FRAME_POST, .thread = 1, .flags = FRAME_LENT | FRAME_STRIPED, .bulk_len = STRIPE}, true,
			false},
	{{.kind = FRAME_WAIT, .thread = 1, .flags = FRAME_LENT | FRAME_ASIDE, .bulk_len = 1}, true, false},
	{{.kind = FRAME_HELLO, .thread = 1, .flags = FRAME_LENT}, true, false},
	{{.kind = FRAME_SECOND}, true, true},
	{{.kind = FRAME_SECOND, .seq = 1, .ctx = 1}, false, true},
	{{.kind = FRAME_SECOND, .bulk_len = 1}, true, false},
	{{.kind = FRAME_POST, .thread = 1, .deliveries = 1, .bulk_len = 16}, true, false},
	{{.kind = FRAME_POST, .thread = 1}, false, false},
	{{.kind = FRAME_HELLO, .thread = 1, .bulk_len = 1}, true, false},
	{{.kind = FRAME_THREAD_END, .thread = 1, .head_len = 1}, true, false},
	{{.kind = FRAME_PING, .head_len = 1}, true, false},
	{{.kind = FRAME_PING, .bulk_len = 1}, true, false},
	{{.kind = FRAME_PING}, false, false},
	{{.kind = FRAME_PONG}, true, false},
	{{.kind = FRAME_REPLY}, true, false},
	{{.kind = FRAME_REPLY, .bulk_len = LIMIT_REPLY + 1}, false, false},
	{{.kind = FRAME_REPLY, .deliveries = 2, .bulk_len = 31}, false, false},
	{{.kind = FRAME_REPLY, .deliveries = UINT32_MAX, .bulk_len = LIMIT_REPLY}, false, false},
	{{.kind = FRAME_REPLY, .flags = FRAME_PTDS}, false, false},
	{{.kind = FRAME_REPLY, .flags = FRAME_CHANGED}, false, true},
	{{.kind = FRAME_WAIT, .thread = 1, .flags = FRAME_CHANGED}, true, false},
	{{.kind = FRAME_DATA, .head_len = 1}, false, false},
	{{.kind = FRAME_DATA, .deliveries = 1, .bulk_len = 16}, false, false},
	{{.kind = FRAME_UPCALL, .head_len = LIMIT_UPCALL - 40, .bulk_len = 1}, false, false},
	{{.kind = FRAME_OUTPUT, .bulk_len = LIMIT_UPCALL}, false, false},
	{{.kind = FRAME_BYE, .head_len = LIMIT_HEAD + 1}, false, false},
	{{.kind = FRAME_SNAPSHOT, .bulk_len = 1}, false, false},
};

START_TEST(header)
{
	const struct case_ *c = &cases[_i];
	const char *why = NULL;
	int r = frame_check(&c->f, c->to_server, &why);

	ck_assert_msg(r == (c->ok ? 0 : -EPROTO), "case %d, %s: %s", _i, frame_kind_name(c->f.kind), why ?
			why : "accepted");
	ck_assert(c->ok || why);
	ck_assert_int_eq(frame_check(&c->f, c->to_server, NULL), r);
}
END_TEST

/* No header, however random, is accepted beyond the limits. */
START_TEST(random_headers)
{
	srand(_i);
	for (int i = 0; i < 20000; i++) {
		struct frame f;
		uint8_t *p = (uint8_t *)&f;

		for (size_t j = 0; j < sizeof f; j++)
			p[j] = rand() % 3 ? 0 : rand();
		f.kind %= FRAME_KINDS + 1;
		for (int to_server = 0; to_server < 2; to_server++) {
			if (frame_check(&f, to_server, NULL))
				continue;
			ck_assert_uint_le(f.head_len, LIMIT_HEAD);
			ck_assert_uint_le(f.bulk_len, LIMIT_BULK);
			ck_assert_uint_le((uint64_t)f.deliveries * 16, f.bulk_len);
		}
	}
}
END_TEST

START_TEST(names)
{
	ck_assert_str_eq(frame_kind_name(FRAME_POST), "POST");
	ck_assert_str_eq(frame_kind_name(0), "unknown");
	ck_assert_str_eq(frame_kind_name(FRAME_KINDS), "unknown");
	for (unsigned k = FRAME_HELLO; k < FRAME_KINDS; k++)
		ck_assert_str_ne(frame_kind_name(k), "unknown");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("frame");
	TCase *t = tcase_create("check");

	tcase_add_loop_test(t, header, 0, sizeof cases / sizeof *cases);
	tcase_add_loop_test(t, random_headers, 0, 4);
	tcase_add_test(t, names);
	suite_add_tcase(s, t);
	return unit_run(s);
}
