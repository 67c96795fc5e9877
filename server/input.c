/* SPDX-License-Identifier: Apache-2.0 */
/* The connection's bytes become records. Small frames are read many at once; a large bulk goes straight to
 * its place.
 *
 * Thread rule: the holder of the baton only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/state.h"
#include "wire/hops.h"
#include "wire/transport.h"

/* The kind that stands in the buffer for a frame that was dealt with: none that a frame has. A program may
 * send it all the same; such a frame stands behind all of ours, because a look ahead ends with it. */
#define FRAME_SCANNED 0

static _Noreturn void ended(struct session *s, ssize_t r)
{
	if (!r)
		session_lost(s, "the program closed the connection");
	session_lost(s, "connection: %s", strerror(-(int)r));
}

/* The rest of a record comes when the program goes on; meanwhile the mount cannot ask whether we live. */
static size_t receive(struct session *s, void *p, size_t n)
{
	ssize_t r;

	atomic_store_explicit(&s->receiving, true, memory_order_relaxed);
	while ((r = stream_read_wait(s->stream, p, n, TIME_LISTEN)) == -ETIMEDOUT) {
		alive_check(s, false);
		if (s->body_left)
			send_pong(s, PONG_REST);
	}
	atomic_store_explicit(&s->receiving, false, memory_order_relaxed);
	if (r <= 0)
		ended(s, r);
	atomic_fetch_add_explicit(&s->report->bytes_in, r, memory_order_relaxed);
	return r;
}

/* input_lock is held, while we wait too: then there is nothing to look ahead at. */
static void take(struct session *s, uint8_t *to, size_t n)
{
	while (n) {
		size_t have = s->input_len - s->input_pos;

		if (!have && n >= INPUT_BUFFER / 2) {
			have = receive(s, to, n);
		} else {
			if (!have) {
				s->input_len = s->input_pos = 0;
				have = s->input_len = receive(s, s->input, s->input_cap);
			}
			if (have > n)
				have = n;
			memcpy(to, s->input + s->input_pos, have);
			s->input_pos += have;
		}
		to += have;
		n -= have;
	}
}

void input_take(struct session *s, void *p, size_t n)
{
	pthread_mutex_lock(&s->input_lock);
	take(s, p, n);
	atomic_store_explicit(&s->body_left, s->body_left - n, memory_order_relaxed);
	pthread_mutex_unlock(&s->input_lock);
}

static void take_header(struct session *s, struct frame *f)
{
	pthread_mutex_lock(&s->input_lock);
	take(s, (uint8_t *)f, sizeof *f);
	s->body_left = f->head_len + f->bulk_len;
	pthread_mutex_unlock(&s->input_lock);
}

void input_skip(struct session *s, uint64_t n)
{
	uint8_t waste[4096];

	while (n) {
		size_t part = n < sizeof waste ? n : sizeof waste;

		input_take(s, waste, part);
		n -= part;
	}
}

bool input_buffered(struct session *s)
{
	bool there;

	pthread_mutex_lock(&s->input_lock);
	there = s->input_pos < s->input_len || stream_pending(s->stream);
	pthread_mutex_unlock(&s->input_lock);
	return there;
}

/* Reads what is there into the room behind input_len. */
static bool fill(struct session *s)
{
	ssize_t r = stream_read(s->stream, s->input + s->input_len, s->input_cap - s->input_len);

	if (r == -EAGAIN)
		return false;
	if (r <= 0)
		ended(s, r);
	atomic_fetch_add_explicit(&s->report->bytes_in, r, memory_order_relaxed);
	s->input_len += r;
	return true;
}

bool input_there(struct session *s)
{
	bool there;

	pthread_mutex_lock(&s->input_lock);
	if (s->input_pos == s->input_len)
		s->input_pos = s->input_len = 0;
	there = s->input_pos < s->input_len || fill(s);
	pthread_mutex_unlock(&s->input_lock);
	return there;
}

/* Room for more bytes to look at; false when LIMIT_QUEUE wait already. */
static bool make_room(struct session *s)
{
	uint8_t *larger;

	if (s->input_pos) {
		memmove(s->input, s->input + s->input_pos, s->input_len - s->input_pos);
		s->input_len -= s->input_pos;
		s->input_pos = 0;
	}
	if (s->input_len < s->input_cap)
		return true;
	larger = s->input_cap < LIMIT_QUEUE ? realloc(s->input, 2 * s->input_cap) : NULL;
	if (!larger)
		return false;
	s->input = larger;
	s->input_cap *= 2;
	return true;
}

