/* SPDX-License-Identifier: Apache-2.0 */
/* The tree without a mount and without a network: snapshots are decoded from bytes and given to monitors
 * that no thread serves. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "scudafs/monitor.h"
#include "scudafs/snapshot.h"
#include "scudafs/text.h"
#include "scudafs/tree.h"
#include "tests/unit/unit.h"
#include "wire/ctl.h"
#include "wire/msg.h"

#define SERVERS 3

static struct monitor *monitors[SERVERS];
static const char *const addresses[SERVERS] = {"alpha:9710", "alpha:9711", "[fe80::1%eth0]:9710"};

/* ---- snapshots ---- */

static void put_device(struct msg *m, const char *name, unsigned id)
{
	uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, (uint8_t)id};
	put_map(m, 7);
	put_text(m, "name"), put_text(m, name);
	put_text(m, "uuid"), put_bytes(m, uuid, sizeof(uuid));
	put_text(m, "total"), put_u64(m, 1000);
	put_text(m, "free"), put_u64(m, 400);
	put_text(m, "something new"), put_array(m, 2), put_nil(m), put_map(m, 0);
	put_text(m, "values"), put_map(m, 6);
	put_text(m, "power/usage"), put_u64(m, 123456000);
	put_text(m, "minor_number"), put_u64(m, 3);
	put_text(m, "ecc/mode"), put_text(m, "enabled");
	put_text(m, "serial"), put_text(m, "0123");
	put_text(m, "something/new"), put_array(m, 0);
	put_text(m, "processes"), put_array(m, 2);
	put_array(m, 3), put_u64(m, 77), put_u64(m, 1048576), put_text(m, "/bin/a b");
	put_array(m, 3), put_u64(m, 78), put_nil(m), put_text(m, "");
	put_text(m, "attributes"), put_array(m, 77);
	for (unsigned i = 0; i < 77; i++)
		if (i == 75 || i == 76)
			put_i64(m, i == 75 ? 9 : 0);
		else
			put_nil(m);
}

static size_t encode(uint8_t *b, size_t cap, unsigned devices, const char *name, const char *version)
{
	struct msg m;
	msg_init(&m, b, cap);
	put_map(&m, 4);
	put_text(&m, "devices"), put_array(&m, devices);
	for (unsigned i = 0; i < devices; i++)
		put_device(&m, name, i);
	put_text(&m, "driver_version"), put_i64(&m, 12080);
	put_text(&m, "nvidia_version"), put_text(&m, version);
	put_text(&m, "host"), put_text(&m, "there");
	ck_assert(!m.bad);
	return m.len;
}

static void accept(unsigned server, unsigned devices, const char *name)
{
	static uint8_t b[LIMIT_SNAPSHOT];
	static struct snapshot s;
	ck_assert_int_eq(
		snapshot_decode(b, encode(b, sizeof(b), devices, name, server ? "" : "580.1"), &s), 0);
	monitor_accept(monitors[server], &s);
}

static void setup(void)
{
	for (unsigned i = 0; i < SERVERS; i++)
		monitors[i] = monitor_create(addresses[i], NULL);
	ck_assert_int_eq(tree_init(monitors, SERVERS, 1000, 1001), 0);
}

static void teardown(void)
{
	tree_finish();
	for (unsigned i = 0; i < SERVERS; i++)
		monitor_destroy(monitors[i]);
}

/* ---- ways through the tree ---- */

static uint64_t walk(const char *path)
{
	char copy[256], *save = NULL;
	uint64_t node = TREE_ROOT;
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = strtok_r(copy, "/", &save); p && node; p = strtok_r(NULL, "/", &save))
		node = tree_lookup(node, p);
	return node;
}

static void check_value(const char *path, const char *expected)
{
	char *text;
	size_t n;
	struct stat st;
	uint64_t node = walk(path);
	if (!expected) {
		ck_assert_msg(!node, "%s exists", path);
		return;
	}
	ck_assert_msg(node, "%s is missing", path);
	ck_assert_int_eq(tree_read(node, &text, &n), 0);
	ck_assert_str_eq(text, expected);
	ck_assert_int_eq(tree_stat(node, &st), 0);
	ck_assert_uint_eq((size_t)st.st_size, n);
	ck_assert_uint_eq(st.st_ino, node);
	ck_assert_uint_eq(st.st_uid, 1000);
	free(text);
}

