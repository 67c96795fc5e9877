/* SPDX-License-Identifier: Apache-2.0 */
/* The digest against values that Python's hashlib gives for the same tree, and the cache: what is found, by
 * whom, what makes room, and what is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/cache.h"
#include "tests/unit/unit.h"
#include "wire/limits.h"

static char dir[] = "/tmp/check_cache.XXXXXX";

/* Byte i is (7 i + i / 251) mod 256; the first 16 bytes of each digest. */
static const struct {
	size_t n;
	const char *want;
} vectors[] = {
	{0, "b5ef811a8038f70b628fa8b294daae74"},
	{1, "a139280e72757b723e6473d5be59f36e"},
	{127, "da0754222d05822682c46112a9abcd1f"},
	{128, "a92fd23dd7f0cb39d082fe107350eb52"},
	{129, "ce1f816c341fa30ab9cccd166c417202"},
	{511, "c8d4373a70ee975eaa39ec7960249eac"},
	{512, "e145c89e63b5ae128249abb012502401"},
	{513, "206176fadb449ae2832d9b61bde3b5fa"},
	{1023, "fe7d3a5b3872244c454f0833f6da89c6"},
	{1024, "adc371f10fd7875bfd3a3132df9a29dd"},
	{1025, "6049682715268070ee773a6de85a52d9"},
	{1152, "455c6aa074053f141f8afa61ffe0b32a"},
	{1153, "51590d432327ded7ddcd2bac1286dfbe"},
	{1535, "66b3d1f8b854d5daed9d0602ea8a5c34"},
	{1536, "01f76e86620279772660d6fe8af54388"},
	{1537, "47f3dbbd60ae4ede3154f40f367eff29"},
	{4096, "6c2fb4c419b9fea6681667df5d83e2a0"},
	{100000, "f81a2626fc07d47deb750f0eae3383a4"},
};

START_TEST(digests)
{
	size_t n = vectors[_i].n;
	uint8_t *p = malloc(n + 1), d[DIGEST];
	char text[2 * DIGEST + 1];

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + i / 251);
	digest(p, n, d);
	digest_text(d, text);
	text[32] = 0;
	ck_assert_str_eq(text, vectors[_i].want);
	free(p);
}
END_TEST

static void remember(const char *text)
{
	uint8_t d[DIGEST];

	digest(text, strlen(text), d);
	cache_write(d, text, strlen(text));
}

static bool known(const char *text)
{
	uint8_t d[DIGEST];
	size_t n = strlen(text);

	digest(text, n, d);
	uint8_t *p = cache_read(d, n, 3);
	bool ok = p && !memcmp(p, text, n) && !p[n] && !p[n + 2];

	free(p);
	return ok;
}

START_TEST(images)
{
	uint8_t d[DIGEST];

	ck_assert(!cache_is_open());
	remember("early");
	cache_open(dir, "alice");
	ck_assert(cache_is_open());
	ck_assert(!known("early"));
	remember("one");
	remember("two, longer");
	remember("one");
	ck_assert(known("one"));
	ck_assert(known("two, longer"));
	ck_assert(!known("three"));
	/* The right digest with a wrong length is not it. */
	digest("one", 3, d);
	ck_assert_ptr_null(cache_read(d, 4, 0));
	ck_assert_ptr_null(cache_read(d, 2, 0));
}
END_TEST

START_TEST(clients)
{
	cache_open(dir, "bob");
	ck_assert(!known("one"));
	remember("bob's");
	cache_open(dir, "alice");
	ck_assert(!known("bob's"));
	ck_assert(known("one"));
	/* A client's name is no path. */
	cache_open(dir, "../../alice");
	ck_assert(cache_is_open());
	ck_assert(!known("one"));
}
END_TEST

