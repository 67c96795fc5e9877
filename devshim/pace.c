/* SPDX-License-Identifier: Apache-2.0 */
/* Thread rule: `lock` is held while one thread waits: the others have to, too. */
#include "devshim/pace.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "devshim/channel_parts.h"
#include "devshim/node.h"

#define PACE 2048                           /* posts from one marker to the next */

static struct {
	pthread_mutex_t lock;
	_Atomic uint64_t last;              /* record that was the last marker, or was answered itself */
	uint64_t marker;                    /* whose answer is not fetched yet; 0: none */
} pace = {.lock = PTHREAD_MUTEX_INITIALIZER};

void pace_reset(void) { pace.last = pace.marker = 0; }

void pace_answered(uint64_t seq)
{
	uint64_t last = atomic_load_explicit(&pace.last, memory_order_relaxed);
	while ((int64_t)(seq - last) > 0 && !atomic_compare_exchange_weak(&pace.last, &last, seq))
		;
}

static bool is_due(uint64_t seq)
{
	return (int64_t)(seq - atomic_load_explicit(&pace.last, memory_order_relaxed)) >= PACE;
}

static int mark(uint32_t thread)
{
	/* Its own buffer, guarded by the lock: the thread's room may hold an answer that is being read. */
	static _Alignas(16) uint8_t buf[NODE_ROOM];
	uint8_t bytes[sizeof(struct frame)];
	struct record m = {.bytes = bytes, .kind = FRAME_WAIT, .flags = FRAME_PACE, .thread = thread};
	int saved = errno, e = 0;
	pthread_mutex_lock(&pace.lock);
	if (node_is_open() && is_due(channel_posted())) {
		e = pace.marker ? channel_exchange(&m, pace.marker, buf) : channel_enqueue(&m);
		if (!e) {
			pace.marker = m.seq;
			atomic_store(&pace.last, m.seq);
		}
	}
	pthread_mutex_unlock(&pace.lock);
	errno = saved;
	return e;
}

int pace_posted(uint64_t seq, uint32_t thread)
{
	return is_due(seq) ? mark(thread) : 0;
}
