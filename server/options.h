/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line said. Set in main before anything else runs, then constant. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>
#include "wire/limits.h"

#define LISTEN_MOST 16

struct options {
	const char *listen[LISTEN_MOST];
	int listen_count;           /* 0: the defaults */
	const char *keys_path;      /* NULL: no keys */
	const char *cache;          /* folder of images, "": none */
	const char *driver;         /* "auto", "soft" or a path */
	bool insecure;              /* clear connections from anywhere */
	bool may_change;            /* calls that change a card are allowed */
	bool fence;                 /* sessions fence their address space */
	mode_t socket_mode;         /* of unix sockets */
	gid_t socket_group;         /* (gid_t)-1: the server's own */
	int ready_fd;               /* -1: none */
};
