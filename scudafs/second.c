/* SPDX-License-Identifier: Apache-2.0 */
/* A session's second connection. One connection is as fast as the processor that sends into it, so every
 * second stripe of a large copy (FRAME_STRIPED) may go by another one, which a thread of its own fills: here,
 * of copies to the device, and in the server of those to the host, which stripes.c receives. That is worth a
 * thread where large copies have gone at a GB/s and more, which says that neither the link nor a want of
 * processors holds them up; then the server is asked for a second connection, once, and told when it is in
 * place. Where there comes none, or it ends while nothing is on its way, all goes by the first. By a unix
 * socket memory is lent in place of that (lend.c).
 *
 * Thread rule: see relay_state.h. The thread writes to the stream, others ask the kernel about it under the
 * lock; it is started, and waited for, by the session's thread, so the relay outlives it. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "scudafs/spin.h"
#include "wire/look.h"

#define LEAST (4ull << 20)          /* bytes of a bulk that goes by both */
#define WINDOW (32ull << 20)        /* bytes of such bulks after which their rate is looked at */
#define GAP_MOST 4000               /* microseconds between two pieces of one copy to the host */
#define FAST 1000                   /* bytes in a microsecond from which a second connection is worth it */
#define CPUS_LEAST 4                /* the program, two senders, and a server may be at work at once */
#define PARTS 8                     /* of one write */
#define LOOKS 10                    /* at the queue, between two at the clock */
#define STACK (256u << 10)
#define IDLE_S 30                   /* what the kernel says to an idle connection, and how soon it gives up */
#define IDLE_AGAIN_S 5
#define IDLE_TIMES 3

static uint64_t moved(const struct relay *r) { return r->written + r->second.sent; }

/* 0 or an errno. */
static int say(struct relay *r, enum second_word word)
{
	struct frame f = {.kind = FRAME_SECOND, .seq = word};
	return outbound_aside(r, &f, sizeof(f));
}

static bool may_ask(const struct relay *r)
{
	return r->second.state == SECOND_NONE && r->second.wish != CONNECTIONS_ONE && r->up && !r->error &&
	       stream_is_clear(r->stream) && !(r->flags & PREAMBLE_PACK_ALWAYS);
}

void second_ask(struct relay *r, bool lends)
{
	if (!may_ask(r))
		return;
	r->second.lends = lends;
	r->second.state = say(r, lends ? SECOND_LENDS : SECOND_WANTED) ? SECOND_OVER : SECOND_ASKED;
	log_debug("session %u: asks for a second connection", r->id);
}

bool second_takes(struct relay *r, const struct frame *f)
{
	struct second *t = &r->second;
	if (f->bulk_len < LEAST || f->flags & FRAME_ASIDE)
		return false;
	if (!t->since) {
		t->since = clock_us();
		t->from = moved(r);
	}
	bool always = t->wish == CONNECTIONS_TWO;
	if (always)
		second_ask(r, false);
	if (t->state != SECOND_UP || !(t->fast || always))
		return false;
	t->left = f->bulk_len;
	t->at = 0;
	return true;
}

void second_measure(struct relay *r, bool idle)
{
	struct second *t = &r->second;
	if (!t->since || (moved(r) - t->from + t->moved < WINDOW && !idle))
		return;
	uint64_t now = clock_us();
	t->moved += moved(r) - t->from;
	t->busy += now - t->since;
	t->from = moved(r);
	t->since = idle ? 0 : now;
	if (t->moved < WINDOW)
		return;
	t->fast = spin_cpus() >= CPUS_LEAST && t->moved >= t->busy * FAST;
	t->moved = t->busy = 0;
	if (t->fast)
		second_ask(r, false);
}

void second_heard(struct relay *r, size_t n)
{
	struct second *t = &r->second;
	if (n < LIMIT_REPLY || t->wish == CONNECTIONS_ONE)
		return;
	uint64_t now = clock_us(), gap = now - t->heard_at;
	t->heard += n;
	t->heard_busy += gap < GAP_MOST ? gap : GAP_MOST;
	t->heard_at = now;
	bool always = t->wish == CONNECTIONS_TWO;
	if (t->heard < WINDOW && !always)
		return;
	bool fast = spin_cpus() >= CPUS_LEAST && t->heard >= t->heard_busy * FAST;
	t->heard = t->heard_busy = 0;
	if (!fast && !always)
		return;
	pthread_mutex_lock(&r->lock);
	second_ask(r, r->lend.wanted);
	pthread_mutex_unlock(&r->lock);
}

