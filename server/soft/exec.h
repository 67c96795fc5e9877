/* SPDX-License-Identifier: Apache-2.0 */
/* The state of running kernels: operations, frames, warps, blocks, launches. One operation is run over the 32
 * lanes of a warp by one handler.
 *
 * Thread rule: code is constant once decoded; a block and its warps belong to the worker that runs it; struct
 * launch names its own lock. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "server/soft/engine.h"
#include "server/soft/ptx.h"

enum {
	LANES = 32,
	MAX_WARPS = 32,
	MAX_THREADS = 1024,
	MAX_BARRIERS = 17,
	CLUSTER_BARRIER = 16,
	MAX_SPLITS = LANES + 1,
	MAX_FRAMES = 1 << 16
};

struct warp;
struct op;
/* Runs one operation and returns the next one, or STOP after setting warp.event. */
typedef const struct op *handler(struct warp *w, const struct op *o);
#define STOP ((const struct op *)UINTPTR_MAX)

/* d, a, b, c, e: byte offsets of slots in the register file of the frame; each slot has 32 lanes of 4 or 8
 * bytes. */
struct op {
	handler *fn, *pfn; /* for a full and for a partial mask */
	uint32_t d, a, b, c, e;
	uint32_t line; /* of the PTX text */
	union {
		int64_t imm;
		const void *p;
		const struct op *to;
		const struct op **table;
	};
	uint32_t x,
		y; /* what the handler defines; wrappers: how many operations they and what they wrap take */
};

struct slot_init {
	uint32_t offset;
	uint8_t width, sreg;
	uint64_t value;
}; /* sreg 0: a constant */

/* The words of a .param variable: one slot of 32-bit lanes per word. */
struct param_words {
	uint32_t slot, words;
};

struct code {
	struct ptx_func *func;
	struct op *ops;
	uint32_t nops;
	uint32_t frame_bytes;
	struct slot_init *inits;
	uint32_t ninits; /* constants first */
	uint32_t nconsts;
	uint32_t nblock; /* the last ones: those that change from block to block */
	uint32_t local_bytes; /* of one lane */
	uint32_t stack_bytes; /* deepest use of one lane, callees included */
	uint32_t shared_bytes; /* static; entries */
	uint32_t dynamic_base; /* where dynamic shared memory starts */
	bool barriers;
	bool dynamic_stack; /* has alloca */
	bool param_address; /* the kernel takes the address of a parameter */
	struct param_words *params, *rets;
	char *uncovered;
	uint64_t id; /* never used twice */
	bool decoded;
};

/* What a call operation passes. */
struct call_info {
	struct ptx_func *func; /* NULL: through a register */
	uint32_t slot; /* of the function pointer */
	int builtin_id;
	uint32_t nargs, nrets;
	struct param_words *args, *rets;
};

struct frame {
	struct frame *up;
	const struct code *code;
	uint8_t *regs;
	uint32_t depth;
	uint32_t lanes; /* not returned yet */
	const struct op *call; /* the caller's operation; continues behind it */
	uint32_t local; /* offset in the stack of each lane */
};

enum split_state { RUNNABLE, WAIT_BARRIER, WAIT_SYNC, WAIT_WARP };
struct split {
	struct frame *f;
	const struct op *pc;
	uint32_t mask;
	uint32_t want; /* WAIT_SYNC, WAIT_WARP: lanes that must come */
	uint8_t state;
	uint8_t bar;
	uint32_t bar_d; /* slot of a barrier's reduction; UINT32_MAX: none */
	bool force; /* run the .sync operation with those that are here */
};

enum event {
	EV_NONE,
	EV_SPLIT,
	EV_YIELD,
	EV_FAULT,
	EV_CALL,
	EV_RET,
	EV_EXIT,
	EV_BARRIER,
	EV_PARK,
	EV_WARPSYNC,
	EV_SLEEP,
	EV_RETRY /* the same operation again, after a turn of the others */
};

struct warp {
	uint8_t *r; /* registers of the running frame */
	const int32_t *lm; /* 0/-1 per lane: the active mask */
	const struct op *limit; /* the next join point of the running frame */
	uint64_t mem_lo, mem_hi; /* device memory */
	uint8_t *shared;
	uint64_t shared_size;
	const uint8_t *params;
	uint64_t param_bytes;
	uint32_t mask;
	int32_t budget;
	uint8_t event, bar_op;
	int fault;
	uint32_t id;
	uint32_t exists, exited;
	int forced; /* split to run next whatever its place; -1: none */
	struct block *block;
	uint64_t local_base, local_stride; /* of lane 0 */
	struct split split[MAX_SPLITS];
	unsigned nsplits, cur;
	const struct op *at; /* of an event */
	uint32_t targets; /* EV_SPLIT: lanes that go to `to` */
	const struct op *to;
	struct frame *free_frames; /* linked by up; their constants are set */
	uint32_t nframes;
	uint64_t wake_ns; /* EV_SLEEP */
	uint32_t cluster_arrived; /* lanes at the cluster's barrier */
	uint32_t cluster_phase; /* their phases, bit by bit */
	/* wgmma.fence and commit_group so far; compared within a warpgroup */
	uint32_t group_fences, group_commits;
	bool group_waits; /* at a wgmma.fence that is counted */
	uint32_t stack_used[LANES]; /* by alloca: bytes from the end of each lane's stack down */
	uint32_t lanes_bits; /* what lanes_mask says */
	_Alignas(64) int32_t lanes_mask[LANES];
	_Alignas(64) int32_t pred_mask[LANES];
	struct frame base;
	uint8_t *base_regs;
};

