/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs need of each other's files. Thread rule: any thread. */
#pragma once
#include <stdint.h>
#include "devshim/call.h"
#include "devshim/context.h"

/* Notes a host function as something that a graph may run, any number of times: an upcall's id, 0 without
 * memory. */
uint64_t host_function_note(CUhostFn fn, void *data);
/* Puts the nodes that another depends on. */
CUresult put_nodes(struct call *c, const CUgraphNode *nodes, size_t n);
