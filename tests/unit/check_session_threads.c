/* SPDX-License-Identifier: Apache-2.0 */
/* The session process when a program has many threads: order across them, waits under way at once, records
 * that go ahead of a stuck one, copies whose completion another answer tells. Thread rule: main's, which
 * stands for all the program's. */
#include "tests/unit/session_client.h"
#include "tests/unit/unit.h"

/* The end of the stream's host function that was asked for last, and a post that waits for the stream. */
static uint64_t stuck_post(struct client *c, struct reply *r, uint64_t stream)
{
	CALL(c, FRAME_POST, cuLaunchHostFunc, 1, PRIMARY, stream, 1);
	CALL(c, FRAME_POST, cuStreamSynchronize, 2, PRIMARY, stream);
	do
		client_frame(c, r);
	while (r->f.kind != FRAME_UPCALL);
	return r->f.seq;
}

/* Records that go ahead of a stuck post are not held without end: when enough wait for one of them that does
 * not return, more come in their turn. */
START_TEST(aside_limit)
{
	enum { ROUND = 6, BYTES = 1 << 20 };
	uint64_t held = HANDLE_ID(HANDLE_CUstream, 0x2000), other = HANDLE_ID(HANDLE_CUstream, 0x2001);
	static uint8_t body[BYTES];
	struct client c;
	struct reply r = {0};
	uint64_t first, upcall;
	int answers = 0;

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	CALL(&c, FRAME_POST, cuStreamCreate, 1, PRIMARY, 0, held);
	CALL(&c, FRAME_POST, cuStreamCreate, 1, PRIMARY, 0, other);
	CALL(&c, FRAME_POST, cuLaunchHostFunc, 1, PRIMARY, held, 1);
	do
		client_frame(&c, &r);
	while (r.f.kind != FRAME_UPCALL);
	first = r.f.seq;
	for (int round = 0; round < 2; round++) {
		upcall = stuck_post(&c, &r, other);
		if (!round) {
			uint8_t buf[16];
			struct msg m;

			msg_init(&m, buf, sizeof buf);
			put_u64(&m, held);
			client_send(&c, (struct frame){.kind = FRAME_WAIT, .flags = FRAME_ASIDE, .thread = 3,
				.ctx = PRIMARY, .call = CALL_cuStreamSynchronize}, &m, NULL, 0);
		}
		for (unsigned i = 0; i < ROUND; i++)
			client_send(&c, (struct frame){.kind = FRAME_WAIT, .flags = FRAME_ASIDE,
				.thread = 4 + round * ROUND + i, .ctx = PRIMARY,
				.call = CALL_cuMemGetInfo_v2},
				NULL, body, BYTES);
		usleep(100000); /* the reader looks every 2 ms */
		client_send(&c, (struct frame){.kind = FRAME_UPCALL_DONE, .seq = upcall}, NULL, NULL, 0);
	}
	for (; answers < 1 + 2 * ROUND; answers += r.f.kind == FRAME_REPLY) {
		/* 12 MiB are more than LIMIT_QUEUE: 5 of them at least are answered before that returns. */
		if (answers == 5)
			client_send(&c, (struct frame){.kind = FRAME_UPCALL_DONE, .seq = first}, NULL, NULL,
					0);
		client_frame(&c, &r);
		ck_assert(r.f.kind == FRAME_REPLY || r.f.kind == FRAME_PONG);
	}
	client_close(&c);
	free(r.bulk);
}
END_TEST

/* Copies whose completion is told later: small ones lie in the answer that tells it, large ones came before
 * it, and none is missing or comes twice. A host function's call brings them, too. */
