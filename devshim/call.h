/* SPDX-License-Identifier: Apache-2.0 */
/* One API call of the application, from its arguments to its result. The generated stubs
 * (build/gen/cuda.stubs.c) and the hand-written ones use it alike; every policy of sending and waiting is in
 * call.c and channel.c.
 *
 *     struct call c;
 *     CUresult r = call_begin(&c, CALL_cuMemAlloc_v2);
 *     if (r) return r;
 *     put_u64(&c.out, bytesize);
 *     r = call_wait(&c);
 *     if (!r) *dptr = get_u64(&c.in);
 *     return call_end(&c, r);
 *
 * Thread rule: a call belongs to its thread; call_post and call_wait order the calls of all threads by the
 * moment they are made. */
#pragma once
#include "cuda.flavours.h"
#include "wire/cuda_types.h"
#include "wire/msg.h"
#include "wire/frame.h"

struct call {
	struct msg out;             /* arguments; its buffer belongs to the thread */
	struct msg in;              /* the answer's head after call_wait returned, valid until call_end */
	unsigned id;
	const void *bulk;           /* sent behind the head: the caller's bytes, valid during the call */
	size_t bulk_len;
	uint64_t bulk_at;           /* see struct record */
	bool bulk_held;
	void *bulk_out;             /* where the answer's own bulk goes, or NULL */
	size_t bulk_out_len;        /* room; after call_wait: bytes that came */
	uint64_t seq;               /* the record's number, once sent */
	uint32_t number;            /* among those that the thread has begun */
	bool aside;                 /* it may go ahead of other records (FRAME_ASIDE) */
	CUcontext owner;            /* of the handle that was put first: what comes of it is that context's */
};

/* Starts a call of the thread. Returns 0, or the code to give back at once: 3 before cuInit and in a forked
 * child, 806/810 after the session died, ... */
CUresult call_begin(struct call *c, unsigned id);
/* Queues the record; returns 0, or a code known at once (a dead session, an earlier asynchronous error, no
 * current context: 201), or, under CUDA_LAUNCH_BLOCKING, the call's own. */
CUresult call_post(struct call *c);
/* Sends all that is queued and the record, waits for the answer, places deliveries, returns the call's
 * result: the server's code, or the code of an earlier failed post where CUDA would report it here. */
CUresult call_wait(struct call *c);
/* call_wait for a copy to the host whose bytes travel as data of transfer `id` (devshim/transfer.h): takes
 * them as they come. The transfer has ended when this returns. */
CUresult call_wait_transfer(struct call *c, uint64_t id);
/* Checks that the answer was consumed (a malformed one kills the session, 806) and returns r. Goes with every
 * call_wait. */
CUresult call_end(struct call *c, CUresult r);
/* What failed on a thread of the shim's own: the program's next wait tells it. */
void call_failed_aside(CUresult r);

/* A new client-chosen handle of that type for a NEW call, of the current context; or of the owner of
 * `parent`, of which it comes. */
void *handle_new(unsigned type);
void *handle_new_of(unsigned type, unsigned parent_type, const void *parent);
/* Puts a handle argument. Returns false (the caller then gives back handle_error(type)) when the handle is
 * NULL where that is wrong, unknown, destroyed or of another type. Streams: 0, 1, 2 pass, 0 becomes 2 in the
 * per-thread flavours. */
bool put_handle(struct call *c, unsigned type, const void *h);
CUresult handle_error(unsigned type);
/* Takes a handle from an answer and notes it in the shim's table. */
void *get_handle(struct call *c, unsigned type);
/* Forgets a handle after its destruction. */
void handle_drop(unsigned type, const void *h);

/* The per-thread default stream flavours: the generated NAME_ptsz calls NAME between these. */
void ptds_begin(void);
void ptds_end(void);
bool ptds_active(void);

/* One log line per call id and process under SCUDAFS_LOG; returns CUDA_ERROR_NOT_SUPPORTED (or 3 before
 * cuInit). */
CUresult call_unsupported(unsigned id, const char *why);

/* Device ordinals: the application's (after CUDA_VISIBLE_DEVICES) and the server's. put_device returns false
 * for no visible device. */
bool put_device(struct call *c, CUdevice dev);
CUdevice get_device(struct call *c);
/* Replaces a visible ordinal by the server's where the location names a device. */
void location_to_server(CUmemLocation *location);

/* The server lacks this call, or encodes it otherwise: it is answered NOT_SUPPORTED here. Inside cuInit. */
void call_lacks(unsigned id);
/* Logs every record at debug level from now on. */
void call_trace(bool on);
