/* SPDX-License-Identifier: Apache-2.0 */
/* Where a thread's answers are put, and the waits for one that was asked for earlier.
 *
 * Thread rule: all is the calling thread's own. */
#include "devshim/channel_state.h"
#include <errno.h>
#include <stdlib.h>
#include "wire/copy.h"
#include "wire/ring.h"

_Thread_local struct room *channel_room __attribute__((tls_model("initial-exec")));

struct room *channel_room_new(void)
{
	channel_room = malloc(sizeof *channel_room);
	if (channel_room)
		channel_room->large = NULL, channel_room->held = -1;
	return channel_room;
}

/* By ctl an answer apart from its data costs a request more; in shared memory it costs nothing, and the
 * server sends data from pinned memory. */
size_t channel_answer_room(void)
{
	return ring_is_open() ? ring_slot_room(0) - sizeof(struct frame) - 256 : COPY_SMALL;
}

void channel_taken(void)
{
	if (channel_room && channel_room->held >= 0) {
		ring_give(channel_room->held);
		channel_room->held = -1;
	}
}

int channel_await_answer(uint64_t batch, uint64_t seq, size_t len, size_t expected, bool once,
	struct answer *a)
{
	channel_forget_answer();
	return node_wait(channel_room->ioctl, batch, len, seq, expected, once, &channel_room->large, a);
}

static int await_sent(uint64_t seq, size_t expected, bool once, struct answer *a)
{
	int saved = errno;
	int e = -ENOMEM;
	if (channel_room_of_thread())
		e = channel_await_answer(0, seq, 0, sizeof(struct frame) + 64 + expected, once, a);
	errno = saved;
	return e;
}

int channel_await(uint64_t seq, size_t expected, struct answer *a)
{
	return await_sent(seq, expected, false, a);
}

int channel_await_once(uint64_t seq, size_t expected, struct answer *a)
{
	return await_sent(seq, expected, true, a);
}

void channel_thread_finish(void)
{
	if (channel_room)
		channel_forget_answer();
	free(channel_room);
	channel_room = NULL;
}
