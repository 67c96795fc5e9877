/* SPDX-License-Identifier: Apache-2.0 */
/* scudafs run: finds a mount, or makes a private one, and runs a program with our libcuda.so.1 in front of
 * its library path. With a mount that is there the program takes the place of this process, unless its calls
 * are counted; a private mount lives as long as the program. One thread. */
#include "mount/command.h"
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mount/mounts.h"
#include "mount/options.h"
#include "mount/start.h"
#include "mount/stats.h"

/* Installed (PREFIX/bin, PREFIX/lib/scudafs), or in the build folder (bin, lib). */
static const char *const shim_places[] = {"../lib/scudafs/libcuda.so.1", "../lib/libcuda.so.1", NULL};

static int set_environment(const char *dir, const char *gpus)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char shim[PATH_MAX], *path = NULL;

	if (!installed_file(shim_places, shim))
		return fail(EXIT_RUN, "libcuda.so.1 of scudafs is not installed with this program (looked in "
				      "../lib/scudafs and ../lib)");
	*strrchr(shim, '/') = '\0';
	if (asprintf(&path, "%s%s%s", shim, old && *old ? ":" : "", old ? old : "") < 0)
		return fail(EXIT_RUN, "%m");
	int r = setenv("LD_LIBRARY_PATH", path, 1) || setenv("SCUDAFS_MOUNT", dir, 1) ||
		(gpus && setenv("CUDA_VISIBLE_DEVICES", gpus, 1));
	free(path);
	return r ? fail(EXIT_RUN, "%m") : 0;
}

static int execute(char **command)
{
	execvp(*command, command);
	return fail(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "%s: %m", *command);
}

/* The name of a private mount's folder, which is nobody else's to use. */
#define PRIVATE_NAME "scudafs-run."

static volatile sig_atomic_t program; /* pid that signals are passed on to */

static void pass_on(int sig)
{
	if (program > 0)
		kill((pid_t)program, sig);
}

/* The program as a child: a terminal's signals reach it by themselves, those sent to us are passed on. */
static int wait_for(char **command)
{
	static const int signals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
	struct sigaction pass = {.sa_handler = pass_on, .sa_flags = SA_RESTART},
			 old[sizeof(signals) / sizeof(signals[0])];
	int status;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		/* The terminal sends these two to the program as well: ours only must not end us before it.
		 */
		struct sigaction ignore = {.sa_handler = SIG_IGN};
		bool both = (signals[i] == SIGINT || signals[i] == SIGQUIT) && isatty(STDIN_FILENO);
		sigaction(signals[i], both ? &ignore : &pass, &old[i]);
	}
	pid_t pid = fork();
	if (pid < 0)
		return fail(EXIT_RUN, "%m");
	if (!pid) {
		for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
			sigaction(signals[i], &old[i], NULL);
		_exit(execute(command));
	}
	program = pid;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return fail(EXIT_RUN, "%m");
	program = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The program as a child, and what it called afterwards. */
static int run_counted(char **command, const char *stats)
{
	char folder[PATH_MAX];
	int r = stats_prepare(folder);

	if (r)
		return r;
	int code = setenv("SCUDAFS_STATS", folder, 1) ? fail(EXIT_RUN, "%m") : wait_for(command);
	r = stats_report(folder, *stats ? stats : NULL);
	return code ? code : r;
}

static int run_private(
	struct options *o, const char *server, const char *gpus, const char *stats, char **command)
{
	char dir[PATH_MAX];
	pid_t daemon;

