/* SPDX-License-Identifier: Apache-2.0 */
/* Memory from pools, in the order of streams. What is asked of a pool itself is in pool_api.c.
 *
 * Thread rule: see pool.h. */
#include "server/soft/pool.h"
#include <stdlib.h>
#include "server/soft/allocation.h"
#include "server/soft/capture.h"
#include "server/soft/graph.h"

static struct pool *defaults[ALLOCATION_DEVICES], *current[ALLOCATION_DEVICES];

static void pool_finish(struct object *o)
{
	struct pool *p = (struct pool *)o;
	free(p);
}

struct pool *pool_create(int device, const CUmemPoolProps *props)
{
	struct pool *p = calloc(1, sizeof *p);
	if (!p || !object_open(&p->object, KIND_POOL, NULL, pool_finish)) {
		free(p);
		return NULL;
	}
	p->device = device;
	p->follow = p->opportunistic = p->internal = 1;
	if (props)
		p->props = *props;
	p->most = p->props.maxSize;
	return p;
}

struct pool *pool_default(int device)
{
	if (!defaults[device]) {
		defaults[device] = pool_create(device, NULL);
		if (defaults[device])
			defaults[device]->standard = true;
	}
	return defaults[device];
}

struct pool *pool_current(int device)
{
	return current[device] ? current[device] : pool_default(device);
}

void pool_set_current(int device, struct pool *p)
{
	object_ref(p);
	object_unref(current[device]);
	current[device] = p;
}

void pool_forget_current(struct pool *p)
{
	if (current[p->device] != p)
		return;
	current[p->device] = NULL;
	object_unref(p);
}

static uint64_t graph_bytes[ALLOCATION_DEVICES], graph_high[ALLOCATION_DEVICES];

uint64_t graph_memory_bytes(int device, bool high)
{
	return high ? graph_high[device] : graph_bytes[device];
}
void graph_memory_reset(int device)
{
	graph_high[device] = graph_bytes[device];
}

/* Ends a life of that memory: of a graph's, one that a launch began, or (`last`) that of the node itself. */
static void give(uint64_t p, bool last)
{
	struct allocation a;
	if (!allocation_find(p, &a) || a.base != p || a.kind != ALLOCATION_POOL)
		return;
	bool graph = a.flags & POOL_OF_GRAPH;
	if (graph && !last && !(a.flags & POOL_OUTLIVES)) {
		/* else the free was noted when it was asked for, and there may be a launch since */
		if (!a.freeing)
			a.flags &= ~POOL_LIVE;
		a.freeing = false; /* the graph's next launch allocates it again */
		allocation_update(&a);
		return;
	}
	if (last && (a.flags & POOL_LIVE || a.freeing)) {
		a.flags |= POOL_OUTLIVES;
		allocation_update(&a);
		return;
	}
	struct pool *from = a.pool;
	allocation_remove(p);
	from->used -= a.bytes;
	if (graph)
		graph_bytes[a.device] -= a.bytes;
	object_unref(from);
}

void pool_give(uint64_t p)
{
	give(p, false);
}
void pool_give_graph(uint64_t p)
{
	give(p, true);
}

void pool_free_now(uint64_t p)
{
	pthread_mutex_lock(&soft.lock);
	pool_give(p);
	pthread_mutex_unlock(&soft.lock);
}

static uint64_t take(struct pool *p, size_t bytes, struct context *c, unsigned flags)
{
	struct allocation a = {
		.kind = ALLOCATION_POOL, .device = p->device, .owner = c, .pool = p, .flags = flags};
	object_ref(p);
	uint64_t r = 0;
	for (int round = 0; round < 2 && !r; round++) {
		if (round)
			context_drain(c); /* frees that are queued give memory back */
		if (!p->most || (bytes <= p->most && p->used <= p->most - bytes))
			r = p->props.handleTypes ? allocation_create_shared(&a, bytes, 512)
						 : allocation_create(&a, bytes, 512);
	}
	if (!r) {
		object_unref(p);
		return 0;
	}
	p->used += bytes;
	if (p->used > p->used_high)
		p->used_high = p->used;
	return r;
}

uint64_t pool_take(struct pool *p, size_t bytes, struct context *c)
{
	return take(p, bytes, c, 0);
}

CUresult pool_graph_work(struct pool *p, size_t bytes, struct context *c, struct work *w)
{
	struct graph_memory *m = calloc(1, sizeof *m);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->refs = 1;
	m->p = take(p, bytes, c, POOL_OF_GRAPH);
	if (!m->p) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	graph_bytes[p->device] += bytes;
	if (graph_high[p->device] < graph_bytes[p->device])
		graph_high[p->device] = graph_bytes[p->device];
	*w = (struct work){.type = WORK_ALLOC, .alloc = {m->p, bytes, m}};
	return CUDA_SUCCESS;
}

static CUresult alloc(CUdeviceptr *out, size_t n, CUmemoryPool pool, bool named, CUstream stream)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &r);
	if (!s)
		return r;
	struct context *c = s->object.context;
	struct pool *p = named ? object_find(pool, KIND_POOL) : pool_current(c->device);
	if (!p)
		return named ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_OUT_OF_MEMORY;
	if (p->imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (!n) {
		*out = 0;
		return CUDA_SUCCESS;
	}
	if ((r = capture_check(s)))
		return r;
	if (s->capture) {
		struct work w;
		r = pool_graph_work(p, n, c, &w);
		uint64_t a = r ? 0 : w.alloc.p;
		if (!r)
			r = stream_submit(s, &w, NULL);
		if (!r)
			*out = a;
		return r;
	}
	*out = pool_take(p, n, c);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t n, CUstream s)
{
	return alloc(out, n, NULL, false, s);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t n, CUmemoryPool p, CUstream s)
{
	return alloc(out, n, p, true, s);
}

CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	CUresult r = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &r);
	if (!s)
		return r;
	if (!p)
		return CUDA_SUCCESS;
	struct allocation a;
	if (!allocation_find(p, &a) || a.base != p || a.freeing)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture && !(a.flags & POOL_OF_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	struct work w = {.type = WORK_FREE, .alloc = {.p = p}};
	if (a.kind == ALLOCATION_POOL) {
		if (!s->capture) {
			a.freeing = true;
			a.flags &= ~POOL_LIVE;
			allocation_update(&a);
		}
		return stream_submit(s, &w, NULL);
	}
	if (a.kind != ALLOCATION_DEVICE && a.kind != ALLOCATION_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	/* memory of cuMemAlloc: freed when the stream is there, which is now for those who look */
	if (s->capture)
		return capture_spoil(s);
	stream_drain(s);
	allocation_remove(p);
	return g.context->error;
}
