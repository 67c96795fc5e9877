/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory of the server's own, through which large copies pass in pieces. Per context, made at its
 * first large copy; 10 slots of 1 MiB, and behind them an arena of 1 MiB for small pieces (piece.h).
 *
 * Thread rule: all functions run on threads that execute records, with the context current; a slot belongs
 * to its taker until it is given back. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/copy.h"
#include "wire/cuda_types.h"

#define STAGE_SLOT COPY_SLOT
#define STAGE_SLOTS 10
#define STAGE_BYTES ((STAGE_SLOTS + 1) * STAGE_SLOT)

/* What a slot may be taken for. Copies to the device are received by the holder of the baton, who has to go
 * on: so what may be pending for long, because a host function is ahead of it, has slots of its own. */
enum slot_use {
	SLOT_TO_DEVICE, /* never behind a host function: the program sees to that */
	SLOT_TO_HOST,
	SLOT_ASIDE, /* on the server's own stream, that another stream waits for */
	SLOT_HELD, /* behind a host function, COPY_HELD_SLOTS of them */
	SLOT_USES
};

struct stage;
struct slot {
	uint8_t *p; /* STAGE_SLOT bytes */
	CUevent event; /* the end of the copy that uses it */
	bool taken, pending;
	uint64_t lent; /* a ticket of lend.h: not over, the mount has not taken what is there */
};

/* That of the current context. NULL without memory or context. */
struct stage *stage_get(void);
/* The next slot whose last copy has ended; waits for one. NULL when the context is lost. */
struct slot *stage_take(struct stage *s, enum slot_use use);
/* One that is free now, or NULL: for who holds one already, or two threads might wait for each other. */
struct slot *stage_try(struct stage *s, enum slot_use use);
/* Gives it back: free once what `stream` has in it now is done. */
CUresult stage_put(struct stage *s, struct slot *slot, CUstream stream);
/* Waits for the end of what stream had when the event was recorded. */
CUresult stage_record(struct slot *slot, CUstream stream);
CUresult stage_wait(struct slot *slot);
void stage_release(struct stage *s, struct slot *slot);
/* A stream of the server's own in this context that waits for no other: NULL when it cannot be made. */
CUstream stage_stream(struct stage *s);

/* The calling thread's capture mode, relaxed for calls of the server's own between these two. */
CUstreamCaptureMode capture_relax(void);
void capture_restore(CUstreamCaptureMode mode);
