/* SPDX-License-Identifier: Apache-2.0 */
/* Doing a piece of work: kernels through the engine, copies, fills, host functions.
 *
 * Thread rule: see work.h. */
#include "server/soft/work.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "server/soft/allocation.h"
#include "server/soft/engine.h"
#include "server/soft/event.h"
#include "server/soft/graph.h"
#include "server/soft/module.h"
#include "server/soft/pool.h"
#include "server/soft/shadow.h"
#include "wire/log.h"

bool work_reachable(uint64_t p, size_t n)
{
	return allocation_covers(p, n);
}

bool box_span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice, size_t *span)
{
	size_t rows, slices;
	*span = 0;
	if (!width || !height || !depth)
		return true;
	return !__builtin_mul_overflow(height - 1, pitch, &rows) &&
	       !__builtin_mul_overflow(depth - 1, slice, &slices) &&
	       !__builtin_add_overflow(rows, slices, span) && !__builtin_add_overflow(*span, width, span);
}

struct work work_linear(uint64_t dst, uint64_t src, size_t n)
{
	return (struct work){.type = WORK_COPY,
		.copy = {.dst = (char *)(uintptr_t)dst,
			.src = (const char *)(uintptr_t)src,
			.width = n,
			.height = 1,
			.depth = 1,
			.dst_pitch = n,
			.src_pitch = n,
			.dst_slice = n,
			.src_slice = n}};
}

static CUresult run_kernel(const struct work_kernel *k, struct context *c)
{
	const struct engine_function_info *info = engine_function_info(k->function->code);
	struct engine_launch l = {
		.function = k->function->code,
		.grid = {k->grid[0], k->grid[1], k->grid[2]},
		.block = {k->block[0], k->block[1], k->block[2]},
		.cluster = {k->cluster[0], k->cluster[1], k->cluster[2]},
		.dynamic_shared = k->shared,
		.params = k->params,
		.cooperative = k->cooperative,
		.time_limit_s = soft.time_limit,
		.cancel = &c->cancel,
	};
	struct engine_error error = {0};
	int r = engine_launch(&l, &error);
	if (r)
		log_warning("%s%s (code %d)", *error.text ? "" : info->name, error.text, r);
	return (CUresult)r;
}

static void run_copy(const struct work_copy *k)
{
	const char *src = k->staged ? k->staged : k->src;
	size_t pitch = k->staged ? k->width : k->src_pitch;
	size_t slice = k->staged ? k->width * k->height : k->src_slice;
	struct allocation a;
	bool known = allocation_find((uintptr_t)src, &a) &&
		     (a.kind == ALLOCATION_DEVICE || a.kind == ALLOCATION_POOL);
	for (size_t z = 0; z < k->depth; z++)
		for (size_t y = 0; y < k->height; y++) {
			char *to = k->dst + z * k->dst_slice + y * k->dst_pitch;
			const char *from = src + z * slice + y * pitch;
			memmove(to, from, k->width);
			shadow_copied((uintptr_t)to, (uintptr_t)from, k->width, known);
		}
}

static void run_set(const struct work_set *k)
{
	for (size_t y = 0; y < k->height; y++) {
		char *row = k->dst + y * k->pitch;
		shadow_written((uintptr_t)row, k->width * k->element);
		if (k->element == 1) {
			memset(row, (int)k->value, k->width);
		} else if (k->element == 2) {
			uint16_t *p = (uint16_t *)row;
			for (size_t x = 0; x < k->width; x++)
				p[x] = (uint16_t)k->value;
		} else {
			uint32_t *p = (uint32_t *)row;
			for (size_t x = 0; x < k->width; x++)
				p[x] = k->value;
		}
	}
}

static bool wait_met(const struct CUstreamMemOpWaitValueParams_st *w)
{
	bool wide = w->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
	uint64_t mask = wide ? ~0ull : 0xffffffffull;
	uint64_t have = wide ? __atomic_load_n((uint64_t *)(uintptr_t)w->address, __ATOMIC_ACQUIRE)
			     : __atomic_load_n((uint32_t *)(uintptr_t)w->address, __ATOMIC_ACQUIRE);
	uint64_t want = wide ? w->value64 : w->value;
	switch (w->flags & 3) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return wide ? (int64_t)(have - want) >= 0 : (int32_t)(uint32_t)(have - want) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ: return have == want;
	case CU_STREAM_WAIT_VALUE_AND: return have & want;
	default: return ~(have | want) & mask;
	}
}

/* A change of it that changes nothing is a full barrier as a fence is, but known to the thread sanitizer. */
static atomic_uint barrier;

