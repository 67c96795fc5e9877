// SPDX-License-Identifier: Apache-2.0
/* The shim's handle table: what is alive, of which type, and what dies with its context; nonsense values are
 * refused; look-ups race with changes safely. */
#include "devshim/handle.c"
#include "tests/unit/unit.h"
#include <stdio.h>

_Thread_local struct thread *thread_cached;
struct thread *thread_create(void)
{
	static _Thread_local struct thread t;
	return thread_cached = &t;
}
static bool ptds;
bool ptds_active(void) { return ptds; }

static uint8_t buf[64];
static uint64_t put_value(unsigned type, const void *h, bool want)
{
	struct call c = {.owner = NULL};
	msg_init(&c.out, buf, sizeof buf);
	ck_assert_int_eq(put_handle(&c, type, h), want);
	msg_init(&c.in, buf, c.out.len);
	return want ? get_u64(&c.in) : 0;
}

static void *get_value(unsigned type, uint64_t v, bool want)
{
	struct call c = {.owner = NULL};
	msg_init(&c.out, buf, sizeof buf);
	put_u64(&c.out, v);
	msg_init(&c.in, buf, c.out.len);
	void *h = get_handle(&c, type);
	ck_assert_int_eq(!c.in.bad, want);
	return h;
}

START_TEST(life)
{
	void *a = handle_new(HANDLE_CUevent), *b = handle_new(HANDLE_CUevent);
	ck_assert_ptr_ne(a, b);
	ck_assert(handle_type(a) == HANDLE_CUevent && handle_live(HANDLE_CUevent, a));
	/* Programs use the bits that a pointer leaves free. */
	ck_assert_uint_eq((uintptr_t)a & 0xffff80000000000f, 0);
	ck_assert(!handle_live(HANDLE_CUstream, a));
	ck_assert(handle_set_data(HANDLE_CUevent, a, &ptds) && handle_data(HANDLE_CUevent, a) == &ptds);
	ck_assert(put_value(HANDLE_CUevent, a, true) == (uintptr_t)a);
	handle_drop(HANDLE_CUstream, a);
	ck_assert(handle_live(HANDLE_CUevent, a));
	handle_drop(HANDLE_CUevent, a);
	ck_assert(!handle_live(HANDLE_CUevent, a) && !handle_data(HANDLE_CUevent, a) &&
			!handle_set_data(HANDLE_CUevent, a, a));
	put_value(HANDLE_CUevent, a, false);
	handle_drop(HANDLE_CUevent, a);
	ck_assert(handle_live(HANDLE_CUevent, b));
	ck_assert_ptr_ne(handle_new(HANDLE_CUevent), a);
}
END_TEST

START_TEST(renamed)
{
	const void *given = (void *)0x7fff00001000, *other = (void *)0x8000000100002000;
	void *a = handle_new(HANDLE_CUgraphExec), *b = handle_new(HANDLE_CUgraphExec);

	ck_assert(!handle_live(HANDLE_CUgraphExec, given));
	ck_assert(handle_rename(HANDLE_CUgraphExec, a, given) && handle_rename(HANDLE_CUgraphExec, b, other));
	ck_assert(handle_live(HANDLE_CUgraphExec, given) && !handle_live(HANDLE_CUevent, given));
	ck_assert(put_value(HANDLE_CUgraphExec, given, true) == (uintptr_t)a);
	ck_assert(put_value(HANDLE_CUgraphExec, other, true) == (uintptr_t)b);
	handle_drop(HANDLE_CUgraphExec, given);
	ck_assert(!handle_live(HANDLE_CUgraphExec, given) && !handle_live(HANDLE_CUgraphExec, a));
	put_value(HANDLE_CUgraphExec, given, false);
	ck_assert(handle_live(HANDLE_CUgraphExec, other));
	/* The driver gives an address again. */
	a = handle_new(HANDLE_CUgraphExec);
	ck_assert(handle_rename(HANDLE_CUgraphExec, a, given));
	ck_assert(put_value(HANDLE_CUgraphExec, given, true) == (uintptr_t)a);
	/* A dead one and a name that looks like a handle are refused. */
	handle_drop(HANDLE_CUgraphExec, given);
	ck_assert(!handle_rename(HANDLE_CUgraphExec, a, given));
	ck_assert(!handle_rename(HANDLE_CUgraphExec, b, a));
}
END_TEST

static const uintptr_t nonsense[] = {0, 1, 3, 0xdeadbeef, 0x7fff12345678, UINTPTR_MAX,
		HANDLE_ID(HANDLE_CUevent, 0), HANDLE_ID(HANDLE_CUevent, 0x2000),
		HANDLE_ID(HANDLE_CUevent, 0x2000) + 1,
		HANDLE_ID(HANDLE_CUevent, 0x2000) | 1ull << 36, HANDLE_ID(HANDLE_CUevent, UINT32_MAX),
		HANDLE_ID(0xff, 0x2000),
		HANDLE_ID(HANDLE_CUevent, 0x2000) | 1ull << 63};
START_TEST(refuses)
{
	ck_assert(!handle_live(HANDLE_CUevent, (void *)nonsense[_i]));
	put_value(HANDLE_CUevent, (void *)nonsense[_i], false);
	handle_drop(HANDLE_CUevent, (void *)nonsense[_i]);
	ck_assert(!handle_live(HANDLE_NONE, (void *)nonsense[_i]) &&
			!handle_live(HANDLE_TYPES, (void *)nonsense[_i]));
}
END_TEST