struct barrier {
	uint32_t arrived, expected;
	uint32_t popc;
	bool all, any, used;
};

/* Blocks that run together on one worker, and may look into each other's shared memory. */
struct cluster {
	struct block *block[ENGINE_CLUSTER]; /* by rank */
	unsigned n, running, refs;
	uint32_t arrived; /* threads at the cluster's barrier */
	uint32_t gone; /* of them, those that have ended since */
	uint32_t phase;
};

struct block {
	struct launch *launch;
	const struct code *code;
	uint64_t launch_id; /* what the special registers belong to */
	uint64_t code_id; /* what the constants in the register files belong to */
	unsigned nwarps, nthreads, cap_warps;
	uint32_t frame_bytes;
	uint32_t ctaid[3];
	uint32_t live; /* threads not exited */
	uint32_t waiting; /* threads at barriers */
	struct barrier bar[MAX_BARRIERS];
	uint64_t memory; /* device memory: shared, then local */
	size_t memory_bytes, shared_bytes, local_stride;
	size_t shared_end; /* what loads and stores reach of shared memory: whole units of it */
	uint32_t smid;
	struct cluster *cluster; /* NULL: none */
	uint32_t rank; /* in its cluster */
	bool ended; /* counted in cluster->running no more */
	uint64_t wake_ns; /* every warp waits until then; 0: no */
	int fault;
	struct warp *warps;
	uint8_t *regs;
	struct check_state *check; /* checked mode */
	struct block *next; /* of a cooperative launch */
};

struct launch {
	const struct engine_launch *l;
	const struct code *code;
	struct engine_module *module;
	uint64_t blocks; /* of the grid; its clusters, when there are any */
	_Atomic int error;
	_Atomic uint32_t error_line;
	uint64_t deadline_ns;
	uint64_t id;
	uint64_t params; /* device copy, when a kernel takes the address of a parameter; else 0 */
	uint64_t workspace; /* of the grid barrier: what %envreg1 and 2 point to; device memory */
	struct printf_buffer *out;
	unsigned threads; /* running it; under the pool's lock */
	bool queued, started;
	struct launch *queue;
	pthread_cond_t finished;
	/* What all workers write; the rest is read at every block, from a cache line that stays. */
	_Alignas(64) _Atomic uint64_t next; /* block to start */
};

/* y of a vector load or store: a cell of the register file that has the shape of the addresses. */
enum { SHAPE_KEPT = 1, SHAPE_KEEP = 2, SHAPE_FLAGS = 3 };

/* The active lanes of the running split, lowest first. */
#define FOR_LANES(w, l)                                                                                      \
	for (uint32_t m_ = (w)->mask, l; m_ && (l = (uint32_t)__builtin_ctz(m_), 1); m_ &= m_ - 1)
#define REG(w, T, slot) ((T *)((w)->r + (slot)))

const struct op *warp_stop(struct warp *w, const struct op *o, enum event e);
const struct op *warp_fault(struct warp *w, const struct op *o, int code);

/* exec_block.c. Both return 0 or a CUresult. */
int block_start(struct block *b, struct launch *l, uint64_t index);
/* Runs until the block ends (live is 0), every warp waits, or a slice of time is over. */
int block_run(struct block *b);
void block_release(struct block *b);

/* exec_frame.c */
enum fill {
	FILL_BLOCK,
	FILL_LAUNCH,
	FILL_ALL
}; /* what changes per block; special registers, too; constants, too */
void frame_fill(struct warp *w, const struct code *c, uint8_t *regs, uint32_t local, enum fill what);
int frame_call(struct warp *w);
void frame_return(struct warp *w);
void frame_exit(struct warp *w, struct frame *f, uint32_t lanes);
void frame_trim(struct warp *w);
/* exec_barrier.c */
int barrier_arrive(struct warp *w);
void barrier_exit(struct block *b);
/* exec_cluster.c: threads have ended */
void cluster_exit(struct warp *w, uint32_t lanes);
/* Where the shared memory of a block of the same cluster is, the end excluded; 0: there is no such rank. */
uint64_t cluster_shared(const struct block *b, uint32_t rank, uint64_t *end);
/* The generic address of one in the cluster's window (rank + 1 in its upper byte, 0: the block's own). */
uint64_t cluster_address(const struct warp *w, uint32_t at);
uint32_t warp_barrier_mask(const struct warp *w, const struct op *o);

uint64_t exec_now_ns(void);
/* fault.c: runs the slice with faults of device memory turned into 700. */
int fault_guard(int (*run)(struct block *), struct block *b);

/* Handlers that live outside the vector file. */
#define X(name) handler x_##name;
#include "server/soft/exec_handlers.inc"
#undef X
