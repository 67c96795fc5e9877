/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a session: when a ping is due, when a silent peer is dead, when a program that takes nothing
 * has stalled its session, and when the session's thread has to look at all that next.
 *
 * Thread rule: all under the relay's lock, by the session's thread. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#define BROKEN_MS 500               /* after a failed write: how long to look for the server's last words */
#define BACKLOG (64 << 10)          /* unacknowledged bytes from which an acknowledgement is a sign of life */

/* Where a frame's length is wrong, what our pings are answered looks like the rest of it: fewer bytes in
 * TIME_DEAD than this. */
#define TRICKLE 1024

void heartbeat_heard(struct relay *r, size_t n, bool in_frame)
{
	r->alive = clock_ms();
	r->trickled += n;
	if (in_frame && r->trickled < TRICKLE)
		return;
	r->came = r->alive;
	r->trickled = 0;
}

/* Bytes that the peer's host has acknowledged while more are on their way show that it lives, though its
 * program may not have read them. */
static void look_for_acknowledgements(struct relay *r, uint64_t now)
{
	int left = 0;
	if (now == r->looked || r->written == r->acked || ioctl(stream_fd(r->stream), SIOCOUTQ, &left))
		return;
	r->looked = now;
	uint64_t acked = r->written > (uint64_t)left ? r->written - (uint64_t)left : 0;
	if (acked > r->acked && left >= BACKLOG)
		r->alive = now;
	r->acked = acked;
}

static void keep_alive(struct relay *r, uint64_t now, struct answers *a)
{
	look_for_acknowledgements(r, now);
	/* While we do not listen, silence says nothing. */
	if (r->paused) {
		r->alive = r->came = now;
	} else if (clock_since(now, r->alive) >= TIME_DEAD) {
		log_warning("session %u: %s has been silent for %d ms", r->id, r->address, TIME_DEAD);
		relay_fail(r, ETIMEDOUT, a);
		return;
	} else if (inbound_in_frame(r) && clock_since(now, r->came) >= TIME_DEAD) {
		/* It may take what we send all the same. */
		log_warning("session %u: %s left off in a frame for %d ms%s", r->id, r->address, TIME_DEAD,
			inbound_stream(r) == r->stream ? "" : ", by the second connection");
		relay_fail(r, ETIMEDOUT, a);
		return;
	}
	if (now < r->ping_at)
		return;
	r->ping_at = now + TIME_HEARTBEAT;
	buffer_trim();
	/* What is on its way tells the server that we live; in the middle of a record it looks for that
	 * itself. */
	if (r->queue.head || r->aside.head)
		return;
	struct frame f = {.kind = FRAME_PING, .seq = ++r->pings};
	if (outbound_aside(r, &f, sizeof(f)))
		relay_fail(r, ENOMEM, a);
	else
		outbound_flush(r, a);
}

/* Data has filled the queue, the program waits for a reply behind it and takes none: neither will ever
 * move again. */
static void check_stall(struct relay *r, uint64_t now, struct answers *a)
{
	if (!r->paused || r->read_at > r->paused_at || !relay_parked(r, PARK_REPLY)) {
		r->paused_at = now;
	} else if (clock_since(now, r->paused_at) >= 2 * TIME_PARK) {
		log_warning("session %u: the program takes none of %zu bytes from the server", r->id,
			r->held);
		relay_fail(r, EPROTO, a);
	}
}

static void check_lent(struct relay *r, uint64_t now, struct answers *a)
{
	if (r->error || !lend_is_overdue(r, now))
		return;
	log_warning("session %u: %s has not taken what it was lent, and answers what follows it", r->id,
		r->address);
	relay_fail(r, EPROTO, a);
}

void heartbeat_keep(struct relay *r, uint64_t now, struct answers *a)
{
	keep_alive(r, now, a);
	check_stall(r, now, a);
	check_lent(r, now, a);
}

int heartbeat_next(const struct relay *r, uint64_t now)
{
	uint64_t t = r->ping_at;
	if (r->alive + TIME_DEAD < t)
		t = r->alive + TIME_DEAD;
	if (inbound_in_frame(r) && r->came + TIME_DEAD < t)
		t = r->came + TIME_DEAD;
	if (r->parked && r->parked->deadline < t)
		t = r->parked->deadline;
	if (r->paused && t > now + READING_MS)
		t = now + READING_MS;
	if (r->broken && t > now + BROKEN_MS)
		t = now + BROKEN_MS;
	return t > now ? (int)(t - now) : 0;
}
