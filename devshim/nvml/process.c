/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of processes, and their names. Lists name the programs of this mount by their own pids: what such a
 * program is called is known here, not at the server.
 *
 * Thread rule: any thread; nothing is kept. */
#include "devshim/nvml/process.h"
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "devshim/nvml/call.h"
#include "nvml.remote.h"
#include "wire/nvml.h"
#include "wire/uncancelled.h"

nvmlReturn_t list_whole(
	list_fn *ask, nvmlDevice_t device, unsigned *n, unsigned room, nvmlProcessInfo_t **infos)
{
	*infos = room ? calloc(room, sizeof **infos) : NULL;
	return room && !*infos ? NVML_ERROR_MEMORY : ask(device, n, *infos);
}

/* A line of a file of the mount, without its end; false when there is none. */
static bool read_line(const char *path, char *out, size_t cap)
{
	FILE *f = fopen(path, "re");
	bool there = f && fgets(out, (int)cap, f);

	if (f)
		fclose(f);
	if (there)
		out[strcspn(out, "\n")] = 0;
	return there;
}

/* Is it the pid of a session of this mount? Then what the session says its program is called. */
static bool session_of(unsigned pid, char *command, size_t cap)
{
	char path[PATH_MAX], line[32];
	struct dirent *e;
	bool found = false;
	int n = snprintf(path, sizeof path, "%s/sessions", mount_path());
	DIR *d = n < (int)sizeof path ? opendir(path) : NULL;

	while (d && !found && (e = readdir(d))) {
		if (!isdigit((unsigned char)*e->d_name))
			continue;
		int n = snprintf(path, sizeof path, "%s/sessions/%s/pid", mount_path(), e->d_name);
		if (n >= (int)sizeof path || !read_line(path, line, sizeof line) ||
			strtoul(line, NULL, 10) != pid)
			continue;
		snprintf(path, sizeof path, "%s/sessions/%s/command", mount_path(), e->d_name);
		found = read_line(path, command, cap);
	}
	if (d)
		closedir(d);
	return found;
}

/* The program as it was started: what NVML tells of a process beside it. */
static bool started_as(unsigned pid, char *out, size_t cap)
{
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	FILE *f = fopen(path, "re");
	if (f) {
		n = fread(out, 1, cap - 1, f);
		fclose(f);
	}
	out[n] = 0;
	return *out;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
	uncancelled state = uncancelled_begin();
	char text[4096];

	if (!name || !session_of(pid, text, sizeof text))
		return remote_nvmlSystemGetProcessName(pid, name, length);
	char command[sizeof text];
	strcpy(command, text);
	if (!started_as(pid, text, sizeof text))
		strcpy(text, command);
	if (!length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	/* A long name is cut, as NVML cuts it. */
	snprintf(name, length, "%s", text);
	return NVML_SUCCESS;
}
