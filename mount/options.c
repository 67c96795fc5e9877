/* SPDX-License-Identifier: Apache-2.0 */
/* The -o options as a table. A name that nobody knows is refused, because a mistyped key= must not mount in
 * clear. One thread. */
#include "mount/options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mount/command.h"

#define DEFAULT_PORT "9710"

enum kind { KEY, LOG_FILE, COMPRESS, CONNECTIONS, ALLOW_OTHER, CHANNEL, FUSE, IGNORED };

static const struct option_name {
	const char *name;
	enum kind kind;
	bool valued;
} names[] = {
	{"key", KEY, true},
	{"log", LOG_FILE, true},
	{"compress", COMPRESS, true},
	{"connections", CONNECTIONS, true},
	{"allow_other", ALLOW_OTHER, false},
	{"channel", CHANNEL, true},
	{"ro", FUSE, false},
	{"noexec", FUSE, false},
	{"noatime", FUSE, false},
	{"default_permissions", FUSE, false},
	{"fsname", FUSE, true},
	/* What mount(8), fstab and systemd say to themselves, and what the mount is anyway. */
	{"defaults", IGNORED, false},
	{"rw", IGNORED, false},
	{"nosuid", IGNORED, false},
	{"nodev", IGNORED, false},
	{"dev", IGNORED, false},
	{"suid", IGNORED, false},
	{"exec", IGNORED, false},
	{"atime", IGNORED, false},
	{"relatime", IGNORED, false},
	{"auto", IGNORED, false},
	{"noauto", IGNORED, false},
	{"_netdev", IGNORED, false},
	{"nofail", IGNORED, false},
	{"user", IGNORED, false},
	{"users", IGNORED, false},
	{"nouser", IGNORED, false},
	{"owner", IGNORED, false},
	{"group", IGNORED, false},
	{"sync", IGNORED, false},
	{"async", IGNORED, false},
};

/* With the port, so that messages and /proc/mounts show it: "host" becomes "host:9710". Raw IPv6 addresses
 * need their brackets anyway. */
static int add_server(struct options *o, const char *address)
{
	const char *colon = strrchr(address, ':'), *bracket = strrchr(address, ']');
	bool local = !strncmp(address, "unix:", 5);
	bool has_port = local || (colon && (!bracket || colon > bracket));
	char cwd[4096], *text;

	if (o->server_count == MOUNT_SERVERS)
		return fail(EXIT_USAGE, "at most %d servers", MOUNT_SERVERS);
	/* The daemon changes its working folder. */
	if (local && address[5] && address[5] != '/' && getcwd(cwd, sizeof(cwd))) {
		if (asprintf(&text, "unix:%s/%s", cwd, address + 5) < 0)
			return fail(EXIT_USAGE, "%m");
	} else if (asprintf(&text, "%s%s", address, has_port ? "" : ":" DEFAULT_PORT) < 0) {
		return fail(EXIT_USAGE, "%m");
	}
	o->servers[o->server_count++] = text;
	return 0;
}

int options_servers(struct options *o, const char *list)
{
	char *copy = strdup(list), *save = NULL;
	int r = copy ? 0 : fail(EXIT_USAGE, "%m");

	for (char *s = copy ? strtok_r(copy, ",", &save) : NULL; s && !r; s = strtok_r(NULL, ",", &save))
		r = add_server(o, s);
	free(copy);
	return r || o->server_count ? r : fail(EXIT_USAGE, "'%s' names no server", list);
}

/* The daemon may change its working folder, so paths become absolute here. */
static int set_path(char **out, const char *path)
{
	char cwd[4096];

	free(*out);
	if (*path == '/' || !getcwd(cwd, sizeof(cwd)))
		*out = strdup(path);
	else if (asprintf(out, "%s/%s", cwd, path) < 0)
		*out = NULL;
	return *out ? 0 : fail(EXIT_USAGE, "%m");
}

static int add_fuse(struct options *o, const char *word)
{
	size_t n = strlen(o->fuse);

	if ((size_t)snprintf(o->fuse + n, sizeof(o->fuse) - n, "%s%s", n ? "," : "", word) >=
		sizeof(o->fuse) - n)
		return fail(EXIT_USAGE, "the options are too long");
	return 0;
}

/* The number of the value among three words, -1: none. */
static int word_of(const char *const words[3], const char *value)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(value, words[i]))
			return i;
	return -1;
}

static int set_compress(struct options *o, const char *value)
{
	static const char *const words[] = {"auto", "on", "off"};
	int i = word_of(words, value);

	o->compress = (enum compress)i;
	return i >= 0 ? 0 : fail(EXIT_USAGE, "compress=%s: it is auto, on or off", value);
}

static int set_connections(struct options *o, const char *value)
{
	static const char *const words[] = {"auto", "1", "2"};
	int i = word_of(words, value);

	o->connections = (enum connections)i;
	return i >= 0 ? 0 : fail(EXIT_USAGE, "connections=%s: it is auto, 1 or 2", value);
}

static int parse_word(struct options *o, const char *word, bool sloppy)
{
	size_t n = strcspn(word, "=");
	const char *value = word[n] ? word + n + 1 : NULL;

	if (!strncmp(word, "x-", 2) || !strncmp(word, "X-", 2) || !strncmp(word, "comment=", 8) ||
		!strncmp(word, "user=", 5))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(names[i].name, word, n) || names[i].name[n])
			continue;
		if (names[i].valued != (value && *value))
			return fail(EXIT_USAGE, "option %s %s", names[i].name,
				names[i].valued ? "needs a value: -o NAME=VALUE" : "takes no value");
		switch (names[i].kind) {
		case KEY: return set_path(&o->key_file, value);
		case COMPRESS: return set_compress(o, value);
		case CONNECTIONS: return set_connections(o, value);
		case LOG_FILE: return set_path(&o->log_file, value);
		case ALLOW_OTHER: o->allow_other = true; return 0;
		case CHANNEL:
			o->no_channel = !strcmp(value, "fuse");
			return o->no_channel || !strcmp(value, "shared") ? 0 :
				fail(EXIT_USAGE, "option channel is fuse or shared, not '%s'", value);
		case FUSE: return add_fuse(o, word);
		case IGNORED: return 0;
		}
	}
	return sloppy ? 0
		      : fail(EXIT_USAGE,
				"there is no option '%.*s' (known: key=FILE, allow_other, "
				"log=FILE, channel=fuse, "
				"compress=auto|on|off, connections=auto|1|2, and "
				"those of mount(8))",
				(int)n, word);
}

int options_parse(struct options *o, const char *text, bool sloppy)
{
	char *copy = strdup(text), *save = NULL;
	int r = copy ? 0 : fail(EXIT_USAGE, "%m");

	for (char *w = copy ? strtok_r(copy, ",", &save) : NULL; w && !r; w = strtok_r(NULL, ",", &save))
		r = parse_word(o, w, sloppy);
	free(copy);
	return r;
}

void options_finish(struct options *o)
{
	for (size_t i = 0; i < o->server_count; i++)
		free((char *)o->servers[i]);
	free(o->key_file);
	free(o->log_file);
	*o = (struct options){0};
}
