// SPDX-License-Identifier: Apache-2.0
/* Memory that program and GPU use in place: the comparing and merging of wire/mirror.h, and a session that is
 * asked for memory at addresses of the program's, told what is there, and told lies. */
#include "tests/unit/session_client.h"
#include "server/fence.h"
#include "tests/unit/unit.h"
#include "wire/copy.h"
#include "wire/mirror.h"

#define SIZE (4 * MIRROR_BLOCK + 17)
/* Inside the fence, and where the thread sanitizer allows mappings. */
#define PINNED 0x7e9234567000ull

#ifdef __SANITIZE_THREAD__
static const bool sanitized_threads = true;
#else
static const bool sanitized_threads;
#endif
static uint8_t memory[SIZE], agreed[SIZE], fresh[SIZE];

START_TEST(changed)
{
	size_t n;

	ck_assert_uint_eq(mirror_changed(memory, agreed, SIZE, 0, SIZE, &n), SIZE);
	ck_assert_uint_eq(n, 0);
	memory[MIRROR_BLOCK] = memory[3 * MIRROR_BLOCK - 1] = memory[SIZE - 1] = 1;
	ck_assert_uint_eq(mirror_changed(memory, agreed, SIZE, 0, SIZE, &n), MIRROR_BLOCK);
	ck_assert_uint_eq(n, 2 * MIRROR_BLOCK);
	ck_assert_uint_eq(mirror_changed(memory, agreed, SIZE, 0, MIRROR_BLOCK, &n), MIRROR_BLOCK);
	ck_assert_uint_eq(n, MIRROR_BLOCK);
	ck_assert_uint_eq(mirror_changed(memory, agreed, SIZE, 3 * MIRROR_BLOCK, SIZE, &n), 4 * MIRROR_BLOCK);
	ck_assert_uint_eq(n, 17);
}
END_TEST

/* Against the plain rule, byte by byte. */
START_TEST(merged)
{
	unsigned seed = (unsigned)_i;
	uint8_t want[SIZE];
	size_t from = (size_t)rand_r(&seed) % 100, n = (size_t)rand_r(&seed) % (SIZE - 100);

	for (size_t i = 0; i < SIZE; i++) {
		agreed[i] = (uint8_t)rand_r(&seed);
		memory[i] = rand_r(&seed) % 3 ? agreed[i] : (uint8_t)rand_r(&seed);
		fresh[i] = rand_r(&seed) % (_i + 1) ? agreed[i] : (uint8_t)rand_r(&seed);
		want[i] = i >= from && i < from + n && fresh[i] != agreed[i] ? fresh[i] : memory[i];
	}
	mirror_merge(memory + from, agreed + from, fresh + from, n);
	ck_assert(!memcmp(memory, want, SIZE));
	ck_assert(!memcmp(agreed + from, fresh + from, n));
}
END_TEST

/* ---- a session */

static uint64_t exchanges;
static unsigned of_thread = 1;

static uint64_t mirror_call(struct client *c, unsigned kind, enum mirror_op op, uint64_t p, uint64_t n,
		const void *bulk, size_t len)
{
	bool numbered = op == MIRROR_SEND || op == MIRROR_FETCH;
	uint8_t buf[64];
	struct msg m;

	msg_init(&m, buf, sizeof buf);
	put_u64(&m, op);
	put_u64(&m, p);
	if (numbered)
		put_u64(&m, ++exchanges);
	if (op == MIRROR_MAKE || op == MIRROR_SEND)
		put_u64(&m, n);
	return client_send(c, (struct frame){.kind = kind, .call = CALL_cuMemHostGetDevicePointer_v2,
		.flags = numbered ? FRAME_ASIDE : 0, .thread = of_thread, .ctx = PRIMARY}, &m, bulk, len);
}

/* The session inherits the fence. */
static void start(struct client *c)
{
	ck_assert_int_ge(fence_build(), 0);
	client_start(c);
	client_hello(c);
	client_context(c);
}

static int make(struct client *c, struct reply *r, uint64_t p, uint64_t n)
{
	return client_reply(c, r, mirror_call(c, FRAME_WAIT, MIRROR_MAKE, p, n, NULL, 0));
}

