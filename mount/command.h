/* SPDX-License-Identifier: Apache-2.0 */
/* The user's command `scudafs`: what its subcommands share. Each subcommand is a file of its own with one
 * function; main.c has the table of them. The command is a process of one thread until it becomes the daemon
 * (scudafs/daemon.h). */
#pragma once
#include <stdbool.h>

/* Exit codes beside 0 (done) and 1 (failed). */
enum {
	EXIT_USAGE = 2, /* wrong arguments or a refused configuration */
	EXIT_MOUNT = 32, /* mount(8): the mount failed */
	EXIT_RUN = 125, /* run: our own failure, as env and docker have it */
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

struct command {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is "scudafs NAME"; returns the exit code */
	const char *usage; /* the arguments, one line */
	const char *help; /* one line for the list of commands */
	const char *text; /* the rest of --help */
};

int command_mount(int argc, char **argv);
int command_umount(int argc, char **argv);
int command_run(int argc, char **argv);
int command_status(int argc, char **argv);
int command_keygen(int argc, char **argv);
int command_serve(int argc, char **argv);
/* Called as mount.scudafs or mount.fuse.scudafs by mount(8): SOURCE DIR [-sfnv] [-t TYPE] [-o OPTIONS]. */
int command_mount_helper(int argc, char **argv);

/* --help of the command that runs: on standard output; returns 0, or 1 when it could not be written. */
int command_help(void);
/* "scudafs NAME: ..." and where to read more, on standard error; returns EXIT_USAGE. fmt may be NULL when
 * getopt has said it. */
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "scudafs NAME: ..." on standard error; returns `code`. %m shows errno. */
int fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes a folder for this user alone, out (PATH_MAX bytes), whose name is `name` and six letters: where the
 * session's files are, temporary ones, or in /tmp. 0, or EXIT_RUN when that was told. */
int private_folder(const char *name, char *out);

/* The path of a file installed with this program: looked for beside the binary (bin/) in `places`, a
 * NULL-terminated list of paths relative to the folder of the binary. Writes into out (PATH_MAX bytes), false
 * when there is none. */
bool installed_file(const char *const *places, char *out);
