/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared by a program and its mount, both ends in one process: threads that post, wait and copy, with
 * and without looking, a full ring, no slots, an end. Thread rule: as the shim has it. */
#include "tests/unit/ring_server.h"
#include "tests/unit/unit.h"

static void place(void *to, uint64_t offset, const void *p, size_t n)
{
	memcpy((uint8_t *)to + offset, p, n);
}

/* The sum of the bulk bytes that were sent; UINT64_MAX: something was wrong. */
static uint64_t exchange(uint32_t thread, unsigned rounds)
{
	static const uint64_t answers[] = {0, 100, 4000, 16000, 16300, 60000, 200000, LIMIT_REPLY - 1};
	static const uint64_t transfers[] = {1, 300, 65536, 300001, LIMIT_REPLY, sizeof pattern};
	static const size_t bulks[] = {0, 0, 0, 10, 4000, 32768, 100000, 131072, 131073, 700000, 1 << 20,
			sizeof pattern};
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)], *own = malloc(sizeof pattern), *to = own;
	uint64_t to_at = 0;
	unsigned forks = 0;
	uint8_t *seen = arena_alloc(sizeof pattern, &to_at, &forks);
	uint64_t sum = 0;
	unsigned seed = thread;
	struct answer a;
	struct record r;
	int e = 0;
	for (unsigned i = 1; i <= rounds && !e; i++) {
		struct wish w = {.thread = thread, .count = i};
		unsigned kind = (unsigned)rand_r(&seed) % 8;
		unsigned size = (unsigned)rand_r(&seed) % 64, at = size % 3 ? 0 : pinned_at ? 17 : 0;
		size_t bulk = bulks[size < 62 ? size % 11 : 11];
		if (kind == 0) {
			uint64_t got = 0;
			bool direct = seen && rand_r(&seed) % 3 == 0;
			w.data = transfers[(unsigned)rand_r(&seed) % 6];
			to = direct ? seen : own;
			w.transfer = thread * 100000 + i;
			fill(&r, bytes, FRAME_WAIT, &w);
			memset(to, 0, w.data);
			e = channel_wait_data(&r, w.transfer, w.data, direct ? to_at : 0, place, to, &got,
					&a);
			if (e == -ENOTSUP || e == -EAGAIN) {
				e = e == -ENOTSUP ? channel_send(&r) : 0;
				for (long n; got < w.data && !e; got += n > 0 ? (uint64_t)n : 0) {
					n = channel_read_data(w.transfer, got, to + got,
							w.data - got < LIMIT_REPLY ? w.data - got :
							LIMIT_REPLY);
					e = n < 0 && n != -EAGAIN ? (int)n : 0;
				}
				e = e ? e : channel_await(r.seq, 0, &a);
			}
			wrong += got != w.data || memcmp(to, pattern, w.data);
		} else if (kind < 4) {
			w.answer = answers[(unsigned)rand_r(&seed) % 8];
			fill(&r, bytes, FRAME_WAIT, &w);
			r.bulk = at ? pinned + at : pattern;
			r.bulk_len = bulk - (bulk > at ? at : 0);
			r.bulk_at = at && r.bulk_len ? pinned_at + at : 0;
			e = channel_wait(&r, w.answer, &a);
			wrong += !e && (a.frame.seq != r.seq || a.frame.bulk_len != w.answer ||
					*a.head != *pattern || memcmp(a.bulk, pattern + 1, w.answer));
			channel_taken();
		} else {
			fill(&r, bytes, FRAME_POST, &w);
			r.bulk = at ? pinned + at : pattern;
			r.bulk_len = bulk - (bulk > at ? at : 0);
			r.bulk_at = at && r.bulk_len ? pinned_at + at : 0;
			r.bulk_held = i % 2;
			e = channel_post(&r);
		}
		if (r.bulk_len)
			sum += sum_of(r.bulk, r.bulk_len, 0);
	}
	if (seen)
		arena_free(seen, sizeof pattern, to_at, forks);
	free(own);
	return e ? UINT64_MAX : sum;
}

static uint64_t sums[THREADS];
static unsigned rounds;
static void *worker(void *thread)
{
	sums[(uintptr_t)thread] = exchange((uint32_t)(uintptr_t)thread + 1, rounds);
	channel_thread_finish();
	return NULL;
}


