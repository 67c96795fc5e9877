/* SPDX-License-Identifier: Apache-2.0 */
/* scudafs status: what the files of a mount say, for people and as JSON. It knows no more than `cat` does:
 * the tree is the truth. The daemon answers from what it has; should it stop while it is asked, a second
 * thread ends the command (mounts.c tells why a signal cannot). */
#include "mount/command.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mount/mounts.h"

#define VALUE_MAX 256 /* bytes of one value */
#define PATIENCE 30 /* seconds for everything */

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

static int visible(const struct dirent *e)
{
	return *e->d_name != '.';
}

/* The tree tells all of itself in one file. */
static void json_tree(int root)
{
	char buf[65536];
	bool any = false;
	ssize_t n = 0;
	int fd = root < 0 ? -1 : openat(root, "status.json", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0) {
		fwrite(buf, 1, (size_t)n, stdout);
		any = true;
	}
	if (!any)
		fputs("null", stdout);
	if (fd >= 0)
		close(fd);
}

/* A value of the folder without its newline, "-" when it is not known, in one of a few buffers that take
 * turns. */
static const char *value(int dir, const char *name)
{
	static char bufs[8][VALUE_MAX];
	static unsigned turn;
	char *out = bufs[turn++ % 8];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, VALUE_MAX - 1);

	if (fd >= 0)
		close(fd);
	out[n < 0 ? 0 : n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return *out ? out : "-";
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
	const char *reason = value(fd, "reason"); /* while it is lost */
	bool lost = *reason != '-';
	printf("  server %s  %s%s%s  security %s  driver %s  version %s  CUDA %s\n", name,
		value(fd, "status"), lost ? ": " : "", lost ? reason : "", value(fd, "tls"),
		value(fd, "driver"), value(fd, "driver_version"), value(fd, "cuda_version"));
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
static bool show_mount(const struct mount_entry *m, int state, bool json)
{
	int root = state ? -1 : open(m->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *status = root >= 0 ? value(root, "status") :
		state == -ENOTCONN     ? "daemon gone" :
		state == -ETIMEDOUT    ? "daemon does not answer" :
					 strerror(state ? -state : errno);
	bool ready = !strcmp(status, "ready");

	if (json) {
		fputs("{\"mount\":", stdout);
		json_text(m->dir);
		fputs(",\"source\":", stdout);
		json_text(m->source);
		fputs(",\"status\":", stdout);
		json_text(status);
		fputs(",\"tree\":", stdout);
		json_tree(root);
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

static void *watch(void *arg)
{
	(void)arg;
	sleep(PATIENCE);
	fail(1, "the daemon of the mount does not answer");
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
	if (mounts_check())
		return 1;
	pthread_t watcher;
	if (pthread_create(&watcher, NULL, watch, NULL))
		return fail(1, "%m");
	if (optind < argc && !mounts_at(argv[optind], &m))
		return fail(1, "%s is not a scudafs mount", argv[optind]);
	if (json)
		putchar('[');
	for (size_t i = 0; optind < argc ? !n : mounts_get(i, &m); i++) {
		int state = mounts_state(m.dir);
		/* What another user mounted without allow_other is none of ours. */
		if (optind == argc && state == -EACCES && geteuid() != m.owner)
			continue;
		if (n++ && json)
			putchar(',');
		if (!show_mount(&m, state, json))
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
