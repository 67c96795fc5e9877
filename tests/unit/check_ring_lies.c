/* SPDX-License-Identifier: Apache-2.0 */
/* Data of copies from shared memory as no honest server sends it by a second connection, in stripes or lent:
 * of odd lengths, late, too much, none, or cut off. What is right in the end arrives; else the session is
 * over, in time; and no byte beside what the program awaits is written. Thread rule: main is the program's
 * only thread; bytes that are late come from one of their own. */
#include "scudafs/clock.h"
#include "tests/unit/ring_server.h"
#include "tests/unit/unit.h"

#define BESIDE 70000                    /* bytes of the pattern behind what is fetched */

static uint32_t count;
static bool silent;                     /* the server has left off */

/* The frame of n bytes of a transfer, of which more may be said than there are. */
static struct frame data_frame(const struct wish *w, uint64_t at, uint64_t n, unsigned flags)
{
	return (struct frame){.kind = FRAME_DATA, .flags = (uint8_t)flags, .ctx = w->transfer, .seq = at,
		.bulk_len = n};
}

/* Those stripes of [at, at + n) that come by the first connection (0) or the second (1). */
static void put_stripes(int which, uint64_t at, uint64_t n)
{
	for (uint64_t i = (uint64_t)which * STRIPE; i < n; i += 2 * STRIPE)
		put_by(which ? second_peer : peer, NULL, pattern + at + i, n - i < STRIPE ? n - i : STRIPE);
}

static void put_part(const struct wish *w, uint64_t at, uint64_t n)
{
	struct frame f = data_frame(w, at, n, FRAME_STRIPED);
	put_by(peer, &f, NULL, 0);
	put_stripes(0, at, n);
	put_stripes(1, at, n);
}

static void put_lent_part(const struct wish *w, uint64_t at, uint64_t n)
{
	uint64_t slot = 0;
	while (slots_sent > slots_taken)
		if (!get_from(second_peer, &slots_taken, sizeof slots_taken))
			return;
	memcpy(slots, pattern + at, n);
	slots_sent++;
	put(data_frame(w, at, n, FRAME_LENT), &slot, sizeof slot);
}

/* ---- what is right in the end */

/* A piece as many of lengths that fit nothing, 0 among those of stripes. */
static void odd_lengths(const struct wish *w, uint64_t at, uint64_t n)
{
	static const uint64_t lengths[] = {0, 1, STRIPE - 1, STRIPE, STRIPE + 1, 0, 2 * STRIPE, 77777};
	for (unsigned i = local; n; i++) {
		uint64_t k = lengths[i % 8];
		k = k < n ? k : n;
		if (!local)
			put_part(w, at, k);
		else if (k)
			put_lent_part(w, at, k);
		at += k;
		n -= k;
	}
}

static void *later(void *arg)
{
	const struct wish *w = arg;
	usleep(50000);
	put_stripes(1, w->answer, w->data);
	return NULL;
}

/* The reply is there ahead of the last stripes. */
static void late(const struct wish *w, uint64_t at, uint64_t n)
{
	static struct wish piece;
	static pthread_t thread;
	struct frame f = data_frame(w, at, n, FRAME_STRIPED);
	put_by(peer, &f, NULL, 0);
	put_stripes(0, at, n);
	if (at + n < w->data) {
		put_stripes(1, at, n);
		return;
	}
	piece.answer = at;
	piece.data = n;
	pthread_create(&thread, NULL, later, &piece);
	pthread_detach(thread);
}

/* Data that nobody waits for goes ahead. */
static void of_others(const struct wish *w, uint64_t at, uint64_t n)
{
	struct wish other = {.transfer = w->transfer + 1000};
	if (local) {
		put_lent_part(&other, at, n);
		put_lent_part(w, at, n);
	} else {
		put_part(&other, at, n);
		put_part(w, at, n);
	}
}

/* ---- what is the end */

static void once_more(const struct wish *w, uint64_t at, uint64_t n)
{
	if (local)
		put_lent_part(w, at ? at - 1 : 0, n);
	else
		put_part(w, at ? at - 1 : 0, n);
}

static void striped_and_lent(const struct wish *w, uint64_t at, uint64_t n)
{
	uint64_t slot = 0;
	put(data_frame(w, at, n, FRAME_STRIPED | FRAME_LENT), &slot, sizeof slot);
}

/* The other of the two that the connection is for. */
static void of_the_other_kind(const struct wish *w, uint64_t at, uint64_t n)
{
	uint64_t slot = 0;
	if (local)
		put(data_frame(w, at, n, FRAME_STRIPED), pattern + at, n < STRIPE ? n : STRIPE);
	else
		put(data_frame(w, at, n, FRAME_LENT), &slot, sizeof slot);
}

static void nothing_lent(const struct wish *w, uint64_t at, uint64_t n)
{
	uint64_t slot = 0;
	(void)n;
	put(data_frame(w, at, 0, FRAME_LENT), &slot, sizeof slot);
}

