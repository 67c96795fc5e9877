/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is not ours writes garbage into the memory that it shares with the mount: its session ends
 * or goes on, no more. Thread rule: main writes while the relay's threads read. */
#include "tests/unit/ring_server.h"
#include "tests/unit/unit.h"

static int wait_for_error(void)
{
	int e = 0;
	for (unsigned i = 0; i < 3000 && !(e = atomic_load(&ring.control->error)); i++) {
		ring_wake(ALIVE_EVERY + 1);
		usleep(1000);
	}
	return e;
}

static const struct ring_segment bad[] = {
	{.len = 0, .batch = 1},
	{.len = RING_RECORD + 1, .batch = 1},
	{.len = UINT32_MAX, .batch = 1},
	{.len = 100, .batch = 1},                           /* longer than what was appended */
	{.len = 40, .batch = 0},
	{.len = 40, .batch = 1, .zero = 1},
	{.len = 40, .batch = 1, .slot = RING_SLOTS + 1, .seq = 1},
	{.len = 40, .batch = 1, .slot = 255, .seq = 1},
	{.len = 40, .batch = 1, .slot = 1},                 /* of no record */
	{.len = 40, .batch = 1, .area = RING_SLOTS},        /* an area alone */
	{.len = 40, .batch = 1, .slot = 1, .seq = 1, .area = 1},            /* a small one */
	{.len = 40, .batch = 1, .slot = 1, .seq = 1, .area = 255},
	{.len = 40, .batch = 1, .slot = RING_SLOTS, .seq = 1, .area = RING_SLOTS},
	{.len = 40, .batch = 1, .slot = 1, .seq = 1, .area = RING_SINK},    /* a sink of no bytes */
	{.len = 40, .batch = 1, .slot = 2, .seq = 1, .area = RING_SINK},    /* those of bad_sinks */
	{.len = 40, .batch = 1, .slot = 3, .seq = 1, .area = RING_SINK},
	{.len = 40, .batch = 1, .slot = 4, .seq = 1, .area = RING_SINK},
	{.len = 40, .batch = 1, .slot = 5, .seq = 1, .area = RING_SINK},
	{.len = 40, .batch = 1},                            /* good; its record is not */
};
static const struct { uint64_t at, n, room; } bad_sinks[] = {{LIMIT_ARENA, 1, 0}, {4096, UINT64_MAX, 0},
	{LIMIT_ARENA - 4096, 1 << 20, 4097}, {UINT64_MAX, 1, 1}};
START_TEST(test_bad_segment)
{
	uint8_t none[40] = {0};
	for (unsigned i = 0; i < sizeof bad_sinks / sizeof *bad_sinks; i++) {
		struct ring_slot *s = ring_slot_at(ring.memory, i + 1);
		s->at = bad_sinks[i].at, s->n = bad_sinks[i].n, s->room = bad_sinks[i].room;
	}
	ring_copy_in(ring.memory, 0, &bad[_i], sizeof bad[_i]);
	ring_copy_in(ring.memory, sizeof bad[_i], none, sizeof none);
	atomic_store(&ring.control->head, sizeof bad[_i] + sizeof none);
	ck_assert_int_eq(wait_for_error(), EPROTO);
}
END_TEST

static const struct ring_bulk bad_bulks[] = {
	{.batch = 1, .at = LIMIT_ARENA, .len = 1},
	{.batch = 1, .at = LIMIT_ARENA - 4096, .len = 4097},
	{.batch = 1, .at = 4096, .len = UINT64_MAX},
	{.batch = 1, .at = UINT64_MAX, .len = 2},
	{.batch = 1, .at = 0, .len = 0},
	{.batch = 0, .at = 0, .len = 100},
	{.batch = 1, .at = 0, .len = 100},                  /* good; but no record has begun */
};
START_TEST(test_bad_bulk)
{
	*ring_bulk_at(ring.memory, 0) = bad_bulks[_i];
	atomic_store(&ring.control->given, 1);
	ck_assert_int_eq(wait_for_error(), EPROTO);
}
END_TEST

START_TEST(test_bad_given)
{
	static const uint64_t all[] = {RING_BULKS + 1, UINT64_MAX, 1ull << 63};
	atomic_store(&ring.control->given, all[_i]);
	ck_assert_int_eq(wait_for_error(), EPROTO);
}
END_TEST

static const uint64_t heads[] = {1, 31, RING_BYTES + 1, UINT64_MAX, 1ull << 63};
START_TEST(test_bad_head)
{
	memset(ring.memory + RING_AT, 0xa5, RING_BYTES);
	atomic_store(&ring.control->head, heads[_i]);
	ck_assert_int_eq(wait_for_error(), EPROTO);
}
END_TEST

/* Whatever it writes, and while we read: the session ends or goes on, no more. */
START_TEST(test_garbage)
{
	unsigned seed = (unsigned)_i;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t at = (uint64_t)rand_r(&seed) * 8;
		uint64_t word = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 40);
		uint64_t given = atomic_load(&ring.control->given);
		if (i % 80 == 0 && given < RING_BULKS) {
			*ring_bulk_at(ring.memory, given) = (struct ring_bulk){.batch = 1 + (i + 49) / 50,
				.at = word % 4096, .len = word % 70000};
			atomic_store(&ring.control->given, given + 1);
		}
		if (i % 50 == 0) {
			struct ring_segment s = {.len = 40 + (uint32_t)rand_r(&seed) % 5000,
				.batch = 1 + i / 50, .seq = word % 4,
				.slot = (uint8_t)(rand_r(&seed) % (RING_SLOTS + 2))};
			uint64_t head = atomic_load(&ring.control->head);
			ring_copy_in(ring.memory, head, &s, sizeof s);
			atomic_store(&ring.control->head,
					head + (i % 3 ? ring_bytes(s.len) : word % RING_BYTES));
			ring_wake(i + 1);
		}
		/* Words, as the mount's loads and stores are not ours to order. */
		__atomic_store_n((uint64_t *)(ring.memory + RING_AT + at % (RING_ALL - RING_AT)), word,
			__ATOMIC_RELAXED);
	}
	struct ctl_wait w;
	struct op o;
	op_init(&o, &w, sizeof w);
	relay_wait(relay, 0, 3, NULL, 0, 0, &o.q);
	relay_interrupt(relay_id(relay), &o);
	op_end(&o);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ring_hostile");
	TCase *u = tcase_create("bad");

	setenv("SCUDAFS_LANES", "2", 1);
	tcase_add_checked_fixture(u, setup, teardown);
	tcase_set_timeout(u, 60);
	tcase_add_loop_test(u, test_bad_segment, 0, sizeof bad / sizeof *bad);
	tcase_add_loop_test(u, test_bad_bulk, 0, sizeof bad_bulks / sizeof *bad_bulks);
	tcase_add_loop_test(u, test_bad_given, 0, 3);
	tcase_add_loop_test(u, test_bad_head, 0, sizeof heads / sizeof *heads);
	tcase_add_loop_test(u, test_garbage, 0, 6);
	suite_add_tcase(s, u);
	return unit_run(s);
}
