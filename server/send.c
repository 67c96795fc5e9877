/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to the program. write_lock is held for one whole frame, never longer, so that the pieces of a
 * large copy let replies through.
 *
 * Thread rule: any thread. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "server/mirror.h"
#include "server/state.h"
#include "wire/hops.h"
#include "wire/transport.h"

/* The mount holds back what its program does not take, for as long as that is stopped. */
void send_bytes(struct session *s, struct stream *to, const struct iovec *v, int n)
{
	struct iovec rest[STREAM_PIECES], *at = rest;
	size_t total = 0;
	bool held_up = false;
	int r;

	for (int i = 0; i < n; i++) {
		rest[i] = v[i];
		total += v[i].iov_len;
	}
	while ((r = stream_write_rest(to, &at, &n, TIME_LISTEN)) == -ETIMEDOUT) {
		if (!held_up)
			atomic_fetch_add(&s->held_up, 1);
		held_up = true;
		alive_check(s, false);
	}
	if (held_up)
		atomic_fetch_sub(&s->held_up, 1);
	if (r)
		session_lost(s, "sending%s: %s", to == s->stream ? "" : " by the second connection",
			strerror(-r));
	atomic_fetch_add_explicit(&s->report->bytes_out, total, memory_order_relaxed);
}

void send_frame(struct session *s, const struct iovec *v, int n)
{
	pthread_mutex_lock(&s->write_lock);
	send_bytes(s, s->stream, v, n);
	pthread_mutex_unlock(&s->write_lock);
}

static void pong(struct session *s, struct frame f)
{
	struct iovec v = {&f, sizeof f};

	f.kind = FRAME_PONG;
	if (pthread_mutex_trylock(&s->write_lock))
		return;
	if (!transport_wait(stream_fd(s->stream), POLLOUT, 0))
		send_bytes(s, s->stream, &v, 1);
	pthread_mutex_unlock(&s->write_lock);
}

void send_pong(struct session *s, uint64_t seq)
{
	pong(s, (struct frame){.seq = seq});
}

void send_pong_rest(struct session *s, unsigned source)
{
	pong(s, (struct frame){.seq = PONG_REST, .ctx = source});
	atomic_store(&s->spoke, true);
}

void send_data(struct session *s, uint64_t transfer, uint64_t offset, const void *p, uint64_t n)
{
	const uint8_t *at = p;

	while (n) {
		size_t part = n < LIMIT_REPLY ? n : LIMIT_REPLY;
		struct frame f = {.kind = FRAME_DATA, .bulk_len = part, .seq = offset, .ctx = transfer};
		struct iovec v[STREAM_PIECES] = {{&f, sizeof f}, {(void *)at, part}};

		if (stripes_give(s, at, part)) {
			f.flags = FRAME_STRIPED;
			send_frame(s, v, 1 + stripes_pick(v + 1, 0, (uint8_t *)at, part));
			stripes_await();
		} else {
			send_frame(s, v, 2);
		}
		at += part;
		offset += part;
		n -= part;
	}
}

bool exec_send_data(struct exec *x, uint64_t transfer, uint64_t offset, const void *p, size_t n)
{
	send_data(x->session, transfer, offset, p, n);
	return true;
}

void send_reply(struct exec *x, CUresult r)
{
	struct session *s = x->session;
	uint64_t failed;
	uint8_t code[5] = {0xce, (unsigned)r >> 24, (unsigned)r >> 16, (unsigned)r >> 8, (unsigned)r};
	struct frame f = {.kind = FRAME_REPLY, .seq = x->frame.seq};
	struct iovec v[5] = {{&f, sizeof f}, {code, sizeof code}, {x->out.buf, x->out.len}};
	int n = 3;

	if (x->frame.flags & FRAME_PACE) {
		/* Nobody looks at this answer but at its coming: what there is to tell waits for one that is
		 * read. */
		f.head_len = sizeof code;
		send_frame(s, v, 2);
		return;
	}
	session_deliveries(x);
	output_drain(s, true);
	f.call = (uint16_t)atomic_load(&s->outputs);
	failed = atomic_exchange(&s->failed, 0);
	f.thread = failed >> 48;
	f.ctx = failed << 32 | (uint32_t)atomic_load(&s->delivered);
	f.head_len = sizeof code + x->out.len;
	if (x->gathered) {
		f.deliveries = x->gathered->pairs;
		f.flags = x->gathered->data ? FRAME_MORE : 0;
		f.bulk_len = x->gathered->len;
		v[n++] = (struct iovec){x->gathered->bytes, x->gathered->len};
	}
	if (__builtin_expect(mirror_count != 0, 0) && x->effects & EFFECT_SYNCS && mirror_has_news())
		f.flags |= FRAME_CHANGED;
	f.bulk_len += x->bulk_len;
	if (x->bulk_len)
		v[n++] = (struct iovec){x->bulk, x->bulk_len};
	send_frame(s, v, n);
	hop(HOP_SERVER_SENT, x->frame.seq);
	if (x->gathered)
		later_sent(s, x->gathered, false);
	x->gathered = NULL;
}