/* With and without looking. */
static void exchange_by_threads(unsigned threads)
{
	pthread_t t[THREADS];
	uint64_t sum = 0;
	for (uintptr_t i = 0; i < threads; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, worker, (void *)i), 0);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(t[i], NULL);
		ck_assert_uint_ne(sums[i], UINT64_MAX);
		sum += sums[i];
	}
	/* What the last posts brought is sure to be there after a wait. */
	ck_assert_int_eq(settle(rounds + 1), 0);
	ck_assert_uint_eq(records, threads * rounds + 1);
	ck_assert_uint_eq(bulk_sum, sum);
}

START_TEST(test_one_thread)
{
	ring.spin_ns = _i ? 30000 : 0;
	rounds = 300;
	exchange_by_threads(1);
}
END_TEST

START_TEST(test_threads)
{
	ring.spin_ns = _i ? 30000 : 0;
	rounds = 150;
	exchange_by_threads(THREADS);
}
END_TEST

/* Many posts, so that the ring is full for long: the rest goes by the node, and all comes in order. */
START_TEST(test_full)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct record r;
	struct answer a;
	rounds = 6000;
	for (unsigned i = 1; i <= rounds; i++) {
		struct wish w = {.thread = 1, .count = i};
		fill(&r, bytes, i == rounds ? FRAME_WAIT : FRAME_POST, &w);
		r.bulk = pattern;
		r.bulk_len = 20000;
		ck_assert_int_eq(i == rounds ? channel_wait(&r, 0, &a) : channel_post(&r), 0);
	}
	ck_assert_uint_ge(markers, 2);
	ck_assert_uint_eq(records, rounds + markers);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* All slots are taken: the others wait without one. */
START_TEST(test_no_slots)
{
	while (ring_take_slot(0) >= 0)
		;
	while (ring_take_area() >= 0)
		;
	rounds = 60;
	exchange_by_threads(THREADS);
}
END_TEST

/* A wait for an answer that nobody was asked for ends at once. */
START_TEST(test_nothing_asked)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = 1};
	struct record r;
	struct answer a;
	fill(&r, bytes, FRAME_WAIT, &w);
	ck_assert_int_eq(channel_wait(&r, 0, &a), 0);
	ck_assert_int_eq(node_sleep(r.seq), 0);
	ck_assert_int_eq(channel_await(r.seq + 5, 0, &a), -EPROTO);
}
END_TEST

/* Few threads look long for their answers; none when the program wants its waits asleep. */
START_TEST(test_look_time)
{
	bool counts;
	ring.spin_ns = 30000;
	ring.await_ns = 7000000;
	ring.awaiting_most = 2;
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(look_time(&counts), 7000000);
		ck_assert(counts);
	}
	ck_assert_uint_eq(look_time(&counts), 30000);
	ck_assert(!counts);
	ring.awaiting = 0;
	rounds = 20;
	exchange_by_threads(THREADS);
	ck_assert_uint_eq(ring.awaiting, 0);
	ring_wait_asleep();
	ck_assert_uint_eq(look_time(&counts), 30000);
	ck_assert(!counts);
}
END_TEST

/* The session ends: posts and waits say so. */
START_TEST(test_end)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = 1};
	struct record r;
	struct answer a;
	fill(&r, bytes, FRAME_WAIT, &w);
	ck_assert_int_eq(channel_wait(&r, 0, &a), 0);
	shutdown(peer, SHUT_RDWR);
	ck_assert_int_eq(channel_wait(&r, 0, &a), -ECONNRESET);
	ck_assert_int_eq(channel_post(&r), -ECONNRESET);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ring");
	TCase *t = tcase_create("good");

	setenv("SCUDAFS_LANES", "2", 1);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_one_thread, 0, 2);
	tcase_add_loop_test(t, test_threads, 0, 2);
	tcase_add_test(t, test_full);
	tcase_add_test(t, test_no_slots);
	tcase_add_test(t, test_nothing_asked);
	tcase_add_test(t, test_look_time);
	tcase_add_test(t, test_end);
	suite_add_tcase(s, t);
	return unit_run(s);
}
