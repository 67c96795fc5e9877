/* SPDX-License-Identifier: Apache-2.0 */
/* The program's end of the session node (wire/ctl.h): one ordered stream of records from all threads, cut
 * into numbered batches, and the answers.
 *
 * Thread rule: all functions may be called from any thread after channel_open has returned. The order of the
 * stream is the order in which channel_post and channel_wait take the channel's lock; no system call is made
 * under it but those that need the order. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/frame.h"

/* One record on its way. `record` points to room for the header, followed by head_len bytes of head. */
struct record {
	uint8_t *bytes;             /* sizeof(struct frame) bytes of room, then the head */
	uint32_t head_len;
	uint8_t kind, flags;
	uint16_t call;
	uint32_t thread;
	uint64_t ctx;
	const void *bulk;           /* the caller's */
	size_t bulk_len;
	uint64_t bulk_at;           /* where the bulk lies in the arena (arena.h); 0: not there */
	bool bulk_held;             /* there it does not change until the call's work is known to be done */
	uint64_t seq;               /* out */
};

/* The answer to a wait; `bytes` belongs to the thread and is valid until its next wait. */
struct answer {
	struct frame frame;
	const uint8_t *head;
	const uint8_t *bulk;
};

/* Opens the session node. Returns 0 or -errno. */
int channel_open(const char *path);
/* Once the hello is through: the kernel learns the node's size, so that large writes go side by side. */
void channel_settle(void);
/* Gives the node back after a hello that failed; nothing else may be under way. */
void channel_close(void);
/* In a forked child: lets go of the descriptor without a lock. */
void channel_forget(void);

/* Queues a record; returns 0 or -errno (the session is dead). */
int channel_post(struct record *r);
/* Sends all that is queued and the record; `room`: bytes of answer expected. Returns 0 with *a filled, or
 * -errno. */
int channel_wait(struct record *r, size_t room, struct answer *a);
/* The same in two steps, for a caller that fetches data in between. */
int channel_send(struct record *r);
int channel_await(uint64_t seq, size_t room, struct answer *a);
/* One round of channel_await: -EAGAIN when the answer did not come within TIME_PARK. */
int channel_await_once(uint64_t seq, size_t room, struct answer *a);
/* Sends the record of a wait that brings `n` bytes as data of `transfer`, and waits for them and the answer,
 * when memory is shared with the mount and has room for them: `place` gets the bytes as they come, *got
 * counts them. Those of pinned memory, at `pinned` in the arena unless that is 0, are in place without it.
 * -ENOTSUP: nothing was sent, channel_send does it; -EAGAIN: it was sent, but what comes has to be fetched as
 * after channel_send. */
int channel_wait_data(struct record *r, uint64_t transfer, size_t n, uint64_t pinned,
	void (*place)(void *arg, uint64_t offset, const void *p, size_t n), void *arg, uint64_t *got,
	struct answer *a);
/* Bytes of data that had better come inside an answer than apart from it, COPY_SMALL at most. */
size_t channel_answer_room(void);
/* The bulk of the thread's last answer is no longer needed. */
void channel_taken(void);
/* Frees what the calling thread keeps for answers. */
void channel_thread_finish(void);

/* Reads bytes of a transfer to the host from `offset` on. Returns how many (up to n, at least 1), -EAGAIN
 * when nothing came for TIME_PARK, or another -errno. */
long channel_read_data(uint64_t transfer, uint64_t offset, void *p, size_t n);
/* One read of whole UPCALL and OUTPUT frames: bytes read, or -errno (-EAGAIN: nothing came). */
long channel_read_upcalls(void *p, size_t n);
/* Tells the end of a host function, outside the ordered stream. */
int channel_upcall_done(uint64_t upcall);
