/* SPDX-License-Identifier: Apache-2.0 */
/* What a server notes of images: for whom an entry counts, what of it is shared, and how much is read ahead.
 * Each test is a process, and so are the sessions that it makes. One thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/cache.h"
#include "server/image.h"
#include "server/notes.h"
#include "server/serve.h"
#include "server/state.h"
#include "tests/unit/unit.h"

#define ROOM (64u << 10)

static char dir[] = "/tmp/check_notes.XXXXXX";
static const struct jit plain;

static void setup(void)
{
	static const uint8_t empty_map[] = {0x80};
	static struct session_start start = {.snapshot = empty_map, .snapshot_len = sizeof empty_map};

	session_self()->start = &start;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	cache_open(dir, "alice");
	ck_assert(cache_is_open());
}

static void teardown(void)
{
	char command[sizeof dir + 20];

	snprintf(command, sizeof command, "rm -r %s", dir);
	ck_assert_int_eq(system(command), 0);
}

/* An image of n bytes, all `value`, that the cache has. */
static struct image image(uint8_t value, size_t n)
{
	struct image i = {.n = n, .bytes = malloc(n)};

	memset(i.bytes, value, n);
	digest(i.bytes, n, i.digest);
	cache_write(i.digest, i.bytes, n);
	free(i.bytes);
	return i;
}

static void add(uint64_t id, const char *name)
{
	uint8_t entry[100];
	struct msg m;

	msg_init(&m, entry, sizeof entry);
	put_text(&m, name);
	notes_add(id, entry, m.len, m.len);
}

/* The names that are told of it, one after the other. */
static const char *told(uint64_t id)
{
	static uint8_t room[ROOM];
	static char names[ROOM];
	struct msg m;

	msg_init(&m, room, sizeof room);
	notes_put(id, &m, sizeof room);
	msg_init(&m, room, m.len);
	for (*names = 0; m.len < m.cap && !m.bad;)
		get_text(&m, names + strlen(names), 100);
	ck_assert(!m.bad);
	return names;
}

static uint8_t ahead_bytes[ROOM];
/* How many images are told ahead with this one, and read. */
static int ahead(uint64_t id)
{
	uint8_t d[DIGEST];
	struct msg m;
	int n = 0;

	msg_init(&m, ahead_bytes, sizeof ahead_bytes);
	notes_put_ahead(id, &m);
	ck_assert(!m.bad);
	msg_init(&m, ahead_bytes, m.len);
	for (; !get_nil(&m); n++) {
		get_bytes(&m, d, DIGEST);
		while (!get_nil(&m))
			get_skip(&m);
	}
	ck_assert(get_end(&m));
	return n;
}

/* What another session, with that variable, is told of the image. */
static void expect_session(const struct image *i, const char *variable, const char *want)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (variable)
			setenv(variable, "1", 1);
		notes_begin(1, i, &plain);
		_exit(strcmp(told(1), want) != 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status %#x with %s", status, variable);
}

