/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture. No stream can be put into capture yet, so that every check passes.
 *
 * Thread rule: see state.h. */
#include "server/soft/capture.h"

CUresult capture_check(struct stream *s) { (void)s; return CUDA_SUCCESS; }
CUresult capture_add(struct stream *s, struct work *w) { (void)s; work_finish(w); return CUDA_ERROR_NOT_SUPPORTED; }
CUresult capture_spoil(struct stream *s) { (void)s; return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; }
CUresult capture_query(struct stream *s) { (void)s; return CUDA_SUCCESS; }
CUresult capture_blocks_sync(struct context *c) { (void)c; return CUDA_SUCCESS; }
CUresult capture_unsafe(void) { return CUDA_SUCCESS; }
void capture_stream_gone(struct stream *s) { (void)s; }
CUresult capture_record(struct event *e, struct stream *s, bool *taken) { (void)e; (void)s; (void)taken; return CUDA_SUCCESS; }
CUresult capture_wait(struct event *e, struct stream *s, bool *taken) { (void)e; (void)s; (void)taken; return CUDA_SUCCESS; }
#include "server/soft/event.h"
void event_uncapture(struct event *e) { (void)e; }
#include "server/soft/graph.h"
struct graph *graph_copy(struct graph *g) { (void)g; return NULL; }
CUresult exec_run(struct graph_exec *x, struct context *c) { (void)x; (void)c; return CUDA_SUCCESS; }
void exec_skip(struct graph_exec *x) { (void)x; }
