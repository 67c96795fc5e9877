/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from the server become frames. What is small is received many frames at a time and answered from
 * there (inbound.c); a large frame is received into a buffer of its own, or straight into the memory that the
 * program shares, when it awaits it there (direct.c).
 *
 * Thread rule: see relay_state.h. The session's thread alone. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include "scudafs/text.h"
#include "wire/msg.h"

#define READS_A_TURN 32             /* then the thread looks at its times again */
#define PEEK 256                    /* bytes read to learn what comes after a large frame */

static int on_bye(struct relay *r, const uint8_t *head, size_t n)
{
	char text[256];
	struct msg m;
	msg_init(&m, (void *)head, n);
	get_array(&m, 2);
	int64_t code = get_i64(&m);
	get_text(&m, text, sizeof(text));
	if (!get_end(&m))
		snprintf(text, sizeof(text), "it gave no reason");
	text_clean(text);
	log_warning("session %u: %s ended the session: %s (%lld)", r->id, r->address, text, (long long)code);
	return ESHUTDOWN;
}

/* Bytes given to a connection's socket that the peer's host has not acknowledged. */
static uint64_t unacknowledged(struct stream *s)
{
	int left = 0;

	return s && !ioctl(stream_fd(s), SIOCOUTQ, &left) ? (uint64_t)left : 0;
}

/* With the lock: the server waits for bytes of one connection. Has it got, since it said so last, none of
 * those that are here or on their way, or, when none are, ought it to have them? Somebody on the way (ssh, a
 * proxy) may have taken them all. It ought to when all of the record has been given, and when bytes of the
 * other connection are pending: those that it waits for were given ahead of them. (The program may wait until
 * those have gone, and then the record is never whole.) */
static bool is_stuck(struct relay *r, bool by_second)
{
	struct second *t = &r->second;
	uint64_t first = unacknowledged(r->stream), second = unacknowledged(t->stream), was = r->arrived;
	bool first_pending = r->queue.head || first, second_pending = t->queue.head || second;

	r->arrived = by_second ? t->sent - second : r->written - first;
	if (by_second ? second_pending : first_pending)
		return r->arrived == was;
	return scan_at_boundary(&r->out) || (r->arrived == was && (first_pending || second_pending));
}

/* The server waits for the rest of a record. When nothing of it comes any more, the stream was damaged, or
 * something on the way takes what it does not give, and nothing would ever end that. */
static int on_rest(struct relay *r, bool by_second)
{
	uint64_t now = clock_ms();

	pthread_mutex_lock(&r->lock);
	bool stuck = is_stuck(r, by_second);
	pthread_mutex_unlock(&r->lock);
	if (!stuck)
		r->misfit = 0;
	else if (!r->misfit)
		r->misfit = now;
	else if (clock_since(now, r->misfit) >= TIME_DEAD) {
		log_warning("session %u: %s waits for the rest of a record that it has been given%s", r->id,
			r->address, by_second ? " by the second connection" : "");
		return EPROTO;
	}
	return 0;
}

static int on_frame(struct relay *r, const struct frame *f, const uint8_t *p, size_t n, struct buffer *b)
{
	r->whole = true;
	if (f->kind == FRAME_PONG && f->seq == PONG_REST)
		return on_rest(r, f->ctx == 1);
	inbound_whole(r);
	switch (f->kind) {
	case FRAME_REPLY:
		return inbound_reply(r, f, p, n, b);
	case FRAME_DATA:
		return inbound_data(r, f, p, n, b);
	case FRAME_UPCALL:
	case FRAME_OUTPUT:
		return inbound_upcall(r, f, p, n, b);
	case FRAME_PONG:
		return 0;
	case FRAME_SECOND:
		return second_answered(r, f);
	case FRAME_BYE:
		return on_bye(r, p + sizeof(*f), f->head_len);
	}
	log_warning("session %u: %s sent a %s frame", r->id, r->address, frame_kind_name(f->kind));
	return EPROTO;
}

static int check(struct relay *r, const struct frame *f)
{
	const char *why = NULL;
	int bad = frame_check(f, false, &why);
	if (!bad && f->flags & FRAME_STRIPED && f->kind == FRAME_DATA && !r->second.stream)
		bad = -EPROTO, why = "stripes of no connection";
	if (!bad && f->head_len + f->bulk_len <= BUFFER_LARGE - sizeof(*f))
		return 0;
	log_warning("session %u: %s sent a bad frame: %s", r->id, r->address, why ? why : "too long");
	return EPROTO;
}

/* Hands on the complete frames of the receive buffer; the start of one that does not fit there moves to where
 * it goes, or into a buffer of its own. */
