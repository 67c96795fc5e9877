/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of control operations: they set an event for the scheduler or find the next operation; clocks,
 * sleeping, traps.
 *
 * Thread rule: a handler touches only the warp it is given. */
#include "server/soft/exec.h"
#include <string.h>
#include <time.h>
#include <x86intrin.h>
#include "server/soft/check.h"

enum { ILLEGAL_INSTRUCTION = 715, LAUNCH_FAILED = 719, NOT_SUPPORTED = 801, ILLEGAL_ADDRESS = 700 };
enum { MAX_SLEEP_NS = 1000000 };

const struct op *x_exit(struct warp *w, const struct op *o)
{
	return warp_stop(w, o, EV_EXIT);
}
const struct op *x_ret(struct warp *w, const struct op *o)
{
	return warp_stop(w, o, EV_RET);
}
const struct op *x_call(struct warp *w, const struct op *o)
{
	return warp_stop(w, o, EV_CALL);
}
const struct op *x_barrier(struct warp *w, const struct op *o)
{
	return warp_stop(w, o, EV_BARRIER);
}
const struct op *x_trap(struct warp *w, const struct op *o)
{
	return warp_fault(w, o, LAUNCH_FAILED);
}
const struct op *x_uncovered(struct warp *w, const struct op *o)
{
	return warp_fault(w, o, NOT_SUPPORTED);
}
const struct op *x_nop(struct warp *w, const struct op *o)
{
	(void)w;
	return o + 1;
}

const struct op *x_fence(struct warp *w, const struct op *o)
{
	atomic_thread_fence(memory_order_seq_cst);
	check_fence(w);
	return o + 1;
}

/* A jump through a table: the lanes that go the way of the first one continue, the others come back here. */
const struct op *x_brx(struct warp *w, const struct op *o)
{
	const uint32_t *a = REG(w, uint32_t, o->a);
	uint32_t first = a[__builtin_ctz(w->mask)], same = 0;
	FOR_LANES(w, l)
	same |= (uint32_t)(a[l] == first) << l;
	if (first >= o->x)
		return warp_fault(w, o, ILLEGAL_INSTRUCTION);
	if (same !=
		w->mask) { /* the others stay in front of this operation, so the split's own pc must, too */
		w->targets = same;
		w->to = o->table[first];
		return warp_stop(w, o - 1, EV_SPLIT);
	}
	const struct op *to = o->table[first];
	if (to <= o && --w->budget < 0) {
		w->to = to;
		return warp_stop(w, o, EV_YIELD);
	}
	return to;
}

const struct op *x_nanosleep(struct warp *w, const struct op *o)
{
	uint32_t ns = REG(w, uint32_t, o->a)[__builtin_ctz(w->mask)];
	w->wake_ns = exec_now_ns() + (ns < MAX_SLEEP_NS ? ns : MAX_SLEEP_NS);
	return warp_stop(w, o, EV_SLEEP);
}

const struct op *x_warp_barrier(struct warp *w, const struct op *o)
{
	uint32_t want = warp_barrier_mask(w, o);
	if (!(want & w->exists & ~w->exited & ~w->mask)) {
		check_join(w, want);
		return o + 1;
	}
	w->targets = want;
	return warp_stop(w, o, EV_WARPSYNC);
}

/* Waits for the lanes that the mask in a names. */
const struct op *x_sync(struct warp *w, const struct op *o)
{
	uint32_t want = warp_barrier_mask(w, o);
	struct split *s = &w->split[w->cur];
	if (!(want & w->exists & ~w->exited & ~w->mask))
		return o + 1;
	if (s->force) {
		s->force = false;
		return o + 1;
	}
	w->targets = want;
	return warp_stop(w, o, EV_PARK);
}

const struct op *x_clock(struct warp *w, const struct op *o)
{
	uint64_t v = 0;
	struct timespec t;
	switch (o->x) {
	case SR_CLOCK:
	case SR_CLOCK64: v = __rdtsc(); break;
	case SR_CLOCK_HI: v = __rdtsc() >> 32; break;
	case SR_GLOBALTIMER:
	case SR_GLOBALTIMER_LO:
	case SR_GLOBALTIMER_HI:
		clock_gettime(CLOCK_REALTIME, &t);
		v = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
		v = o->x == SR_GLOBALTIMER_HI ? v >> 32 : v;
	}
	FOR_LANES(w, l)
	{
		if (o->y)
			REG(w, uint64_t, o->d)[l] = v;
		else
			REG(w, uint32_t, o->d)[l] = (uint32_t)v;
	}
	return o + 1;
}

const struct op *x_isspacep(struct warp *w, const struct op *o)
{
	const uint64_t *a = REG(w, uint64_t, o->a);
	int32_t *d = REG(w, int32_t, o->d);
	struct block *b = w->block;
	FOR_LANES(w, l)
	{
		uint64_t p = a[l];
		bool shared = p >= (uint64_t)w->shared &&
			      p - (uint64_t)w->shared < (w->shared_size ? w->shared_size : 1);
		uint64_t first = b->memory + ((b->shared_bytes + 255) & ~255ull);
		bool local = p >= first && p - first < b->local_stride * b->nthreads;
		bool param =
			b->launch->params && p >= b->launch->params && p - b->launch->params < PTX_MAX_PARAM;
		bool cluster = shared;
		for (uint32_t k = 0; o->x == SP_CLUSTER && b->cluster && !cluster && k < b->cluster->n; k++) {
			uint64_t end, base = cluster_shared(b, k, &end);
			cluster = p >= base && p < end;
		}
		bool in = o->x == SP_SHARED    ? shared
			  : o->x == SP_CLUSTER ? cluster
			  : o->x == SP_LOCAL  ? local
			  : o->x == SP_PARAM  ? param
			  : o->x == SP_GLOBAL ? !shared && !local
					      : false;
		d[l] = -(int32_t)in;
	}
	return o + 1;
}

/* The words of a parameter are copied to the stack of each lane, since its address is taken. */
const struct op *x_copy_params(struct warp *w, const struct op *o)
{
	const uint64_t *base = REG(w, uint64_t, o->b);
	const uint32_t *s = REG(w, uint32_t, o->a);
	FOR_LANES(w, l)
	{
		uint64_t p = base[l] + (uint64_t)o->imm;
		if (p < w->mem_lo || p > w->mem_hi || w->mem_hi - p < o->x)
			return warp_fault(w, o, ILLEGAL_ADDRESS);
		for (uint32_t k = 0; k < o->x; k += 4) {
			uint32_t n = o->x - k < 4 ? o->x - k : 4;
			memcpy((void *)(p + k), &s[k / 4 * LANES + l], n);
		}
	}
	return o + 1;
}
