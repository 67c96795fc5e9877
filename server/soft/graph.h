/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of work and their executable form.
 *
 * Thread rule: see state.h; exec_run is called without the lock. */
#pragma once
#include "server/soft/stream.h"

struct graph;
struct graph_exec;
/* A graph of its own with the same nodes; NULL: memory is short. */
struct graph *graph_copy(struct graph *g);
CUresult exec_run(struct graph_exec *x, struct context *c);
/* The launch is dropped, for its context has failed. */
void exec_skip(struct graph_exec *x);
