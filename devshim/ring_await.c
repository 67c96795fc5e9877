/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in shared memory. An answer is looked for in its slot for a while, where there are processors
 * enough; then the thread sleeps in an ioctl on the session node, so that signals, the end of the mount and
 * SIGKILL are what they are without a ring. Data that comes ahead of it is taken meanwhile.
 *
 * Thread rule: any thread, each for its own slot. */
#include "devshim/ring_state.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/node.h"
#include "wire/ctl.h"
#include "wire/look.h"

#define SINK_STEP (256u << 10)      /* bytes taken from a sink before the mount may use their place */

static bool is_done(const struct ring_wait *w)
{
	struct ring_slot *s = ring_slot_at(ring.memory, (unsigned)w->slot);
	return atomic_load_explicit(&s->done, memory_order_acquire) == w->seq;
}

/* The same from a sink. */
static bool take_sink(const struct ring_wait *w, struct ring_sink *sink)
{
	struct ring_slot *s = ring_slot_at(ring.memory, (unsigned)w->slot);
	uint64_t got = atomic_load_explicit(&s->got, memory_order_acquire);
	bool more = got > sink->got;
	got = got > sink->n ? sink->n : got;
	if (!w->room)
		sink->got = got;
	while (sink->got < got) {
		uint64_t place = sink->got % w->room, n = got - sink->got, end = w->room - place;
		n = n < end ? n : end;
		n = n < SINK_STEP ? n : SINK_STEP;
		sink->place(sink->arg, sink->got, sink->around + place, n);
		sink->got += n;
		atomic_store_explicit(&s->taken, sink->got, memory_order_release);
		ring_wake_mount();
	}
	return more;
}

/* Sleeps until the answer is there, or as much of the data as is worth to be woken for. */
static int sleep_for(const struct ring_wait *w, const struct ring_sink *sink)
{
	if (!w->room)
		return node_sleep(w->seq);
	uint64_t left = sink->n - sink->got, half = w->room / 2;
	struct ctl_until u = {.seq = w->seq, .count = sink->got + (left < half ? left : half)};
	return node_ioctl(CTL_UNTIL, &u);
}

/* Takes what is there of a transfer; true when it was anything. */
static bool take_data(const struct ring_wait *w, struct ring_sink *sink)
{
	if (!sink)
		return false;
	if (w->n)
		return take_sink(w, sink);
	struct ring_slot *area = ring_slot_at(ring.memory, (unsigned)w->area);
	uint64_t got = atomic_load_explicit(&area->got, memory_order_acquire);
	got = got > sink->n ? sink->n : got;
	if (got <= sink->got)
		return false;
	sink->place(sink->arg, sink->got, area->bytes + sink->got, got - sink->got);
	sink->got = got;
	return true;
}

/* The answer's header and head into buf, or all of it into memory of its own; its bulk may stay. */
static int copy_answer(const struct ring_wait *w, uint8_t *buf, uint8_t **large, bool *held, struct answer *a)
{
	const struct ring_slot *s = ring_slot_at(ring.memory, (unsigned)w->slot);
	size_t n = s->len, front = sizeof(struct frame);
	struct frame f;
	*held = false;
	if (s->flags & RING_ELSEWHERE) {
		int e = node_reply(w->seq, n, large);
		return e ? e : answer_check(w->seq, *large, n, a);
	}
	if (n < front || n > ring_slot_room((unsigned)w->slot))
		return -EPROTO;
	memcpy(&f, s->bytes, sizeof f);
	if (n <= NODE_ROOM) {
		memcpy(buf, s->bytes, n);
		return answer_check(w->seq, buf, n, a);
	}
	if (f.head_len > NODE_ROOM - front) {
		*large = malloc(n);
		if (!*large)
			return -ENOMEM;
		memcpy(*large, s->bytes, n);
		return answer_check(w->seq, *large, n, a);
	}
	int e = answer_check(w->seq, s->bytes, n, a);
	if (e)
		return e;
	memcpy(buf, s->bytes, front + f.head_len);
	a->head = buf + front;
	*held = true;
	return 0;
}

/* How long this thread looks for its answer; `counts` when it is one of the few that look long. */
static uint64_t look_time(bool *counts)
{
	*counts = false;
	if (!ring.await_ns || atomic_load_explicit(&ring.sleeps, memory_order_relaxed))
		return ring.spin_ns;
	if (atomic_fetch_add_explicit(&ring.awaiting, 1, memory_order_relaxed) >= ring.awaiting_most) {
		atomic_fetch_sub_explicit(&ring.awaiting, 1, memory_order_relaxed);
		return ring.spin_ns;
	}
	*counts = true;
	return ring.await_ns;
}

static void look_ends(bool *counts)
{
	if (*counts)
		atomic_fetch_sub_explicit(&ring.awaiting, 1, memory_order_relaxed);
	*counts = false;
}

int ring_await(const struct ring_wait *w, struct ring_sink *sink, uint8_t *buf, uint8_t **large, bool *held,
	struct answer *a)
{
	bool counts;
	uint64_t looks = look_time(&counts);
	struct look l = look_begin(looks);
	int e = 0;
	*held = false;
	for (unsigned i = 1;; i++) {
		/* All data is there before the answer is. */
		bool done = is_done(w), more = take_data(w, sink);
		if (done)
			break;
		if (more && l.end)
			look_again(&l, looks);
		if (!l.end || (i % RING_LOOKS == 0 && !look_on(&l))) {
			look_ends(&counts);
			looks = ring.spin_ns;
			e = sleep_for(w, sink);
			if (e && e != -EAGAIN)
				break;
			e = 0;
			l = look_begin(looks);
		} else {
			look_relax();
		}
	}
	look_ends(&counts);
	if (e)
		return e;
	e = copy_answer(w, buf, large, held, a);
	ring_give(w->area);
	if (!*held)
		ring_give(w->slot);
	return e;
}
