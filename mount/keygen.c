/* SPDX-License-Identifier: Apache-2.0 */
/* scudafs keygen: one line with a new 256-bit key. A key never appears on a command line; the file is 0600
 * before the first byte is in it. One thread. */
#include "mount/command.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "wire/keys.h"

/* What a file name, a log line and the tree can show without harm. */
static bool name_ok(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-");

	return n && !s[n] && n <= LIMIT_NAME && *s != '.' && *s != '-';
}

static int write_line(int fd, const char *line, size_t n)
{
	while (n) {
		ssize_t w = write(fd, line, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -1;
		line += w;
		n -= (size_t)w;
	}
	return 0;
}

static bool has_key(const char *file, const char *name)
{
	struct keys *keys = NULL;
	bool has = !keys_load(file, &keys, NULL) && keys_find(keys, name);

	keys_free(keys);
	return has;
}

/* An editor may have left the file's last line without its end. */
static int end_last_line(int fd, const struct stat *st)
{
	char last = '\n';

	if (st->st_size && pread(fd, &last, 1, st->st_size - 1) != 1)
		return -1;
	return last == '\n' ? 0 : write_line(fd, "\n", 1);
}

int command_keygen(int argc, char **argv)
{
	static const struct option options[] = {
		{"append", no_argument, NULL, 'a'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool append = false;
	char line[LIMIT_NAME + 80];
	struct key key;

	for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		if (c == 'h')
			return command_help();
		if (c != 'a')
			return usage_error(NULL);
		append = true;
	}
	if (argc - optind < 1 || argc - optind > 2)
		return usage_error("a name is needed, and at most one file");
	if (!name_ok(argv[optind]))
		return usage_error("'%s' is no client name: letters, digits and . _ @ - only, at most %d",
			argv[optind], LIMIT_NAME);
	const char *file = argv[optind + 1];
	int r = key_generate(argv[optind], &key);
	if (r < 0) {
		errno = -r;
		return fail(1, "no random bytes: %m");
	}
	size_t n = (size_t)key_format(&key, line, sizeof(line));
	if (!file)
		return write_line(STDOUT_FILENO, line, n) ? fail(1, "standard output: %m") : 0;
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (append ? O_APPEND : O_EXCL), 0600);
	if (fd < 0 && errno == EEXIST)
		return fail(1, "%s exists already; --append adds a line to it", file);
	if (fd < 0)
		return fail(1, "%s: %m", file);
	struct stat st;
	if (fstat(fd, &st) || st.st_mode & 077)
		return fail(1, "%s can be read by others; chmod 600 it first", file);
	if (has_key(file, argv[optind]))
		return fail(1, "%s has a key for %s already: a server refuses a file with a name twice; take "
			       "that line out first", file, argv[optind]);
	if (end_last_line(fd, &st) || write_line(fd, line, n) || fsync(fd) || close(fd))
		return fail(1, "%s: %m", file);
	fprintf(stderr,
		"%s: a key for %s; its line belongs into the server's key file too (scuda-server --keys "
		"FILE)\n",
		file, argv[optind]);
	return 0;
}