static int split(struct relay *r)
{
	size_t at = 0, used;
	/* What was sent may have been no bytes of the program's, so its answers are none. */
	int e = relay_memory(r);
	while (!e && r->receive_len - at >= sizeof(struct frame)) {
		struct frame f;
		memcpy(&f, r->receive + at, sizeof(f));
		e = check(r, &f);
		if (!e && f.kind == FRAME_DATA && f.bulk_len >= LENT_PIECE)
			lend_heard(r);
		if (!e && frame_is_lent(&f)) {
			uint64_t place;
			if (r->receive_len - at < sizeof(f) + sizeof(place))
				break;
			r->bulky = false;
			memcpy(&place, r->receive + at + sizeof(f), sizeof(place));
			at += sizeof(f) + sizeof(place);
			e = direct_lent_data(r, &f, place);
			if (r->direct.on)
				break;
			continue;
		}
		if (!e && r->channel && f.kind == FRAME_DATA)
			e = direct_data(r, &f);
		size_t n = sizeof(f) + f.head_len + (size_t)f.bulk_len, have = r->receive_len - at;
		if (e)
			break;
		r->bulky = n > have && n > RECEIVE_BYTES / 4;
		if (r->direct.on) {
			at += sizeof(f);
			e = direct_feed(r, r->receive + at, r->receive_len - at, &used);
			at += used;
			if (r->direct.on)
				break;
		} else if (have >= n) {
			e = on_frame(r, &f, r->receive + at, n, NULL);
			at += n;
		} else if (r->bulky) {
			if (r->channel && f.kind == FRAME_REPLY)
				direct_reply(r, &f, r->receive + at, have);
			at += have;
			if (r->direct.on)
				break;
			r->large = buffer_create(n);
			if (!r->large)
				return ENOMEM;
			memcpy(r->large->data, r->receive + at - have, have);
			r->large->len = have;
			r->large_size = n;
		} else {
			break;
		}
	}
	r->receive_len -= at;
	if (at && r->receive_len)
		memmove(r->receive, r->receive + at, r->receive_len);
	return e;
}

/* There is room for what was received ahead of it, or the other thread's stripes are here. */
static int resume(struct relay *r)
{
	size_t used = 0;
	int e;
	if (r->direct.from)
		e = direct_lent(r);
	else if (r->direct.left)
		e = direct_feed(r, r->receive, r->receive_len, &used);
	else
		e = direct_end(r);
	r->receive_len -= used;
	memmove(r->receive, r->receive + used, r->receive_len);
	return e || r->direct.on ? e : split(r);
}

static int finish_large(struct relay *r)
{
	struct buffer *b = r->large;
	struct frame f;
	memcpy(&f, b->data, sizeof(f));
	r->large = NULL;
	r->bulky = true;
	int e = on_frame(r, &f, b->data, b->len, b);
	buffer_unref(b);
	return e;
}

/* Where to receive, and how many bytes; 0: not now. */
static uint8_t *receive_place(struct relay *r, size_t *room)
{
	struct buffer *b = r->large;
	if (r->direct.on) {
		uint8_t *to = direct_place(r, room);
		/* What was received ahead of it comes first. */
		*room = r->receive_len || r->direct.from ? 0 : stripes_room(r, *room);
		return to;
	}
	*room = b ? stripes_room(r, r->large_size - b->len) : RECEIVE_BYTES - r->receive_len;
	/* After a large frame comes another one: then all but its header need not be copied. */
	if (!b && r->bulky && !r->receive_len)
		*room = PEEK;
	return b ? b->data + b->len : r->receive + r->receive_len;
}

bool inbound_receive(struct relay *r)
{
	size_t total = 0;
	bool resumed = false, within = inbound_in_frame(r);
	int e = 0;
	for (int i = 0; i < READS_A_TURN && !e; i++) {
		if (inbound_pending(r)) {
			e = resume(r);
			resumed = true;
			continue;
		}
		struct buffer *b = r->large;
		bool direct = r->direct.on;
		size_t room;
		uint8_t *to = receive_place(r, &room);
		if (!room)
			break;
		ssize_t n = stream_read(inbound_stream(r), to, room);
		if (n == -EAGAIN)
			break;
		if (n <= 0) {
			if (n)
				log_debug("session %u: read: %s", r->id, strerror((int)-n));
			e = n == -ETIMEDOUT || n == -EPROTO ? (int)-n : ECONNRESET;
			break;
		}
		total += (size_t)n;
		if (direct) {
			e = direct_took(r, (size_t)n);
			continue;
		}
		if (b)
			b->len += (size_t)n;
		else
			r->receive_len += (size_t)n;
		if (!b)
			e = split(r);
		else if (b->len == r->large_size)
			e = finish_large(r);
		if (!b && (size_t)n < room)
			break;
	}
	atomic_fetch_add_explicit(&r->bytes_in, total, memory_order_relaxed);
	atomic_fetch_add_explicit(&counters.bytes_in, total, memory_order_relaxed);
	struct answers a;
	answers_init(&a);
	pthread_mutex_lock(&r->lock);
	if (total)
		heartbeat_heard(r, total, within && inbound_in_frame(r) && !r->whole);
	r->whole = false;
	if (e) {
		if (e == ECONNRESET && !r->closing && !r->error)
			log_warning("session %u: %s closed the connection", r->id, r->address);
		relay_fail(r, e, &a);
	}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	return total || e || resumed;
}