START_TEST(deliveries)
{
	enum { SMALL = 300, LARGE = 3, BYTES = 60000 };
	struct client c;
	struct reply r = {0};
	uint64_t p, wait, seen[SMALL + LARGE + 1] = {0};

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuMemAlloc_v2, 1, PRIMARY, BYTES)), 0);
	p = get_u64(&r.m);
	for (int host_function = 0; host_function < 2; host_function++) {
		memset(seen, 0, sizeof seen);
		CALL(&c, FRAME_POST, cuMemsetD8Async, 1, PRIMARY, p, 0x5a + host_function, BYTES, 0);
		for (uint64_t t = 1; t <= SMALL + LARGE; t++)
			CALL(&c, FRAME_POST, cuMemcpyDtoHAsync_v2, 1 + t % 3, PRIMARY, COPY_ASYNC, 0, p,
					t <= SMALL ? 8 * t : BYTES, t);
		if (host_function)
			CALL(&c, FRAME_POST, cuLaunchHostFunc, 1, PRIMARY, 0, 77);
		wait = CALL(&c, FRAME_WAIT, cuStreamSynchronize, 1, PRIMARY, 0);
		for (bool over = false; !over;) {
			const struct delivery *d;
			const uint8_t *inlined;
			size_t room;

			client_frame(&c, &r);
			if (r.f.kind == FRAME_DATA) {
				ck_assert_uint_le(r.f.ctx, SMALL + LARGE);
				ck_assert_uint_eq(r.f.seq, seen[r.f.ctx]);
				seen[r.f.ctx] += r.f.bulk_len;
				ck_assert_uint_eq(r.bulk[r.f.bulk_len - 1], 0x5a + host_function);
				continue;
			}
			if (r.f.kind == FRAME_PONG)
				continue;
			d = (const struct delivery *)r.bulk;
			inlined = r.bulk + r.f.deliveries * sizeof *d;
			room = r.f.bulk_len - r.f.deliveries * sizeof *d;
			for (unsigned i = 0; i < r.f.deliveries; i++, d++) {
				ck_assert_uint_ge(d->transfer, 1);
				ck_assert_uint_le(d->transfer, SMALL + LARGE);
				if (d->bytes > DELIVERY_INLINE || d->bytes > room)
					continue;
				ck_assert_uint_eq(inlined[d->bytes - 1], 0x5a + host_function);
				seen[d->transfer] += d->bytes;
				inlined += d->bytes;
				room -= d->bytes;
			}
			ck_assert_uint_eq(room, 0);
			if (r.f.kind == FRAME_UPCALL)
				client_send(&c, (struct frame){.kind = FRAME_UPCALL_DONE, .seq = r.f.seq},
						NULL, NULL, 0);
			over = r.f.kind == FRAME_REPLY && r.f.seq == wait;
		}
		for (uint64_t t = 1; t <= SMALL + LARGE; t++)
			ck_assert_msg(seen[t] == (t <= SMALL ? 8 * t : BYTES), "transfer %d has %d bytes",
					(int)t,
					(int)seen[t]);
	}
	client_close(&c);
	free(r.bulk);
}
END_TEST

/* Many threads, each with a wait under way at the same time; they end and come again. */
START_TEST(threads)
{
	enum { THREADS = 40, ROUNDS = 30 };
	struct client c;
	struct reply r = {0};
	bool seen[THREADS * 2 + 10];

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t first = c.seq + 1;

		memset(seen, 0, sizeof seen);
		c.beats = 77 + (unsigned)round;
		for (unsigned t = 0; t < THREADS; t++) {
			CALL(&c, FRAME_POST, cuStreamSynchronize, 2 + t, PRIMARY, 0);
			client_call(&c, FRAME_WAIT, CALL_cuMemGetInfo_v2, 2 + t, PRIMARY, 0, NULL);
		}
		for (unsigned t = 0; t < THREADS; t++) {
			do
				client_frame(&c, &r);
			while (r.f.kind == FRAME_PONG);
			ck_assert_int_eq(r.f.kind, FRAME_REPLY);
			ck_assert_uint_ge(r.f.seq, first);
			ck_assert_uint_le(r.f.seq, c.seq);
			ck_assert(!seen[r.f.seq - first]);
			seen[r.f.seq - first] = true;
			ck_assert_int_eq(get_i64(&r.m), 0);
		}
		for (unsigned t = 0; t < THREADS; t += 1 + round % 3)
			client_send(&c, (struct frame){.kind = FRAME_THREAD_END, .thread = 2 + t}, NULL,
					NULL, 0);
		client_send(&c, (struct frame){.kind = FRAME_THREAD_END, .thread = 999999}, NULL, NULL, 0);
		/* A busy session says PONG unasked, with number 0; it answers the last of several PINGs, and
		 * none while something else is being written: the next beat asks again. */
		client_send(&c, (struct frame){.kind = FRAME_PING, .seq = c.beats}, NULL, NULL, 0);
		do
			client_frame(&c, &r);
		while (r.f.kind == FRAME_PONG && r.f.seq != c.beats);
		ck_assert_int_eq(r.f.kind, FRAME_PONG);
	}
	client_close(&c);
	free(r.bulk);
}
END_TEST

/* Each call of a chain comes from another thread and needs the one before. */
START_TEST(order)
{
	struct client c;
	struct reply r = {0};

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	for (uint64_t i = 0; i < 400; i++) {
		uint64_t id = HANDLE_ID(HANDLE_CUstream, 0x2000 + i);

		CALL(&c, FRAME_POST, cuStreamCreate, 1 + i % 7, PRIMARY, 0, id);
		CALL(&c, FRAME_POST, cuStreamSynchronize, 1 + i % 5, PRIMARY, id);
		CALL(&c, FRAME_POST, cuStreamDestroy_v2, 1 + i % 3, PRIMARY, id);
	}
	ck_assert_int_eq(client_reply(&c, &r, client_call(&c, FRAME_WAIT, CALL_cuMemGetInfo_v2, 1, PRIMARY,
			0, NULL)), 0);
	ck_assert_uint_eq(r.f.thread, 0);
	client_close(&c);
	free(r.bulk);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("session_threads");
	TCase *t = tcase_create("process");

	if (access(test_library(), R_OK)) {
		printf("SKIP: no %s\n", test_library());
		return 77;
	}
	tcase_set_timeout(t, 120);
	tcase_add_test(t, aside_limit);
	tcase_add_test(t, deliveries);
	tcase_add_test(t, threads);
	tcase_add_test(t, order);
	suite_add_tcase(s, t);
	return unit_run(s);
}
