/* SPDX-License-Identifier: Apache-2.0 */
/* scudafs serve: becomes scuda-server with the same arguments. One thread. */
#include "mount/command.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>

int command_serve(int argc, char **argv)
{
	static const char *const places[] = {"scuda-server", NULL};
	char path[PATH_MAX];

	(void)argc;
	argv[0] = "scuda-server";
	if (installed_file(places, path))
		execv(path, argv);
	else
		execvp("scuda-server", argv);
	return fail(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "scuda-server: %m");
}
