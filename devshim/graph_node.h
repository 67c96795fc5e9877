/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a graph's nodes, for the files that make and ask them. Thread rule: graph_node.c. */
#pragma once
#include "devshim/call.h"

struct node {
	CUDA_HOST_NODE_PARAMS host; /* fn NULL: not a host node of the application's */
	CUDA_MEMCPY3D copy; /* Depth 0: not a copy node */
	bool copy_is_host; /* one that is a host function for the driver */
	bool asked; /* the server: what a captured or cloned host node runs is known */
	void *given; /* what the last question about the node gave out */
};

/* What is kept of a node; made when there is nothing yet. */
struct node *graph_node_of(CUgraphNode h);
/* All that is known of a node of the program's side, captured and cloned ones included. */
CUresult graph_node_know(CUgraphNode h, struct node **out);
/* A host node for an upcall, added; the upcall of one there is, in a graph or (e) in what was made of it. */
CUresult graph_node_add_upcall(
	CUgraphNode *node, CUgraph g, const CUgraphNode *before, size_t count, uint64_t id, struct node **n);
CUresult graph_node_set_upcall(CUgraphExec e, CUgraphNode node, uint64_t id);
