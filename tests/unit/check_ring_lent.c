/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies by a unix socket, where the mount lends the server its memory: a server that takes it, one
 * that takes no descriptor, and those that lie about what they have taken or go away. Thread rule: main is
 * the program's only thread. */
#include "scudafs/clock.h"
#include "tests/unit/ring_server.h"
#include "tests/unit/unit.h"

static uint64_t sum;
static uint32_t count;

/* A copy to the device, of one of many kinds. */
static int copy(unsigned i)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = ++count};
	struct record r;
	struct answer a;
	fill(&r, bytes, i % 4 ? FRAME_POST : FRAME_WAIT, &w);
	size_t at = i % 5 ? 0 : 4099;
	r.bulk = i % 2 ? pinned + at : pattern + at;
	r.bulk_len = sizeof pattern - at - i % 3 * 700000;
	r.bulk_at = i % 2 ? pinned_at + at : 0;
	r.bulk_held = i % 7;
	sum += sum_of(r.bulk, r.bulk_len, 0);
	return i % 4 ? channel_post(&r) : channel_wait(&r, 0, &a);
}

static void begin(void)
{
	local = true;
	offer = OFFER_ONE;
	sum = count = 0;
	setup();
	offer = OFFER_ONE;
}

/* Those of the session's first copies that left before the server had the memory came as bytes; either way
 * they are right. */
