/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies from and to shared memory by a second connection: a server that has one, none, or the wrong
 * one; one that is lost in the middle of a copy or between two. Thread rule: main is the program's only
 * thread. */
#include "tests/unit/ring_server.h"
#include "tests/unit/unit.h"

/* A copy to the device, of one of many kinds; its sum is added. */
static int copy(unsigned i, uint32_t count, uint64_t *sum)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = count};
	struct record r;
	struct answer a;
	fill(&r, bytes, i % 4 ? FRAME_POST : FRAME_WAIT, &w);
	size_t at = i % 5 ? 0 : 4099;
	r.bulk = i % 2 ? pinned + at : pattern + at;
	r.bulk_len = sizeof pattern - at - i % 3 * 700000;
	r.bulk_at = i % 2 ? pinned_at + at : 0;
	r.bulk_held = i % 7;
	if (sum)
		*sum += sum_of(r.bulk, r.bulk_len, 0);
	return i % 4 ? channel_post(&r) : channel_wait(&r, 0, &a);
}

/* Waits until the daemon has said so of the second connection. */
static bool said(enum second_word what)
{
	for (int i = 0; i < 2000 && word != what; i++)
		usleep(5000);
	return word == what;
}

/* Large copies go by two connections, or, when the server has no second one for us, by one. */
START_TEST(test_second)
{
	uint64_t sum = 0;
	uint32_t count = 0;
	ring.spin_ns = _i & 1 ? 30000 : 0;
	offer = (enum offer)(_i / 2);
	for (unsigned i = 1; i <= 60 && striped < 16; i++)
		ck_assert_int_eq(copy(i, ++count, &sum), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(bulk_sum, sum);
	if (offer == OFFER_ONE)
		ck_assert_uint_ge(striped, 16);
	else
		ck_assert_uint_eq(striped, 0);
}
END_TEST

/* The second connection is lost in the middle of a copy: so is the session. */
START_TEST(test_second_lost)
{
	uint32_t count = 0;
	int e = 0;
	offer = OFFER_CUT;
	for (unsigned i = 1; i <= 4000 && !e; i++)
		e = copy(4 * i + 1, ++count, NULL);
	ck_assert_int_eq(e, -ECONNRESET);
}
END_TEST

/* It is lost while nothing is on its way: the session goes on without it. */
START_TEST(test_second_idle)
{
	uint64_t sum = 0;
	uint32_t count = 0;
	offer = OFFER_ONE;
	for (unsigned i = 1; i <= 400 && striped < 2; i++)
		ck_assert_int_eq(copy(i, ++count, &sum), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_ge(striped, 2);
	shutdown(second_peer, SHUT_WR);
	/* The daemon closes it when it has seen that. */
	uint8_t byte;
	ck_assert_int_eq(recv(second_peer, &byte, 1, 0), 0);
	ck_assert(said(SECOND_ENDS));
	unsigned before = striped;
	for (unsigned i = 1; i <= 20; i++)
		ck_assert_int_eq(copy(i, ++count, &sum), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(bulk_sum, sum);
	ck_assert_uint_eq(striped, before);
}
END_TEST

/* Large copies from the device come by two connections as well, whichever way they take in the mount, beside
 * large ones to it. */
START_TEST(test_second_data)
{
	static const size_t sizes[] = {sizeof pattern, LIMIT_REPLY, STRIPE, STRIPE + 1, 2 * STRIPE,
		5 * STRIPE + 77777, sizeof pattern - 1, 1};
	uint32_t count = 0;
	ring.spin_ns = _i >= WAYS ? 30000 : 0;
	offer = OFFER_ONE;
	ck_assert_int_eq(copy(1, ++count, NULL), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert(said(SECOND_SERVES));
	stripes = true;
	for (unsigned i = 0; i < 24; i++) {
		if (i % 3 == 0)
			ck_assert_int_eq(copy(2 * i + 2, ++count, NULL), 0);
		ck_assert_int_eq(fetch((enum way)(_i % WAYS), ++count, sizes[i % 8]), 0);
		memcpy(pinned, pattern, sizeof pattern);
	}
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_eq(wrong, 0);
	ck_assert(!cut_data);
}
END_TEST

/* Data alone brings it, too. */
START_TEST(test_second_data_asks)
{
	uint32_t count = 0;
	offer = OFFER_ONE;
	chunk = LIMIT_REPLY;
	ck_assert_int_eq(fetch(AREAS, ++count, sizeof pattern), 0);
	ck_assert(said(SECOND_SERVES));
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* It is lost in the middle of such a copy: so is the session. */
START_TEST(test_second_data_lost)
{
	uint32_t count = 0;
	offer = OFFER_ONE;
	ck_assert_int_eq(copy(1, ++count, NULL), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert(said(SECOND_SERVES));
	stripes = cut_data = true;
	ck_assert_int_eq(fetch((enum way)_i, ++count, sizeof pattern), -ECONNRESET);
}
END_TEST

/* Stripes of a connection that there is not. */
START_TEST(test_second_data_of_none)
{
	uint32_t count = 0;
	stripes = true;
	ck_assert_int_lt(fetch((enum way)_i, ++count, sizeof pattern), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ring_second");
	TCase *t = tcase_create("second");

	setenv("SCUDAFS_LANES", "2", 1);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_second, 0, 6);
	tcase_add_test(t, test_second_lost);
	tcase_add_test(t, test_second_idle);
	tcase_add_loop_test(t, test_second_data, 0, 2 * WAYS);
	tcase_add_test(t, test_second_data_asks);
	tcase_add_loop_test(t, test_second_data_lost, 0, WAYS);
	tcase_add_loop_test(t, test_second_data_of_none, 0, WAYS);
	suite_add_tcase(s, t);
	return unit_run(s);
}
