/* SPDX-License-Identifier: Apache-2.0 */
/* The session process over a socketpair, with the software device: hello, calls, handles, failed posts, host
 * functions, and its end. One thread of a program; many: check_session_threads.c. Thread rule: main's. */
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

START_TEST(told_to_stop)
{
	struct client c;

	client_start(&c);
	client_hello(&c);
	client_context(&c);
	kill(c.pid, SIGTERM);
	client_bye(&c, "stopping");
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
	tcase_add_test(t, told_to_stop);
	suite_add_tcase(s, t);
	return unit_run(s);
}