static void run_memops(const struct work_memops *k, const struct context *c)
{
	for (unsigned i = 0; i < k->count; i++) {
		const CUstreamBatchMemOpParams *op = &k->ops[i];
		switch (op->operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			/* whoever writes the value tells nobody: look every 50 us */
			while (!wait_met(&op->waitValue) && !c->cancel)
				nanosleep(&(struct timespec){0, 50000}, NULL);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
			shadow_written(op->writeValue.address, 4);
			__atomic_store_n((uint32_t *)(uintptr_t)op->writeValue.address, op->writeValue.value,
				__ATOMIC_RELEASE);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			shadow_written(op->writeValue.address, 8);
			__atomic_store_n((uint64_t *)(uintptr_t)op->writeValue.address,
				op->writeValue.value64, __ATOMIC_RELEASE);
			break;
		default: atomic_fetch_add(&barrier, 0); break;
		}
	}
}

static void call_host(CUhostFn fn, void *data)
{
	struct thread *t = thread_self();
	t->callback = true;
	fn(data);
	t->callback = false;
}

CUresult work_run(struct work *w, struct context *c)
{
	switch (w->type) {
	case WORK_KERNEL: return run_kernel(&w->kernel, c);
	case WORK_COPY: run_copy(&w->copy); break;
	case WORK_SET: run_set(&w->set); break;
	case WORK_HOST:
		engine_printf_flush(); /* the function may look at what the program printed */
		call_host(w->host.fn, w->host.data);
		break;
	case WORK_CALLBACK:
		engine_printf_flush();
		thread_self()->callback = true;
		w->callback.fn(w->callback.stream, CUDA_SUCCESS, w->callback.data);
		thread_self()->callback = false;
		break;
	case WORK_MEMOPS: run_memops(&w->memops, c); break;
	case WORK_SIGNAL: event_signal(w->shared.event, w->shared.record); break;
	case WORK_AWAIT:
		while (!event_reached(w->shared.event, w->shared.record) && !c->cancel)
			nanosleep(&(struct timespec){0, 50000}, NULL);
		break;
	case WORK_FREE: pool_free_now(w->alloc.p); break;
	case WORK_GRAPH: return launch_run(w->graph.launch, c);
	case WORK_FAULT: return CUDA_ERROR_ILLEGAL_ADDRESS;
	default: break;
	}
	return CUDA_SUCCESS;
}

void work_skip(struct work *w, CUresult error)
{
	if (w->type == WORK_CALLBACK)
		w->callback.fn(w->callback.stream, error, w->callback.data);
	if (w->type == WORK_FREE)
		pool_free_now(w->alloc.p);
	if (w->type == WORK_SIGNAL)
		event_signal(w->shared.event, w->shared.record);
	if (w->type == WORK_GRAPH)
		launch_skip(w->graph.launch);
}

void work_finish(struct work *w)
{
	switch (w->type) {
	case WORK_KERNEL:
		object_unref(w->kernel.function);
		free(w->kernel.params);
		break;
	case WORK_COPY: free(w->copy.staged); break;
	case WORK_MEMOPS: free(w->memops.ops); break;
	case WORK_EVENT:
	case WORK_WAIT: object_unref(w->event.event); break;
	case WORK_SIGNAL:
	case WORK_AWAIT: object_unref(w->shared.event); break;
	case WORK_GRAPH: launch_free(w->graph.launch); break;
	case WORK_CHILD:
		if (w->child.graph)
			object_close((struct object *)w->child.graph);
		break;
	case WORK_CONDITION: condition_work_finish(&w->condition); break;
	case WORK_ALLOC: graph_memory_unref(w->alloc.memory); break;
	default: break;
	}
	*w = (struct work){.type = WORK_EMPTY};
}

static void *duplicate(const void *p, size_t n)
{
	void *q = malloc(n ? n : 1);
	if (q && n)
		memcpy(q, p, n);
	return q;
}

bool work_clone(struct work *to, const struct work *from)
{
	struct work w = *from;
	switch (w.type) {
	case WORK_KERNEL: {
		size_t n = engine_function_info(w.kernel.function->code)->param_bytes;
		w.kernel.params = duplicate(w.kernel.params, n);
		if (!w.kernel.params)
			return false;
		object_ref(w.kernel.function);
		break;
	}
	case WORK_COPY:
		if (w.copy.staged) {
			w.copy.staged = duplicate(w.copy.staged, w.copy.width * w.copy.height * w.copy.depth);
			if (!w.copy.staged)
				return false;
		}
		break;
	case WORK_MEMOPS:
		w.memops.ops = duplicate(w.memops.ops, w.memops.count * sizeof *w.memops.ops);
		if (!w.memops.ops)
			return false;
		break;
	case WORK_EVENT:
	case WORK_WAIT: object_ref(w.event.event); break;
	case WORK_SIGNAL:
	case WORK_AWAIT: object_ref(w.shared.event); break;
	case WORK_GRAPH: return false; /* a launch is queued once */
	case WORK_CONDITION:
		if (!condition_work_clone(&w.condition))
			return false;
		break;
	case WORK_ALLOC: graph_memory_ref(w.alloc.memory); break;
	case WORK_CHILD:
		w.child.graph = graph_copy(w.child.graph);
		if (!w.child.graph)
			return false;
		break;
	default: break;
	}
	*to = w;
	return true;
}
