/* SPDX-License-Identifier: Apache-2.0 */
/* The entrance of a session's process. Everything else of a session is in state.h, for the files that make
 * it up. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "server/driver.h"

struct keys;
struct report;

struct session_start {
	uint64_t id;
	int fd;                     /* the connection, behind its preamble */
	int share;                  /* to the listener, for share.h; -1: none */
	struct keys *keys;          /* NULL: clear; wiped once the handshake is done */
	struct report *report;
	struct driver_choice driver;
	unsigned preamble;          /* its flags */
	const char *cache;          /* folder of images, "" or NULL: none */
	bool fence;
	bool may_change;            /* see exec_may_change */
	const uint8_t *snapshot;    /* the map, encoded */
	size_t snapshot_len;
};

/* The session process, from its fork on. */
_Noreturn void session_run(const struct session_start *start);
