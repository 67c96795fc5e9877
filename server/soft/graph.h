/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of work: nodes with what they depend on, and the executable form.
 *
 * Thread rule: see state.h; launch_run is called without the lock. */
#pragma once
#include "server/soft/stream.h"

#define GRAPH_NODES (1u << 20) /* of one graph */

struct node {
	struct object object;
	struct graph *graph; /* not a reference: a graph owns its nodes */
	struct node *next; /* in order of creation */
	CUgraphNodeType type;
	struct work work;
	struct node **deps; /* what it waits for */
	CUgraphEdgeData *edges; /* of each; a programmatic one is waited for as any other */
	unsigned ndeps;
	uint64_t origin; /* handle of the node that it was cloned from */
	bool enabled; /* in an executable graph */
	bool has_copy; /* copy tells what the program gave */
	CUDA_MEMCPY3D copy;
	CUcontext context; /* as the program gave it */
	CUgraph *told; /* the bodies of a conditional node, for who asked */
	void **pointers; /* one per kernel parameter, for those who ask */
	unsigned mark; /* scratch for walks */
	CUlaunchAttributeValue attributes[CU_LAUNCH_ATTRIBUTE_MAX];
	bool has_attribute[CU_LAUNCH_ATTRIBUTE_MAX];
};

struct user_object;
struct graph_user {
	struct user_object *object;
	unsigned count;
};
struct graph {
	struct object object;
	struct node *first, **last;
	unsigned count;
	uint64_t id;
	struct node *owner; /* a child graph's or body's node */
	struct condition *conditions; /* made for it */
	unsigned execs; /* what was made of it and is there */
	struct graph_user *users;
	unsigned nusers;
};

/* Memory that a graph allocates: it stays at its address while any graph needs it. */
struct graph_memory {
	unsigned refs;
	uint64_t p;
};

/* One launch: the works in order, shared between launches, and the marks of the events that this launch
 * records. */
struct graph_run {
	unsigned refs, count;
	struct work *works;
};
/* Of a graph as it is now, child graphs and bodies included. NULL: memory is short, or there is a cycle. */
struct graph_run *run_make(struct graph *g);
void run_unref(struct graph_run *r);
struct graph_launch {
	struct graph_run *run;
	struct mark **marks;
};

struct graph_exec {
	struct object object;
	struct graph *graph; /* its own copy */
	uint64_t origin; /* handle of the graph that it was made of */
	struct graph_run *run; /* NULL: to be made at the next launch */
	unsigned long long flags;
	uint64_t id;
};

struct graph *graph_create(void);
struct graph *graph_copy(struct graph *g);
/* A new node that owns w from now on (also in case of an error). NULL: memory is short. */
struct node *node_create(
	struct graph *g, CUgraphNodeType type, struct work *w, struct node **deps, unsigned ndeps);
bool node_depend(struct node *n, struct node *on, const CUgraphEdgeData *data);
void node_undepend(struct node *n, const struct node *on);
/* What an edge may say; NULL says nothing. */
bool edge_fits(const struct node *from, const struct node *to, const CUgraphEdgeData *data);
/* Does it, or a graph in it, have nodes of that type? */
bool graph_has(const struct graph *g, CUgraphNodeType type);
/* Gives the node other work; takes w. */
void node_set(struct node *n, struct work *w);
void node_destroy(struct node *n);
/* The graphs inside a piece of work are the node's. */
void node_owns(struct node *n);
/* Nodes in an order in which each comes after what it waits for; NULL: a cycle, or memory is short. */
struct node **graph_order(struct graph *g);
/* Does `from` wait for `on`, directly or not? */
bool node_reaches(struct node *from, struct node *on);
struct graph_memory *graph_memory_ref(struct graph_memory *m);
void graph_memory_unref(struct graph_memory *m);
/* Bytes that graphs hold on a device, or the most that they held. */
uint64_t graph_memory_bytes(int device, bool high);
void graph_memory_reset(int device);

/* Ways into a function about a node of that type; params must not be NULL. exec_enter: the node of an
 * executable graph that was made from h. */
struct guard node_enter(CUgraphNode h, CUgraphNodeType type, const void *params, struct node **n);
struct guard exec_enter(CUgraphExec x, CUgraphNode h, CUgraphNodeType type, const void *params,
	struct node **n, struct graph_exec **exec);
/* The node of an executable graph that was made from that node. */
struct node *exec_node(struct graph_exec *x, CUgraphNode original);
void exec_changed(struct graph_exec *x);

/* The bodies of a condition: as many new graphs; and what they are made of. */
CUresult condition_work(const CUDA_CONDITIONAL_NODE_PARAMS *p, struct graph *g, struct work *w);
void condition_work_finish(struct work_condition *k);
bool condition_work_clone(struct work_condition *k);

CUresult launch_run(struct graph_launch *l, struct context *c);
/* The launch is dropped, for its context has failed. */
void launch_skip(struct graph_launch *l);
void launch_free(struct graph_launch *l);

void user_objects_move(struct graph *to, const struct graph *from);
void user_objects_drop(struct graph *g);

/* Parameters to work, for nodes and executable ones alike. */
CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2 *p, struct context *current, struct work *w);
CUresult copy_work(const CUDA_MEMCPY3D *p, struct work *w);
CUresult set_work(const CUDA_MEMSET_NODE_PARAMS_v1 *p, struct work *w);
CUresult memop_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, struct work *w);