/* Code that the driver makes otherwise, or refuses, is not told of. */
START_TEST(sessions)
{
	struct image i = image(1, 1000);
	pid_t pid = fork();

	if (!pid) {
		notes_begin(1, &i, &plain);
		for (const char *k = "abcdefgh"; *k; k++)
			add(1, (char[]){*k, 0});
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	expect_session(&i, NULL, "abcdefgh");
	expect_session(&i, "CUDA_DEVICE_MAX_CONNECTIONS", "abcdefgh");
	/* A session that believes none of it throws it away. */
	expect_session(&i, "CUDA_FORCE_PTX_JIT", "");
	expect_session(&i, NULL, "");
}
END_TEST

/* A length that is damaged hides what is behind it, and what would be added there: the file is written anew.
 * */
START_TEST(damaged)
{
	struct image i = image(1, 1000);
	char path[sizeof dir + 300], find[sizeof dir + 60];
	uint8_t bad[4] = {0xff, 0xff, 0xff, 0x7f};

	for (const char *name = "abcdefgh"; *name; name++) {
		pid_t pid = fork();

		if (!pid) {
			notes_begin(1, &i, &plain);
			add(1, (char[]){*name, 0});
			_exit(0);
		}
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	}
	snprintf(find, sizeof find, "find %s -name '*.notes'", dir);
	FILE *found = popen(find, "r");

	ck_assert_ptr_nonnull(fgets(path, sizeof path, found));
	path[strcspn(path, "\n")] = 0;
	pclose(found);
	FILE *f = fopen(path, "r+");

	ck_assert_ptr_nonnull(f);
	fseek(f, 0, SEEK_END);
	long each = ftell(f) / 8;

	fseek(f, 6 * each, SEEK_SET);
	ck_assert_uint_eq(fwrite(bad, 1, sizeof bad, f), sizeof bad);
	fclose(f);
	expect_session(&i, NULL, "abcdef");
	pid_t pid = fork();

	if (!pid) {
		notes_begin(1, &i, &plain);
		add(1, "i");
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	expect_session(&i, NULL, "abcdefi");
}
END_TEST

/* What is loaded several times has one list, until the last of it ends. */
START_TEST(shared)
{
	struct image i = image(1, 1000), other = image(2, 1000);
	struct jit options = {.n = 1, .option = {CU_JIT_MAX_REGISTERS}, .value = {(void *)32}};

	notes_begin(1, &i, &plain);
	notes_begin(2, &i, &plain);
	notes_begin(3, &i, &options);
	add(1, "a");
	add(2, "a");
	add(2, "b");
	ck_assert_str_eq(told(1), "ab");
	ck_assert_str_eq(told(2), "ab");
	ck_assert_str_eq(told(3), "");
	/* A handle that comes again after its bearer died unheard. */
	notes_begin(1, &other, &plain);
	add(1, "c");
	ck_assert_str_eq(told(1), "c");
	notes_end(1);
	ck_assert_str_eq(told(1), "");
	add(1, "d");
	ck_assert_str_eq(told(2), "ab");
	notes_end(2);
	notes_end(2);
	notes_begin(4, &i, &plain);
	ck_assert_str_eq(told(4), "ab");
}
END_TEST

/* However many loads tell of images ahead, no more than 32 MiB are held at a time. */
START_TEST(read_ahead)
{
	enum { MIB = 1 << 20, COUNT = 3 };
	struct image first = image(1, 1000), next[COUNT];
	void *bytes;

	for (int k = 0; k < COUNT; k++) {
		next[k] = image((uint8_t)(2 + k), 15 * MIB);
		notes_begin(1, &first, &plain);
		notes_begin(2, &next[k], &plain);
		notes_end(2);
	}
	notes_begin(1, &first, &plain);
	ck_assert(notes_has_next(1));
	ck_assert_int_eq(ahead(1), 2);
	ck_assert_int_eq(ahead(1), 0);
	bytes = notes_take(next[0].digest, 15 * MIB);
	ck_assert_ptr_nonnull(bytes);
	free(bytes);
	ck_assert_ptr_null(notes_take(next[0].digest, 15 * MIB));
	ck_assert_ptr_null(notes_take(next[1].digest, 14 * MIB));
	/* It may be told again, being loaded no more. */
	ck_assert_int_eq(ahead(1), 1);
}
END_TEST

/* A map of devices with these names, as the session knows it. */
static void devices(const char *const *names, size_t n)
{
	static uint8_t room[1000];
	static struct session_start start;
	struct msg m;

	msg_init(&m, room, sizeof room);
	put_map(&m, 1);
	put_text(&m, "devices");
	put_array(&m, n);
	for (size_t i = 0; i < n; i++) {
		put_map(&m, 2);
		put_text(&m, "free");
		put_u64(&m, i);
		put_text(&m, "name");
		put_text(&m, names[i]);
	}
	ck_assert(!m.bad);
	start = (struct session_start){.snapshot = room, .snapshot_len = m.len};
	session_self()->start = &start;
}

static const struct {
	const char *names[3];
	bool ahead;
} kinds[] = {
	{{"one"}, true},
	{{"one", "one", "one"}, true},
	{{"one", "one", "two"}, false},
	{{"one", "on", "one"}, false},
};

/* What one kind of device takes, another may not: there, nothing is expected, so nothing is loaded by a post.
 * */
START_TEST(mixed_devices)
{
	struct image first = image(1, 1000), next = image(2, 1000);
	size_t n = 0;

	while (n < 3 && kinds[_i].names[n])
		n++;
	devices(kinds[_i].names, n);
	notes_begin(1, &first, &plain);
	notes_begin(2, &next, &plain);
	add(2, "a");
	ck_assert_int_eq(notes_has_next(1), kinds[_i].ahead);
	ck_assert_str_eq(told(2), "a");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("notes");
	TCase *t = tcase_create("notes");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, sessions);
	tcase_add_test(t, damaged);
	tcase_add_test(t, shared);
	tcase_add_test(t, read_ahead);
	tcase_add_loop_test(t, mixed_devices, 0, sizeof kinds / sizeof *kinds);
	suite_add_tcase(s, t);
	return unit_run(s);
}
