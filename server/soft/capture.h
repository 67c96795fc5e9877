/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: work submitted to a capturing stream becomes nodes of a graph.
 *
 * Thread rule: see state.h. */
#pragma once
#include "server/soft/stream.h"

struct event;
struct node;
struct graph;
struct capture {
	unsigned refs; /* while it goes on, and one per event recorded in it */
	struct capture *next; /* of those that go on */
	struct graph *graph; /* NULL: it has ended */
	uint64_t id;
	CUstreamCaptureMode mode;
	CUstreamCaptureStatus status;
	struct stream *origin;
	const struct thread *thread;
	bool borrowed; /* the graph is the program's (cuStreamBeginCaptureToGraph) */
	CUgraphNode *told; /* dependencies as last told to the program */
};

/* May this stream take work now? Legacy stream against captures that it would disturb. */
CUresult capture_check(struct stream *s);
/* The same for a mere question, which disturbs nothing. */
CUresult capture_check_asking(const struct stream *s);
/* Makes w a node; takes w. */
CUresult capture_add(struct stream *s, struct work *w);
/* An operation that cannot be captured was tried: the capture is invalid from now on. Returns the code for
 * it. */
CUresult capture_spoil(struct stream *s);
/* May the stream be queried or waited for? */
CUresult capture_query(struct stream *s);
/* May the whole context be waited for? */
CUresult capture_blocks_sync(struct context *c);
/* May a call that could touch other work (an allocation, a module load) be made by this thread? */
CUresult capture_unsafe(void);
/* Is the graph being captured into? Then nothing may be taken away from it. */
bool capture_uses(const struct graph *g);
void capture_stream_gone(struct stream *s);
/* An event is recorded in, or waited for by, a stream. *taken: captured, nothing else is to be done. */
CUresult capture_record(struct event *e, struct stream *s, bool *taken);
CUresult capture_wait(struct event *e, struct stream *s, bool *taken);
/* An event that stands for captured work was queried or waited for: ends in an error, for the capture too. */
CUresult capture_asked(struct event *e);
/* Beginning and ending (capture_api.c). */
struct capture *capture_begin(struct stream *s, struct graph *g, CUstreamCaptureMode mode);
/* Ends it; *graph is what was captured, NULL when it was invalid. */
CUresult capture_end(struct stream *s, struct graph **graph);
bool capture_tips(struct stream *s, struct node *const *nodes, unsigned n, bool replace);