void second_wake(struct relay *r)
{
	uint64_t one = 1;
	if (r->second.started && write(r->second.wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_warning("session %u: wake: %m", r->id);
}

bool second_push(struct relay *r, struct buffer *b)
{
	struct second *t = &r->second;
	for (size_t at = 0, n; at < b->len; at += n, t->at += n) {
		size_t end = STRIPE - t->at % STRIPE;
		n = b->len - at < end ? b->len - at : end;
		struct buffer *part = buffer_part(b, at, n);
		if (!part)
			return false;
		bool apart = t->at / STRIPE % 2;
		queue_push(apart ? &t->queue : &r->queue, part);
		if (!apart)
			continue;
		atomic_fetch_add_explicit(&t->pushed, 1, memory_order_relaxed);
		if (t->asleep)
			second_wake(r);
		t->asleep = false;
	}
	t->left -= b->len;
	return true;
}

/* ---- its thread ---- */

/* 0, or an errno when it has: what has come before is for the session's thread to read. */
static int ended(struct stream *s, short events)
{
	int error = 0;
	socklen_t n = sizeof(error);
	if (!(events & (POLLRDHUP | POLLHUP | POLLERR)))
		return 0;
	return getsockopt(stream_fd(s), SOL_SOCKET, SO_ERROR, &error, &n) || !error ? ECONNRESET : error;
}

/* Waits for something to send, or, when the stream takes nothing, for that; for as long as the session lasts.
 * 0, or an errno when the connection has ended. Called and returns with the lock. */
static int await(struct relay *r, struct stream *s, bool blocked)
{
	struct second *t = &r->second;
	struct pollfd p[] = {{.fd = stream_fd(s), .events = POLLRDHUP | (blocked ? POLLOUT : 0)},
		{.fd = t->wake_fd, .events = POLLIN}};
	uint64_t pushed = t->pushed, count;
	pthread_mutex_unlock(&r->lock);
	struct look l = look_begin(blocked ? 0 : spin_us() * 1000ull);
	while (t->pushed == pushed && look_on(&l))
		for (int i = 0; i < LOOKS; i++)
			look_relax();
	pthread_mutex_lock(&r->lock);
	if ((!blocked && t->queue.head) || r->error)
		return 0;
	t->asleep = !blocked;
	pthread_mutex_unlock(&r->lock);
	if (poll(p, 2, -1) < 0 && errno != EINTR)
		log_warning("session %u: poll: %m", r->id);
	if (p[1].revents && read(t->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_warning("session %u: eventfd: %m", r->id);
	int e = ended(s, p[0].revents);
	pthread_mutex_lock(&r->lock);
	t->asleep = false;
	return e;
}

/* Notes what was sent, n bytes. */
static void sent(struct relay *r, size_t n, struct answers *a)
{
	bool full = relay_queued(r) > LIMIT_QUEUE;
	r->second.sent += n;
	queue_consume(&r->second.queue, n);
	atomic_fetch_add_explicit(&r->bytes_out, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&counters.bytes_out, n, memory_order_relaxed);
	r->alive = clock_ms();
	outbound_idle(r);
	outbound_release(r, a);
	/* More may be taken from the program now. */
	if (full && relay_queued(r) <= LIMIT_QUEUE)
		relay_wake(r);
}

/* Sends what is queued until the session ends (0) or the connection does (an errno). Called with the lock. */
static int pump(struct relay *r, struct stream *s)
{
	bool blocked = false;
	while (!r->error && !r->closing) {
		struct queue *q = &r->second.queue;
		struct iovec v[PARTS];
		struct answers a;
		int n = 0, e;
		if (!q->head || blocked) {
			if ((e = await(r, s, blocked)))
				return e;
			blocked = false;
			continue;
		}
		for (struct buffer *b = q->head; b && n < PARTS; b = b->next)
			v[n++] = (struct iovec){b->data + b->off, b->len - b->off};
		pthread_mutex_unlock(&r->lock);
		ssize_t done = stream_writev(s, v, n);
		answers_init(&a);
		pthread_mutex_lock(&r->lock);
		blocked = done == -EAGAIN;
		if (done > 0)
			sent(r, (size_t)done, &a);
		else if (!blocked)
			return (int)-done;
		if (!a.head)
			continue;
		pthread_mutex_unlock(&r->lock);
		answers_send(&a);
		pthread_mutex_lock(&r->lock);
	}
	return 0;
}

/* Nothing passes by while it is idle, and what forgets idle connections on the way would take the next copy
 * with it: so the kernel keeps it known, and finds out. */
static void keep_alive(int fd)
{
	int one = 1, idle = IDLE_S, again = IDLE_AGAIN_S, times = IDLE_TIMES;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof(again));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

/* With the lock. The session goes on if the server has all that was given to the connection. */
static void over(struct relay *r, struct stream *s, int e)
{
	struct second *t = &r->second;
	int left = 0;
	if (!e || r->error)
		return;
	if (!t->left && !t->queue.head && !ioctl(stream_fd(s), SIOCOUTQ, &left) && !left) {
		log_info("session %u: the second connection has ended: %s", r->id, strerror(e));
		/* By its end, or where that does not come through any more, by a word the server knows that
		 * it is not to send here. */
		shutdown(stream_fd(s), SHUT_WR);
		if (!say(r, SECOND_ENDS))
			relay_wake(r);
		return;
	}
	log_warning("session %u: the second connection: %s", r->id, strerror(e));
	/* The server's last words may be in the first. */
	r->broken = ECONNRESET;
	relay_wake(r);
}

static void *second_main(void *arg)
{
	struct relay *r = arg;
	struct second *t = &r->second;
	struct stream *s = NULL;
	const char *why = NULL;
	pthread_setname_np(pthread_self(), "second");
	int lends = 0, e = stream_connect_second(r->address, &t->token, TIME_CONNECT, &s, &why);
	if (!e)
		keep_alive(stream_fd(s));
	if (!e && t->lends && (lends = lend_meet(r, s)) < 0)
		e = lends;
	pthread_mutex_lock(&r->lock);
	if (e) {
		log_info("session %u has no second connection: %s", r->id, why ? why : strerror(-e));
		if (!r->lend.stream)
			stream_close(s);
	} else if (lends) {
		lend_keep(r, s);
	} else {
		log_info("session %u has a second connection", r->id);
		t->stream = s;
		t->state = SECOND_UP;
		if (!say(r, SECOND_SERVES))
			relay_wake(r);
		over(r, s, pump(r, s));
	}
	t->state = SECOND_OVER;
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- by the session's thread ---- */

int second_answered(struct relay *r, const struct frame *f)
{
	struct second *t = &r->second;
	pthread_attr_t attr;
	pthread_mutex_lock(&r->lock);
	bool asked = t->state == SECOND_ASKED && !t->started;
	t->token = (struct share_token){{f->seq, f->ctx}};
	t->state = SECOND_OVER;
	bool start = asked && (f->seq || f->ctx) && !r->error &&
		     (t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0;
	if (start) {
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, STACK);
		t->started = !pthread_create(&t->thread, &attr, second_main, r);
		pthread_attr_destroy(&attr);
		if (!t->started)
			close(t->wake_fd);
	}
	if (asked && !t->started)
		log_info("session %u has no second connection: %s", r->id,
			start ? "no thread" : "the server has none");
	pthread_mutex_unlock(&r->lock);
	return asked ? 0 : EPROTO;
}

void second_finish(struct relay *r)
{
	if (!r->second.started)
		return;
	pthread_join(r->second.thread, NULL);
	stripes_finish(r);
	close(r->second.wake_fd);
	stream_close(r->second.stream);
	stream_close(r->lend.stream);
	r->second.stream = r->lend.stream = NULL;
}
