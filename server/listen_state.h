/* SPDX-License-Identifier: Apache-2.0 */
/* What the listener's files share: its state, and its two kinds of children.
 *
 * Thread rule: the listener's one thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/address.h"
#include "server/monitor.h"
#include "server/origin.h"
#include "server/pending.h"
#include "wire/limits.h"

struct options;
struct keys;
struct report;

struct session_child {
	pid_t pid;                      /* 0: a free place */
	uint64_t id;
	struct report *report;
	int share;                      /* what it shares with others goes by this socket; -1: none */
	bool key;                       /* its name is a key's */
	bool dropped;                   /* it gave way to another, and is about to end */
	int64_t start;
	struct origin from;
	char peer[96];
};

#define SESSIONS_MOST (LIMIT_SESSIONS + LIMIT_PENDING)

extern struct listener {
	const struct options *options;
	struct keys *keys;
	struct listening sockets[SOCKETS_MOST];
	int socket_count;
	int signals;
	struct pending_table pending;
	/* Of those that were dropped some have not ended yet. */
	struct session_child session[SESSIONS_MOST];
	unsigned sessions;              /* without those */
	uint64_t last_id;
	pid_t monitor;
	int monitor_fd;                 /* -1: none */
	int64_t monitor_again;          /* when to start the next one */
	bool owed[MONITOR_KEYS + 1];    /* orders that it had no room for, and that must reach it */
	int backoff;
	bool ready_told, snapshot_there;
	struct monitor_ready snapshot;  /* of the last monitor that found a driver */
	int64_t accept_again;           /* no accept before this moment: we were out of descriptors */
	int64_t drain_end;              /* 0: serving */
	bool drain_told, drain_killed;
	int status;
} listener;

/* What every child does first: nothing of the listener stays open but stderr and what it keeps (-1: one
 * only). */
void child_begin(int keep, int also, const char *name);

/* ---- listen_monitor.c */

void monitor_start(void);
/* It has exited: the next one starts after a while that grows from one to the next. */
void monitor_ended(int status);
/* Tells it something. `fd` goes beside it unless that is -1; one that it has no room for is logged. All else
 * is told again. */
void monitor_order(enum monitor_order_kind kind, unsigned value, int fd);
/* Tells it what it had no room for. False: it still has none. */
bool monitor_settle(void);
/* Takes what it has told by now: whether there is a driver, and packets about shared files. */
void monitor_events(void);

/* ---- listen_session.c */

/* A preamble has come: the connection becomes a session, goes to the monitor, or is refused. */
void connection_ready(struct pending_table *t, struct pending *p);
/* Its process has exited. */
void session_ended(struct session_child *c, int status);
/* It has something to share, or is no longer to be asked. */
void share_event(struct session_child *c);
