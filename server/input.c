/* SPDX-License-Identifier: Apache-2.0 */
/* The connection's bytes become records. Small frames are read many at once; a large bulk goes straight to
 * its place. Of a striped bulk half comes by the session's second connection (second.c), which is read by the
 * same rules: what is done with bytes of the one ahead of their turn is done with those of the other. So
 * neither ever holds up what one connection for all would not have held up. Lent bulks: lent.c.
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

static _Noreturn void ended(struct session *s, const struct source *in, ssize_t r)
{
	const char *which = in == &s->source[SECOND] ? "second connection" : "connection";

	if (!r)
		session_lost(s, "the program closed the %s", which);
	session_lost(s, "%s: %s", which, strerror(-(int)r));
}

bool input_open(struct session *s, unsigned source, struct stream *stream)
{
	struct source *in = &s->source[source];

	in->bytes = malloc(INPUT_BUFFER);
	in->cap = INPUT_BUFFER;
	atomic_store(&in->stream, in->bytes ? stream : NULL);
	return in->bytes;
}

uint64_t input_left(const struct session *s)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SOURCES; i++)
		n += atomic_load_explicit(&s->source[i].left, memory_order_relaxed);
	return n;
}

/* The rest of a record comes when the program goes on; meanwhile the mount cannot ask whether we live. */
static size_t receive(struct session *s, struct source *in, void *p, size_t n)
{
	struct stream *stream = in->stream;
	ssize_t r;

	atomic_store_explicit(&s->receiving, true, memory_order_relaxed);
	while ((r = stream_read_wait(stream, p, n, TIME_LISTEN)) == -ETIMEDOUT) {
		alive_check(s, false);
		if (input_left(s))
			send_pong_rest(s, in - s->source);
	}
	atomic_store_explicit(&s->receiving, false, memory_order_relaxed);
	if (r <= 0)
		ended(s, in, r);
	atomic_fetch_add_explicit(&s->report->bytes_in, r, memory_order_relaxed);
	return r;
}

/* input_lock is held, while we wait too: then there is nothing to look ahead at. */
static void take(struct session *s, struct source *in, uint8_t *to, size_t n)
{
	while (n) {
		size_t have = in->len - in->pos;

		if (!have && n >= INPUT_BUFFER / 2) {
			have = receive(s, in, to, n);
		} else {
			if (!have) {
				in->len = in->pos = 0;
				have = in->len = receive(s, in, in->bytes, in->cap);
			}
			if (have > n)
				have = n;
			memcpy(to, in->bytes + in->pos, have);
			in->pos += have;
		}
		to += have;
		n -= have;
	}
}

static void take_held(struct session *s, struct source *in, void *p, size_t n)
{
	take(s, in, p, n);
	atomic_fetch_sub_explicit(&in->left, n, memory_order_relaxed);
}

static void take_body(struct session *s, struct source *in, void *p, size_t n)
{
	pthread_mutex_lock(&s->input_lock);
	take_held(s, in, p, n);
	pthread_mutex_unlock(&s->input_lock);
}

void input_take_held(struct session *s, void *p, size_t n)
{
	take_held(s, &s->source[FIRST], p, n);
}

void input_take(struct session *s, void *p, size_t n)
{
	take_body(s, &s->source[FIRST], p, n);
}

void input_bulk(struct session *s, const struct frame *f, uint64_t at, void *p, size_t n)
{
	uint8_t *to = p;

	if (frame_is_lent(f)) {
		lent_bulk(s, f, at, p, n);
		return;
	}
	if (!(f->flags & FRAME_STRIPED)) {
		input_take(s, p, n);
		return;
	}
	while (n) {
		size_t part = STRIPE - at % STRIPE;

		part = part < n ? part : n;
		take_body(s, &s->source[at / STRIPE % SOURCES], to, part);
		to += part;
		at += part;
		n -= part;
	}
}

static void take_header(struct session *s, struct frame *f)
{
	pthread_mutex_lock(&s->input_lock);
	take(s, &s->source[FIRST], (uint8_t *)f, sizeof *f);
	s->source[FIRST].left = frame_inline(f);
	s->source[SECOND].left = frame_apart(f);
	s->lent.bulk = f->bulk_len;
	s->lent.left = frame_places(f);
	pthread_mutex_unlock(&s->input_lock);
}

void input_skip(struct session *s, const struct frame *f, uint64_t at, uint64_t n)
{
	uint8_t waste[4096];

	if (frame_is_lent(f)) {
		lent_bulk(s, f, at, NULL, n);
		return;
	}
	for (size_t part; n; n -= part, at += part) {
		part = n < sizeof waste ? n : sizeof waste;
		input_bulk(s, f, at, waste, part);
	}
}

bool input_buffered(struct session *s)
{
	const struct source *in = &s->source[FIRST];
	bool there;

	pthread_mutex_lock(&s->input_lock);
	there = in->pos < in->len || stream_pending(s->stream);
	pthread_mutex_unlock(&s->input_lock);
	return there;
}

/* Reads what is there into the room behind in->len. The end of the second connection counts when bytes of it
 * are needed. */
