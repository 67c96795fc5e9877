/* SPDX-License-Identifier: Apache-2.0 */
/* scudafs status: what the files of a mount say, for people and as JSON. It knows no more than `cat` does:
 * the tree is the truth. One thread; the daemon answers from what it has, and an alarm ends the command
 * should it not answer at all. */
#include "mount/command.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "mount/mounts.h"
#include "wire/limits.h"

#define VALUE_MAX (64u << 10) /* bytes of one file */
#define DEPTH_MAX 8 /* of folders */
#define PATIENCE 10 /* seconds for everything */

/* The file's text without the last newline; NULL when it cannot be read. */
static char *read_value(int dir, const char *name)
{
	static char buf[VALUE_MAX];
	size_t n = 0;
	ssize_t r = 0;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return NULL;
	while (n < sizeof(buf) - 1 && (r = read(fd, buf + n, sizeof(buf) - 1 - n)) > 0)
		n += (size_t)r;
	close(fd);
	if (r < 0)
		return NULL;
	if (n && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return buf;
}

static void json_text(const char *s)
{
	putchar('"');
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20 || (unsigned char)*s == 0x7f)
			printf("\\u%04x", (unsigned char)*s);
		else
			putchar(*s);
	putchar('"');
}

/* A decimal integer that JSON can carry is a number, anything else is text. */
static void json_value(const char *s)
{
	size_t n = strspn(s, "0123456789");

	if (n && !s[n] && n <= 18 && (*s != '0' || n == 1))
		fputs(s, stdout);
	else
		json_text(s);
}

static int visible(const struct dirent *e)
{
	return *e->d_name != '.';
}

/* One folder as an object: folders are objects, files values, links are left out (they show the same things
 * again). */
static void json_folder(int parent, const char *name, int depth)
{
	struct dirent **list;
	const char *comma = "";
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = fd < 0 ? -1 : scandirat(fd, ".", &list, visible, versionsort);

	putchar('{');
	for (int i = 0; i < n; i++) {
		struct stat st;
		const char *leaf = list[i]->d_name;
		char *text;
		if (fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) || !(st.st_mode & 0444)) {
			free(list[i]);
			continue;
		}
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
			fputs(comma, stdout);
			json_text(leaf);
			putchar(':');
			json_folder(fd, leaf, depth + 1);
			comma = ",";
		} else if (S_ISREG(st.st_mode) && strcmp(leaf, "ctl") && (text = read_value(fd, leaf))) {
			fputs(comma, stdout);
			json_text(leaf);
			putchar(':');
			json_value(text);
			comma = ",";
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	if (fd >= 0)
		close(fd);
	putchar('}');
}

/* A value of the folder, or "-", in one of a few buffers that take turns. */
static const char *value(int dir, const char *name)
{
	static char bufs[8][256];
	static unsigned turn;
	const char *s = read_value(dir, name);
	char *out = bufs[turn++ % 8];

	snprintf(out, sizeof(bufs[0]), "%s", s && *s ? s : "-");
	return out;
}

static const char *bytes(int dir, const char *name)
{
	static char bufs[4][32];
	static unsigned turn;
	const char *s = value(dir, name);
	char *out = bufs[turn++ % 4];

	if (*s == '-')
		return "-";
	double v = strtod(s, NULL);
	snprintf(out, sizeof(bufs[0]), v >= 1 << 30 ? "%.1f GiB" : "%.0f MiB",
		v / (v >= 1 << 30 ? 1 << 30 : 1 << 20));
	return out;
}

static void show_server(int root, const char *name)
{
	char path[NAME_MAX + 16];

	snprintf(path, sizeof(path), "servers/%s", name);
	int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	printf("  server %s  %s  security %s  driver %s  CUDA %s\n", name, value(fd, "status"),
		value(fd, "tls"), value(fd, "driver_version"), value(fd, "cuda_version"));
	close(fd);
}

static void show_gpu(int root, const char *name)
{
	int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	printf("  %-5s %s  compute capability %s  %s, %s free  %s\n", name, value(fd, "name"),
		value(fd, "compute_capability"), bytes(fd, "memory/total"), bytes(fd, "memory/free"),
		value(fd, "uuid"));
	close(fd);
}

static int gpu_folder(const struct dirent *e)
{
	return !strncmp(e->d_name, "gpu", 3) && isdigit((unsigned char)e->d_name[3]);
}

static void each_folder(int root, const char *dir, int (*select)(const struct dirent *),
	void (*show)(int root, const char *name))
{
	struct dirent **list;
	int n = scandirat(root, dir, &list, select, versionsort);

	for (int i = 0; i < n; i++) {
		show(root, list[i]->d_name);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

/* Returns true when the mount is ready. */
static bool show_mount(const struct mount_entry *m, bool json)
{
	int state = mounts_state(m->dir);
	int root = state ? -1 : open(m->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *status = root < 0 ? state == -ENOTCONN ? "daemon gone" : strerror(state ? -state : errno)
				      : value(root, "status");
	bool ready = !strcmp(status, "ready");

	if (json) {
		fputs("{\"mount\":", stdout);
		json_text(m->dir);
		fputs(",\"source\":", stdout);
		json_text(m->source);
		fputs(",\"status\":", stdout);
		json_text(status);
		fputs(",\"tree\":", stdout);
		if (root >= 0)
			json_folder(root, ".", 0);
		else
			fputs("null", stdout);
		putchar('}');
	} else {
		printf("%s  %s  %s\n", m->dir, m->source, status);
		if (root >= 0) {
			each_folder(root, "servers", visible, show_server);
			each_folder(root, ".", gpu_folder, show_gpu);
		}
	}
	if (root >= 0)
		close(root);
	return ready;
}

static void too_late(int sig)
{
	static const char text[] = "scudafs status: the daemon of the mount does not answer\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

int command_status(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct mount_entry m;
	bool json = false, ready = true;
	size_t n = 0;

	for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		if (c == 'h')
			return command_help();
		if (c != 'j')
			return usage_error(NULL);
		json = true;
	}
	if (argc - optind > 1)
		return usage_error("one folder at most");
	signal(SIGALRM, too_late);
	alarm(PATIENCE);
	if (optind < argc && !mounts_at(argv[optind], &m))
		return fail(1, "%s is not a scudafs mount", argv[optind]);
	if (json)
		putchar('[');
	for (; optind < argc ? !n : mounts_get(n, &m); n++) {
		if (n && json)
			putchar(',');
		if (!show_mount(&m, json))
			ready = false;
	}
	if (json)
		puts("]");
	if (!n && !json)
		puts("no scudafs mount; make one with: scudafs mount HOST DIR");
	if (fflush(stdout) || ferror(stdout))
		return fail(1, "standard output: %m");
	return ready && n ? 0 : 1;
}