START_TEST(pinned)
{
	struct client c;
	struct reply r = {0};
	char text[3 * MIRROR_BLOCK];

	start(&c);
	memset(text, 0, sizeof text);
	ck_assert_int_eq(make(&c, &r, PINNED + 100, sizeof text), 0);
	ck_assert_int_eq(make(&c, &r, PINNED, 10), CUDA_ERROR_OUT_OF_MEMORY);
	memset(text, 7, 50);
	mirror_call(&c, FRAME_POST, MIRROR_SEND, PINNED + 100, 50, text, 50);
	/* The device sets bytes of the same memory. */
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuMemsetD8_v2, 1, PRIMARY,
		PINNED + 100 + MIRROR_BLOCK, 9, 4)), 0);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuCtxSynchronize, 1, PRIMARY)), 0);
	ck_assert_int_eq(client_reply(&c, &r, mirror_call(&c, FRAME_WAIT, MIRROR_FETCH, 0, 0, NULL, 0)), 0);
	ck_assert_uint_eq(get_u64(&r.m), 0);
	ck_assert_uint_eq(get_array(&r.m, 10), 2);
	ck_assert_uint_eq(get_u64(&r.m), PINNED + 100 + MIRROR_BLOCK);
	ck_assert_uint_eq(get_u64(&r.m), MIRROR_BLOCK);
	ck_assert_uint_eq(r.f.bulk_len, MIRROR_BLOCK);
	ck_assert(r.bulk[0] == 9 && r.bulk[3] == 9 && r.bulk[4] == 0);
	/* That is agreed now. */
	ck_assert_int_eq(client_reply(&c, &r, mirror_call(&c, FRAME_WAIT, MIRROR_FETCH, 0, 0, NULL, 0)), 0);
	ck_assert_uint_eq(r.f.bulk_len, 0);
	ck_assert_int_eq(client_reply(&c, &r, mirror_call(&c, FRAME_WAIT, MIRROR_DROP, PINNED + 100, 0, NULL,
		0)), 0);
	ck_assert_int_eq(make(&c, &r, PINNED, 10), 0);
	free(r.bulk);
	client_close(&c);
}
END_TEST

/* Nothing of the session's own is given away: not its code, its heap, its stack, nor more than the limit. */
START_TEST(refused)
{
	struct client c;
	struct reply r = {0};
	int here;
	const uint64_t at[] = {(uintptr_t)&here, (uintptr_t)refused, (uintptr_t)memory, (uintptr_t)&printf,
		(uintptr_t)memory - 4096, 0, 1ull << 47, UINT64_MAX, FENCE_LOW - 4096, FENCE_HIGH - 4096,
		100};

	/* Under the thread sanitizer there is no fence, and it ends a process that maps the last three. */
	const unsigned n = sizeof at / sizeof *at - (sanitized_threads ? 3 : 0);

	start(&c);
	for (unsigned i = 0; i < n; i++)
		ck_assert_msg(make(&c, &r, at[i], 3 * 4096) != 0, "%#llx", (unsigned long long)at[i]);
	ck_assert_int_ne(make(&c, &r, PINNED, 0), 0);
	ck_assert_int_ne(make(&c, &r, PINNED, LIMIT_MIRROR + 1), 0);
	ck_assert_int_ne(make(&c, &r, PINNED, UINT64_MAX), 0);
	free(r.bulk);
	client_close(&c);
}
END_TEST

static const struct { enum mirror_op op; uint64_t p, n; size_t bulk; } lies[] = {
	{MIRROR_SEND, PINNED + 4090, 7, 7}, {MIRROR_SEND, PINNED - 1, 2, 2}, {MIRROR_SEND, 0, 8, 8},
	{MIRROR_SEND, PINNED, 8, 7}, {MIRROR_SEND, PINNED, UINT64_MAX, 8}, {MIRROR_SEND, PINNED, 0, 0},
	{MIRROR_SEND, PINNED, MIRROR_PIECE + 1, MIRROR_PIECE + 1}, {0, PINNED, 0, 0}, {99, PINNED, 0, 0},
};

START_TEST(hostile)
{
	static uint8_t bulk[MIRROR_PIECE + 1];
	struct client c;
	struct reply r = {0};

	start(&c);
	ck_assert_int_eq(make(&c, &r, PINNED, 4096), 0);
	mirror_call(&c, FRAME_POST, lies[_i].op, lies[_i].p, lies[_i].n, bulk, lies[_i].bulk);
	do
		client_frame(&c, &r);
	while (r.f.kind != FRAME_BYE);
	free(r.bulk);
	close(c.fd);
	c.fd = -1;
	client_finish(&c, "malformed call of cuMemHostGetDevicePointer_v2");
}
END_TEST