/* In the middle of the first odd stripe. */
static void leave_off(const struct wish *w, uint64_t at, uint64_t n)
{
	struct frame f = data_frame(w, at, n, FRAME_STRIPED);
	if (silent)
		return;
	put_by(peer, &f, NULL, 0);
	put_stripes(0, at, n);
	put_by(second_peer, NULL, pattern + at + STRIPE, STRIPE / 2);
	silent = true;
}

static void cut_odd(const struct wish *w, uint64_t at, uint64_t n)
{
	leave_off(w, at, n);
	shutdown(second_peer, SHUT_RDWR);
}

static void cut_both(const struct wish *w, uint64_t at, uint64_t n)
{
	leave_off(w, at, n);
	shutdown(peer, SHUT_RDWR);
	shutdown(second_peer, SHUT_RDWR);
}

/* Of the second one nothing more comes. */
static void cut_first(const struct wish *w, uint64_t at, uint64_t n)
{
	leave_off(w, at, n);
	shutdown(peer, SHUT_RDWR);
}

/* ---- both */

static const struct {
	void (*put)(const struct wish *w, uint64_t at, uint64_t n);
	const char *what;
	bool striped, lent;             /* by which connections */
	bool slow;                      /* only time ends it */
	int error[2];                   /* 0: it arrives; one of these */
} lies[] = {
	{odd_lengths, "odd lengths", true, true, false, {0}},
	{late, "late stripes", true, false, false, {0}},
	{of_others, "of others", true, true, false, {0}},
	{once_more, "bytes once more", true, true, false, {EPROTO}},
	{striped_and_lent, "striped and lent", true, true, false, {EPROTO}},
	{of_the_other_kind, "of the other kind", true, true, false, {EPROTO}},
	{nothing_lent, "nothing lent", true, true, false, {EPROTO}},
	{leave_off, "left off", true, false, true, {ETIMEDOUT}},
	{cut_odd, "cut in an odd stripe", true, false, false, {ECONNRESET}},
	{cut_both, "both cut", true, false, false, {ECONNRESET}},
	{cut_first, "the first cut", true, false, true, {ECONNRESET, ETIMEDOUT}},
};
#define LIES (int)(sizeof lies / sizeof *lies)

static void begin(bool unix_socket)
{
	local = unix_socket;
	borrower = TAKES;
	lender = LENDS;
	count = 0;
	silent = false;
	setup();
	offer = OFFER_ONE;
	chunk = LIMIT_REPLY;
	for (int i = 0; i < 2000 && (local ? took_slots == 2 : word != SECOND_SERVES); i++) {
		ck_assert_int_eq(fetch(AREAS, ++count, LIMIT_REPLY), 0);
		usleep(5000);
	}
	ck_assert(local ? took_slots == 1 : word == SECOND_SERVES);
	memcpy(pinned, pattern, sizeof pattern);
}
static void begin_striped(void) { begin(false); }
static void begin_lent(void) { begin(true); }

static void lie(int i, enum way way)
{
	size_t n = sizeof pattern - BESIDE;
	uint64_t began = clock_ms();
	data_instead = lies[i].put;
	int e = -fetch(way, ++count, n);
	ck_assert_msg(e == lies[i].error[0] || (e && e == lies[i].error[1]), "%s, way %d: %s", lies[i].what,
		way, strerror(e));
	ck_assert_uint_le(clock_ms() - began, TIME_DEAD + 3000u * (unsigned)unit_slow());
	ck_assert_uint_eq(wrong, 0);
	ck_assert_mem_eq(pinned + n, pattern + n, BESIDE);
	data_instead = NULL;
	if (e)
		return;
	ck_assert_int_eq(fetch(way, ++count, n), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_eq(wrong, 0);
}

START_TEST(test_striped)
{
	if (lies[_i / WAYS].striped && !(lies[_i / WAYS].slow && _i % WAYS == FILE_READS))
		lie(_i / WAYS, (enum way)(_i % WAYS));
}
END_TEST

START_TEST(test_lent)
{
	if (lies[_i / WAYS].lent)
		lie(_i / WAYS, (enum way)(_i % WAYS));
}
END_TEST

/* More than the program awaits there: nothing of it is written. */
START_TEST(test_too_much)
{
	data_instead = local ? put_lent_part : put_part;
	data_more = 1;
	ck_assert_int_eq(fetch(_i ? AREAS : STRAIGHT, ++count, sizeof pattern - BESIDE), -EPROTO);
	ck_assert_mem_eq(pinned + sizeof pattern - BESIDE, pattern + sizeof pattern - BESIDE, BESIDE);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ring_lies");
	TCase *t = tcase_create("striped"), *l = tcase_create("lent");

	setenv("SCUDAFS_LANES", "2", 1);
	tcase_add_checked_fixture(t, begin_striped, teardown);
	tcase_add_checked_fixture(l, begin_lent, teardown);
	tcase_set_timeout(t, 60);
	tcase_set_timeout(l, 60);
	tcase_add_loop_test(t, test_striped, 0, LIES * WAYS);
	tcase_add_loop_test(t, test_too_much, 0, 2);
	tcase_add_loop_test(l, test_lent, 0, LIES * WAYS);
	tcase_add_loop_test(l, test_too_much, 0, 2);
	suite_add_tcase(s, t);
	suite_add_tcase(s, l);
	return unit_run(s);
}
