/* SPDX-License-Identifier: Apache-2.0 */
/* The mount's end of the memory that it shares with a session's program (wire/ring.h). The program may write
 * to all of it at any time: indices are compared with copies of ours, bytes are copied out before they are
 * looked at, and nothing that was written for the program is read back.
 *
 * Thread rule: guarded by the relay's lock, but for channel_offer, channel_accept and channel_drain_wakes,
 * which the session's thread alone calls, and the bytes of a slot between channel_begin and channel_end. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "scudafs/buffer.h"

struct arena;
struct channel;

/* NULL without memory. */
struct channel *channel_create(void);
void channel_free(struct channel *c);

/* Takes the listening socket at which the program will ask. */
void channel_offer(struct channel *c, int listener);
/* What to poll for POLLIN; -1: nothing. */
int channel_fd(const struct channel *c);
/* Something came there. While the socket listens: hands the memory to who connects, if it is process `pid`
 * (0: any) of `uid`. Afterwards: takes the wakes. Returns true while there may be more to come. */
bool channel_came(struct channel *c, pid_t pid, uid_t uid);
/* The program has the memory. */
bool channel_is_used(const struct channel *c);

/* What came with it for large copies. */
struct arena *channel_arena(const struct channel *c);

/* Has anything been put there since the last channel_take, and arena_take, that found no more? Without a
 * lock. */
bool channel_has_news(const struct channel *c);
/* Has all that was appended been taken? */
bool channel_is_empty(const struct channel *c);
/* The session's thread is about to sleep, or is awake. Without a lock. */
void channel_sleeps(struct channel *c, bool asleep);
/* A batch has come the other way: what was found before its turn may have its turn now. */
void channel_look_again(struct channel *c);
/* Takes segments that continue after batch *last, which is counted up; several at a time. *bytes: theirs, the
 * caller's; NULL when none is there whose turn has come. *waits: how many of them name a slot. A post alone
 * is not taken before `linger` ns have passed in which the wait for it might follow. Returns NULL or what is
 * wrong with them. */
const char *channel_take(struct channel *c, uint64_t *last, struct buffer **bytes, unsigned *waits,
	unsigned linger);

/* The slot that waits for the answer to seq; -1: none. */
int channel_waiting(const struct channel *c, uint64_t seq);
/* Has the answer to seq been put into a slot? */
bool channel_has_answered(const struct channel *c, uint64_t seq);
/* The area that waits for byte `offset` of a transfer, as many as n; its slot, or -1. *ok false: there is
 * one, but the bytes do not belong there. */
int channel_area(const struct channel *c, uint64_t transfer, uint64_t offset, size_t n, bool *ok);
/* Room for the n bytes of the answer in the slot; NULL when it is too small. Nobody else touches the slot
 * until channel_end. */
uint8_t *channel_begin(struct channel *c, int slot, size_t n);
/* The answer is there; with `elsewhere`, n bytes that the slot has no room for are to be fetched. */
void channel_end(struct channel *c, int slot, size_t n, bool elsewhere);
/* Where the slot's area, or sink, takes byte `offset` of its data, and how many there, *room, 0 for the time
 * being; and so many of its bytes are there. Without a lock. */
uint8_t *channel_area_at(const struct channel *c, int slot, uint64_t offset, size_t *room);
void channel_area_has(struct channel *c, int slot, uint64_t got);
/* Bytes that have come for the wait seq; UINT64_MAX: it waits for none. */
uint64_t channel_got(const struct channel *c, uint64_t seq);
/* A page of the memory was missing (guard.h): the session is over. */
bool channel_is_broken(const struct channel *c);
/* The session is over. */
void channel_fail(struct channel *c, int error);