/* A record that may go ahead while an upcall is under way, and is whole in the buffer: it is run now. */
static bool scan_record(struct session *s, const struct frame *f, uint64_t at)
{
	return (f->kind == FRAME_WAIT || f->kind == FRAME_POST) && f->flags & FRAME_ASIDE &&
	       atomic_load(&s->upcalls_waiting) && f->call < s->calls &&
	       f->head_len + f->bulk_len <= s->input_len - at &&
	       aside_run(s, f, s->input + at);
}

/* A POST may be stuck in the driver behind a host function whose end the program has told, or for which it
 * asks something, but in bytes that nobody reads before the POST is through. So the reader looks through the
 * frames that wait for those that bypass the ordered stream, deals with them and leaves a mark. */
void input_scan(struct session *s)
{
	struct frame f;
	uint64_t at, pings = 0, ping = 0;
	unsigned marks;

	if (pthread_mutex_trylock(&s->input_lock))
		return;
	while (make_room(s) && fill(s))
		;
	marks = s->scanned;
	/* What a body is said to have may be any number while its holder still finds that out. */
	at = s->body_left < s->input_len - s->input_pos ? s->input_pos + s->body_left : s->input_len;
	for (; at + sizeof f <= s->input_len; at += sizeof f + f.head_len + f.bulk_len) {
		memcpy(&f, s->input + at, sizeof f);
		/* The sizes of ours were checked before they became ours. */
		if (f.kind == FRAME_SCANNED && marks) {
			marks--;
			continue;
		}
		/* A bad frame is for the baton's holder to find. */
		if (frame_check(&f, true, NULL))
			break;
		if (f.kind == FRAME_UPCALL_DONE)
			upcall_done(s, f.seq);
		else if (f.kind == FRAME_PING)
			pings++, ping = f.seq;
		else if (!scan_record(s, &f, at + sizeof f))
			continue;
		f.kind = FRAME_SCANNED;
		memcpy(s->input + at, &f, sizeof f);
		s->scanned++;
	}
	pthread_mutex_unlock(&s->input_lock);
	if (pings)
		send_pong(s, ping);
}

/* True for a frame that input_scan has dealt with. */
static bool was_scanned(struct session *s, const struct frame *f)
{
	bool was;

	if (f->kind != FRAME_SCANNED)
		return false;
	pthread_mutex_lock(&s->input_lock);
	/* Without a mark that we left, it is a bad frame of the program's. */
	was = s->scanned > 0;
	s->scanned -= was;
	pthread_mutex_unlock(&s->input_lock);
	return was;
}

/* Records come in the order of their numbers, those that were taken ahead too. */
static void record_counts(struct session *s, const struct frame *f)
{
	if (f->seq != s->next_seq)
		session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: record %llu where %llu was due",
				(unsigned long long)f->seq, (unsigned long long)s->next_seq);
	hop(HOP_SERVER_TAKEN, f->seq);
	s->next_seq++;
	atomic_fetch_add_explicit(&s->report->records, 1, memory_order_relaxed);
}

bool input_record(struct session *s, struct frame *f, bool block)
{
	const char *why;

	for (;;) {
		if (!block && !input_there(s))
			return false;
		take_header(s, f);
		if (was_scanned(s, f)) {
			if (f->flags & FRAME_ASIDE)
				record_counts(s, f);
			input_skip(s, f->head_len + f->bulk_len);
			continue;
		}
		if (frame_check(f, true, &why))
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: %s (%s)", why,
					frame_kind_name(f->kind));
		switch (f->kind) {
		case FRAME_PING:
			if (!s->greeted && transport_now_ms() - s->began > TIME_TLS)
				session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "no HELLO in %d s",
						TIME_TLS / 1000);
			send_pong(s, f->seq);
			continue;
		case FRAME_UPCALL_DONE:
			upcall_done(s, f->seq);
			continue;
		case FRAME_HELLO:
		case FRAME_POST:
		case FRAME_WAIT:
		case FRAME_THREAD_END:
			break;
		default:
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: %s in a session",
					frame_kind_name(f->kind));
		}
		record_counts(s, f);
		if ((f->kind == FRAME_HELLO) == s->greeted)
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: %s", s->greeted ?
					"a second HELLO" : "a record before HELLO");
		if (s->greeted && f->kind != FRAME_THREAD_END && f->call >= s->calls)
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: call %u of %u",
					f->call, s->calls);
		return true;
	}
}
