/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters: the barrier of all their blocks, and the window through which a block sees the shared memory of
 * the others. An address in the window has the rank of its block, plus one, in its upper byte; those of the
 * block itself may have none. Generic addresses of shared memory are host addresses and need nothing of this.
 *
 * Thread rule: a cluster belongs to the thread that runs its blocks. */
#include "server/soft/check.h"
#include "server/soft/exec.h"

enum { RANK_SHIFT = 24 };
#define OFFSET_MASK ((1u << RANK_SHIFT) - 1)

static uint32_t living(const struct cluster *c)
{
	uint32_t n = 0;
	for (unsigned k = 0; k < c->n; k++)
		n += c->block[k]->live;
	return n;
}

static void settle(struct cluster *c)
{
	if (!c->arrived || c->arrived < living(c) + c->gone)
		return;
	c->arrived = c->gone = 0;
	c->phase++;
}

void cluster_exit(struct warp *w, uint32_t lanes)
{
	struct cluster *c = w->block->cluster;
	if (!c)
		return;
	uint32_t same = c->phase & 1 ? w->cluster_phase : ~w->cluster_phase;
	c->gone += (uint32_t)__builtin_popcount(lanes & w->cluster_arrived & same);
	settle(c);
}

const struct op *x_cluster_arrive(struct warp *w, const struct op *o)
{
	struct cluster *c = w->block->cluster;
	if (!c)
		return o + 1;
	check_fence(w);
	w->cluster_arrived |= w->mask;
	w->cluster_phase = c->phase & 1 ? w->cluster_phase | w->mask : w->cluster_phase & ~w->mask;
	c->arrived += (uint32_t)__builtin_popcount(w->mask);
	settle(c);
	return o + 1;
}

/* Without a cluster: a barrier of the block. */
const struct op *x_cluster_wait(struct warp *w, const struct op *o)
{
	struct cluster *c = w->block->cluster;
	if (!c)
		return warp_stop(w, o, EV_BARRIER);
	uint32_t waiting = c->phase & 1 ? w->cluster_phase : ~w->cluster_phase;
	if (w->mask & w->cluster_arrived & waiting)
		return warp_stop(w, o, EV_RETRY);
	w->cluster_arrived &= ~w->mask;
	check_fence(w);
	return o + 1;
}

uint64_t cluster_shared(const struct block *b, uint32_t rank, uint64_t *end)
{
	const struct block *of = b->cluster ? (rank < b->cluster->n ? b->cluster->block[rank] : NULL)
			       : rank ? NULL
				      : b;
	*end = of ? of->memory + of->shared_end : 0;
	return of ? of->memory : 0;
}

uint64_t cluster_address(const struct warp *w, uint32_t at)
{
	uint64_t end, base = at >> RANK_SHIFT ? cluster_shared(w->block, (at >> RANK_SHIFT) - 1, &end)
					      : (uint64_t)w->shared;
	return base ? base + (at & OFFSET_MASK) : 0;
}

/* The rank of the block whose shared memory holds p; -1: none of the cluster. */
static int rank_of(const struct block *b, uint64_t p)
{
	unsigned n = b->cluster ? b->cluster->n : 1;
	for (unsigned k = 0; k < n; k++) {
		uint64_t end, base = cluster_shared(b, k, &end);
		if (p >= base && p < end)
			return (int)k;
	}
	return -1;
}

static uint64_t get(struct warp *w, uint32_t slot, uint32_t l, bool wide)
{
	return wide ? REG(w, uint64_t, slot)[l] : REG(w, uint32_t, slot)[l];
}

static void put(struct warp *w, uint32_t slot, uint32_t l, bool wide, uint64_t v)
{
	if (wide)
		REG(w, uint64_t, slot)[l] = v;
	else
		REG(w, uint32_t, slot)[l] = (uint32_t)v;
}

/* d: generic, a: in the window, a slot of 4 bytes */
const struct op *x_cluster_address(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	REG(w, uint64_t, o->d)[l] = cluster_address(w, REG(w, uint32_t, o->a)[l]);
	return o + 1;
}

/* d: in the window, a: generic; x: d has 8 bytes */
const struct op *x_cluster_window(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	{
		uint64_t p = REG(w, uint64_t, o->a)[l], end;
		int rank = rank_of(w->block, p);
		uint64_t at = rank < 0 ? 0 : p - cluster_shared(w->block, (uint32_t)rank, &end);
		bool own = rank < 0 || (uint32_t)rank == w->block->rank;
		put(w, o->d, l, o->x, own ? at : at | (uint64_t)(rank + 1) << RANK_SHIFT);
	}
	return o + 1;
}

/* mapa: the same place in another block of the cluster. a: an address, b: the rank; x: 8-byte slots; y:
 * generic */
const struct op *x_mapa(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	{
		uint64_t a = get(w, o->a, l, o->x), end;
		uint32_t rank = REG(w, uint32_t, o->b)[l];
		uint64_t base = cluster_shared(w->block, rank, &end);
		if (o->y)
			put(w, o->d, l, o->x, base ? a - (uint64_t)w->shared + base : 0);
		else
			put(w, o->d, l, o->x, (a & OFFSET_MASK) | (uint64_t)(rank + 1) << RANK_SHIFT);
	}
	return o + 1;
}

/* getctarank. a: an address; x: 8-byte slot; y: generic */
const struct op *x_rank(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	{
		uint64_t a = get(w, o->a, l, o->x);
		int rank = o->y ? rank_of(w->block, a) : -1;
		if (!o->y)
			rank = (uint32_t)a >> RANK_SHIFT ? (int)((uint32_t)a >> RANK_SHIFT) - 1
							 : (int)w->block->rank;
		REG(w, uint32_t, o->d)[l] = (uint32_t)rank;
	}
	return o + 1;
}
