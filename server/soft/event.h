/* SPDX-License-Identifier: Apache-2.0 */
/* Events. The state of one is the mark of its newest record.
 *
 * Thread rule: see state.h. */
#pragma once
#include "server/soft/stream.h"

struct capture;
struct event {
	struct object object;
	unsigned flags;
	struct mark *mark; /* NULL: never recorded */
	struct capture *capture; /* recorded last in a capturing stream: a reference */
	struct node **tips; /* nodes that a wait for it depends on */
	unsigned ntips;
};

/* Forgets the record that was captured. */
void event_uncapture(struct event *e);
CUresult event_record(struct event *e, struct stream *s);
/* A new mark that the caller will end, for records made by a graph. NULL: memory is short. */
struct mark *event_arm(struct event *e);
void event_fire(struct mark *m);
