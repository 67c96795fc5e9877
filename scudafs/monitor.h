/* SPDX-License-Identifier: Apache-2.0 */
/* One server as the tree shows it. A thread of its own keeps a monitor connection to it, so that reading the
 * tree never waits for the network: values are those of the last snapshot, and reading them asks for a newer
 * one, at most once a second.
 *
 * Thread rule: all functions may be called from any thread; what monitor_lock returns is valid until
 * monitor_unlock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "scudafs/credential.h"
#include "scudafs/keeper.h"
#include "scudafs/snapshot.h"

enum monitor_state { MONITOR_CONNECTING, MONITOR_READY, MONITOR_LOST };

struct monitor;

struct monitor_view {
	enum monitor_state state;
	bool known;                 /* a snapshot has come since the mount */
	struct snapshot snapshot;
	char security[80];          /* "" before the first connection */
	uint64_t rtt_us;            /* 0: not measured yet */
	char why[160];              /* of the last failure */
	int error;                  /* the same, an errno */
};

/* address and credential (NULL: in clear) stay the caller's. NULL without memory. */
struct monitor *monitor_create(const char *address, struct credential *credential);
/* Starts its thread. 0 or -errno. */
int monitor_start(struct monitor *m);
/* Waits until a first snapshot or a first failure is there, or until clock_ms() is `deadline`: that counts
 * as a failure. */
void monitor_settle(struct monitor *m, uint64_t deadline);
/* Ends the thread and frees; a thread that is connecting is left to the end of the process. */
void monitor_destroy(struct monitor *m);

const char *monitor_address(const struct monitor *m);
const struct monitor_view *monitor_lock(struct monitor *m);
void monitor_unlock(struct monitor *m);
/* Somebody reads values: a newer snapshot is asked for. */
void monitor_touch(struct monitor *m);
/* A file for a shared handle: asks the server to keep what it will stand for, see keeper.h; and its last
 * close. */
void monitor_keep(struct monitor *m, struct kept *file);
void monitor_drop(struct monitor *m, struct kept *file);
/* A snapshot has come. */
void monitor_accept(struct monitor *m, const struct snapshot *s);
