// SPDX-License-Identifier: Apache-2.0
/* The codec of heads: edge values travel unchanged, every prefix of a good message is refused, no byte string
 * crashes the reader. */
#include "tests/unit/unit.h"
#include "wire/msg.h"
#include <math.h>
#include <stdlib.h>
#include "wire/limits.h"

static const uint64_t unsigned_values[] = {0, 1, 127, 128, 255, 256, 65535, 65536, UINT32_MAX, 1ull << 32,
		INT64_MAX, 1ull << 63, UINT64_MAX};
static const int64_t signed_values[] = {0, -1, -32, -33, -128, -129, -32768, -32769, INT32_MIN,
		(int64_t)INT32_MIN - 1, INT64_MIN, 127, 128, INT64_MAX};
#define N(a) (sizeof(a) / sizeof *(a))

START_TEST(unsigned_round_trip)
{
	uint8_t buf[16];
	struct msg m;
	msg_init(&m, buf, sizeof buf);
	put_u64(&m, unsigned_values[_i]);
	ck_assert(!m.bad);
	msg_init(&m, buf, m.len);
	ck_assert_uint_eq(get_u64(&m), unsigned_values[_i]);
	ck_assert(get_end(&m));
}
END_TEST

START_TEST(signed_round_trip)
{
	uint8_t buf[16];
	struct msg m;
	msg_init(&m, buf, sizeof buf);
	put_i64(&m, signed_values[_i]);
	msg_init(&m, buf, m.len);
	ck_assert_int_eq(get_i64(&m), signed_values[_i]);
	ck_assert(get_end(&m));
}
END_TEST

/* One of everything. */
static size_t whole(uint8_t *buf, size_t cap)
{
	struct msg m;
	msg_init(&m, buf, cap);
	put_map(&m, 1);
	put_text(&m, "name");
	put_array(&m, 3);
	put_u64(&m, 70000);
	put_i64(&m, -5);
	put_f64(&m, 0.1);
	put_nil(&m);
	put_bool(&m, true);
	put_bytes(&m, "\0\1\2\3", 4);
	put_text(&m, "a text of more than thirty-one bytes, so that it needs a length byte");
	ck_assert(!m.bad);
	return m.len;
}

static bool read_whole(uint8_t *buf, size_t n)
{
	struct msg m;
	char name[16], text[100];
	uint8_t four[4];
	msg_init(&m, buf, n);
	size_t maps = get_map(&m, 8);
	get_text(&m, name, sizeof name);
	size_t elements = get_array(&m, 8);
	uint64_t u = get_u64(&m);
	int64_t i = get_i64(&m);
	double d = get_f64(&m);
	bool nil = get_nil(&m), b = get_bool(&m);
	get_bytes(&m, four, 4);
	get_text(&m, text, sizeof text);
	return get_end(&m) && maps == 1 && elements == 3 && !strcmp(name, "name") && u == 70000 && i == -5 &&
			d == 0.1 && nil && b &&
		!memcmp(four, "\0\1\2\3", 4) && strlen(text) > 31;
}

START_TEST(every_prefix_is_refused)
{
	uint8_t buf[256];
	size_t n = whole(buf, sizeof buf);
	ck_assert(read_whole(buf, n));
	for (size_t k = 0; k < n; k++)
		ck_assert_msg(!read_whole(buf, k), "a prefix of %zu bytes was accepted", k);
	buf[n] = 0;
	ck_assert(!read_whole(buf, n + 1));     /* not consumed completely */
}
END_TEST

START_TEST(no_room_is_sticky)
{
	uint8_t buf[256];
	size_t n = whole(buf, sizeof buf);
	for (size_t k = 0; k < n; k++) {
		struct msg m;
		msg_init(&m, buf, k);
		for (int i = 0; i < 40; i++)
			put_u64(&m, UINT64_MAX);
		ck_assert(m.bad || m.len <= k);
		ck_assert_uint_le(m.len, k);
	}
}
END_TEST

START_TEST(limits_hold)
{
	uint8_t huge_array[] = {0xdd, 0xff, 0xff, 0xff, 0xff, 0},
			huge_text[] = {0xdb, 0xff, 0xff, 0xff, 0xff, 'a'}, nul_text[] = {0xa2, 'a', 0};
	struct msg m;
	char out[8];
	msg_init(&m, huge_array, sizeof huge_array);
	ck_assert_uint_eq(get_array(&m, SIZE_MAX), 0);
	ck_assert(m.bad);
	msg_init(&m, huge_text, sizeof huge_text);
	get_text(&m, out, sizeof out);
	ck_assert(m.bad);
	msg_init(&m, nul_text, sizeof nul_text);
	get_text(&m, out, sizeof out);
	ck_assert(m.bad);
	uint8_t deep[64];
	memset(deep, 0x91, sizeof deep);
	msg_init(&m, deep, sizeof deep);
	get_skip(&m);
	ck_assert(m.bad);
}
END_TEST

START_TEST(garbage_never_crashes)
{
	unsigned seed = 1;
	uint8_t buf[64];
	for (int round = 0; round < 200000; round++) {
		size_t n = (size_t)rand_r(&seed) % sizeof buf;
		for (size_t i = 0; i < n; i++)
			buf[i] = (uint8_t)rand_r(&seed);
		struct msg m;
		char text[16];
		uint8_t four[4];
		size_t len;
		msg_init(&m, buf, n);
		while (!m.bad && m.len < n) {
			switch (rand_r(&seed) % 9) {
			case 0: get_u64(&m); break;
			case 1: get_i64(&m); break;
			case 2: get_f64(&m); break;
			case 3: get_text(&m, text, sizeof text); break;
			case 4: get_bytes(&m, four, 4); break;
			case 5: get_blob(&m, &len, 1000); break;
			case 6: get_array(&m, 1000); break;
			case 7: get_map(&m, 1000); break;
			case 8: get_skip(&m); break;
			}
			if (m.len > m.cap)
				ck_abort_msg("read past the end");
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("msg");
	TCase *t = tcase_create("codec");
	suite_add_tcase(s, t);
	tcase_add_loop_test(t, unsigned_round_trip, 0, N(unsigned_values));
	tcase_add_loop_test(t, signed_round_trip, 0, N(signed_values));
	tcase_add_test(t, every_prefix_is_refused);
	tcase_add_test(t, no_room_is_sticky);
	tcase_add_test(t, limits_hold);
	tcase_add_test(t, garbage_never_crashes);
	return unit_run(s);
}
