// SPDX-License-Identifier: Apache-2.0
/* Images as the shim finds them in a program's memory: kind, exact length, which entries of a fatbin
 * travel; nonsense is refused, and no byte behind an image is looked at. */
#include "devshim/image.c"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <sys/mman.h>

static const struct image_target h200 = {.n = 1, .cc = {90}}, two = {.n = 2, .cc = {75, 90}},
				 soft = {.n = 1, .cc = {75}, .ptx_only = true},
				 forced = {.n = 1, .cc = {90}, .force_ptx = true}, nothing;

/* Bytes that end at a page without access. */
static uint8_t *at_the_edge(const void *p, size_t n)
{
	size_t page = 4096, all = (n + page - 1) / page * page;
	uint8_t *m = mmap(NULL, all + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(m, MAP_FAILED);
	ck_assert_int_eq(mprotect(m + all, page, PROT_NONE), 0);
	memcpy(m + all - n, p, n);
	return m + all - n;
}

static size_t put_entry(uint8_t *p, unsigned kind, unsigned sm, uint64_t flags, size_t payload)
{
	memset(p, 0, 64 + payload);
	p[0] = (uint8_t)kind;
	p[2] = p[3] = 1;
	p[4] = 64;
	memcpy(p + 8, &payload, 8);
	memcpy(p + 28, &sm, 4);
	memcpy(p + 40, &flags, 8);
	memset(p + 64, (int)sm, payload);
	return 64 + payload;
}

static size_t put_fatbin(uint8_t *p, const unsigned (*entries)[3], size_t n)
{
	uint32_t magic = IMAGE_FATBIN_MAGIC;
	uint16_t version = 1, header = 16;
	uint64_t body = 0;

	for (size_t i = 0; i < n; i++)
		body += put_entry(p + 16 + body, entries[i][0], entries[i][1], entries[i][2], 24 + 8 * i);
	memcpy(p, &magic, 4);
	memcpy(p + 4, &version, 2);
	memcpy(p + 6, &header, 2);
	memcpy(p + 8, &body, 8);
	return 16 + body;
}

/* The kinds and SMs that are kept, as "e75 p90 "; the packed image must be a whole fatbin again. */
static void kept(const struct image *i, char *out)
{
	uint8_t *packed = malloc(i->total), *p = packed;
	size_t left;
	struct entry e;

	image_pack(i, packed);
	*out = 0;
	ck_assert_uint_eq(image_fatbin_size(packed, i->part_size[0]), i->part_size[0]);
	for (left = i->part_size[0] - 16, p += 16; left; p += e.size, left -= e.size) {
		ck_assert(entry_read(p, left, &e));
		out += sprintf(out, "%c%u ",
			e.kind == ENTRY_PTX   ? 'p'
			: e.kind == ENTRY_ELF ? 'e'
					      : '?',
			e.sm);
	}
	free(packed);
}

START_TEST(choice)
{
	static const unsigned entries[][3] = {{2, 75, 0}, {2, 80, 0}, {2, 86, 0},
		{2, 90, ENTRY_ARCH_SPECIFIC}, {2, 100, 0}, {1, 75, 0}, {1, 90, 0}, {1, 120, 0}, {8, 90, 0}};
	static const struct {
		const struct image_target *t;
		const char *want;
	} cases[] = {
		{&h200, "e90 ?90 "},
		{&two, "e75 e90 ?90 "},
		{&soft, "p75 p90 p120 ?90 "},
		{&forced, "p90 ?90 "},
		{&nothing, "e75 e80 e86 e90 e100 p75 p90 p120 ?90 "},
	};
	uint8_t bytes[4096];
	size_t n = put_fatbin(bytes, entries, sizeof entries / sizeof *entries);
	uint8_t *p = at_the_edge(bytes, n);
	struct image i;
	char got[256];

	ck_assert_int_eq(image_read(p, cases[_i].t, &i), 0);
	ck_assert_int_eq(i.kind, IMAGE_FATBIN);
	kept(&i, got);
	ck_assert_str_eq(got, cases[_i].want);
	image_finish(&i);
}
END_TEST

START_TEST(no_choice)
{
	/* Nothing serves the device: the driver is to say so, of the whole image. */
	static const unsigned entries[][3] = {{2, 100, 0}, {1, 120, 0}};
	uint8_t bytes[1024];
	size_t n = put_fatbin(bytes, entries, 2);
	struct image i;

	ck_assert_int_eq(image_read(bytes, &h200, &i), 0);
	ck_assert_uint_eq(i.total, n);
	image_finish(&i);
}
END_TEST

START_TEST(wrappers)
{
	static const unsigned linked[][3] = {{2, 90, 0}}, relocatable[][3] = {{2, 90, 0}, {1, 90, 0}};
	uint8_t a[512], b[512];
	size_t na = put_fatbin(a, linked, 1), nb = put_fatbin(b, relocatable, 2);
	const void *extra[] = {b, b, NULL};
	struct image_wrapper w = {IMAGE_WRAPPER_MAGIC, 1, a, "a file's name"};
	struct image i;

	ck_assert_int_eq(image_read(&w, &h200, &i), 0);
	ck_assert(i.kind == IMAGE_WRAPPER1 && i.nparts == 1 && i.total == na);
	image_finish(&i);
	w = (struct image_wrapper){IMAGE_WRAPPER_MAGIC, 2, a, extra};
	ck_assert_int_eq(image_read(&w, &forced, &i), 0);
	ck_assert(i.kind == IMAGE_WRAPPER2 && i.nparts == 3);
	ck_assert(i.part_size[1] < nb && i.part_size[1] == i.part_size[2]);
	ck_assert_uint_eq(i.total, i.part_size[0] + i.part_size[1] + i.part_size[2]);
	image_finish(&i);
	w.version = 3;
	ck_assert_int_eq(image_read(&w, &h200, &i), CUDA_ERROR_INVALID_IMAGE);
	w = (struct image_wrapper){IMAGE_WRAPPER_MAGIC, 1, NULL, NULL};
	ck_assert_int_eq(image_read(&w, &h200, &i), CUDA_ERROR_INVALID_IMAGE);
	a[8] = a[13] = 0xff;
	w.data = a;
	ck_assert_int_eq(image_read(&w, &h200, &i), CUDA_ERROR_INVALID_IMAGE);
}
END_TEST

/* The length is the end of whatever lies last: a section with bytes, a table, a segment. */
START_TEST(elf)
{
	static const struct {
		uint64_t shoff, phoff, section, size;
		uint32_t type;
		size_t want;
	} cases[] = {
		{64, 0, 200, 100, 1, 300},
		{300, 0, 100, 50, 1, 364},
		{64, 0, 200, 1u << 30, 8, 128},
		{0, 64, 128, 40, 0, 168},
		{64, 0, (uint64_t)1 << 40, 8, 1, 0},
		{64, 0, 200, ~0ull, 1, 0},
		{(uint64_t)1 << 50, 0, 0, 0, 1, 0},
	};
	uint8_t p[512] = "\x7f"
			 "ELF\2\1\1";
	uint16_t sizes[4] = {56, cases[_i].phoff != 0, 64, cases[_i].shoff != 0};
	struct image i;

	memcpy(p + 32, &cases[_i].phoff, 8);
	memcpy(p + 40, &cases[_i].shoff, 8);
	memcpy(p + 54, sizes, sizeof sizes);
	if (cases[_i].shoff && cases[_i].shoff < 400) {
		memcpy(p + cases[_i].shoff + 4, &cases[_i].type, 4);
		memcpy(p + cases[_i].shoff + 24, &cases[_i].section, 8);
		memcpy(p + cases[_i].shoff + 32, &cases[_i].size, 8);
	}
	if (cases[_i].phoff) {
		memcpy(p + cases[_i].phoff + 8, &cases[_i].section, 8);
		memcpy(p + cases[_i].phoff + 32, &cases[_i].size, 8);
	}
	CUresult r = image_read(p, &h200, &i);

	ck_assert_int_eq(r, cases[_i].want ? 0 : CUDA_ERROR_INVALID_IMAGE);
	if (!r) {
		ck_assert(i.kind == IMAGE_ELF && i.total == cases[_i].want);
		image_finish(&i);
	}
	/* Of a sized image no header may lead past the end. */
	r = image_read_sized(p, 80, &h200, &i);
	ck_assert_int_eq(r, CUDA_ERROR_INVALID_IMAGE);
}
END_TEST

START_TEST(text)
{
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{".version 7.5\n", true},
		{"\n\n  // words\n\t.version 8.0\n.target sm_80", true},
		{"", false},
		{"\x01\x02\x03\x04.version", false},
		{"no module at all", true}, /* for the driver to judge */
		{"ab", true},
	};
	size_t n = strlen(cases[_i].text);
	uint8_t *p = at_the_edge(cases[_i].text, n + 1);
	struct image i;
	CUresult r = image_read(p, &h200, &i);

	ck_assert_int_eq(r, cases[_i].good ? 0 : CUDA_ERROR_INVALID_IMAGE);
	if (!r) {
		ck_assert(i.kind == IMAGE_PTX && i.total == n && i.npieces == 1);
		image_finish(&i);
	}
}
END_TEST

