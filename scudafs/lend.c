/* SPDX-License-Identifier: Apache-2.0 */
/* Memory lent to the server (wire/frame.h): where the connection is a unix socket, the bytes of large copies
 * to the device need not pass through the kernel. The server gets the session's arena, for reading, by the
 * second connection, and of a record only the places of its bytes. A stretch counts as sent, so that the
 * program may use it for other things, when the server says that it has taken it.
 *
 * The server is asked at the first large copy. Where it, or something on the way, takes no descriptor, the
 * second connection is there for stripes, as over a network (second.c).
 *
 * Thread rule: see relay_state.h. second.c's thread is the one that meets the server, and reads what it
 * says. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "scudafs/spin.h"
#include "wire/lending.h"
#include "wire/ring.h"

#define LEAST LENT_PIECE            /* bytes of a bulk; those of a smaller one may be in the ring */
#define COUNTS 64                   /* read at a time */
_Static_assert(LEAST > RING_RECORD, "least");

bool lend_is_idle(const struct relay *r) { return !r->lend.left && !r->lend.stretches.head; }

bool lend_may(const struct relay *r)
{
	int domain = 0;
	socklen_t n = sizeof(domain);
	return r->second.wish == CONNECTIONS_AUTO && stream_is_clear(r->stream) &&
	       !(r->flags & PREAMBLE_PACK_ALWAYS) &&
	       !getsockopt(stream_fd(r->stream), SOL_SOCKET, SO_DOMAIN, &domain, &n) && domain == AF_UNIX;
}

bool lend_takes(struct relay *r, const struct frame *f)
{
	struct lend *l = &r->lend;
	if (!l->wanted || f->flags & FRAME_ASIDE || f->bulk_len < LEAST)
		return false;
	if (!l->up) {
		second_ask(r, true);
		return false;
	}
	l->left = l->bulk = f->bulk_len;
	return true;
}

void lend_heard(struct relay *r)
{
	struct lend *l = &r->lend;
	if (l->heard)
		return;
	l->heard = true;
	pthread_mutex_lock(&r->lock);
	if (l->wanted)
		second_ask(r, true);
	pthread_mutex_unlock(&r->lock);
}

const char *lend_push(struct relay *r, struct buffer *stretch)
{
	struct lend *l = &r->lend;
	uint64_t at = arena_place(channel_arena(r->channel), stretch->data), n = stretch->len;
	uint64_t from = l->bulk - l->left;
	if (from % LENT_PIECE || (n % LENT_PIECE && n != l->left))
		return "a stretch that is not whole pieces of a bulk";
	for (uint64_t done = 0; done < n;) {
		uint64_t most = BUFFER_LARGE / sizeof(uint64_t);
		uint64_t left = (n - done + LENT_PIECE - 1) / LENT_PIECE;
		struct buffer *b = buffer_create((size_t)(left < most ? left : most) * sizeof(uint64_t));
		if (!b)
			return "no memory";
		for (; done < n && b->len + sizeof(uint64_t) <= b->cap; done += LENT_PIECE, l->given++) {
			uint64_t place = at + done;
			memcpy(b->data + b->len, &place, sizeof(place));
			b->len += sizeof(place);
		}
		queue_push(&r->queue, b);
	}
	l->left -= n;
	stretch->tag = l->given;
	queue_push(&l->stretches, buffer_ref(stretch));
	atomic_fetch_add_explicit(&r->bytes_lent, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&counters.bytes_lent, n, memory_order_relaxed);
	return NULL;
}

/* ---- whether it is taken ---- */

/* The server takes bulks in the order of the records, so when it answers one it has taken all that was lent
 * ahead of that, and says so at once. One that does not would keep the program waiting for ever. */
void lend_asked(struct relay *r, uint64_t seq)
{
	struct lend *l = &r->lend;
	if (l->mark || lend_is_idle(r))
		return;
	l->mark = seq;
	l->marked = l->given;
}

void lend_answered(struct relay *r, uint64_t seq)
{
	struct lend *l = &r->lend;
	if (!l->mark || l->mark != seq)
		return;
	l->overdue = l->taken < l->marked ? clock_ms() : 0;
	l->mark = l->overdue ? l->mark : 0;
}

bool lend_is_overdue(const struct relay *r, uint64_t now)
{
	return r->lend.overdue && clock_since(now, r->lend.overdue) >= TIME_DEAD;
}

void lend_late(struct relay *r, uint64_t now)
{
	if (r->lend.overdue)
		r->lend.overdue = now;
}

void lend_finish(struct relay *r)
{
	queue_clear(&r->lend.stretches);
}

/* ---- by second.c's thread ---- */

