/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor: a child of the listener that loads the driver, tells the listener which one it is and what
 * its devices are, and serves the connections that ask for tree values. */
#pragma once
#include <stdint.h>
#include "server/driver.h"
#include "wire/limits.h"

struct keys;
struct options;

/* Monitor to listener, one packet, when the driver is loaded. */
struct monitor_ready {
	int devices;                /* 0: no driver; `text` says why */
	struct driver_choice choice;
	char text[512];             /* what serves, for the log */
	uint32_t blob_len;
	uint8_t blob[LIMIT_SNAPSHOT];   /* the snapshot map, encoded */
};

/* Listener to monitor; a connection comes with its descriptor. */
enum monitor_order_kind { MONITOR_CONNECTION, MONITOR_CONNECTION_TLS, MONITOR_SESSIONS, MONITOR_KEYS };
struct monitor_order {
	uint32_t kind;
	uint32_t value;             /* MONITOR_SESSIONS: their number; MONITOR_KEYS: none, read the file */
};

/* The monitor process, from its fork on; `fd` is its end of the socket to the listener. It takes the keys
 * (NULL: none). */
_Noreturn void monitor_run(const struct options *o, struct keys *keys, int fd);