static unsigned seen;
static bool count(void *arg, const char *name, uint64_t node)
{
	struct stat st;
	uint64_t folder = *(uint64_t *)arg, again = tree_lookup(folder, name);
	unsigned server;
	seen++;
	/* what is listed can be looked up, and is the same; only session nodes are always new */
	if (!tree_is_session(node, &server))
		ck_assert_uint_eq(again, node);
	else
		ck_assert(again && again != node);
	ck_assert_int_eq(tree_stat(node, &st), 0);
	if (S_ISDIR(st.st_mode)) {
		if (tree_parent(node) != folder)
			ck_abort_msg("%s has a wrong parent", name);
		ck_assert_int_eq(tree_list(node, count, &node), 0);
	}
	return true;
}

/* One device whose values have so many lists of processes, each as long as a list may be. */
static int decode_lists(unsigned lists)
{
	static uint8_t b[LIMIT_SNAPSHOT];
	static struct snapshot s;
	struct msg m;
	msg_init(&m, b, sizeof(b));
	put_map(&m, 1);
	put_text(&m, "devices"), put_array(&m, 1), put_map(&m, 1);
	put_text(&m, "values"), put_map(&m, lists);
	for (unsigned i = 0; i < lists; i++) {
		put_text(&m, "processes"), put_array(&m, GPU_PROCESSES);
		for (unsigned k = 0; k < GPU_PROCESSES; k++)
			put_array(&m, 3), put_u64(&m, k), put_nil(&m), put_text(&m, "p");
	}
	ck_assert(!m.bad);
	return snapshot_decode(b, m.len, &s);
}

START_TEST(test_lists)
{
	ck_assert_int_eq(decode_lists(1), 0);
	ck_assert_int_eq(decode_lists(2), -EPROTO);
	ck_assert_int_eq(decode_lists(60), -EPROTO);
}
END_TEST

START_TEST(test_values)
{
	check_value("status", "connecting\n");
	check_value("gpu0/name", NULL);
	check_value("servers/alpha/gpus", NULL);
	accept(0, 2, "A GPU");
	check_value("status", "degraded\n");
	check_value("gpu0/name", "A GPU\n");
	check_value("gpu1/uuid", "GPU-01020304-0506-0708-090a-0b0c0d0e0f01\n");
	check_value("by-uuid/GPU-01020304-0506-0708-090a-0b0c0d0e0f01", "../gpu1");
	check_value("gpu0/memory/used", "600\n");
	check_value("gpu0/power/usage", "123456000\n");
	check_value("gpu0/power/limit", NULL);
	check_value("gpu0/minor_number", "3\n");
	check_value("gpu0/ecc/mode", "enabled\n");
	check_value("gpu0/ecc/corrected", NULL);
	check_value("gpu0/serial", "0123\n");
	check_value("gpu0/mode", NULL);
	check_value("gpu0/clocks", NULL);
	check_value("gpu0/sessions", "77 1048576 /bin/a b\n78 - -\n");
	check_value("gpu0/compute_capability", "9.0\n");
	check_value("gpu0/multiprocessors", NULL);
	check_value("gpu0/pci_bus_id", NULL);
	check_value("gpu0/cuda_version", "12.8\n");
	check_value("gpu0/driver_version", "580.1\n");
	check_value("gpu0/server", "alpha:9710\n");
	check_value("gpu2/name", NULL);
	check_value("gpu00/name", NULL);
	check_value("gpu-1/name", NULL);
	check_value("gpu4294967296/name", NULL);
	check_value("servers/alpha/gpus", "2\n");
	check_value("servers/alpha/status", "ready\n");
	check_value("servers/alpha/tls", NULL);
	check_value("servers/alpha_9711/address", "alpha:9711\n");
	check_value("servers/fe80__1_eth0/status", "connecting\n");
	check_value("stats/sessions", "0\n");
	check_value("name", NULL);
	check_value("sessions/1/pid", NULL);
	check_value("version/x", NULL);
	accept(1, 1, "B");
	accept(2, 0, "C");
	check_value("status", "ready\n");
	check_value("gpu2/name", "B\n");
	check_value("gpu2/driver_version", NULL);
}
END_TEST

/* Numbers belong to a server's GPU for as long as the mount lives. */
START_TEST(test_numbers_stay)
{
	accept(1, 1, "B");
	check_value("gpu0/server", "alpha:9711\n");
	accept(0, 2, "A");
	check_value("gpu0/server", "alpha:9711\n");
	check_value("gpu1/server", "alpha:9710\n");
	check_value("gpu2/remote_index", "1\n");
	accept(0, 1, "A");
	check_value("gpu2/name", NULL);
	accept(1, 2, "B");
	check_value("gpu3/server", "alpha:9711\n");
	accept(0, 2, "A again");
	check_value("gpu2/name", "A again\n");
	check_value("gpu3/remote_index", "1\n");
}
END_TEST