static bool fill(struct session *s, struct source *in)
{
	ssize_t r = stream_read(in->stream, in->bytes + in->len, in->cap - in->len);

	if (r == -EAGAIN || (r <= 0 && in == &s->source[SECOND]))
		return false;
	if (r <= 0)
		ended(s, in, r);
	atomic_fetch_add_explicit(&s->report->bytes_in, r, memory_order_relaxed);
	in->len += r;
	return true;
}

bool input_there(struct session *s)
{
	struct source *in = &s->source[FIRST];
	bool there;

	pthread_mutex_lock(&s->input_lock);
	if (in->pos == in->len)
		in->pos = in->len = 0;
	there = in->pos < in->len || fill(s, in);
	pthread_mutex_unlock(&s->input_lock);
	return there;
}

/* Room for more bytes to look at; false when LIMIT_QUEUE wait already. */
static bool make_room(struct source *in)
{
	uint8_t *larger;

	if (in->pos) {
		memmove(in->bytes, in->bytes + in->pos, in->len - in->pos);
		in->len -= in->pos;
		in->pos = 0;
	}
	if (in->len < in->cap)
		return true;
	larger = in->cap < LIMIT_QUEUE ? realloc(in->bytes, 2 * in->cap) : NULL;
	if (!larger)
		return false;
	in->bytes = larger;
	in->cap *= 2;
	return true;
}

/* A record that may go ahead while an upcall is under way, and is whole in the buffer: it is run now. Where
 * one is left, *ahead is false, and those behind it are left, too: they would wait for it
 * (mirror_exchange.c). */
static bool scan_record(struct session *s, const struct frame *f, uint64_t at, bool *ahead)
{
	const struct source *in = &s->source[FIRST];

	if ((f->kind != FRAME_WAIT && f->kind != FRAME_POST) || !(f->flags & FRAME_ASIDE))
		return false;
	*ahead = *ahead && f->call < s->calls && f->head_len + f->bulk_len <= in->len - at &&
		 aside_run(s, f, in->bytes + at);
	return *ahead;
}

/* Of the current record the places of lent bytes that have come, behind what is left of its head. What its
 * header says may be any number while its holder still finds that out. */
static bool scan_places(struct session *s, uint64_t *seen)
{
	const struct source *in = &s->source[FIRST];
	uint64_t places = s->lent.left * sizeof(uint64_t), head = in->left - places;

	if (!places || in->left < places || head > in->len - in->pos)
		return !places;
	return lent_ahead(s, s->lent.bulk, s->lent.left, in->bytes + in->pos + head, in->bytes + in->len,
		seen);
}

/* A POST may be stuck in the driver behind a host function whose end the program has told, or for which it
 * asks something, but in bytes that nobody reads before the POST is through. So the reader looks through the
 * frames that wait for those that bypass the ordered stream, deals with them and leaves a mark. The mount
 * gives such a frame only behind all bytes ahead of it, so those of the second connection are taken in, too.
 * */
void input_scan(struct session *s)
{
	struct source *in = &s->source[FIRST];
	struct frame f;
	uint64_t at, pings = 0, ping = 0, seen = 0;
	unsigned marks;
	bool ahead, lends;

	if (pthread_mutex_trylock(&s->input_lock))
		return;
	for (unsigned i = 0; i < SOURCES; i++)
		while (s->source[i].stream && make_room(&s->source[i]) && fill(s, &s->source[i]))
			;
	marks = s->scanned;
	ahead = atomic_load(&s->upcalls_waiting);
	lends = scan_places(s, &seen);
	/* What a body is said to have may be any number while its holder still finds that out. */
	at = in->left < in->len - in->pos ? in->pos + in->left : in->len;
	for (; at + sizeof f <= in->len; at += sizeof f + frame_inline(&f)) {
		memcpy(&f, in->bytes + at, sizeof f);
		/* The sizes of ours were checked before they became ours. */
		if (f.kind == FRAME_SCANNED && marks) {
			marks--;
			continue;
		}
		/* A bad frame is for the baton's holder to find. */
		if (frame_check(&f, true, NULL))
			break;
		if (frame_is_lent(&f))
			lends = lends && lent_ahead(s, f.bulk_len, frame_places(&f),
				in->bytes + at + sizeof f + f.head_len, in->bytes + in->len, &seen);
		if (f.kind == FRAME_UPCALL_DONE)
			upcall_done(s, f.seq);
		else if (f.kind == FRAME_PING)
			pings++, ping = f.seq;
		else if (!scan_record(s, &f, at + sizeof f, &ahead))
			continue;
		f.kind = FRAME_SCANNED;
		memcpy(in->bytes + at, &f, sizeof f);
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
			input_skip(s, f, 0, f->head_len + f->bulk_len);
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
		case FRAME_SECOND:
			if (!s->greeted)
				session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED,
						"bad frame: SECOND before HELLO");
			second_said(s, f->seq);
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
		if (f->flags & FRAME_STRIPED && !s->source[SECOND].stream)
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED,
					"bad frame: stripes of no connection");
		if (frame_is_lent(f) && !s->lent.memory)
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED,
					"bad frame: bytes of no memory that is lent");
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
