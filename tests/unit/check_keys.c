/* SPDX-License-Identifier: Apache-2.0 */
/* Key files: what is read, what is refused, and that what is made can be read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "wire/keys.h"

#define HEX "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"

static char path[] = "/tmp/check_keys.XXXXXX";

static void write_file(const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static int load(const char *text, mode_t mode, struct keys **k)
{
	const char *why = NULL;
	int r;

	write_file(text, mode);
	r = keys_load(path, k, &why);
	if (r)
		ck_assert_ptr_nonnull(why);
	return r;
}

START_TEST(good)
{
	struct keys *k;
	const struct key *a;

	ck_assert_int_eq(load("# two clients\n\nalice:" HEX "\r\n  bob@site:" HEX "  ", 0600, &k), 0);
	a = keys_find(k, "alice");
	ck_assert_ptr_nonnull(a);
	ck_assert_uint_eq(a->secret[1], 0x11);
	ck_assert_uint_eq(a->secret[31], 0xff);
	ck_assert_ptr_nonnull(keys_find(k, "bob@site"));
	ck_assert_ptr_null(keys_find(k, "bob"));
	ck_assert_ptr_null(keys_find(k, ""));
	ck_assert_ptr_null(keys_first(k));
	keys_free(k);
	ck_assert_int_eq(load("alice:" HEX, 0400, &k), 0);
	ck_assert_str_eq(keys_first(k)->name, "alice");
	keys_free(k);
	keys_free(NULL);
}
END_TEST

static const char *const bad[] = {
	"", "# nothing\n", "alice\n", "alice:\n", ":" HEX "\n", "alice:" HEX "0\n", "alice:0" HEX "\n",
			"alice:g" HEX "\n",
	"a b:" HEX "\n", "alice:" HEX "\nalice:" HEX "\n", "alice:" HEX "\nrubbish\n", "al\xc3\xa9:" HEX "\n",
	"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
	"01234567890123456789012345678:" HEX "\n",
};

START_TEST(refused)
{
	struct keys *k;

	ck_assert_int_eq(load(bad[_i], 0600, &k), -EINVAL);
}
END_TEST

/* Pieces of good lines in any order, and any bytes: read or refused, and what is read can be found. */
START_TEST(garbage)
{
	static const char *const pieces[] = {"alice", ":", HEX, "\n", "\r\n", " ", "\t", "#", "0", "g",
			"\xff", "a:" HEX "\n",
		"00112233445566778899aabbccddeeff", "bob@site:" HEX, ":" HEX, "\x01"};
	unsigned seed = (unsigned)_i;

	for (int round = 0; round < 100; round++) {
		char text[4096] = "";
		struct keys *k = NULL;

		for (int n = rand_r(&seed) % 20; n > 0; n--)
			strcat(text, pieces[rand_r(&seed) % (sizeof pieces / sizeof *pieces)]);
		for (int n = rand_r(&seed) % 3; n > 0 && *text; n--)
			text[(size_t)rand_r(&seed) % strlen(text)] = (char)(1 + rand_r(&seed) % 255);
		if (load(text, 0600, &k))
			continue;
		const struct key *first = keys_first(k);
		ck_assert(!first || keys_find(k, first->name) == first);
		keys_free(k);
	}
}
END_TEST

START_TEST(modes)
{
	static const mode_t modes[] = {0644, 0640, 0604, 0660, 0610};
	struct keys *k;
	const char *why;

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		ck_assert_int_eq(load("alice:" HEX "\n", modes[i], &k), -EPERM);
	ck_assert_int_eq(keys_load("/nonexistent/keys", &k, &why), -ENOENT);
	ck_assert_int_eq(keys_load("/dev/null", &k, &why), -EINVAL);
}
END_TEST

START_TEST(too_many)
{
	char *text = malloc((LIMIT_KEYS + 1) * 80), *p = text;
	struct keys *k;

	for (int i = 0; i < LIMIT_KEYS; i++)
		p += sprintf(p, "name%d:" HEX "\n", i);
	ck_assert_int_eq(load(text, 0600, &k), 0);
	ck_assert_ptr_nonnull(keys_find(k, "name1023"));
	keys_free(k);
	sprintf(p, "one-more:" HEX "\n");
	ck_assert_int_eq(load(text, 0600, &k), -EINVAL);
	free(text);
}
END_TEST

START_TEST(made)
{
	struct key a, b;
	struct keys *k;
	char line[256];

	ck_assert_int_eq(key_generate("alice", &a), 0);
	ck_assert_int_eq(key_generate("alice", &b), 0);
	ck_assert_int_ne(memcmp(a.secret, b.secret, sizeof a.secret), 0);
	ck_assert_int_eq(key_generate("two words", &b), -EINVAL);
	ck_assert_int_eq(key_generate("", &b), -EINVAL);
	ck_assert_int_eq(key_format(&a, line, sizeof line), (int)strlen(line));
	ck_assert_int_eq(load(line, 0600, &k), 0);
	ck_assert_int_eq(memcmp(keys_first(k)->secret, a.secret, sizeof a.secret), 0);
	keys_free(k);
	ck_assert_int_eq(key_format(&a, line, 10), 5 + 1 + 64 + 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("keys");
	TCase *t = tcase_create("file");
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	tcase_add_test(t, good);
	tcase_add_loop_test(t, refused, 0, sizeof bad / sizeof *bad);
	tcase_add_loop_test(t, garbage, 0, 4);
	tcase_add_test(t, modes);
	tcase_add_test(t, too_many);
	tcase_add_test(t, made);
	suite_add_tcase(s, t);
	int failed = unit_run(s);
	unlink(path);
	return failed;
}