/* Managed memory that the program frees without a word before is out of use. */
START_TEST(freed)
{
	struct client c;
	struct reply r = {0};
	uint64_t p;

	start(&c);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuMemAllocManaged, 1, PRIMARY, 5000,
		CU_MEM_ATTACH_GLOBAL)), 0);
	p = get_u64(&r.m);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuMemFree_v2, 1, PRIMARY, p)), 0);
	ck_assert_int_eq(client_reply(&c, &r, mirror_call(&c, FRAME_WAIT, MIRROR_FETCH, 0, 0, NULL, 0)), 0);
	ck_assert_int_eq(client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuMemAllocManaged, 1, PRIMARY, 5000,
		CU_MEM_ATTACH_GLOBAL)), 0);
	ck_assert_int_eq(
		client_reply(&c, &r, CALL(&c, FRAME_WAIT, cuDevicePrimaryCtxRelease_v2, 1, 0, 0)), 0);
	ck_assert_int_eq(client_reply(&c, &r, mirror_call(&c, FRAME_WAIT, MIRROR_FETCH, 0, 0, NULL, 0)), 0);
	ck_assert_uint_eq(r.f.bulk_len, 0);
	free(r.bulk);
	client_close(&c);
}
END_TEST

/* Exchanges stand behind a post that is stuck behind a host function, whose thread exchanges, too: all of
 * them go ahead, in their order. A SEND in its turn, when the post is through, would undo what later ones
 * brought, since it carries whole blocks; a FETCH ahead of it would undo what the program wrote. */
START_TEST(crossed)
{
	uint64_t stream = HANDLE_ID(HANDLE_CUstream, 0x2000), p, upcall, wait;
	struct client c;
	struct reply r = {0};
	char block[8] = {1};

	start(&c);
	CALL(&c, FRAME_POST, cuStreamCreate, 1, PRIMARY, 0, stream);
	wait = CALL(&c, FRAME_WAIT, cuMemAllocManaged, 1, PRIMARY, sizeof block, CU_MEM_ATTACH_GLOBAL);
	ck_assert_int_eq(client_reply(&c, &r, wait), 0);
	p = get_u64(&r.m);
	CALL(&c, FRAME_POST, cuLaunchHostFunc, 1, PRIMARY, stream, 1);
	CALL(&c, FRAME_POST, cuStreamSynchronize, 2, PRIMARY, stream);
	/* One thread writes the first byte and posts, the host function fetches and writes the second one. */
	mirror_call(&c, FRAME_POST, MIRROR_SEND, p, sizeof block, block, sizeof block);
	do
		client_frame(&c, &r);
	while (r.f.kind != FRAME_UPCALL);
	upcall = r.f.seq;
	of_thread = 3;
	wait = mirror_call(&c, FRAME_WAIT, MIRROR_FETCH, 0, 0, NULL, 0);
	ck_assert_int_eq(client_reply(&c, &r, wait), 0);
	ck_assert_uint_eq(r.f.bulk_len, 0);
	block[1] = 2;
	wait = mirror_call(&c, FRAME_WAIT, MIRROR_SEND, p, sizeof block, block, sizeof block);
	ck_assert_int_eq(client_reply(&c, &r, wait), 0);
	client_send(&c, (struct frame){.kind = FRAME_UPCALL_DONE, .seq = upcall}, NULL, NULL, 0);
	wait = CALL(&c, FRAME_WAIT, cuMemcpyDtoH_v2, 1, PRIMARY, COPY_SYNC, 0, p, sizeof block, 0);
	ck_assert_int_eq(client_reply(&c, &r, wait), 0);
	ck_assert_uint_eq(r.f.bulk_len, sizeof block);
	ck_assert(r.bulk[0] == 1 && r.bulk[1] == 2 && !r.bulk[2]);
	free(r.bulk);
	client_close(&c);
}
END_TEST

/* A number that was used ends the session. */
START_TEST(numbers)
{
	struct client c;
	struct reply r = {0};

	start(&c);
	ck_assert_int_eq(client_reply(&c, &r, mirror_call(&c, FRAME_WAIT, MIRROR_FETCH, 0, 0, NULL, 0)), 0);
	exchanges--;
	mirror_call(&c, FRAME_POST, MIRROR_FETCH, 0, 0, NULL, 0);
	do
		client_frame(&c, &r);
	while (r.f.kind != FRAME_BYE);
	free(r.bulk);
	close(c.fd);
	c.fd = -1;
	client_finish(&c, "malformed call of cuMemHostGetDevicePointer_v2");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mirror");
	TCase *t = tcase_create("bytes"), *u = tcase_create("session");

	tcase_add_test(t, changed);
	tcase_add_loop_test(t, merged, 0, 50);
	tcase_set_timeout(u, 30);
	tcase_add_test(u, pinned);
	tcase_add_test(u, refused);
	tcase_add_loop_test(u, hostile, 0, sizeof lies / sizeof *lies);
	tcase_add_test(u, freed);
	tcase_add_test(u, crossed);
	tcase_add_test(u, numbers);
	suite_add_tcase(s, t);
	suite_add_tcase(s, u);
	return unit_run(s);
}