START_TEST(streams)
{
	ck_assert_uint_eq(put_value(HANDLE_CUstream, NULL, true), 0);
	ck_assert_uint_eq(put_value(HANDLE_CUstream, (void *)1, true), 1);
	ck_assert_uint_eq(put_value(HANDLE_CUstream, (void *)2, true), 2);
	put_value(HANDLE_CUstream, (void *)3, false);
	ptds = true;
	ck_assert_uint_eq(put_value(HANDLE_CUstream, NULL, true), 2);
	ck_assert_uint_eq(put_value(HANDLE_CUstream, (void *)1, true), 1);
	ptds = false;
}
END_TEST

START_TEST(from_server)
{
	uint64_t kernel = HANDLE_ID(HANDLE_CUkernel, 0x80000005),
			function = HANDLE_ID(HANDLE_CUfunction, 0x80000006);
	ck_assert_ptr_eq(get_value(HANDLE_CUkernel, 0, true), NULL);
	ck_assert(get_value(HANDLE_CUkernel, kernel, true) == (void *)kernel &&
			handle_live(HANDLE_CUkernel, (void *)kernel));
	ck_assert(get_value(HANDLE_CUfunction, function, true) == (void *)function);
	get_value(HANDLE_CUfunction, HANDLE_ID(HANDLE_CUevent, 0x80000007), false);
	get_value(HANDLE_CUfunction, 0x80000007, false);
	/* A kernel is a function. */
	ck_assert_uint_eq(put_value(HANDLE_CUfunction, (void *)kernel, true), kernel);
	put_value(HANDLE_CUkernel, (void *)function, false);
}
END_TEST

static unsigned released;
static void release(const void *h, void *data)
{
	ck_assert_ptr_eq(h, data);
	released++;
}

START_TEST(context_dies)
{
	struct context one = {.handle = handle_value(HANDLE_CUcontext, 0x1000)},
			two = {.handle = handle_value(HANDLE_CUcontext, 0x1001)};
	void *mine[9000], *other, *graph, *late;
	handle_on_drop(HANDLE_CUstream, release);
	thread_self()->current = &one;
	for (unsigned i = 0; i < 9000; i++) {
		mine[i] = handle_new(HANDLE_CUstream);
		ck_assert(handle_set_data(HANDLE_CUstream, mine[i], mine[i]));
	}
	graph = handle_new(HANDLE_CUgraph);
	late = get_value(HANDLE_CUmodule, HANDLE_ID(HANDLE_CUmodule, 0x80000100), true);
	ck_assert_ptr_eq(handle_owner(HANDLE_CUmodule, late), one.handle);
	thread_self()->current = &two;
	other = handle_new(HANDLE_CUstream);
	/* What comes of one's module is one's, too. */
	struct call c = {.owner = NULL};
	msg_init(&c.out, buf, sizeof buf);
	ck_assert(put_handle(&c, HANDLE_CUmodule, late));
	put_u64(&c.out, HANDLE_ID(HANDLE_CUtexref, 0x80000101));
	msg_init(&c.in, buf, c.out.len);
	ck_assert(get_u64(&c.in) == (uint64_t)late);
	void *of_late = get_handle(&c, HANDLE_CUtexref);
	void *taken = handle_new_of(HANDLE_CUfunction, HANDLE_CUmodule, late);
	ck_assert(of_late && taken);
	released = 0;
	handle_drop_owner(one.handle);
	ck_assert_uint_eq(released, 9000);
	for (unsigned i = 0; i < 9000; i++)
		ck_assert(!handle_live(HANDLE_CUstream, mine[i]));
	ck_assert(!handle_live(HANDLE_CUtexref, of_late) && !handle_live(HANDLE_CUfunction, taken));
	ck_assert(!handle_live(HANDLE_CUmodule, late) && handle_live(HANDLE_CUstream, other) &&
			handle_live(HANDLE_CUgraph, graph));
}
END_TEST

static _Atomic bool stop;
static void *look(void *arg)
{
	while (!stop)
		for (unsigned i = 0; i < 64; i++)
			handle_data(HANDLE_CUevent, handle_value(HANDLE_CUevent, HANDLE_OWN + i * 300));
	return arg;
}

START_TEST(races)
{
	pthread_t t;
	ck_assert(pthread_create(&t, NULL, look, NULL) == 0);
	unsigned right = 0;
	for (unsigned i = 0; i < 40000; i++) {
		void *h = handle_new(HANDLE_CUevent);
		right += h && handle_live(HANDLE_CUevent, h);
		handle_drop(HANDLE_CUevent, h);
		right += !handle_live(HANDLE_CUevent, h);
	}
	ck_assert_uint_eq(right, 2 * 40000);
	stop = true;
	pthread_join(t, NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("handle_shim");
	TCase *t = tcase_create("table");
	tcase_add_test(t, life);
	tcase_add_test(t, renamed);
	tcase_add_loop_test(t, refuses, 0, sizeof nonsense / sizeof *nonsense);
	tcase_add_test(t, streams);
	tcase_add_test(t, from_server);
	tcase_add_test(t, context_dies);
	tcase_add_test(t, races);
	suite_add_tcase(s, t);
	return unit_run(s);
}
