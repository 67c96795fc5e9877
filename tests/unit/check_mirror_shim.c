// SPDX-License-Identifier: Apache-2.0
/* Memory that program and GPU use in place, the program's side against a server of the test's own: what each
 * side wrote reaches the other, bytes that both have of one block stay as either wrote them, and an answer
 * that names other memory ends the session and writes nothing. */
#include "devshim/mirror.c"
#include "devshim/mirror_list.c"
#include "devshim/mirror_look.c"
#include "devshim/watch.c"
#include "tests/unit/unit.h"
#include <stdio.h>

#define SIZE (3 * MIRROR_BLOCK + 100)
#define BASE 0x7e9230000000ull /* where the thread sanitizer allows mappings, too */

static uint8_t theirs[SIZE], theirs_agreed[SIZE];
static struct range noted;
static bool noted_any, died;
static uint64_t answer_at, answer_n, answer_next; /* a lie instead of the truth, when answer_n */
static unsigned sent, fetched, dropped;
static uint64_t numbered;
static uint8_t head[LIMIT_HEAD], answer[LIMIT_HEAD];
static struct context context = {.handle = (CUcontext)7, .alive = true};
_Thread_local struct thread *thread_cached;
_Atomic uint64_t range_host_low, range_host_high;

CUresult call_begin(struct call *c, unsigned id)
{
	memset(c, 0, sizeof *c);
	msg_init(&c->out, head, sizeof head);
	c->id = id;
	return CUDA_SUCCESS;
}

static CUresult serve(struct call *c)
{
	struct msg in, out;
	uint8_t *bulk = c->bulk_out;
	size_t at = 0, n;

	msg_init(&in, head, c->out.len);
	msg_init(&out, answer, sizeof answer);
	uint64_t op = get_u64(&in), p = get_u64(&in);

	if (op == MIRROR_SEND || op == MIRROR_FETCH) {
		ck_assert_uint_eq(get_u64(&in), ++numbered);
		ck_assert(c->aside);
		c->seq = numbered;
	}

	if (op == MIRROR_SEND) {
		n = get_u64(&in);
		ck_assert(p >= BASE && p - BASE <= SIZE && n == c->bulk_len && n <= SIZE - (p - BASE));
		mirror_merge(theirs + (p - BASE), theirs_agreed + (p - BASE), c->bulk, n);
		sent++;
	} else if (op == MIRROR_FETCH) {
		size_t runs = 0, used = 0;
		uint8_t list[512];
		struct msg l;

		msg_init(&l, list, sizeof list);
		for (; at < SIZE && !answer_n; at += n) {
			at = mirror_changed(theirs, theirs_agreed, SIZE, at, MIRROR_PIECE, &n);
			if (!n)
				continue;
			memcpy(theirs_agreed + at, theirs + at, n);
			memcpy(bulk + used, theirs + at, n);
			used += n;
			put_u64(&l, BASE + at);
			put_u64(&l, n);
			runs++;
		}
		if (answer_n) {
			memset(bulk, 0xee, MIRROR_PIECE);
			put_u64(&l, answer_at);
			put_u64(&l, answer_n);
			used = MIRROR_BLOCK;
			runs = 1;
		}
		put_u64(&out, answer_next);
		put_array(&out, 2 * runs);
		memcpy(answer + out.len, list, l.len);
		out.len += l.len;
		c->bulk_out_len = used;
		fetched++;
	} else if (op == MIRROR_DROP) {
		dropped++;
	}
	ck_assert(!in.bad);
	msg_init(&c->in, answer, out.len);
	return CUDA_SUCCESS;
}

CUresult call_post(struct call *c) { return serve(c); }
CUresult call_wait(struct call *c) { return serve(c); }
CUresult call_end(struct call *c, CUresult r) { return r || get_end(&c->in) ? r : CUDA_ERROR_UNKNOWN; }
CUresult context_check(struct context **c) { return *c = &context, CUDA_SUCCESS; }
CUresult process_die(int e, const char *what) { return (void)e, (void)what, died = true, CUDA_ERROR_UNKNOWN; }
struct thread *thread_create(void) { return NULL; }
void copy_drain(void) {}
_Atomic int process_code;
bool range_find(uint64_t p, struct range *out)
{
	if (noted_any && p - noted.base < noted.size)
		return *out = noted, true;
	return false;
}
bool range_add(struct range *r) { return noted = *r, noted_any = true; }
bool range_take(uint64_t p, enum range_kind k, struct range *out)
{
	(void)out;
	return k == noted.kind && p == noted.base ? noted_any = false, true : false;
}
void range_set_mirrored(uint64_t p, bool on) { (void)p, noted.mirrored = on; }
bool range_map(uint64_t p, size_t n)
{
	return mmap((void *)p, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			-1,
		       0) == (void *)p;
}
void range_unmap(uint64_t p, size_t n) { munmap((void *)p, n); }

