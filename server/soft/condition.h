/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of graphs: values that kernels set and conditional nodes look at.
 *
 * Thread rule: values are read and set without a lock; the rest see state.h. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct graph;
struct condition {
	uint64_t handle; /* as the program and its kernels know it */
	unsigned refs; /* its graph's, and one per node */
	const struct graph *graph; /* that it was made for; NULL: gone */
	struct condition *next; /* of the graph */
	uint32_t initial;
	bool assign; /* every launch begins with the initial value */
	bool used; /* has a node */
	uint32_t value;
};

/* A new one of the graph, NULL: memory is short, or there are too many. */
struct condition *condition_create(struct graph *g, uint32_t initial, bool assign);
struct condition *condition_find(uint64_t handle);
struct condition *condition_ref(struct condition *c);
void condition_unref(struct condition *c);
/* Is there one of the graph that no node has? */
bool conditions_unused(const struct graph *g);
/* The graph goes. */
void conditions_drop(struct graph *g);

static inline uint32_t condition_value(const struct condition *c)
{
	return __atomic_load_n(&c->value, __ATOMIC_ACQUIRE);
}
static inline void condition_begin(struct condition *c)
{
	if (c->assign)
		__atomic_store_n(&c->value, c->initial, __ATOMIC_RELEASE);
}