/* What a server believes of bytes that a program's end sent: nothing that leads past them. */
START_TEST(believed)
{
	static const unsigned entries[][3] = {{2, 90, 0}, {1, 90, 0}};
	uint8_t good[512] = {0}, bad[512];
	size_t n = put_fatbin(good, entries, 2);
	uint32_t wrapper[4] = {IMAGE_WRAPPER_MAGIC, 1, 0x1000, 0};

	ck_assert(image_whole(good, n) && image_fatbin_whole(good, n));
	ck_assert(!image_fatbin_whole("no fatbin at all....", 20));
	ck_assert(!image_whole(wrapper, sizeof wrapper));
	ck_assert(image_whole(".version 7.5", 12) && image_whole("", 0) && image_whole("\x7f" "EL", 3));
	for (size_t k = 4; k < n; k++) {
		uint8_t *p = at_the_edge(good, k);

		ck_assert(!image_whole(p, k));
		munmap((void *)((uintptr_t)p & ~4095ul), 8192);
	}
	/* The second entry's header, then its payload, one byte too long; sizes whose sum wraps around. */
	memcpy(bad, good, n);
	bad[16 + 88 + 4]++;
	ck_assert(!image_whole(bad, n));
	memcpy(bad, good, n);
	bad[16 + 88 + 8]++;
	ck_assert(!image_whole(bad, n));
	memset(bad + 16 + 88 + 8, 0xff, 8);
	ck_assert(!image_whole(bad, n));
	memcpy(bad, good, n);
	memset(bad + 8, 0xff, 8);
	ck_assert(!image_whole(bad, n));
	/* An ELF file whose table of sections lies behind its end. */
	memset(bad, 0, 64);
	memcpy(bad, "\x7f" "ELF\2\1\1", 7);
	ck_assert(image_whole(bad, 64));
	bad[40] = 64, bad[58] = 64, bad[60] = 1;
	ck_assert(!image_whole(bad, 64) && !image_whole(bad, 127));
}
END_TEST