static uint8_t *start(void)
{
	static struct thread thread = {.current = &context};

	thread_cached = &thread;
	ck_assert_int_eq(mirror_managed(BASE, SIZE, NULL), CUDA_SUCCESS);
	ck_assert(mirror_any() && noted.kind == RANGE_MANAGED && noted.mirrored);
	return (uint8_t *)BASE;
}

START_TEST(both_ways)
{
	uint8_t *ours = start();

	ck_assert_int_eq(mirror_send(false), CUDA_SUCCESS);
	ck_assert_uint_eq(sent, 0);
	ours[0] = 1;
	ours[SIZE - 1] = 2;
	ck_assert_int_eq(mirror_send(false), CUDA_SUCCESS);
	ck_assert_uint_eq(sent, 2); /* two runs of one block */
	ck_assert(theirs[0] == 1 && theirs[SIZE - 1] == 2);
	/* No answer has told of news. */
	mirror_fetch();
	ck_assert_uint_eq(fetched, 0);
	theirs[0] = 3;
	theirs[MIRROR_BLOCK] = 4;
	mirror_fetch_unasked();
	ck_assert(ours[0] == 3 && ours[MIRROR_BLOCK] == 4 && ours[SIZE - 1] == 2);
	mirror_send(false);
	ck_assert_uint_eq(sent, 2);
	mirror_drop(BASE);
	ck_assert(!mirror_any() && dropped == 1);
	mirror_fetch_unasked();
	ck_assert_uint_eq(fetched, 1);
}
END_TEST

/* Both sides write bytes of one block before either knows of the other's. */
START_TEST(one_block)
{
	uint8_t *ours = start();

	for (unsigned i = 0; i < 200; i += 2) {
		ours[i] = 10 + i / 2;
		theirs[i + 1] = 110 + i / 2;
	}
	if (_i)
		mirror_fetch_unasked();
	mirror_send(false);
	mirror_fetch_unasked();
	for (unsigned i = 0; i < 200; i++)
		ck_assert_msg(ours[i] == (i % 2 ? 110 : 10) + i / 2 && theirs[i] == ours[i], "byte %u", i);
	ck_assert(!memcmp(at(BASE)->agreed, theirs_agreed, SIZE));
}
END_TEST

static const struct { uint64_t at, n, next; } lies[] = {
	{BASE - MIRROR_BLOCK, MIRROR_BLOCK, 0}, {BASE + SIZE, MIRROR_BLOCK, 0}, {BASE, SIZE + 1, 0},
	{BASE + SIZE - MIRROR_BLOCK + 1, MIRROR_BLOCK, 0}, {0, MIRROR_BLOCK, 0},
	{~0ull - 10, MIRROR_BLOCK, 0},
	{BASE, ~0ull, 0}, {BASE, MIRROR_BLOCK - 1, 0},
};

START_TEST(lying_server)
{
	uint8_t *ours = start();

	ours[5] = 5;
	mirror_send(false);
	answer_at = lies[_i].at;
	answer_n = lies[_i].n;
	answer_next = lies[_i].next;
	mirror_fetch_unasked();
	ck_assert(died);
	/* The last lie names memory of ours, but not all that came. */
	ck_assert(lies[_i].n == MIRROR_BLOCK - 1 || ours[5] == 5);
}
END_TEST

START_TEST(endless_server)
{
	start();
	answer_at = BASE;
	answer_n = MIRROR_BLOCK;
	answer_next = BASE;
	mirror_fetch_unasked();
	ck_assert(died && fetched == 2);
}
END_TEST

START_TEST(past_the_limit)
{
	struct mirror m = {.base = BASE, .size = LIMIT_MIRROR + 1};

	ck_assert_int_eq(add(&m), CUDA_ERROR_OUT_OF_MEMORY);
	m.size = SIZE_MAX;
	ck_assert_int_eq(add(&m), CUDA_ERROR_OUT_OF_MEMORY);
	m.size = 4096;
	mirrors.bytes = LIMIT_MIRROR - 4095;
	ck_assert_int_eq(add(&m), CUDA_ERROR_OUT_OF_MEMORY);
	mirrors.bytes--;
	ck_assert_int_eq(add(&m), CUDA_SUCCESS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mirror, the program's side");
	TCase *t = tcase_create("mirror");

	tcase_add_test(t, both_ways);
	tcase_add_loop_test(t, one_block, 0, 2);
	tcase_add_loop_test(t, lying_server, 0, sizeof lies / sizeof *lies);
	tcase_add_test(t, endless_server);
	tcase_add_test(t, past_the_limit);
	suite_add_tcase(s, t);
	return unit_run(s);
}
