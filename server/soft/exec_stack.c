/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that functions take from the stack as they run: alloca, stacksave, stackrestore. Each lane's frames
 * grow from the start of its stack, what alloca gives from the end.
 *
 * Thread rule: a handler touches only the warp it is given. */
#include "server/soft/exec.h"

enum { LAUNCH_FAILED = 719 };

/* The end of a lane's stack. */
static uint64_t stack_end(const struct warp *w, uint32_t l)
{
	return w->local_base + (l + 1) * w->local_stride;
}

static void put(struct warp *w, const struct op *o, uint32_t l, uint64_t v)
{
	if (o->x == 8)
		REG(w, uint64_t, o->d)[l] = v;
	else
		REG(w, uint32_t, o->d)[l] = (uint32_t)v;
}

static uint64_t get(struct warp *w, const struct op *o, uint32_t l)
{
	return o->x == 8 ? REG(w, uint64_t, o->a)[l] : REG(w, uint32_t, o->a)[l];
}

/* d: what a function gives back when it returns */
const struct op *x_stack_enter(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	REG(w, uint32_t, o->d)[l] = w->stack_used[l];
	return o + 1;
}

const struct op *x_stack_leave(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	w->stack_used[l] = REG(w, uint32_t, o->a)[l];
	return o + 1;
}

/* d: the address, a: bytes, imm: alignment, x: bytes of both registers' lanes */
const struct op *x_alloca(struct warp *w, const struct op *o)
{
	const struct frame *f = w->split[w->cur].f;
	FOR_LANES(w, l)
	{
		uint64_t end = stack_end(w, l), top = end - w->stack_used[l],
			 least = end - w->local_stride + f->local + f->code->local_bytes, n = get(w, o, l);
		if (n > top - least || ((top - n) & ~((uint64_t)o->imm - 1)) < least)
			return warp_fault(w, o, LAUNCH_FAILED);
		top = (top - n) & ~((uint64_t)o->imm - 1);
		w->stack_used[l] = (uint32_t)(end - top);
		put(w, o, l, top);
	}
	return o + 1;
}

const struct op *x_stack_save(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	put(w, o, l, stack_end(w, l) - w->stack_used[l]);
	return o + 1;
}

/* a: what stacksave gave; only what was taken since is given back */
const struct op *x_stack_restore(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	{
		uint64_t end = stack_end(w, l), to = get(w, o, l);
		if (o->x == 4) /* the upper half is that of every address of this stack */
			to |= end & ~0xffffffffull;
		if (to > end || end - to > w->stack_used[l])
			return warp_fault(w, o, LAUNCH_FAILED);
		w->stack_used[l] = (uint32_t)(end - to);
	}
	return o + 1;
}
