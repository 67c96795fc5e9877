/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the frames of the ordered stream by their headers as bytes pass by: that they are the program's to
 * send, where a record ends, and which records the server has to answer.
 *
 * Thread rule: see relay_state.h. */
#include "scudafs/relay_state.h"
#include <stdlib.h>
#include <string.h>
#include "wire/hops.h"

static bool waiting_add(struct relay *r, uint64_t seq)
{
	if (r->waiting_count == r->waiting_cap) {
		unsigned cap = r->waiting_cap ? 2 * r->waiting_cap : 16;
		uint64_t *p = cap > 2 * LIMIT_THREADS ? NULL : realloc(r->waiting, cap * sizeof(*p));
		if (!p)
			return false;
		r->waiting = p;
		r->waiting_cap = cap;
	}
	r->waiting[r->waiting_count++] = seq;
	return true;
}

bool outbound_awaited(const struct relay *r, uint64_t seq)
{
	for (unsigned i = 0; i < r->waiting_count; i++)
		if (r->waiting[i] == seq)
			return true;
	return false;
}

bool outbound_answered(struct relay *r, uint64_t seq)
{
	for (unsigned i = 0; i < r->waiting_count; i++)
		if (r->waiting[i] == seq) {
			r->waiting[i] = r->waiting[--r->waiting_count];
			lend_answered(r, seq);
			return true;
		}
	return false;
}

static const char *note_frame(struct relay *r, const struct frame *f)
{
	const char *why = NULL;
	if (frame_check(f, true, &why))
		return why;
	if (f->flags & FRAME_STRIPED || frame_is_lent(f))
		return "a flag that is not the program's";
	hop(HOP_MOUNT_TAKEN, f->seq);
	switch (f->kind) {
	case FRAME_HELLO:
	case FRAME_WAIT:
		if (!waiting_add(r, f->seq))
			return "too many records wait for an answer";
		/* What may go ahead of others says nothing of what is taken. */
		if (!(f->flags & FRAME_ASIDE))
			lend_asked(r, f->seq);
		/* A marker is no round trip: the program looks for its answer two thousand posts later. */
		r->asks |= !(f->flags & FRAME_PACE);
		break;
	case FRAME_POST:
		atomic_fetch_add_explicit(&counters.posts, 1, memory_order_relaxed);
		break;
	case FRAME_THREAD_END:
		break;
	default:
		return "a kind that does not belong into the ordered stream";
	}
	atomic_fetch_add_explicit(&counters.frames_out, 1, memory_order_relaxed);
	return NULL;
}

const char *outbound_follow(
	struct relay *r, const uint8_t *p, uint8_t *own, size_t n, size_t *boundary)
{
	struct scan *s = &r->out;
	*boundary = scan_at_boundary(s) ? 0 : n + 1;
	for (size_t at = 0; at < n;) {
		size_t part = n - at;
		if (s->left) {
			/* A striped or lent bulk comes as stretches alone. */
			uint64_t apart = relay_apart(r);
			if (s->left <= apart)
				return "bytes of a bulk that comes another way";
			part = part < s->left - apart ? part : s->left - apart;
			s->left -= part;
		} else {
			size_t need = sizeof(s->header) - s->have;
			part = part < need ? part : need;
			memcpy((uint8_t *)&s->header + s->have, p + at, part);
			s->have += part;
			if (part == need) {
				const char *why = note_frame(r, &s->header);
				if (why)
					return why;
				if (own && part == sizeof(s->header))
					own[at + offsetof(struct frame, flags)] |=
						lend_takes(r, &s->header) ? FRAME_LENT :
						second_takes(r, &s->header) ? FRAME_STRIPED : 0;
				s->have = 0;
				s->left = s->header.head_len + s->header.bulk_len;
			}
		}
		at += part;
		if (*boundary > n && scan_at_boundary(s))
			*boundary = at;
	}
	return NULL;
}
