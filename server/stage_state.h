/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a context's staging memory, shared by what has slots of it (staging.c) and what has small
 * pieces of the arena behind them (piece.c).
 *
 * Thread rule: see staging.h; `stage_lock` guards the list of stages, who has which slot, and what pieces
 * have. */
#pragma once
#include <pthread.h>
#include "server/piece.h"
#include "server/staging.h"

#define GRANULE 4096u
#define GRANULES (STAGE_SLOT / GRANULE)
#define POOLED_EVENTS 256

/* Pinned memory for a piece when the arena is full. It is kept for later pieces until the context's end:
 * freeing it waits for the device, which may wait for a copy that the freeing thread is to run. */
struct own {
	struct own *next;
	uint8_t *p;
	size_t n;
	CUdeviceptr device; /* 0: not mapped */
};

struct stage {
	struct stage *next;
	CUcontext ctx;
	unsigned long long id;
	uint8_t *base;
	bool lent; /* the mount may see it (lend.h) */
	bool registered;
	CUdeviceptr device; /* the arena's address for the device; 0: not mapped */
	struct slot slot[STAGE_SLOTS];
	unsigned turn;
	CUstream stream;
	uint8_t used[GRANULES]; /* of the arena behind the slots */
	CUevent event[POOLED_EVENTS]; /* free ones, for pieces */
	unsigned nevents;
	struct own *kept; /* that no piece uses */
	unsigned pieces; /* out */
	bool stale;
};

extern pthread_mutex_t stage_lock;

/* With the lock: the context is gone, and what the driver freed with it. */
void pieces_finish(struct stage *s);
