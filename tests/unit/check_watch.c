// SPDX-License-Identifier: Apache-2.0
/* Which bytes a program may have written: with the kernel's help those pages that it wrote, by itself or by a
 * system call, and the unwatched rest of the range; all of them at first, after a failure, and where the
 * kernel does not help. */
#include "devshim/watch.c"
#include "tests/unit/unit.h"
#include <sys/mman.h>

#define PAGES 300

static uint8_t *p;
static struct watch w;

static void setup(void)
{
	p = mmap(NULL, PAGES * WATCH_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
}

static void teardown(void)
{
	watch_close(&w);
	munmap(p, PAGES * WATCH_PAGE);
}

/* The walk's runs are those named: offsets, ended by a pair of zeros. */
static void expect(const size_t *runs)
{
	size_t from, to;

	watch_begin(&w);
	while (watch_next(&w, &from, &to)) {
		ck_assert_uint_eq(from, runs[0]);
		ck_assert_uint_eq(to, runs[1]);
		runs += 2;
	}
	ck_assert(!runs[0] && !runs[1]);
}
#define EXPECT(...) expect((const size_t[]){__VA_ARGS__, 0, 0})
#define NOTHING EXPECT(0, 0)

START_TEST(managed)
{
	size_t size = PAGES * WATCH_PAGE - 100;

	watch_open(&w, (uintptr_t)p, size, false);
	EXPECT(0, size);
	if (!w.pages)
		return; /* an older kernel */
	size_t tail = (PAGES - 1) * WATCH_PAGE;

	EXPECT(tail, size);
	p[5 * WATCH_PAGE] = 1;
	p[6 * WATCH_PAGE + 4000] = 1;
	p[70 * WATCH_PAGE]++;
	EXPECT(5 * WATCH_PAGE, 7 * WATCH_PAGE, 70 * WATCH_PAGE, 71 * WATCH_PAGE, tail, size);
	EXPECT(tail, size);
	/* The kernel writes for the program. */
	int zero = open("/dev/zero", O_RDONLY);

	ck_assert_int_eq(read(zero, p + 200 * WATCH_PAGE - 10, 20), 20);
	close(zero);
	p[(PAGES - 2) * WATCH_PAGE] = 2;
	EXPECT(199 * WATCH_PAGE, 201 * WATCH_PAGE, (PAGES - 2) * WATCH_PAGE, size);
	/* More runs than one question brings. */
	for (size_t i = 0; i < PAGES - 1; i += 2)
		p[i * WATCH_PAGE] = 3;
	size_t from, to, pages = 0;

	watch_begin(&w);
	while (watch_next(&w, &from, &to))
		pages += to - from == WATCH_PAGE;
	ck_assert_uint_eq(pages, (PAGES - 1) / 2);
	watch_again(&w);
	EXPECT(0, size);
	EXPECT(tail, size);
}
END_TEST

/* What the program gives back reads as zeros, so it counts as written: single pages, and all that a page
 * table has, which the kernel may take away with them. */
START_TEST(given_back)
{
	const size_t table = (size_t)2 << 20, size = 4 * table;
	uint8_t *all = mmap(NULL, size + table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *q = all + (table - (uintptr_t)all % table) % table;

	ck_assert_ptr_ne(all, MAP_FAILED);
	memset(q, 1, size);
	watch_open(&w, (uintptr_t)q, size, false);
	EXPECT(0, size);
	if (w.pages) {
		NOTHING;
		ck_assert(!madvise(q + 2 * table, table, MADV_DONTNEED));
		ck_assert(!madvise(q + WATCH_PAGE, 3 * WATCH_PAGE, MADV_DONTNEED));
		EXPECT(WATCH_PAGE, 4 * WATCH_PAGE, 2 * table, 3 * table);
		NOTHING;
		q[2 * table + 5 * WATCH_PAGE] = 1;
		EXPECT(2 * table + 5 * WATCH_PAGE, 2 * table + 6 * WATCH_PAGE);
		ck_assert(!madvise(q, size, MADV_DONTNEED));
		EXPECT(0, size);
		/* The kernel splits what it watches. */
		ck_assert(!mprotect(q + table, table, PROT_READ));
		ck_assert(!mprotect(q + table, table, PROT_READ | PROT_WRITE));
		q[table] = 2;
		EXPECT(table, table + WATCH_PAGE);
	}
	munmap(all, size + table);
}
END_TEST

START_TEST(pinned)
{
	watch_open(&w, (uintptr_t)p, PAGES * WATCH_PAGE, true);
	EXPECT(0, PAGES * WATCH_PAGE);
	if (!w.pages)
		return;
	/* All were written before the watch began. Two turns of a second each let that be forgotten. */
	for (int i = 0; i < 2; i++) {
		w.turned -= 2 * SUSPECT_MS;
		watch_begin(&w);
	}
	NOTHING;
	p[9 * WATCH_PAGE] = 1;
	EXPECT(9 * WATCH_PAGE, 10 * WATCH_PAGE);
	/* A device may still write there. */
	EXPECT(9 * WATCH_PAGE, 10 * WATCH_PAGE);
	w.turned -= 2 * SUSPECT_MS;
	EXPECT(9 * WATCH_PAGE, 10 * WATCH_PAGE);
	w.turned -= 2 * SUSPECT_MS;
	NOTHING;
}
END_TEST

START_TEST(without_help)
{
	watch_none(&w, (uintptr_t)p, 5000);
	EXPECT(0, 5000);
	EXPECT(0, 5000);
	/* Not at a page's start. */
	watch_open(&w, (uintptr_t)p + 8, 5000, false);
	EXPECT(0, 5000);
	EXPECT(0, 5000);
	/* Mapped anew meanwhile: the kernel notes nothing there, so all counts. */
	watch_open(&w, (uintptr_t)p, PAGES * WATCH_PAGE, false);
	EXPECT(0, PAGES * WATCH_PAGE);
	ck_assert_ptr_eq(mmap(p, WATCH_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			-1, 0), p);
	EXPECT(0, PAGES * WATCH_PAGE);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("watch");
	TCase *t = tcase_create("watch");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, managed);
	tcase_add_test(t, given_back);
	tcase_add_test(t, pinned);
	tcase_add_test(t, without_help);
	suite_add_tcase(s, t);
	return unit_run(s);
}
