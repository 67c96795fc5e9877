/* SPDX-License-Identifier: Apache-2.0 */
/* scudafs mount, and the same as mount(8) calls it. One thread. */
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include "mount/command.h"
#include "mount/mounts.h"
#include "mount/options.h"
#include "mount/start.h"

static int mount_at(const struct options *o, const char *dir, bool foreground)
{
	char path[PATH_MAX];
	int r = start_check(dir);

	if (r)
		return r;
	if (!mounts_absolute(dir, path))
		return fail(1, "%s: %m", dir);
	return foreground ? start_foreground(o, path) : start_background(o, path, false, NULL);
}

int command_mount(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"foreground", no_argument, NULL, 'f'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct options o = {0};
	bool foreground = false;
	int r = 0;

	for (int c; !r && (c = getopt_long(argc, argv, "o:fh", long_options, NULL)) != -1;) {
		if (c == 'h')
			return command_help();
		if (c == 'f')
			foreground = true;
		else
			r = c == 'o' ? options_parse(&o, optarg, false) : usage_error(NULL);
	}
	if (!r && argc - optind != 2)
		r = usage_error("a server and a folder are needed");
	if (!r)
		r = options_servers(&o, argv[optind]);
	if (!r)
		r = mount_at(&o, argv[optind + 1], foreground);
	options_finish(&o);
	return r;
}

/* mount(8) gives the two names first and its own flags after them. Its exit codes are bits: 1 usage, 2
 * system, 32 mount failure. */
int command_mount_helper(int argc, char **argv)
{
	struct options o = {0};
	bool fake = false, sloppy = false;
	const char *text = NULL;

	for (int c; (c = getopt(argc, argv, "o:t:N:sfnvwrh")) != -1;) {
		if (c == 'o')
			text = optarg;
		else if (c == 'f')
			fake = true;
		else if (c == 's')
			sloppy = true;
		else if (c == '?' || c == 'h')
			return fail(1, "usage: mount.scudafs HOST[:PORT][,HOST...] DIR [-o OPTION,...], "
				       "called by mount(8)");
	}
	if (argc - optind != 2)
		return fail(1,
			"usage: mount.scudafs HOST[:PORT][,HOST...] DIR [-o OPTION,...], called by mount(8)");
	int r = text ? options_parse(&o, text, sloppy) : 0;
	if (!r)
		r = options_servers(&o, argv[optind]);
	if (!r && !fake)
		r = mount_at(&o, argv[optind + 1], false);
	options_finish(&o);
	return r ? EXIT_MOUNT : 0;
}
