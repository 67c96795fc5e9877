/* SPDX-License-Identifier: Apache-2.0 */
/* What the channel does for those who watch over its queue (flusher.c, pace.c). Thread rule: channel.h. */
#pragma once
#include <stdatomic.h>
#include "devshim/channel.h"

/* The number of the last record. */
uint64_t channel_posted(void);
/* Queues a record and sees to it that it leaves. 0 or -errno. */
int channel_enqueue(struct record *r);
/* Queues m and parks until the answer to `before`, an earlier record, is there; `buf` has NODE_ROOM bytes. */
int channel_exchange(struct record *m, uint64_t before, uint8_t *buf);
/* Without a lock: may records wait in the queue? */
bool channel_is_filled(void);
/* Sends what is queued; 0 or -errno. When nothing is, returns 1, having set *asleep if there is one, before
 * anybody could queue. */
int channel_flush(_Atomic uint32_t *asleep);
