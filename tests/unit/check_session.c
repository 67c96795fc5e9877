/* SPDX-License-Identifier: Apache-2.0 */
/* The session process over a socketpair, with the software device: records in order, threads, failed
 * posts, handles, and everything that ends it. */
#include "tests/unit/session_client.h"
#include "tests/unit/unit.h"
#include "wire/digest.h"
#include "wire/image.h"

START_TEST(begins_and_ends)
{
	struct client c;
	struct reply r = {0};

	client_start(&c);
	/* PING is answered before the hello, too. */
	client_send(&c, (struct frame){.kind = FRAME_PING, .seq = 5}, NULL, NULL, 0);
	client_frame(&c, &r);
	ck_assert_int_eq(r.f.kind, FRAME_PONG);
	ck_assert_uint_eq(r.f.seq, 5);
	client_hello(&c);
	client_context(&c);
	ck_assert_uint_eq(atomic_load(&c.report->records), 2);
	close(c.fd);
	c.fd = -1;
	client_finish(&c, "closed the connection");
	free(r.bulk);
}
END_TEST

START_TEST(memory)
{
	struct client c;
	struct reply r = {0};
	uint64_t p, free_bytes;

	client_start(&c);
	client_hello(&c);
	/* Without a context. */
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuMemAlloc_v2, 1, 0, 4096)),
			CUDA_ERROR_INVALID_CONTEXT);
	ck_assert(get_end(&r.m));
	client_context(&c);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuMemAlloc_v2, 1, PRIMARY, 1 << 20)), 0);
	p = get_u64(&r.m);
	ck_assert(get_end(&r.m));
	ck_assert_uint_ne(p, 0);
	ck_assert_int_eq(client_reply(&c, &r, client_call(&c, FRAME_WAIT, CALL_cuMemGetInfo_v2, 1, PRIMARY,
			0, NULL)), 0);
	free_bytes = get_u64(&r.m);
	ck_assert_uint_le(free_bytes, get_u64(&r.m));
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuMemFree_v2, 1, PRIMARY, p)), 0);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuMemFree_v2, 1, PRIMARY, p)),
			CUDA_ERROR_INVALID_VALUE);
	client_close(&c);
	free(r.bulk);
}
END_TEST

START_TEST(handles)
{
	uint64_t id = HANDLE_ID(HANDLE_CUstream, 0x2000);
	struct client c;
	struct reply r = {0};

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	CALL(&c, FRAME_POST, cuStreamCreate, 1, PRIMARY, 0, id);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuStreamSynchronize, 1, PRIMARY, id)), 0);
	ck_assert_uint_eq(r.f.thread, 0);
	/* Unknown, of another type, and after its end. */
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuStreamSynchronize, 1, PRIMARY,
			id + 1)), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuStreamSynchronize, 1, PRIMARY,
			PRIMARY)), CUDA_ERROR_INVALID_HANDLE);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuStreamDestroy_v2, 1, PRIMARY, id)), 0);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuStreamSynchronize, 1, PRIMARY, id)),
			CUDA_ERROR_INVALID_HANDLE);
	/* The default streams need no entry. */
	for (uint64_t i = 0; i < 3; i++)
		ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuStreamSynchronize, 1, PRIMARY,
				i)), 0);
	client_close(&c);
	free(r.bulk);
}
END_TEST

/* The first failed post is told once, by the next reply, with its number. */
START_TEST(failed_posts)
{
	uint64_t id = HANDLE_ID(HANDLE_CUstream, 0x2000), failed;
	struct client c;
	struct reply r = {0};

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	failed = CALL(&c, FRAME_POST, cuStreamDestroy_v2, 1, PRIMARY, id);
	CALL(&c, FRAME_POST, cuStreamCreate, 1, PRIMARY, 0xffff, id);
	ck_assert_int_eq(client_reply(&c, &r, client_call(&c, FRAME_WAIT, CALL_cuMemGetInfo_v2, 1, PRIMARY,
			0, NULL)), 0);
	ck_assert_uint_eq(r.f.thread, CUDA_ERROR_INVALID_HANDLE);
	ck_assert_uint_eq(r.f.ctx >> 32, failed);
	ck_assert_int_eq(client_reply(&c, &r, client_call(&c, FRAME_WAIT, CALL_cuMemGetInfo_v2, 1, PRIMARY,
			0, NULL)), 0);
	ck_assert_uint_eq(r.f.thread, 0);
	client_close(&c);
	free(r.bulk);
}
END_TEST

/* A load by a post, of an image that the server does not have any more: the next answer tells so, what was
 * taken of it is no handle, and the session goes on. */