START_TEST(test_listing)
{
	uint64_t root = TREE_ROOT;
	accept(0, LIMIT_DEVICES, "A GPU");
	accept(1, 3, "B");
	seen = 0;
	ck_assert_int_eq(tree_list(root, count, &root), 0);
	ck_assert_uint_gt(seen, 67 * 12);
	ck_assert_int_eq(tree_list(walk("version"), count, &root), -ENOTDIR);
	ck_assert_uint_eq(tree_lookup(walk("version"), "x"), 0);
}
END_TEST

START_TEST(test_session_nodes)
{
	unsigned server;
	struct stat st;
	struct stat again;
	uint64_t a = walk(CTL_NAME), b = walk(CTL_NAME);
	ck_assert(a && b && a != b);
	ck_assert_int_eq(tree_stat(a, &st), 0);
	ck_assert_int_eq(tree_stat(b, &again), 0);
	ck_assert(st.st_mode == (S_IFREG | 0666) && !st.st_size);
	ck_assert(st.st_ino == again.st_ino && st.st_ino != a);
	ck_assert(tree_is_session(a, &server));
	ck_assert_uint_eq(server, 0);
	ck_assert(!tree_is_session(walk("version"), &server));
	accept(1, 1, "B");
	ck_assert(tree_is_session(a, &server));
	ck_assert_uint_eq(server, 1); /* the first that is ready */
	ck_assert(tree_is_session(walk("servers/fe80__1_eth0/ctl"), &server));
	ck_assert_uint_eq(server, 2);
}
END_TEST

/* Numbers that no listing has given. */
START_TEST(test_stray_nodes)
{
	struct stat st;
	char *text;
	size_t n;
	accept(0, 1, "A");
	for (uint64_t f = 0; f < 16; f++)
		for (uint64_t object = 0; object < 3; object++)
			for (uint64_t low = 0; low < 256; low++) {
				uint64_t node = f << 48 | object << 8 | low;
				if (!tree_stat(node, &st) && S_ISREG(st.st_mode) &&
					!tree_read(node, &text, &n))
					free(text);
				tree_lookup(node, "name");
				tree_parent(node);
			}
}
END_TEST

START_TEST(test_hostile_names)
{
	accept(0, 1, "Evil\x1b[31m\n\xff GPU");
	check_value("gpu0/name", "Evil?[31m\n");
	char out[65];
	text_name(out, "../../etc/passwd");
	ck_assert_str_eq(out, "_.._etc_passwd");
	text_name(out, "...");
	ck_assert_str_eq(out, "_");
	char lengthy[200];
	memset(lengthy, 'x', sizeof(lengthy));
	lengthy[199] = '\0';
	text_name(out, lengthy);
	ck_assert_uint_eq(strlen(out), 64);
}
END_TEST

START_TEST(test_bad_snapshots)
{
	static uint8_t b[LIMIT_SNAPSHOT], c[LIMIT_SNAPSHOT];
	static struct snapshot s;
	size_t n = encode(b, sizeof(b), 2, "A", "1");
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(snapshot_decode(b, i, &s), -EPROTO);
	ck_assert_int_eq(snapshot_decode(b, n, &s), 0);
	b[n] = 0;
	ck_assert_int_eq(snapshot_decode(b, n + 1, &s), -EPROTO);
	srand(1);
	for (int k = 0; k < 20000; k++) {
		memcpy(c, b, n);
		for (int i = rand() % 4; i >= 0; i--)
			c[(size_t)rand() % n] = (uint8_t)rand();
		if (snapshot_decode(c, n, &s) == 0) {
			ck_assert_uint_le(s.count, LIMIT_DEVICES);
			for (unsigned i = 0; i < s.count; i++)
				ck_assert_uint_lt(strlen(s.gpus[i].name), sizeof(s.gpus[i].name));
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tree");
	TCase *t = tcase_create("tree");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_values);
	tcase_add_test(t, test_lists);
	tcase_add_test(t, test_numbers_stay);
	tcase_add_test(t, test_listing);
	tcase_add_test(t, test_session_nodes);
	tcase_add_test(t, test_stray_nodes);
	tcase_add_test(t, test_hostile_names);
	tcase_add_test(t, test_bad_snapshots);
	suite_add_tcase(s, t);
	return unit_run(s);
}
