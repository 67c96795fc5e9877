/* SPDX-License-Identifier: Apache-2.0 */
/* One piece of device work: what a stream queues, what a capture records, what a graph node holds.
 *
 * Thread rule: a work is owned by one queue or node at a time. work_run is called without the lock; the rest
 * with it. */
#pragma once
#include "server/soft/state.h"

enum work_type {
	WORK_EMPTY,
	WORK_KERNEL,
	WORK_COPY,
	WORK_SET,
	WORK_HOST,
	WORK_CALLBACK,
	WORK_EVENT,
	WORK_WAIT,
	WORK_FREE,
	WORK_MEMOPS,
	WORK_GRAPH,
	WORK_CHILD, /* a graph inside a graph: only in nodes */
	WORK_CONDITION, /* graphs of which a condition says which runs: only in nodes and runs */
	WORK_ALLOC, /* an allocation made by a graph: only in nodes */
	WORK_SIGNAL, /* an event that other processes see was recorded here */
	WORK_AWAIT, /* a record of such an event is waited for */
	WORK_FAULT, /* a range that the call's own check let pass and the device does not */
};

struct function;
struct work_kernel {
	struct function *function; /* a reference */
	unsigned grid[3], block[3], cluster[3];
	size_t shared;
	void *params; /* packed, owned */
	bool cooperative;
	int priority;
};
/* A box of bytes from src to dst. Pitches and slices in bytes. */
struct work_copy {
	char *dst;
	const char *src;
	size_t width, height, depth;
	size_t dst_pitch, dst_slice, src_pitch, src_slice;
	void *staged; /* owned copy of the source, packed; NULL: read src when the work runs */
};
struct work_set {
	char *dst;
	size_t pitch, width, height;
	unsigned value, element;
};
struct work_host {
	CUhostFn fn;
	void *data;
};
struct work_callback {
	CUstreamCallback fn;
	void *data;
	CUstream stream;
};
struct work_event {
	struct event *event;
}; /* a reference; used by nodes only: a queued record is its mark */
struct work_shared {
	struct event *event; /* a reference */
	uint64_t record; /* its number */
};
struct work_memops {
	CUstreamBatchMemOpParams *ops;
	unsigned count;
};
struct graph_launch;
struct graph_memory;
struct graph;
struct work_graph {
	struct graph_launch *launch;
}; /* owned */
struct work_child {
	struct graph *graph;
}; /* owned by the node */
struct condition;
struct graph_run;
struct work_condition {
	struct condition *condition; /* a reference */
	CUgraphConditionalNodeType type;
	unsigned size;
	struct graph **bodies; /* `size` of them, owned */
	struct graph_run **runs; /* in a run: what they are made of, owned */
};
struct work_alloc {
	uint64_t p;
	size_t bytes;
	struct graph_memory *memory; /* WORK_ALLOC: a reference */
};

struct work {
	enum work_type type;
	struct context *context; /* where it runs; NULL: the stream's */
	union {
		struct work_kernel kernel;
		struct work_copy copy;
		struct work_set set;
		struct work_host host;
		struct work_callback callback;
		struct work_event event;
		struct work_memops memops;
		struct work_shared shared;
		struct work_graph graph;
		struct work_child child;
		struct work_condition condition;
		struct work_alloc alloc; /* WORK_ALLOC, WORK_FREE (p only) */
	};
};

/* Does it. Returns 0 or the context's new sticky error. */
CUresult work_run(struct work *w, struct context *c);
/* Told instead of work_run when the context has failed before: a stream callback still hears of it. */
void work_skip(struct work *w, CUresult error);
/* Frees what it owns. */
void work_finish(struct work *w);
/* A deep copy; false when memory is short. */
bool work_clone(struct work *to, const struct work *from);

/* May the device touch these bytes? */
bool work_reachable(uint64_t p, size_t n);
/* Fits a sized copy between linear ranges. */
struct work work_linear(uint64_t dst, uint64_t src, size_t n);
/* The bytes that a box touches from its first one on; false on overflow. */
bool box_span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice, size_t *span);