START_TEST(failed_load)
{
	uint64_t library = HANDLE_ID(HANDLE_CUlibrary, 0x2000), kernel = HANDLE_ID(HANDLE_CUkernel, 0x2001),
			failed;
	uint8_t buf[512], d[DIGEST] = {1};
	struct client c;
	struct reply r = {0};
	struct msg m;

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	msg_init(&m, buf, sizeof buf);
	put_u64(&m, IMAGE_PTX);
	put_array(&m, 1);
	put_u64(&m, 1000);
	put_bytes(&m, d, sizeof d);
	put_array(&m, 0);
	put_u64(&m, library);
	failed = client_send(&c, (struct frame){.kind = FRAME_POST, .call = CALL_cuLibraryLoadData,
			.thread = 1}, &m, NULL, 0);
	msg_init(&m, buf, sizeof buf);
	put_u64(&m, library);
	put_text(&m, "k");
	put_u64(&m, kernel);
	client_send(&c, (struct frame){.kind = FRAME_POST, .call = CALL_cuLibraryGetKernel, .thread = 1}, &m,
			NULL, 0);
	ck_assert_int_eq(client_reply(&c, &r, client_call(&c, FRAME_WAIT, CALL_cuMemGetInfo_v2, 1, PRIMARY, 0,
			NULL)), 0);
	ck_assert_uint_eq(r.f.thread, CUDA_ERROR_INVALID_IMAGE);
	ck_assert_uint_eq(r.f.ctx >> 32, failed);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuKernelGetFunction, 1, PRIMARY, kernel,
			0)),
			CUDA_ERROR_INVALID_HANDLE);
	client_close(&c);
	free(r.bulk);
}
END_TEST

/* A call that the server describes otherwise is named in the hello's answer and never run. */
START_TEST(unknown_calls)
{
	uint8_t buf[512];
	struct client c;
	struct reply r = {0};
	struct msg m;
	char key[32];

	client_start(&c);
	msg_init(&m, buf, sizeof buf);
	put_map(&m, 2);
	put_text(&m, "protocol");
	put_i64(&m, PROTOCOL_VERSION);
	put_text(&m, "calls");
	put_array(&m, 3);
	put_array(&m, 2);
	put_text(&m, "cuOfAnotherWorld");
	put_u64(&m, 1);
	put_array(&m, 2);
	put_text(&m, call_names[CALL_cuMemGetInfo_v2].name);
	put_u64(&m, call_names[CALL_cuMemGetInfo_v2].signature + 1);
	put_array(&m, 2);
	put_text(&m, call_names[CALL_cuMemGetInfo_v2].name);
	put_u64(&m, call_names[CALL_cuMemGetInfo_v2].signature);
	client_send(&c, (struct frame){.kind = FRAME_HELLO, .thread = 1}, &m, NULL, 0);
	client_frame(&c, &r);
	ck_assert_int_eq(r.f.kind, FRAME_REPLY);
	for (size_t n = get_map(&r.m, 10); n; n--) {
		get_text(&r.m, key, sizeof key);
		if (strcmp(key, "unknown")) {
			get_skip(&r.m);
			continue;
		}
		ck_assert_uint_eq(get_array(&r.m, 10), 2);
		ck_assert_uint_eq(get_u64(&r.m), 0);
		ck_assert_uint_eq(get_u64(&r.m), 1);
	}
	ck_assert(get_end(&r.m));
	for (unsigned call = 0; call < 2; call++)
		ck_assert_int_eq(client_reply(&c, &r, client_call(&c, FRAME_WAIT, call, 1, 0, 0, NULL)),
				CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(client_reply(&c, &r, client_call(&c, FRAME_WAIT, 2, 1, 0, 0, NULL)),
			CUDA_ERROR_INVALID_CONTEXT);
	client_close(&c);
	free(r.bulk);
}
END_TEST

static void list_hello(struct client *c, uint64_t list)
{
	uint8_t buf[128];
	struct msg m;

	msg_init(&m, buf, sizeof buf);
	put_map(&m, 2);
	put_text(&m, "protocol");
	put_i64(&m, PROTOCOL_VERSION);
	put_text(&m, "list");
	put_u64(&m, list);
	client_send(c, (struct frame){.kind = FRAME_HELLO, .thread = 1}, &m, NULL, 0);
}

/* The number of this build's list stands for the list; another number makes the server ask for it, once. */
START_TEST(list)
{
	struct client c;
	struct reply r = {0};
	char key[32];

	client_start(&c);
	if (_i) {
		list_hello(&c, CALL_LIST + 1);
		client_frame(&c, &r);
		ck_assert_int_eq(r.f.kind, FRAME_REPLY);
		ck_assert_uint_eq(get_map(&r.m, 10), 1);
		get_text(&r.m, key, sizeof key);
		ck_assert_str_eq(key, "again");
		ck_assert(get_bool(&r.m) && get_end(&r.m));
	}
	if (_i == 2) {
		list_hello(&c, CALL_LIST + 1);
		client_frame(&c, &r);
		ck_assert_int_eq(r.f.kind, FRAME_BYE);
	} else if (_i) {
		client_hello(&c);
	} else {
		list_hello(&c, CALL_LIST);
		client_frame(&c, &r);
		ck_assert_int_eq(r.f.kind, FRAME_REPLY);
		ck_assert_uint_eq(get_map(&r.m, 10), 7);
	}
	if (_i < 2)
		client_context(&c);
	client_close(&c);
	free(r.bulk);
}
END_TEST

/* The stream waits for the program's host function, and so does who waits for the stream. */
START_TEST(host_function)
{
	struct client c;
	struct reply r = {0};
	struct pollfd w;
	uint64_t wait, upcall;

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	for (uint64_t i = 42; i < 45; i++) {
		CALL(&c, FRAME_POST, cuLaunchHostFunc, 1, PRIMARY, 0, i);
		wait = CALL(&c, FRAME_WAIT, cuStreamSynchronize, 1, PRIMARY, 0);
		client_frame(&c, &r);
		ck_assert_int_eq(r.f.kind, FRAME_UPCALL);
		ck_assert_uint_eq(get_u64(&r.m), i);
		ck_assert(get_end(&r.m));
		upcall = r.f.seq;
		w = (struct pollfd){.fd = c.fd, .events = POLLIN};
		ck_assert_int_eq(poll(&w, 1, 100), 0);
		/* Another one's end changes nothing. */
		client_send(&c, (struct frame){.kind = FRAME_UPCALL_DONE, .seq = upcall + 1000}, NULL, NULL,
				0);
		ck_assert_int_eq(poll(&w, 1, 50), 0);
		client_send(&c, (struct frame){.kind = FRAME_UPCALL_DONE, .seq = upcall}, NULL, NULL, 0);
		ck_assert_int_eq(client_reply(&c, &r, wait), 0);
	}
	/* A program that dies in one ends its session all the same. */
	CALL(&c, FRAME_POST, cuLaunchHostFunc, 1, PRIMARY, 0, 1);
	client_call(&c, FRAME_WAIT, CALL_cuCtxSynchronize, 1, PRIMARY, 0, NULL);
	client_frame(&c, &r);
	ck_assert_int_eq(r.f.kind, FRAME_UPCALL);
	client_close(&c);
	free(r.bulk);
}
END_TEST

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

/* ---- what ends a session ---- */

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
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .flags = FRAME_MORE}, "unknown flags"},
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .flags = FRAME_STRIPED}, "stripes of no connection"},
	{{.kind = FRAME_GET_SNAPSHOT}, "in a session"},
	{{.kind = FRAME_POST, .thread = 1, .seq = 3, .call = CALL_cuMemAlloc_v2},
			"malformed call of cuMemAlloc_v2"},
};

