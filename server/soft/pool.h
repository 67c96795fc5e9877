/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered memory and its pools. Memory is taken when the call is made and given back when the stream
 * gets to the free.
 *
 * Thread rule: see state.h; pool_free_now is called without the lock. */
#pragma once
#include "server/soft/stream.h"

#define POOL_OF_GRAPH 1u /* allocation.flags: the memory is a graph's */
#define POOL_LIVE 2u /* and a launch has allocated it, and nothing has freed it since */
#define POOL_OUTLIVES 4u /* and the graph is gone: the next free is the last */

struct pool {
	struct object object;
	int device;
	bool imported; /* another process's: nothing is allocated from it here */
	bool exported; /* named once: pointers into it have names from then on */
	bool standard; /* the device's default pool */
	CUmemPoolProps props;
	size_t most; /* maxSize; 0: the device's */
	int follow, opportunistic, internal; /* the reuse attributes: kept and told, nothing is reused here */
	uint64_t threshold;
	uint64_t used, used_high; /* bytes */
};

/* A pool of the device; NULL without memory. */
struct pool *pool_create(int device, const CUmemPoolProps *props);
struct pool *pool_default(int device);
struct pool *pool_current(int device);
/* The device's current pool, of which there is a reference from then on; and it no longer is, if it was. */
void pool_set_current(int device, struct pool *p);
void pool_forget_current(struct pool *p);
/* Memory from a pool, 0 when there is none (work that will free some is waited for first). */
uint64_t pool_take(struct pool *p, size_t bytes, struct context *c);
void pool_free_now(uint64_t p);
/* Gives back at once, with the lock held. Memory that belongs to a graph stays until the graph goes. */
void pool_give(uint64_t p);
void pool_give_graph(uint64_t p);
/* Memory for a graph's allocation node. */
CUresult pool_graph_work(struct pool *p, size_t bytes, struct context *c, struct work *w);
