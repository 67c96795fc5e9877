/* SPDX-License-Identifier: Apache-2.0 */
/* The table of subcommands, their help, and the two names under which mount(8) calls us. One thread. */
#include "mount/command.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "wire/fds.h"
#include "wire/frame.h"
#include "wire/log.h"

static const struct command commands[] = {
	{"mount", command_mount, "HOST[:PORT][,HOST...] DIR [-o OPTION,...] [-f]",
		"make the GPUs of a server a directory",
		"HOST may also be [IPv6]:PORT or unix:/PATH. The port is 9710 unless given.\n"
		"Returns when the tree is usable, or fails within 5 seconds.\n"
		"\n"
		"  -o key=FILE        authenticate with the key in FILE (scudafs keygen);\n"
		"                     the connection is then TLS 1.3\n"
		"  -o allow_other     other users of this machine may use the mount too\n"
		"  -o compress=HOW    LZ4 to the server: auto (to other hosts, while it helps),\n"
		"                     on, off\n"
		"  -o connections=N   a second connection for large copies: auto (where it is\n"
		"                     faster), 1 (never), 2 (always)\n"
		"  -o channel=fuse    programs share no memory with the daemon\n"
		"  -o log=FILE        append the daemon's log to FILE\n"
		"  -f, --foreground   stay in the foreground and log on standard error\n"},
	{"umount", command_umount, "DIR [--lazy]", "take a mount away",
		"  -l, --lazy         at once, even when programs still use it: they keep\n"
		"                     what they have open\n"},
	{"run", command_run,
		"[--gpu LIST] [--mount DIR] [--server HOST[:PORT]] [--stats[=FILE]] [-o OPTION,...] "
		"-- COMMAND "
		"[ARGUMENT...]",
		"run a program with the GPUs of a mount",
		"The mount is --mount DIR, else $SCUDAFS_MOUNT, else one that /proc/mounts\n"
		"shows. With --server, or with $SCUDAFS_SERVER when there is no mount, a\n"
		"private one is made for the program and taken away after it.\n"
		"\n"
		"  --gpu LIST         the GPUs that the program sees: numbers or uuids,\n"
		"                     as in CUDA_VISIBLE_DEVICES\n"
		"  --mount DIR        use this mount\n"
		"  --server HOST      mount this server privately\n"
		"  --stats            tell on standard error afterwards what it called\n"
		"  --stats=FILE       the same as JSON in FILE\n"
		"  -o OPTION,...      options of the private mount (scudafs mount --help)\n"
		"\n"
		"Exit status: that of COMMAND, 128 + n when signal n ended it in a private\n"
		"mount or with --stats; 125 our own failure, 126 COMMAND cannot be executed, 127 COMMAND is\n"
		"not found.\n"},
	{"status", command_status, "[DIR] [--json]", "show mounts and their GPUs",
		"  --json             everything in the tree, one JSON object a mount\n"
		"\n"
		"Exit status: 0 when there is a mount and every one shown is ready, else 1.\n"},
	{"keygen", command_keygen, "NAME [FILE] [--append]", "make a key for a client",
		"Writes one line, NAME:64 hexadecimal digits, to a new FILE of mode 0600, or\n"
		"to standard output. The client mounts with -o key=FILE; the server has the\n"
		"same line in the file of its --keys.\n"
		"\n"
		"  --append           FILE may exist: add the line\n"},
	{"serve", command_serve, "[ARGUMENT...]", "offer this machine's GPUs: starts scuda-server", ""},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *running; /* set once, before the command runs */
static const char *called_as = "scudafs";

/* What was asked for on standard output must have come there. */
static int written(void)
{
	return fflush(stdout) || ferror(stdout) ? fail(1, "standard output: %m") : 0;
}

static int help(FILE *f)
{
	fputs("usage: scudafs COMMAND [ARGUMENT...]\n\nA GPU on another machine becomes a directory; "
	      "unmodified CUDA programs use it.\n\n",
		f);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(f, "  %-8s %s\n", commands[i].name, commands[i].help);
	fputs("\nscudafs COMMAND --help tells more; scudafs --version the version.\n", f);
	return f == stdout ? written() : 0;
}

int command_help(void)
{
	printf("usage: scudafs %s %s\n\n%s.\n%s%s", running->name, running->usage, running->help,
		*running->text ? "\n" : "", running->text);
	return written();
}

static void complain(const char *fmt, va_list ap)
{
	int e = errno;

	fprintf(stderr, "%s%s%s: ", called_as, running ? " " : "", running ? running->name : "");
	errno = e;
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

int usage_error(const char *fmt, ...)
{
	if (fmt) {
		va_list ap;
		va_start(ap, fmt);
		complain(fmt, ap);
		va_end(ap);
	}
	if (running)
		fprintf(stderr, "usage: scudafs %s %s\n", running->name, running->usage);
	return EXIT_USAGE;
}

int fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(fmt, ap);
	va_end(ap);
	return code;
}

int private_folder(const char *name, char *out)
{
	static const char *const variables[] = {"XDG_RUNTIME_DIR", "TMPDIR"};
	const char *base = "/tmp";

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *dir = getenv(variables[i]);
		if (dir && *dir == '/' && !access(dir, W_OK | X_OK)) {
			base = dir;
			break;
		}
	}
	snprintf(out, PATH_MAX, "%s/%sXXXXXX", base, name);
	return mkdtemp(out) ? 0 : fail(EXIT_RUN, "no temporary folder can be made in %s: %m; let TMPDIR name "
						 "one that can be written", base);
}

bool installed_file(const char *const *places, char *out)
{
	char self[PATH_MAX], try[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (; *places; places++) {
		snprintf(try, sizeof(try), "%s/%s", self, *places);
		if (realpath(try, out) && !access(out, R_OK))
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	const char *base = argc ? strrchr(argv[0], '/') : NULL;

	fds_standard();
	base = base ? base + 1 : argc ? argv[0] : "scudafs";
	if (!strcmp(base, "mount.scudafs") || !strcmp(base, "mount.fuse.scudafs")) {
		called_as = base;
		log_init(base, LOG_LEVEL_WARNING);
		return command_mount_helper(argc, argv);
	}
	log_init("scudafs", LOG_LEVEL_WARNING);
	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") && argc == 3)  /* scudafs help COMMAND */
		argv[1] = argv[2], argv[2] = "--help";
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help(stdout);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("scudafs %s, protocol %d\n", VERSION, PROTOCOL_VERSION);
		return written();
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name)) {
			static char name[64];
			running = &commands[i];
			snprintf(name, sizeof(name), "scudafs %s", running->name);
			argv[1] = name; /* what getopt puts before its messages */
			return running->run(argc - 1, argv + 1);
		}
	/* The generic helper of fuse calls `scudafs SOURCE DIR -o OPTIONS` for the type fuse.scudafs. */
	if (argc >= 3 && (*argv[2] == '/' || *argv[2] == '.') && *argv[1] != '-')
		return command_mount_helper(argc, argv);
	fail(0, *argv[1] == '-' ? "there is no option '%s'; scudafs --help tells what there is" :
		"'%s' is not a command; scudafs --help lists them", argv[1]);
	return EXIT_USAGE;
}
