/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and makes key files. Secrets are wiped before their memory is given back.
 *
 * Thread rule: a struct keys does not change after keys_load; any thread may look names up. */
#include "wire/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES (LIMIT_NAME + 64 + 16)
#define FILE_MAX_BYTES (LIMIT_KEYS * (size_t)LINE_MAX_BYTES)

struct keys {
	size_t n;
	struct key key[];
};

void keys_free(struct keys *k)
{
	if (!k)
		return;
	explicit_bzero(k->key, k->n * sizeof k->key[0]);
	free(k);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Names are shown in logs and become TLS identities: printable ASCII without spaces and colons. */
static bool name_ok(const char *name, size_t n)
{
	if (!n || n > LIMIT_NAME)
		return false;
	for (size_t i = 0; i < n; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == ':' || name[i] == '#')
			return false;
	return true;
}

static bool parse_line(const char *line, size_t n, struct key *out)
{
	const char *colon = memchr(line, ':', n);

	if (!colon || !name_ok(line, colon - line) || (size_t)(line + n - colon - 1) != 64)
		return false;
	memset(out->name, 0, sizeof out->name);
	memcpy(out->name, line, colon - line);
	for (int i = 0; i < 32; i++) {
		int hi = hex_digit(colon[1 + 2 * i]), lo = hex_digit(colon[2 + 2 * i]);

		if (hi < 0 || lo < 0)
			return false;
		out->secret[i] = hi << 4 | lo;
	}
	return true;
}

/* The whole file in wiped-later memory. */
static int read_file(const char *path, char **text, size_t *size, const char **why)
{
	struct stat st;
	size_t got = 0;
	char *p;
	int r = 0, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		r = -errno;
		*why = strerrordesc_np(errno);
		return r;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		*why = "is no regular file";
		r = -EINVAL;
	} else if (st.st_mode & 077) {
		*why = "may be read by group or others: chmod 600";
		r = -EPERM;
	} else if ((size_t)st.st_size > FILE_MAX_BYTES) {
		*why = "is too large";
		r = -EINVAL;
	}
	p = r ? NULL : malloc(st.st_size + 1);
	if (!r && !p)
		r = -ENOMEM;
	while (!r && got < (size_t)st.st_size) {
		ssize_t n = read(fd, p + got, st.st_size - got);

		if (n < 0 && errno != EINTR) {
			r = -errno;
			*why = strerrordesc_np(errno);
		}
		if (!n)
			break;
		if (n > 0)
			got += n;
	}
	close(fd);
	if (r) {
		free(p);
		return r;
	}
	p[got] = 0;
	*text = p;
	*size = got;
	return 0;
}

static int parse(const char *text, size_t size, struct keys *k, const char **why)
{
	for (const char *line = text, *next; line < text + size; line = next) {
		const char *end = memchr(line, '\n', text + size - line);
		size_t n;

		if (!end)
			end = text + size;
		next = end + 1;
		while (line < end && (*line == ' ' || *line == '\t'))
			line++;
		while (end > line && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
			end--;
		n = end - line;
		if (!n || *line == '#')
			continue;
		if (k->n == LIMIT_KEYS) {
			*why = "has too many keys";
			return -EINVAL;
		}
		if (!parse_line(line, n, &k->key[k->n])) {
			*why = "has a line that is not name:64 hex digits";
			return -EINVAL;
		}
		if (keys_find(k, k->key[k->n].name)) {
			*why = "has a name twice";
			return -EINVAL;
		}
		k->n++;
	}
	if (!k->n) {
		*why = "has no key";
		return -EINVAL;
	}
	return 0;
}

int keys_load(const char *path, struct keys **out, const char **why)
{
	const char *reason = "out of memory";
	struct keys *k = NULL;
	char *text = NULL;
	size_t size = 0, lines = 1;
	int r = read_file(path, &text, &size, &reason);

	if (!r) {
		for (size_t i = 0; i < size && lines < LIMIT_KEYS; i++)
			lines += text[i] == '\n';
		k = calloc(1, sizeof *k + lines * sizeof k->key[0]);
		r = k ? parse(text, size, k, &reason) : -ENOMEM;
	}
	if (text)
		explicit_bzero(text, size);
	free(text);
	if (why)
		*why = reason;
	if (r) {
		if (k)
			k->n = lines;   /* wipe a half-parsed line too */
		keys_free(k);
		return r;
	}
	*out = k;
	return 0;
}

const struct key *keys_find(const struct keys *k, const char *name)
{
	const struct key *found = NULL;
	char wanted[LIMIT_NAME + 1] = {0};
	size_t n = strlen(name);

	if (n > LIMIT_NAME)
		return NULL;
	memcpy(wanted, name, n);
	/* Every key is compared over its full length, so that time tells nothing about the names. */
	for (size_t i = 0; i < k->n; i++) {
		unsigned char differs = 0;

		for (size_t j = 0; j < sizeof wanted; j++)
			differs |= wanted[j] ^ k->key[i].name[j];
		if (!differs)
			found = &k->key[i];
	}
	return found;
}

const struct key *keys_first(const struct keys *k)
{
	return k->n == 1 ? &k->key[0] : NULL;
}

int key_generate(const char *name, struct key *out)
{
	size_t got = 0;

	if (!name_ok(name, strlen(name)))
		return -EINVAL;
	memset(out, 0, sizeof *out);
	strcpy(out->name, name);
	while (got < sizeof out->secret) {
		ssize_t n = getrandom(out->secret + got, sizeof out->secret - got, 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			got += n;
	}
	return 0;
}

int key_format(const struct key *k, char *buf, size_t n)
{
	int len = snprintf(buf, n, "%s:", k->name);

	for (size_t i = 0; i < sizeof k->secret; i++)
		len += snprintf((size_t)len < n ? buf + len : NULL, (size_t)len < n ? n - len : 0, "%02x",
				k->secret[i]);
	len += snprintf((size_t)len < n ? buf + len : NULL, (size_t)len < n ? n - len : 0, "\n");
	return len;
}