static void copies(unsigned least)
{
	for (unsigned i = 1; i <= 400 && lent_records < least; i++)
		ck_assert_int_eq(copy(i), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(bulk_sum, sum);
}

START_TEST(test_lent)
{
	borrower = TAKES;
	ring.spin_ns = _i ? 30000 : 0;
	copies(40);
	ck_assert_uint_ge(lent_records, 40);
	ck_assert_uint_gt(atomic_load(&counters.bytes_lent), 40u * 4000000);
}
END_TEST

/* All goes by the socket. */
START_TEST(test_refused)
{
	borrower = REFUSES;
	for (unsigned i = 1; i <= 30; i++)
		ck_assert_int_eq(copy(i), 0);
	copies(0);
	ck_assert_uint_eq(lent_records, 0);
}
END_TEST

/* The session is over, whatever the program waits for. */
static void ends(int error)
{
	int e = 0;
	for (unsigned i = 1; i <= 400 && !e; i++)
		e = copy(i);
	ck_assert_int_eq(e, -error);
}

START_TEST(test_lies)
{
	borrower = _i ? SAYS_LESS : SAYS_MORE;
	ends(EPROTO);
}
END_TEST

START_TEST(test_leaves)
{
	borrower = LEAVES;
	ends(ECONNRESET);
}
END_TEST

/* It answers what follows, and so has what it does not say it has: that ends the session. Unless what it
 * answers is a record that may go ahead of others, which says nothing of them. */
START_TEST(test_says_nothing)
{
	uint64_t began = clock_ms();
	borrower = SAYS_NOTHING;
	/* The program waits for no piece of these: one stretch, and no more than the mount takes at once. */
	int e = 0;
	while (!e && !lent_records && count < 400) {
		uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
		struct wish w = {.thread = 1, .count = ++count};
		struct record r;
		fill(&r, bytes, FRAME_POST, &w);
		r.bulk = pinned;
		r.bulk_len = 1 << 20;
		r.bulk_at = pinned_at;
		r.bulk_held = true;
		e = channel_post(&r);
		e = e ? e : settle_with(++count, _i ? FRAME_ASIDE : 0);
	}
	ck_assert_int_eq(e, 0);
	ck_assert_uint_ge(lent_records, 1);
	for (; _i && !e && clock_ms() - began < TIME_DEAD / 4 * 5; usleep(100000))
		e = settle_with(++count, FRAME_ASIDE);
	ck_assert_int_eq(e, 0);
	/* Nothing else would end it now. */
	if (_i)
		shutdown(peer, SHUT_RDWR);
	for (; !e && clock_ms() - began < 4 * TIME_DEAD; usleep(100000))
		e = settle(++count);
	ck_assert_int_eq(e, _i ? -ECONNRESET : -EPROTO);
}
END_TEST

/* ---- to the host */

/* Until the mount has said what it thinks of the server's memory. */
static uint64_t meets(void)
{
	borrower = TAKES;
	chunk = LIMIT_REPLY;
	for (unsigned i = 1; i <= 400 && took_slots == 2; i++)
		ck_assert_int_eq(copy(i), 0);
	ck_assert_int_eq(settle(++count), 0);
	memcpy(pinned, pattern, sizeof pattern);
	return took_slots;
}

/* Whichever way the data takes in the mount, beside copies to the device. */
START_TEST(test_data)
{
	static const size_t sizes[] = {sizeof pattern, LIMIT_REPLY, 1, 5 * STRIPE + 77777, sizeof pattern - 1,
		LIMIT_REPLY + 1};
	ring.spin_ns = _i >= WAYS ? 30000 : 0;
	lender = LENDS;
	ck_assert_uint_eq(meets(), 1);
	uint64_t before = atomic_load(&counters.bytes_lent), in = atomic_load(&counters.bytes_in);
	for (unsigned i = 0; i < 24; i++) {
		if (i % 3 == 0)
			ck_assert_int_eq(copy(2 * i + 2), 0);
		ck_assert_int_eq(fetch((enum way)(_i % WAYS), ++count, sizes[i % 6]), 0);
		memcpy(pinned, pattern, sizeof pattern);
	}
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_ge(slots_sent, 60);
	ck_assert_uint_gt(atomic_load(&counters.bytes_lent) - before, 12u * sizeof pattern);
	ck_assert_uint_lt(atomic_load(&counters.bytes_in) - in, 1 << 20);
}
END_TEST

/* Data alone brings the memory. */
START_TEST(test_data_asks)
{
	lender = LENDS;
	borrower = TAKES;
	chunk = LIMIT_REPLY;
	for (unsigned i = 0; i < 400 && took_slots == 2; i++)
		ck_assert_int_eq(fetch((enum way)_i, ++count, sizeof pattern), 0);
	ck_assert_uint_eq(took_slots, 1);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* A server that lends what it has not. */
START_TEST(test_data_outside)
{
	lender = _i / WAYS ? LENDS_BEHIND : LENDS_OUTSIDE;
	ck_assert_uint_eq(meets(), 1);
	ck_assert_int_eq(fetch((enum way)(_i % WAYS), ++count, sizeof pattern), -EPROTO);
}
END_TEST

/* Memory that the mount does not take: it says so, and bytes that are lent there are the end. */
START_TEST(test_data_refused)
{
	static const enum lender all[] = {LENDS_UNSEALED, LENDS_SMALL, LENDS_LARGE, LENDS_NONE};
	lender = all[_i];
	ck_assert_uint_eq(meets(), 0);
	lender = LENDS_NOT;
	ck_assert_int_eq(fetch(AREAS, ++count, sizeof pattern), 0);
	ck_assert_uint_eq(wrong, 0);
	if (!slots)
		slots = mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	lender = all[_i];
	ck_assert_int_eq(fetch(AREAS, ++count, sizeof pattern), -EPROTO);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ring_lent");
	TCase *t = tcase_create("lent");

	setenv("SCUDAFS_LANES", "2", 1);
	tcase_add_checked_fixture(t, begin, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_lent, 0, 2);
	tcase_add_test(t, test_refused);
	tcase_add_loop_test(t, test_lies, 0, 2);
	tcase_add_test(t, test_leaves);
	tcase_add_loop_test(t, test_says_nothing, 0, 2);
	tcase_add_loop_test(t, test_data, 0, 2 * WAYS);
	tcase_add_loop_test(t, test_data_asks, 0, WAYS);
	tcase_add_loop_test(t, test_data_outside, 0, 2 * WAYS);
	tcase_add_loop_test(t, test_data_refused, 0, 4);
	suite_add_tcase(s, t);
	return unit_run(s);
}
