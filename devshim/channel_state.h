/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the channel, shared by channel.c (the order of records), channel_batch.c (batches that are
 * written), channel_shared.c (those in shared memory) and channel_answer.c (where answers are put).
 *
 * Thread rule: `order` guards the fields of the queue. `queued` is written under the lock and read
 * without. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/channel.h"
#include "devshim/count.h"
#include "devshim/node.h"
#include "devshim/ring.h"
#include "wire/hops.h"
#include "wire/limits.h"

#define QUEUE_BYTES LIMIT_BATCH             /* of one queue buffer */
#define QUEUE_SPARE 3                       /* queue buffers kept for the next batch */
#define COPY_SHARED (128u << 10)            /* bulk up to this is copied into shared memory */

struct queue { uint8_t *bytes; size_t len; };

struct channel_state {
	pthread_mutex_t order;
	struct queue queue;                 /* records not in a batch yet */
	uint8_t *spare[QUEUE_SPARE];
	unsigned nspare;
	uint64_t seq, batch;                /* the last ones given */
	_Atomic bool queued;                /* what the flusher looks at: the queue is not empty */
};
extern struct channel_state channel __attribute__((visibility("hidden")));

/* A batch cut off the queue: its first bytes are the queue's, then come bytes of one record's bulk. */
struct batch {
	uint64_t number;                    /* of the first batch; bulk takes the numbers behind it */
	struct queue queue;
	const uint8_t *bulk;
	size_t bulk_len;
	bool narrow;                        /* in pieces as small as node_is_narrow says */
};

/* Under the lock: numbers the record and writes its header. Returns the bytes of header and head. */
static inline size_t number_record(struct record *r)
{
	struct frame f = {.head_len = r->head_len, .kind = r->kind, .flags = r->flags, .call = r->call,
		.bulk_len = r->bulk_len, .thread = r->thread, .seq = ++channel.seq, .ctx = r->ctx};
	r->seq = f.seq;
	memcpy(r->bytes, &f, sizeof f);
	hop(HOP_QUEUED, f.seq);
	count_record(f.kind, f.flags, sizeof f + f.head_len + f.bulk_len);
	return sizeof f + r->head_len;
}

/* channel_batch.c. Under the lock: memory for a queue, and how many batches a cut needs. */
uint8_t *channel_buffer(void);
uint64_t channel_batches(struct batch *b);
/* Without: writes it; the same, and gives its queue back. 0 or -errno. */
int channel_write(const struct batch *b);
int channel_send_cut(struct batch *b);

/* channel_shared.c. Sends a record without a queue: it is a batch of its own in shared memory, or, when that
 * is full, one that is written. *shared: it is there, and w, if any, with it. 0 or -errno. */
int channel_share(struct record *r, struct ring_wait *w, bool *shared);
/* Sends the record and waits for its answer, in shared memory if w has a slot. */
int channel_wait_shared(struct record *r, struct ring_wait *w, struct ring_sink *sink, size_t expected,
	struct answer *a);

/* channel_answer.c. Per thread: room for an ioctl and its answer, for an answer that does not fit, and the
 * slot whose answer is still being read, -1: none. NULL: no memory. */
struct room { uint8_t ioctl[NODE_ROOM]; uint8_t *large; int held; };
extern _Thread_local struct room *channel_room __attribute__((tls_model("initial-exec")));
struct room *channel_room_new(void);
static inline struct room *channel_room_of_thread(void)
{
	return __builtin_expect(channel_room != NULL, 1) ? channel_room : channel_room_new();
}
/* The last answer is no longer needed. */
static inline void channel_forget_answer(void)
{
	if (channel_room->held >= 0)
		channel_taken();
	free(channel_room->large);
	channel_room->large = NULL;
}
/* node_wait for the thread, whose room there is. */
int channel_await_answer(uint64_t batch, uint64_t seq, size_t len, size_t expected, bool once,
	struct answer *a);
