/* SPDX-License-Identifier: Apache-2.0 */
/* scudafs umount: takes a mount away and, when programs still use it, says which. One thread. */
#include "mount/command.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mount/mounts.h"

/* True when the link (a working folder or an open file of a process) points to dir or below. Reading a link
 * never enters the mount. */
static bool points_into(const char *link, const char *dir)
{
	char target[PATH_MAX];
	size_t n = strlen(dir);
	ssize_t len = readlink(link, target, sizeof(target) - 1);

	if (len < 0)
		return false;
	target[len] = '\0';
	return !strncmp(target, dir, n) && (target[n] == '/' || !target[n]);
}

static bool uses(const char *pid, const char *dir)
{
	char path[PATH_MAX];
	bool found;

	snprintf(path, sizeof(path), "/proc/%s/cwd", pid);
	if (points_into(path, dir))
		return true;
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	DIR *d = opendir(path);
	if (!d)
		return false;
	found = false;
	for (struct dirent *e; !found && (e = readdir(d));) {
		snprintf(path, sizeof(path), "/proc/%s/fd/%.32s", pid, e->d_name);
		found = points_into(path, dir);
	}
	closedir(d);
	return found;
}

/* "pid 12 (python3), pid 13 (a.out)" of the programs that this user can see; returns how many. */
static int users(const char *dir, char *out, size_t n)
{
	DIR *d = opendir("/proc");
	size_t len = 0;
	int count = 0;

	*out = '\0';
	if (!d)
		return 0;
	for (struct dirent *e; (e = readdir(d));) {
		char path[300], name[32] = "?";
		if (!isdigit((unsigned char)*e->d_name) || !uses(e->d_name, dir))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		FILE *f = fopen(path, "re");
		if (f) {
			if (fgets(name, sizeof(name), f))
				name[strcspn(name, "\n")] = '\0';
			fclose(f);
		}
		if (len < n)
			len += (size_t)snprintf(
				out + len, n - len, "%spid %.16s (%s)", count ? ", " : "", e->d_name, name);
		count++;
	}
	closedir(d);
	return count;
}

int command_umount(int argc, char **argv)
{
	static const struct option options[] = {
		{"lazy", no_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct mount_entry m;
	char who[512];
	bool lazy = false;

	for (int c; (c = getopt_long(argc, argv, "lh", options, NULL)) != -1;) {
		if (c == 'h')
			return command_help();
		if (c != 'l')
			return usage_error(NULL);
		lazy = true;
	}
	if (argc - optind != 1)
		return usage_error("one folder is needed");
	if (mounts_check())
		return 1;
	if (!mounts_at(argv[optind], &m))
		return fail(1, "%s is not a scudafs mount", argv[optind]);
	int r = mounts_remove(m.dir, lazy);
	if (r && geteuid() && geteuid() != m.owner)
		return fail(1, "%s is another user's mount: only that user or root may take it away", m.dir);
	if (r == -EBUSY && users(m.dir, who, sizeof(who)))
		return fail(1, "%s is in use by %s; end them, or use --lazy", m.dir, who);
	if (r == -EBUSY)
		return fail(1, "%s is in use; scudafs umount --lazy takes it away all the same", m.dir);
	return r ? fail(1, "%s: %s", m.dir, mounts_remove_text(r)) : 0;
}
