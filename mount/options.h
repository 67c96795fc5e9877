/* SPDX-License-Identifier: Apache-2.0 */
/* What a mount is asked to be: the server list and the -o options, the same for scudafs mount, scudafs run
 * and mount(8). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "scudafs/daemon.h"

struct options {
	const char *servers[MOUNT_SERVERS]; /* owned, each with its port */
	size_t server_count;
	char *key_file, *log_file; /* absolute, owned, or NULL */
	char fuse[256]; /* options for libfuse, comma separated */
	bool allow_other, no_channel;
	enum connections connections;
	enum compress { COMPRESS_AUTO, COMPRESS_ON, COMPRESS_OFF } compress;
};

/* HOST[:PORT][,HOST...]. Returns 0, or EXIT_USAGE after it told why. */
int options_servers(struct options *o, const char *list);
/* One -o argument. `sloppy`: unknown options are ignored, as mount(8) asks with -s. Returns 0, or EXIT_USAGE
 * after it told why. */
int options_parse(struct options *o, const char *text, bool sloppy);
void options_finish(struct options *o);
