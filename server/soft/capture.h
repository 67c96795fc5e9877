/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: work submitted to a capturing stream becomes nodes of a graph.
 *
 * Thread rule: see state.h. */
#pragma once
#include "server/soft/stream.h"

struct event;
/* May this stream take work now? Legacy stream against captures that it would disturb. */
CUresult capture_check(struct stream *s);
/* Makes w a node; takes w. */
CUresult capture_add(struct stream *s, struct work *w);
/* An operation that cannot be captured was tried: the capture is invalid from now on. Returns the code for it. */
CUresult capture_spoil(struct stream *s);
/* May the stream be queried or waited for? */
CUresult capture_query(struct stream *s);
/* May the whole context be waited for? */
CUresult capture_blocks_sync(struct context *c);
/* May a call that could touch other work (an allocation, a module load) be made by this thread? */
CUresult capture_unsafe(void);
void capture_stream_gone(struct stream *s);
/* An event is recorded in, or waited for by, a capturing stream (or was recorded in one). *taken: nothing else is to be done. */
CUresult capture_record(struct event *e, struct stream *s, bool *taken);
CUresult capture_wait(struct event *e, struct stream *s, bool *taken);
