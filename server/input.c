/* SPDX-License-Identifier: Apache-2.0 */
/* The connection's bytes become records. Small frames are read many at once; a large bulk goes straight to its place.
 *
 * Thread rule: the holder of the baton only. */
#include <errno.h>
#include <string.h>

#include "server/state.h"
#include "wire/transport.h"

/* A program that says nothing for so long is dead: its mount says PING every TIME_HEARTBEAT. */
#define TIME_SILENCE (2 * TIME_DEAD)

static _Noreturn void ended(struct session *s, ssize_t r)
{
	if (!r)
		session_lost(s, "the program closed the connection");
	if (r == -ETIMEDOUT)
		session_lost(s, "nothing came for %d s", TIME_SILENCE / 1000);
	session_lost(s, "connection: %s", strerror(-(int)r));
}

static size_t receive(struct session *s, void *p, size_t n)
{
	ssize_t r;

	atomic_store_explicit(&s->receiving, true, memory_order_relaxed);
	r = stream_read_wait(s->stream, p, n, TIME_SILENCE);
	atomic_store_explicit(&s->receiving, false, memory_order_relaxed);
	if (r <= 0)
		ended(s, r);
	atomic_fetch_add_explicit(&s->report->bytes_in, r, memory_order_relaxed);
	return r;
}

void input_take(struct session *s, void *p, size_t n)
{
	uint8_t *to = p;

	while (n) {
		size_t have = s->input_len - s->input_pos;

		if (!have && n >= INPUT_BUFFER / 2) {
			have = receive(s, to, n);
		} else {
			if (!have) {
				s->input_len = s->input_pos = 0;
				have = s->input_len = receive(s, s->input, INPUT_BUFFER);
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

void input_skip(struct session *s, uint64_t n)
{
	uint8_t waste[4096];

	while (n) {
		size_t part = n < sizeof waste ? n : sizeof waste;

		input_take(s, waste, part);
		n -= part;
	}
}

bool input_buffered(const struct session *s)
{
	return s->input_pos < s->input_len || stream_pending(s->stream);
}

bool input_there(struct session *s)
{
	ssize_t r;

	if (s->input_pos < s->input_len)
		return true;
	s->input_pos = s->input_len = 0;
	r = stream_read(s->stream, s->input, INPUT_BUFFER);
	if (r == -EAGAIN)
		return false;
	if (r <= 0)
		ended(s, r);
	atomic_fetch_add_explicit(&s->report->bytes_in, r, memory_order_relaxed);
	s->input_len = r;
	return true;
}

bool input_record(struct session *s, struct frame *f, bool block)
{
	const char *why;

	for (;;) {
		if (!block && !input_there(s))
			return false;
		input_take(s, f, sizeof *f);
		if (frame_check(f, true, &why))
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: %s (%s)", why, frame_kind_name(f->kind));
		switch (f->kind) {
		case FRAME_PING:
			if (!s->greeted && transport_now_ms() - s->began > TIME_TLS)
				session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "no HELLO in %d s", TIME_TLS / 1000);
			send_simple(s, FRAME_PONG, f->seq);
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
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: %s in a session", frame_kind_name(f->kind));
		}
		if (f->seq != s->next_seq)
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: record %llu where %llu was due",
					(unsigned long long)f->seq, (unsigned long long)s->next_seq);
		s->next_seq++;
		if ((f->kind == FRAME_HELLO) == s->greeted)
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: %s", s->greeted ? "a second HELLO" : "a record before HELLO");
		if (s->greeted && f->kind != FRAME_THREAD_END && f->call >= s->calls)
			session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: call %u of %u", f->call, s->calls);
		atomic_fetch_add_explicit(&s->report->records, 1, memory_order_relaxed);
		return true;
	}
}
