/* SPDX-License-Identifier: Apache-2.0 */
/* scuda-server: the program on the GPU host. Reads the command line and refuses combinations that would
 * leave a GPU open to the network by mistake.
 *
 * Thread rule: one thread. */
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/address.h"
#include "server/cache.h"
#include "server/listen.h"
#include "server/options.h"
#include "wire/fds.h"
#include "wire/frame.h"
#include "wire/keys.h"
#include "wire/log.h"

static const char help[] =
"usage: scuda-server [OPTION]...\n"
"Lets programs on other machines use this machine's GPUs through `scudafs mount`.\n"
"\n"
"  --listen ADDR:PORT   where to listen; may be given several times. unix:PATH is a\n"
"                       unix socket. Default: 127.0.0.1:9710 and a unix socket in\n"
"                       $XDG_RUNTIME_DIR or /run\n"
"  --socket-mode MODE   who may connect to unix sockets, as chmod takes it: 0600 (default),\n"
"                       0660 or 0666; a session is known by its user, no key is needed\n"
"  --socket-group NAME  the unix sockets' group\n"
"  --keys FILE          one line per client, as `scudafs keygen NAME` prints it; TCP\n"
"                       connections then need a key. SIGHUP reads the file again\n"
"  --driver WHICH       auto (default): the NVIDIA driver, or the software device where\n"
"                       there is none; soft; or the path of a libcuda\n"
"  --insecure-no-auth   let anyone who reaches the address use the GPUs, in clear\n"
"  --cache DIR|none     where the modules that programs load are kept, for each client apart.\n"
"                       Default: $CACHE_DIRECTORY, or scuda-server in the user's cache folder\n"
"  --ready-fd N         write the TCP port and a newline to descriptor N once ready\n"
"  --allow-changes      programs may change the GPUs' clocks, power limits and modes (NVML)\n"
"  --check LIST         the software device looks at what kernels do to memory: bounds, init,\n"
"                       race, all (docs/software-device.md); programs may choose for\n"
"                       themselves by SCUDAFS_SOFT_CHECK\n"
"  --no-fence           leave the sessions' address space as it is (for debuggers)\n"
"  --help, --version\n"
"\n"
"SCUDAFS_LOG=error|warning|info|debug sets how much is logged to standard error.\n"
"SIGTERM: no new sessions, running ones get 20 s. Exit status: 0 after SIGTERM,\n"
"1 when it cannot serve, 2 for a wrong command line.\n";

static int wrong(const char *what)
{
	fprintf(stderr, "scuda-server: %s\nTry `scuda-server --help`.\n", what);
	return 2;
}

static int no_group(const char *name)
{
	fprintf(stderr, "scuda-server: --socket-group: there is no group '%s'; groupadd makes one\n", name);
	return 2;
}

/* A non-blocking way out for each kind of user. */
static int open_without_keys(const char *address)
{
	fprintf(stderr,
"scuda-server: %s can be reached from other machines, and no keys are given: anyone could\n"
"use the GPUs. Choose one:\n"
"  scudafs keygen NAME >> keys; chmod 600 keys; scuda-server --listen %s --keys keys\n"
"      TLS 1.3; clients mount with -o key=FILE\n"
"  scuda-server --listen 127.0.0.1:9710\n"
"      this machine only; reach it with ssh -L 9710:127.0.0.1:9710 HOST\n"
"  scuda-server --listen unix:/run/scuda.sock\n"
"      this machine only, by the socket's file permissions\n"
"  scuda-server --listen %s --insecure-no-auth\n"
"      no authentication, no encryption: for a network where everyone may use the GPUs\n",
		address, address, address);
	return 2;
}

static bool parse_fd(const char *text, int *out)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (!*text || *end || n < 0 || n > 65535 || fcntl((int)n, F_GETFD) < 0)
		return false;
	*out = n;
	return true;
}

/* The owner's own bits are always there. */
static bool parse_mode(const char *text, mode_t *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 8);

	if (!*text || *end || n & ~0666ul || (n & 0600) != 0600)
		return false;
	*out = (mode_t)n;
	return true;
}

