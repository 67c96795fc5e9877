/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs need of each other's files. Thread rule: any thread. */
#pragma once
#include <stdint.h>
#include "devshim/call.h"
#include "devshim/context.h"

/* Notes a host function as something that a graph may run, any number of times: an upcall's id, 0 without
 * memory. */
uint64_t host_function_note(CUhostFn fn, void *data);
/* The host function of an upcall's function and argument, when it is one. */
bool host_function_of(void (*run)(void *), const void *arg, CUDA_HOST_NODE_PARAMS *out);
/* A graph with memory of its own has been made: the driver may refuse to launch it again. */
void graph_has_memory(void);
/* Puts the nodes that another depends on. */
CUresult put_nodes(struct call *c, const CUgraphNode *nodes, size_t n);
/* Memory that a question about a node gave out, or its making: it lives as long as the node, or until the
 * next such memory comes. False when the node is dead or memory is short; the memory is still the caller's
 * then. */
bool node_keep(CUgraphNode h, void *given);
/* Changes a copy node, or with `e` what an executable graph has of it. `ctx`: NULL means the current one. */
CUresult node_set_copy(CUgraphExec e, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx);