/* Gives the server a descriptor of the arena if there is one. 0 or -errno. */
static int offer(struct relay *r, struct stream *s, bool *offered)
{
	struct lending ours = {0};
	int fd = -1;
	pthread_mutex_lock(&r->lock);
	bool there = r->channel && channel_is_used(r->channel);
	int memory = there ? arena_fd(channel_arena(r->channel)) : -1;
	pthread_mutex_unlock(&r->lock);
	/* It is the relay's, which outlives this thread. */
	if (memory >= 0 && (fd = lending_readonly(memory)) < 0)
		log_info("session %u lends no memory: %s", r->id, strerror(-fd));
	if (fd >= 0)
		ours.size = LIMIT_ARENA;
	*offered = fd >= 0;
	int e = lending_send(stream_fd(s), &ours, fd);
	if (fd >= 0)
		close(fd);
	return e;
}

int lend_meet(struct relay *r, struct stream *s)
{
	struct lending theirs;
	bool offered;
	int fd, e = offer(r, s, &offered);
	e = e ? e : lending_receive(stream_fd(s), &theirs, &fd, TIME_CONNECT);
	if (e)
		return e;
	pthread_mutex_lock(&r->lock);
	r->lend.stream = theirs.size || theirs.taken ? s : NULL;
	pthread_mutex_unlock(&r->lock);
	uint64_t takes = theirs.size && lent_take(r, theirs.size, fd);
	struct iovec v = {&takes, sizeof(takes)};
	if (fd >= 0)
		close(fd);
	/* From here on the server may lend. */
	if (theirs.size && stream_writev(s, &v, 1) != (ssize_t)sizeof(takes))
		return -EPIPE;
	pthread_mutex_lock(&r->lock);
	r->lend.up = r->lend.wanted = offered && theirs.taken;
	pthread_mutex_unlock(&r->lock);
	return theirs.size || theirs.taken;
}

/* The server has taken so many pieces. False: it cannot have. */
static bool taken(struct relay *r, uint64_t pieces, struct answers *a)
{
	struct lend *l = &r->lend;
	if (pieces < l->taken || pieces > l->given)
		return false;
	l->taken = pieces;
	if (l->overdue && pieces >= l->marked)
		l->overdue = l->mark = 0;
	while (l->stretches.head && l->stretches.head->tag <= pieces)
		buffer_unref(queue_pop(&l->stretches));
	r->alive = clock_ms();
	outbound_release(r, a);
	return true;
}

/* Reads what there is. 0, or the errno of the connection's end. */
static int hear(struct relay *r, struct stream *s, uint8_t *bytes, size_t *have)
{
	uint64_t count = 0;
	ssize_t n = stream_read(s, bytes + *have, COUNTS * sizeof(count) - *have);
	struct answers a;
	if (n <= 0)
		return n == -EAGAIN ? 0 : n ? (int)-n : ECONNRESET;
	*have += (size_t)n;
	size_t whole = *have / sizeof(count) * sizeof(count);
	answers_init(&a);
	pthread_mutex_lock(&r->lock);
	bool ok = true;
	for (size_t at = 0; at < whole && ok; at += sizeof(count)) {
		memcpy(&count, bytes + at, sizeof(count));
		ok = taken(r, count, &a);
	}
	if (!ok) {
		log_warning("session %u: %s says that it has taken %llu pieces of %llu", r->id, r->address,
			(unsigned long long)count, (unsigned long long)r->lend.given);
		relay_fail(r, EPROTO, &a);
	}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	*have -= whole;
	memmove(bytes, bytes + whole, *have);
	return 0;
}

void lend_keep(struct relay *r, struct stream *s)
{
	log_info("session %u %s the server memory%s", r->id, r->lend.up ? "lends" : "does not lend",
		r->lent.memory ? ", and the server it" : "");
	uint8_t bytes[COUNTS * sizeof(uint64_t)];
	size_t have = 0;
	bool more = false;
	int e = 0;
	for (;;) {
		struct pollfd p[] = {{.fd = stream_fd(s), .events = POLLIN},
			{.fd = r->second.wake_fd, .events = POLLIN}};
		if (r->error || r->closing || e)
			break;
		pthread_mutex_unlock(&r->lock);
		/* Behind a word of the server's the next one comes soon. */
		if ((more ? spin_poll(p, 2) : poll(p, 2, -1)) < 0 && errno != EINTR)
			log_warning("session %u: poll: %m", r->id);
		more = p[0].revents;
		if (more)
			e = hear(r, s, bytes, &have);
		pthread_mutex_lock(&r->lock);
	}
	r->lend.up = r->lend.wanted = false;
	if (!e || r->error)
		return;
	log_info("session %u: the second connection has ended: %s", r->id, strerror(e));
	if (lend_is_idle(r))
		return;
	/* The server's last words may be in the first. */
	r->broken = ECONNRESET;
	relay_wake(r);
}