static bool parse_group(const char *text, gid_t *out)
{
	const struct group *g = getgrnam(text);
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (!g && (!*text || *end || n >= (gid_t)-1))
		return false;
	*out = g ? g->gr_gid : (gid_t)n;
	return true;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{"listen", required_argument, NULL, 'l'}, {"keys", required_argument, NULL, 'k'},
		{"driver", required_argument, NULL, 'd'}, {"insecure-no-auth", no_argument, NULL, 'i'},
		{"socket-mode", required_argument, NULL, 'o'}, {"socket-group", required_argument, NULL, 'g'},
		{"cache", required_argument, NULL, 'm'}, {"ready-fd", required_argument, NULL, 'r'},
		{"no-fence", no_argument, NULL, 'f'},
		{"allow-changes", no_argument, NULL, 'c'}, {"check", required_argument, NULL, 'C'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'v'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			if (o->listen_count == LISTEN_MOST)
				return wrong("too many --listen");
			o->listen[o->listen_count++] = optarg;
			break;
		case 'k':
			o->keys_path = optarg;
			break;
		case 'd':
			o->driver = optarg;
			break;
		case 'i':
			o->insecure = true;
			break;
		case 'r':
			if (!parse_fd(optarg, &o->ready_fd))
				return wrong("--ready-fd wants the number of an open descriptor");
			break;
		case 'o':
			if (!parse_mode(optarg, &o->socket_mode))
				return wrong("--socket-mode wants read and write bits, like 0660");
			break;
		case 'g':
			if (!parse_group(optarg, &o->socket_group))
				return no_group(optarg);
			break;
		case 'm':
			o->cache = strcmp(optarg, "none") ? optarg : "";
			break;
		case 'c':
			o->may_change = true;
			break;
		case 'C':
			if (setenv("SCUDAFS_SOFT_CHECK", optarg, 1))
				return wrong("no memory");
			break;
		case 'f':
			o->fence = false;
			break;
		case 'h':
			return fputs(help, stdout) < 0 || fflush(stdout);
		case 'v':
			return printf("scuda-server %s, protocol %d\n", VERSION, PROTOCOL_VERSION) < 0 ||
				fflush(stdout);
		default: /* getopt has told which */
			fputs("Try `scuda-server --help`.\n", stderr);
			return 2;
		}
	}
	return optind < argc ? wrong("it takes options only") : -1;
}

/* One that was asked for must be usable; the server does without the default one. */
static bool choose_cache(struct options *o)
{
	static char path[512];
	const char *why = "";

	if (o->cache) {
		if (!*o->cache || !cache_prepare(o->cache, &why))
			return true;
		fprintf(stderr, "scuda-server: --cache %s %s\n", o->cache, why);
		return false;
	}
	cache_default(path, sizeof path);
	o->cache = *path && !cache_prepare(path, &why) ? path : "";
	if (*path && !*o->cache)
		log_warning("%s %s: modules are not kept", path, why);
	return true;
}

int main(int argc, char **argv)
{
	struct options o = {.driver = "auto", .fence = true, .ready_fd = -1, .socket_mode = 0600,
		.socket_group = (gid_t)-1};
	struct keys *keys = NULL;
	const char *why;
	fds_standard();
	int r = parse(argc, argv, &o);

	if (r >= 0)
		return r;
	log_init("scuda-server", LOG_LEVEL_INFO);
	if (!choose_cache(&o))
		return 2;
	if (o.keys_path && keys_load(o.keys_path, &keys, &why)) {
		fprintf(stderr, "scuda-server: --keys %s: %s%s\n", o.keys_path, why,
			access(o.keys_path, F_OK) ? "; `scudafs keygen NAME FILE` makes one" : "");
		return 2;
	}
	for (int i = 0; i < o.listen_count && !keys && !o.insecure; i++)
		if (address_is_open(o.listen[i]))
			return open_without_keys(o.listen[i]);
	if (o.insecure)
		log_warning("--insecure-no-auth: anyone who reaches the address may use the GPUs");
	return listen_run(&o, keys);
}
