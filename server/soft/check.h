/* SPDX-License-Identifier: Apache-2.0 */
/* Checked mode: what kernels do to memory is looked at access by access, and what is wrong is reported on
 * standard error with kernel, line, block and thread. Functions that are decoded while it is on have an
 * operation in front of each load, store and atomic; without it nothing is there.
 *
 * Thread rule: `check` is constant once the first module is loaded; a block's state belongs to its worker;
 * reports have a lock. */
#pragma once
#include "server/soft/exec.h"

struct check_options {
	bool bounds; /* accesses outside of allocations, misaligned ones */
	bool init; /* reads of what nothing has written */
	bool race; /* shared memory: two threads, one of them writes, nothing orders them */
	bool stop; /* anything reported ends the launch */
	bool go_on; /* nothing does: accesses that cannot be made are left out */
	unsigned limit; /* places that are reported, per process */
};
extern struct check_options check;
static inline bool check_on(void)
{
	return check.bounds || check.init || check.race;
}
static inline bool check_shared(void)
{
	return check.init || check.race;
}

enum {
	CHECK_READ = 1,
	CHECK_WRITE = 2,
	CHECK_ATOMIC = 4, /* others may look at the same place at the same time: atomics, volatile, relaxed */
	CHECK_SHARED = 8, /* the address is an offset in shared memory */
	CHECK_LOOSE = 32, /* its handler looks at the alignment */
	CHECK_FENCE = 16 /* orders what is around it: acquire, release */
};

/* The access of one lane: `bytes` at `at`, in elements of `each`. `value` is what a store stores, or NULL.
 * Returns 0, or the code of the fault that the access has to end with; CHECK_SKIP: leave it out. */
enum { CHECK_SKIP = -1 };
int check_access(struct warp *w, const struct op *o, uint32_t lane, uint64_t at, unsigned bytes,
	unsigned each, unsigned kind, const uint8_t *value);
/* The same from inside a handler of several accesses; ends the launch by warp_fault where that is due. False:
 * do not make this access. */
bool check_inside(
	struct warp *w, const struct op *o, uint32_t lane, uint64_t at, unsigned bytes, unsigned kind);

/* What orders threads: fences of the active lanes, barriers of a warp, of some threads, of all. */
void check_fence(struct warp *w);
void check_join(struct warp *w, uint32_t lanes);
void check_arrive(struct warp *w, unsigned barrier, uint32_t lanes);
void check_leave(struct warp *w, unsigned barrier, uint32_t lanes);
void check_barrier(struct block *b, unsigned barrier);
void check_block_start(struct block *b);
void check_block_release(struct block *b);
void check_launch_end(const struct launch *l);

/* check_race.c: order between threads. */
struct race;
void race_start(struct race **r, const struct block *b);
void race_free(struct race *r);
/* All threads that live are here. */
void race_barrier(struct race *r);
/* A barrier of some: these lanes arrive, and those that waited leave. */
void race_arrive(struct race *r, unsigned barrier, uint32_t first, uint32_t lanes);
void race_leave(struct race *r, unsigned barrier, uint32_t first, uint32_t lanes);
void race_reset(struct race *r, unsigned barrier);
/* These lanes of a warp meet. */
void race_join(struct race *r, uint32_t first, uint32_t lanes);
void race_fence(struct race *r, uint32_t first, uint32_t lanes);

struct race_other { /* the earlier of two accesses */
	const struct code *code;
	uint32_t line, thread;
	bool wrote;
};
/* Notes an access to shared memory by a thread. False: it races with *other. */
bool race_note(struct race *r, const struct code *c, uint32_t line, uint32_t thread, uint64_t at,
	unsigned bytes, unsigned kind, const uint8_t *value, struct race_other *other);
/* None of the bytes was written in this block. */
bool race_unwritten(const struct race *r, uint64_t at, unsigned bytes);