START_TEST(notes)
{
	uint8_t d[DIGEST], *p, longest[5000];
	size_t n = 0;

	cache_open(dir, "notes");
	digest("image", 5, d);
	ck_assert_ptr_null(cache_notes(d, &n));
	cache_note(d, "first", 5);
	cache_note(d, "\0second", 7);
	p = cache_notes(d, &n);
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq(n, 12);
	ck_assert_mem_eq(p, "first\0second", 12);
	free(p);
	memset(longest, 'x', sizeof longest);
	for (int i = 0; i < 40; i++)
		cache_note(d, longest, sizeof longest);
	p = cache_notes(d, &n);
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_le(n, LIMIT_CACHE_NOTES);
	ck_assert_uint_gt(n, LIMIT_CACHE_NOTES - sizeof longest);
	free(p);
	cache_forget_notes(d);
	ck_assert_ptr_null(cache_notes(d, &n));
}
END_TEST

/* Files that are as large as all may be together, with no bytes in them: the oldest goes. */
START_TEST(room)
{
	char command[4096], folder[512];
	FILE *f;

	cache_open(dir, "room");
	remember("old");
	snprintf(command, sizeof command,
		"for d in %s/*; do [ \"$(find $d -size 3c | head -n 1)\" ] && [ $(ls $d | wc -l) = 1 ] && "
		"echo $d; done",
		dir);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	folder[0] = 0;
	while (fgets(folder, sizeof folder, f))
		;
	pclose(f);
	folder[strcspn(folder, "\n")] = 0;
	ck_assert_str_ne(folder, "");
	remember("older");
	snprintf(command, sizeof command, "touch -d '2 hours ago' %s/* && truncate -s %llu %s/big && "
		"touch -d '1 hour ago' %s/big && touch -d '1 hour ago' %s/new.1.1",
		folder, (unsigned long long)LIMIT_CACHE - 3, folder, folder, folder);
	ck_assert_int_eq(system(command), 0);
	ck_assert(known("old")); /* and young now */
	remember("more");
	ck_assert(known("more"));
	ck_assert(known("old"));
	ck_assert(!known("older"));
	snprintf(command, sizeof command, "[ ! -e %s/big ] && [ ! -e %s/new.1.1 ]", folder, folder);
	ck_assert_int_eq(system(command), 0);
	/* Another process's files are counted, too. */
	snprintf(command, sizeof command, "cd %s && seq -f f%%.0f %d | xargs touch -d '1 hour ago'", folder,
		LIMIT_CACHE_FILES);
	ck_assert_int_eq(system(command), 0);
	for (int i = 0; i < 100; i++) {
		char text[32];

		snprintf(text, sizeof text, "more %d", i);
		remember(text);
	}
	ck_assert(known("more 0") && known("more 99") && known("old"));
	snprintf(command, sizeof command, "[ $(ls %s | wc -l) -le %d ]", folder,
			LIMIT_CACHE_FILES / 8 * 7 + 110);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(folders)
{
	char path[256];
	const char *why = "";

	snprintf(path, sizeof path, "%s/made/inside", dir);
	ck_assert_int_eq(cache_prepare(path, &why), 0);
	ck_assert_int_eq(chmod(path, 0750), 0);
	ck_assert_int_eq(cache_prepare(path, &why), -EPERM);
	snprintf(path, sizeof path, "%s/a/b/c", dir);
	ck_assert_int_eq(cache_prepare(path, &why), -ENOENT);
	setenv("CACHE_DIRECTORY", "/var/cache/x:/var/cache/y", 1);
	cache_default(path, sizeof path);
	ck_assert_str_eq(path, "/var/cache/x");
	unsetenv("CACHE_DIRECTORY");
	setenv("XDG_CACHE_HOME", "/xdg", 1);
	cache_default(path, sizeof path);
	ck_assert_str_eq(path, "/xdg/scuda-server");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	cache_default(path, sizeof path);
	ck_assert_str_eq(path, "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cache");
	TCase *c = tcase_create("cache");
	char command[64];

	if (!mkdtemp(dir))
		return 1;
	suite_add_tcase(s, c);
	tcase_add_loop_test(c, digests, 0, sizeof vectors / sizeof *vectors);
	tcase_add_test(c, images);
	tcase_add_test(c, clients);
	tcase_add_test(c, notes);
	tcase_set_timeout(c, 60); /* thousands of files are made for `room` */
	tcase_add_test(c, room);
	tcase_add_test(c, folders);
	int failed = unit_run(s);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	if (system(command))
		return 1;
	return failed;
}