	if (options_servers(o, server))
		return EXIT_RUN;
	if (private_folder(PRIVATE_NAME, dir))
		return EXIT_RUN;
	int code = EXIT_RUN, r = 0;
	if (!start_check(dir) && !start_background(o, dir, true, &daemon)) {
		if (!set_environment(dir, gpus))
			code = stats ? run_counted(command, stats) : wait_for(command);
		/* Background programs that the command left behind keep what they have open. */
		if (mounts_remove(dir, false) && (r = mounts_remove(dir, true)))
			fail(0, "%s stays mounted: %s", dir, mounts_remove_text(r));
		kill(daemon, SIGTERM);
		while (waitpid(daemon, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (!r && rmdir(dir))
		fail(0, "%s: %m", dir);
	return code;
}

/* The newest mount that answers and is not some program's private one. When there are only such as do not,
 * *state tells why of the last, else it is 0. */
static bool find_mount(struct mount_entry *out, int *state)
{
	struct mount_entry m;
	bool found = false;

	*state = 0;
	for (size_t i = 0; mounts_get(i, &m); i++) {
		int r = strstr(m.dir, "/" PRIVATE_NAME) ? 0 : mounts_state(m.dir);
		if (r && !found) {
			*out = m;
			*state = r;
		} else if (!r && !strstr(m.dir, "/" PRIVATE_NAME)) {
			*out = m;
			found = true;
		}
	}
	return found;
}

static int no_mount(const struct mount_entry *m, int state)
{
	if (!state)
		return fail(EXIT_RUN, "there is no mount: make one (scudafs mount HOST DIR), or name a "
				      "server (--server HOST)");
	bool foreign = state == -EACCES && geteuid() != m->owner;
	return fail(EXIT_RUN, "the mount %s does not answer: %s", m->dir,
		state == -ENOTCONN ? "its daemon is gone; scudafs mount clears it and mounts again" :
		state == -ETIMEDOUT ? "its daemon is there and says nothing (stopped?)" :
		foreign ? "it is another user's, who mounted it without allow_other" :
			strerror(-state));
}

static int check_session_folder(const char *dir)
{
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/ctl", dir);
	if (!access(path, R_OK | W_OK))
		return 0;
	if (errno == ENOENT)
		return fail(EXIT_RUN, "%s is no mount and no folder of a server in one", dir);
	return fail(EXIT_RUN, "%s: %m%s", path, errno == EROFS ? " (the mount has the option ro)" : "");
}

/* An empty variable is as good as none. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int command_run(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"gpu", required_argument, NULL, 'g'},
		{"mount", required_argument, NULL, 'm'},
		{"server", required_argument, NULL, 's'},
		{"stats", optional_argument, NULL, 'S'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *gpus = NULL, *dir = NULL, *server = NULL, *stats = NULL;
	bool optioned = false;
	struct options o = {0};
	struct mount_entry m;

	for (int c; (c = getopt_long(argc, argv, "+o:h", long_options, NULL)) != -1;) {
		if (c == 'h')
			return command_help();
		if (c == 'g')
			gpus = optarg;
		else if (c == 'm')
			dir = optarg;
		else if (c == 's')
			server = optarg;
		else if (c == 'S')
			stats = optarg ? optarg : "";
		else if (c != 'o') {
			usage_error(NULL);
			return EXIT_RUN;
		} else if (optioned = true, options_parse(&o, optarg, false))
			return EXIT_RUN;
	}
	char **command = argv + optind;
	if (!*command) {
		usage_error("a command is needed");
		return EXIT_RUN;
	}
	if (dir && server) {
		usage_error("--mount and --server exclude each other");
		return EXIT_RUN;
	}
	int state = 0;
	if (mounts_check())
		return EXIT_RUN;
	if (!server && !dir && !(dir = variable("SCUDAFS_MOUNT")) && find_mount(&m, &state))
		dir = m.dir;
	if (!server && !dir)
		server = variable("SCUDAFS_SERVER");
	if (server) {
		int r = run_private(&o, server, gpus, stats, command);
		options_finish(&o);
		return r;
	}
	if (!dir)
		return no_mount(&m, state);
	if (optioned)
		return fail(EXIT_RUN, "-o is for the private mount of --server; %s is there already, with "
				      "the options that it was mounted with", dir);
	/* The mount, or the folder of one of its servers: both have a session node. */
	char path[PATH_MAX];
	if (!mounts_absolute(dir, path) || !mounts_around(path, &m))
		return fail(EXIT_RUN, "%s is not a scudafs mount", dir);
	int r = mounts_state(m.dir);
	if (r)
		return no_mount(&m, r);
	r = check_session_folder(path);
	if (r)
		return r;
	r = set_environment(path, gpus);
	if (r)
		return r;
	return stats ? run_counted(command, stats) : execute(command);
}
