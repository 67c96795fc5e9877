/* SPDX-License-Identifier: Apache-2.0 */
/* Events. The state of one is the mark of its newest record.
 *
 * Thread rule: see state.h. */
#pragma once
#include <stdatomic.h>
#include "server/soft/stream.h"

struct capture;
/* A page of a file without a name. Records are numbered by whoever makes one; `done` is the highest that is
 * over. */
struct event_page {
	_Atomic uint64_t recorded, done;
	_Atomic uint64_t recorder; /* the process of the newest record (process.h); 0: none */
};
struct event {
	struct object object;
	unsigned flags;
	struct mark *mark; /* NULL: never recorded */
	struct event_page *page; /* CU_EVENT_INTERPROCESS: what all its processes see */
	int page_fd;
	struct capture *capture; /* recorded last in a capturing stream: a reference */
	struct node **tips; /* nodes that a wait for it depends on */
	unsigned ntips;
};

/* A new event; one of several processes has the page that fd, which is taken over, is the file of (-1: a new
 * one). NULL: memory is short. */
struct event *event_new(struct context *c, unsigned flags, int fd);
/* The record of that number is over; is it? So it is when its process has died. Without the lock. */
void event_signal(struct event *e, uint64_t record);
bool event_reached(const struct event *e, uint64_t record);
/* Forgets the record that was captured. */
void event_uncapture(struct event *e);
CUresult event_record(struct event *e, struct stream *s);
/* A new mark that the caller will end, for records made by a graph. NULL: memory is short. */
struct mark *event_arm(struct event *e);
void event_fire(struct mark *m);
