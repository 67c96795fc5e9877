/* SPDX-License-Identifier: Apache-2.0 */
/* Records that go to the mount through shared memory, and waits whose answer comes there: no queue, no system
 * call, and the bytes of large copies lie in the arena.
 *
 * Thread rule: channel_state.h. */
#include "devshim/channel_state.h"
#include <errno.h>
#include "devshim/arena.h"
#include "devshim/pace.h"
#include "wire/ring.h"

/* A record whose bulk the mount takes from the arena: that is batches of its own behind the record's. */
static int share_bulk(struct record *r, struct ring_wait *w, bool *shared)
{
	pthread_mutex_lock(&channel.order);
	struct batch b = {.queue = {r->bytes, number_record(r)}, .bulk = r->bulk, .bulk_len = r->bulk_len};
	b.number = channel.batch + 1;
	if (w)
		w->seq = r->seq;
	*shared = ring_put(b.number, w, b.queue.bytes, b.queue.len, NULL, 0);
	channel.batch += *shared ? 1 + arena_batches(r) : channel_batches(&b);
	pthread_mutex_unlock(&channel.order);
	return *shared ? arena_send(r, b.number + 1) : channel_write(&b);
}

int channel_share(struct record *r, struct ring_wait *w, bool *shared)
{
	if (r->bulk_len > COPY_SHARED && arena_begin()) {
		int e = share_bulk(r, w, shared);
		arena_end();
		return e;
	}
	pthread_mutex_lock(&channel.order);
	struct batch b = {.queue = {r->bytes, number_record(r)}, .bulk = r->bulk, .bulk_len = r->bulk_len};
	b.number = channel.batch + 1;
	if (w)
		w->seq = r->seq;
	*shared = ring_put(b.number, w, b.queue.bytes, b.queue.len, b.bulk, b.bulk_len);
	channel.batch += *shared ? 1 : channel_batches(&b);
	pthread_mutex_unlock(&channel.order);
	if (!*shared)
		return channel_write(&b);
	return w && !ring_looks() ? 0 : ring_wake(b.number);
}

int channel_wait_shared(struct record *r, struct ring_wait *w, struct ring_sink *sink, size_t expected,
	struct answer *a)
{
	bool shared, held;
	channel_forget_answer();
	int e = channel_share(r, w->slot >= 0 ? w : NULL, &shared);
	if (shared && w->slot >= 0) {
		e = e ? e : ring_await(w, sink, channel_room->ioctl, &channel_room->large, &held, a);
		if (!e && held)
			channel_room->held = w->slot;
		return e;
	}
	ring_give(w->slot);
	ring_give(w->area);
	if (!e)
		e = sink ? -EAGAIN : channel_await_answer(0, r->seq, 0, expected, false, a);
	return e;
}

/* Where n bytes of data will be awaited: at their own place when the mount sees that, in an area, or in a
 * sink. */
static bool data_place(struct ring_wait *w, struct ring_sink *sink, size_t n, uint64_t pinned)
{
	if (pinned) {
		w->n = n;
		w->at = pinned;
	} else if (n <= RING_AREA) {
		w->area = ring_take_area();
	} else if ((sink->around = arena_sink_take(&w->at))) {
		w->n = n;
		w->room = ARENA_SINK;
	}
	return w->n || w->area >= 0;
}

int channel_wait_data(struct record *r, uint64_t transfer, size_t n, uint64_t pinned,
	void (*place)(void *arg, uint64_t offset, const void *p, size_t n), void *arg, uint64_t *got,
	struct answer *a)
{
	struct ring_sink sink = {.place = place, .arg = arg, .n = n};
	struct ring_wait w = {.slot = ring_take_slot(0), .area = -1, .transfer = transfer & 0x3ffff};
	int saved = errno, e = -ENOTSUP;
	if (w.slot < 0)
		return -ENOTSUP;
	if (!channel_room_of_thread() || !data_place(&w, &sink, n, pinned))
		ring_give(w.slot);
	else
		e = channel_wait_shared(r, &w, &sink, 0, a);
	/* After an error the session is over, and the mount may still write there. */
	if (sink.around && (!e || e == -EAGAIN))
		arena_sink_give(w.at);
	*got = sink.got;
	if (!e)
		pace_answered(r->seq);
	errno = saved;
	return e;
}