static void expect_bye(struct client *c, const char *reason)
{
	struct reply r = {0};

	do
		client_frame(c, &r);
	while (r.f.kind != FRAME_BYE);
	ck_assert_uint_eq(get_array(&r.m, 2), 2);
	ck_assert_int_ne(get_i64(&r.m), 0);
	get_skip(&r.m);
	ck_assert(get_end(&r.m));
	free(r.bulk);
	/* The session waits for us to have read it. */
	close(c->fd);
	c->fd = -1;
	client_finish(c, reason);
}

START_TEST(bad_frames)
{
	struct client c;

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	client_raw(&c, &bad[_i].f, sizeof bad[_i].f);
	expect_bye(&c, bad[_i].reason);
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
	expect_bye(&c, strstr(heads[_i].bytes, "protocol") ? "speaks protocol 1" : "malformed hello");
}
END_TEST

START_TEST(record_before_hello)
{
	struct client c;

	client_start(&c);
	client_call(&c, FRAME_WAIT, 0, 1, 0, 0, NULL);
	expect_bye(&c, "before HELLO");
}
END_TEST

START_TEST(too_many_threads)
{
	struct client c;

	client_start(&c);
	client_hello(&c);
	for (unsigned i = 1; i <= LIMIT_THREADS + 1; i++)
		client_call(&c, FRAME_POST, CALL_cuMemGetInfo_v2, i, 0, 0, NULL);
	expect_bye(&c, "threads");
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

START_TEST(told_to_stop)
{
	struct client c;

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	kill(c.pid, SIGTERM);
	expect_bye(&c, "stopping");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("session");
	TCase *t = tcase_create("process");

	if (access(test_library(), R_OK)) {
		printf("SKIP: no %s\n", test_library());
		return 77;
	}
	tcase_set_timeout(t, 120);
	tcase_add_test(t, begins_and_ends);
	tcase_add_test(t, memory);
	tcase_add_test(t, handles);
	tcase_add_test(t, failed_posts);
	tcase_add_test(t, failed_load);
	tcase_add_test(t, unknown_calls);
	tcase_add_loop_test(t, list, 0, 3);
	tcase_add_test(t, host_function);
	tcase_add_test(t, aside_limit);
	tcase_add_test(t, deliveries);
	tcase_add_test(t, threads);
	tcase_add_test(t, order);
	tcase_add_loop_test(t, bad_frames, 0, sizeof bad / sizeof *bad);
	tcase_add_loop_test(t, bad_hellos, 0, 10);
	tcase_add_test(t, record_before_hello);
	tcase_add_test(t, too_many_threads);
	tcase_add_loop_test(t, truncated, 0, 4);
	tcase_add_loop_test(t, garbage, 0, 4);
	tcase_add_loop_test(t, malformed_calls, 0, 8);
	tcase_add_test(t, told_to_stop);
	suite_add_tcase(s, t);
	return unit_run(s);
}