/* Every prefix of a sized fatbin (but of its magic number, which may be text), and random bytes
 * behind its magic number, are judged without a look past the end. */
START_TEST(damaged)
{
	static const unsigned entries[][3] = {{2, 90, 0}, {1, 90, 0}, {2, 75, 0}};
	uint8_t bytes[1024];
	size_t n = put_fatbin(bytes, entries, 3);
	unsigned seed = 1;
	struct image i;

	for (size_t k = 4; k < n; k++) {
		uint8_t *p = at_the_edge(bytes, k);

		ck_assert_int_ne(image_read_sized(p, k, &h200, &i), 0);
		munmap((void *)((uintptr_t)p & ~4095ul), 8192);
	}
	for (int k = 0; k < 2000; k++) {
		uint8_t *p = at_the_edge(bytes, n);

		for (size_t b = 16; b < n; b++)
			if ((seed = seed * 1664525u + 1013904223u) >> 28 == 0)
				p[b] = (uint8_t)(seed >> 20);
		if (!image_read_sized(p, n, &h200, &i)) {
			ck_assert_uint_le(i.total, n);
			image_finish(&i);
		}
		munmap((void *)((uintptr_t)p & ~4095ul), 8192);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("image");
	TCase *t = tcase_create("image");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, choice, 0, 5);
	tcase_add_test(t, no_choice);
	tcase_add_test(t, wrappers);
	tcase_add_loop_test(t, elf, 0, 7);
	tcase_add_loop_test(t, text, 0, 6);
	tcase_add_test(t, believed);
	tcase_add_test(t, damaged);
	return unit_run(s);
}
