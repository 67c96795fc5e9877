/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that have not said yet what they want, and those that were refused and still read why. See
 * pending.c. */
#pragma once
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "server/origin.h"
#include "wire/cuda_types.h"
#include "wire/frame.h"
#include "wire/limits.h"

struct pending {
	int fd;                     /* -1: a free place */
	bool local;                 /* over a unix socket */
	bool refused;               /* the BYE is sent, we wait for the peer to read it */
	unsigned got;
	int64_t deadline;
	struct preamble preamble;
	struct origin from;
	char peer[96];
};

struct pending_table {
	struct pending place[LIMIT_PENDING];
	/* What to do with a connection whose preamble is complete and right; it takes over fd. */
	void (*ready)(struct pending_table *t, struct pending *p);
	void *owner;
};

void pending_init(struct pending_table *t);
/* Takes over fd. When all places are taken, one makes room (origin.h), with a log line. */
void pending_add(struct pending_table *t, int fd, bool local);
/* Entries for poll(2), of which there is room for LIMIT_PENDING; index[i] says whose the i-th is. Lowers
 * *timeout_ms to the nearest deadline. */
int pending_poll(struct pending_table *t, struct pollfd *p, int *index, int *timeout_ms);
/* After poll: an entry that has something, and the ones past their deadline. */
void pending_event(struct pending_table *t, int place);
void pending_expire(struct pending_table *t);
/* A flood of connections shall not become a flood of lines: false when enough were written this second. */
bool pending_may_log(void);
/* Says BYE in clear, logs, and closes once the peer has read it. */
void pending_refuse(struct pending *p, CUresult code, const char *text);
void pending_close(struct pending *p);
