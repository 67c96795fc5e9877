/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that each session has. It connects, then polls the stream: it receives, writes what the stream
 * did not take at once, looks at the memory shared with the program, keeps the heartbeat and answers parked
 * requests whose time is over. When the connection or the opener ends it answers everybody and goes; the
 * relay itself stays until the last close.
 *
 * Thread rule: see relay_state.h. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "scudafs/rendezvous.h"
#include "scudafs/spin.h"
#include "wire/ring.h"

#define POLLED 5
#define LINGER_NS 800               /* a launch and the synchronize behind it leave together */
#define LOOKS 10                    /* at shared memory, between two at the descriptors */
#define THREAD_STACK (256u << 10)
#define LATE_MS 2000                /* a loop this late was stopped itself: silence says nothing then */

/* Makes the shared memory that the program has asked for, and the socket through which it gets it. */
static void offer_channel(struct relay *r)
{
	struct answers a;
	answers_init(&a);
	atomic_store(&r->socket, SOCKET_COMING);
	struct channel *c = channel_create();
	int fd = c ? rendezvous_listen(r->id) : -ENOMEM;
	log_debug("session %u: a socket for shared memory: %s", r->id, fd < 0 ? strerror(-fd) : "there");
	if (c && r->lend.wanted)
		arena_keep_fd(channel_arena(c));
	pthread_mutex_lock(&r->lock);
	struct request *q = r->parked;
	while (q && q->state != PARK_CHANNEL)
		q = q->next == r->parked ? NULL : q->next;
	if (q)
		relay_unpark(r, q);
	bool offered = q && fd >= 0;
	if (offered) {
		channel_offer(c, fd);
		r->channel = c;
		q->channel = (struct ctl_channel){.version = RING_VERSION, .session = r->id};
		q->part[0] = (struct iovec){&q->channel, sizeof(q->channel)};
		q->parts = 1;
	}
	if (q)
		answers_add(&a, q, fd < 0 ? fd : 0);
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	if (offered)
		return;
	atomic_store(&r->socket, SOCKET_NONE);
	channel_free(c);
	if (fd >= 0)
		close(fd);
}

/* ---- looking, and sleeping ---- */

/* What the session's thread looks for in shared memory. */
struct news {
	struct channel *c;          /* NULL: nothing */
	bool takes;                 /* there is room for what the program puts there */
	bool stalled;               /* data waits until the program has made room */
	bool missing;               /* all of a frame is here but for what another thread receives */
};

static bool is_there(const struct relay *r, const struct news *l)
{
	return (l->missing && !stripes_missing(r)) ||
	       (l->c && ((l->takes && channel_has_news(l->c)) || (l->stalled && !inbound_stalled(r))));
}

/* Takes or gives back the right to look long for an answer. The thread's own. */
static void await_long(struct relay *r, bool want)
{
	if (want == r->awaits_long)
		return;
	if (want)
		r->awaits_long = spin_await_begin();
	else
		spin_await_end(), r->awaits_long = false;
}

/* There was something to do: until when more is looked for. Long where the program waits for an answer, for
 * it looks for it, too. Under the lock. */
static void keep_looking(struct relay *r)
{
	if (!spin_us())
		return;
	await_long(r, r->waiting_count && r->channel && channel_is_used(r->channel));
	look_again(&r->spin, 1000ull * (r->awaits_long ? spin_await_us() : spin_us()));
}

/* Waits for what there is to do: for a while it looks, at shared memory too, then it sleeps. */
static int await_events(struct relay *r, struct pollfd *p, const struct news *l, int timeout)
{
	int n;
	look_resume(&r->spin);
	while (!(n = poll(p, POLLED, 0)) && look_on(&r->spin))
		for (int i = 0; i < LOOKS; i++) {
			if (is_there(r, l))
				return 0;
			look_relax();
		}
	if (n)
		return n;
	await_long(r, false);
	if (l->c)
		channel_sleeps(l->c, true);
	stripes_await(r, l->missing);
	if (!is_there(r, l))
		n = poll(p, POLLED, timeout);
	stripes_await(r, false);
	if (l->c)
		channel_sleeps(l->c, false);
	return n;
}

/* ---- turns ---- */

/* One turn of the thread's loop; false when the session is over. */
static bool turn(struct relay *r)
{
	struct answers a;
	answers_init(&a);
	pthread_mutex_lock(&r->lock);
	bool over = r->closing || r->error;
	bool offer = !over && r->asked && !r->channel;
	r->asked &= !offer;
	struct news look = {.c = r->channel && channel_is_used(r->channel) ? r->channel : NULL,
		.takes = relay_queued(r) <= LIMIT_QUEUE, .stalled = inbound_stalled(r),
		.missing = stripes_missing(r)};
	uint64_t now = clock_ms();
	r->paused = !over && (look.stalled || inbound_full(r, now));
	int timeout = over ? 0 : heartbeat_next(r, now), broken = r->broken;
	short events = (r->paused || look.missing ? 0 : POLLIN) | (r->blocked ? POLLOUT : 0);
	pthread_mutex_unlock(&r->lock);
	if (over)
		return false;
	if (offer)
		offer_channel(r);
	struct stream *from = inbound_stream(r);
	bool pending = (events & POLLIN) && (stream_pending(r->stream) || inbound_pending(r));
	bool other = (events & POLLIN) && from != r->stream;
	if (other)
		events &= ~POLLIN;
	struct pollfd p[POLLED] = {{.fd = events ? stream_fd(r->stream) : -1, .events = events},
		{.fd = r->wake_fd, .events = POLLIN}, {.fd = r->pid_fd, .events = POLLIN},
		{.fd = r->channel ? channel_fd(r->channel) : -1, .events = POLLIN},
		{.fd = other ? stream_fd(from) : -1, .events = POLLIN}};
	int n = 0;
	if (!pending)
		n = await_events(r, p, &look, timeout);
	bool busy = false;
	if (n < 0 && errno != EINTR)
		log_warning("session %u: poll: %m", r->id);
	if (p[1].revents) {
		uint64_t count;
		if (read(r->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			log_warning("session %u: eventfd: %m", r->id);
		/* Who brings bytes to send brings more. */
		busy = true;
	}
	if (p[3].revents) {
		if (!channel_came(r->channel, r->pid, r->uid))
			log_debug("session %u: no wakes any more", r->id);
		if (channel_is_used(r->channel))
			atomic_store(&r->socket, SOCKET_NONE);
	}
	bool readable = (events & POLLIN) && p[0].revents & (POLLIN | POLLHUP | POLLERR);
	bool came = (pending || readable || p[4].revents) && inbound_receive(r);

	uint64_t late = now + (uint64_t)timeout + LATE_MS;
	pthread_mutex_lock(&r->lock);
	now = clock_ms();
	if (now > late) {
		r->alive = r->came = now;
		lend_late(r, now);
	}
	if (p[0].revents & (POLLOUT | POLLHUP | POLLERR))
		r->blocked = false;
	if (p[2].revents) {
		log_debug("session %u: process %d has ended", r->id, (int)r->pid);
		relay_fail(r, ESHUTDOWN, &a);
	}
	if (!r->error && !r->closing) {
		busy |= outbound_drain(r, &a, spin_us() ? LINGER_NS : 0);
		outbound_flush(r, &a);
		int missing = relay_memory(r);
		if (missing)
			relay_fail(r, missing, &a);
		if (came || busy)
			keep_looking(r);
		parked_expire(r, now, &a);
		heartbeat_keep(r, now, &a);
		/* The server's last words are behind what the program has not taken yet. */
		if (broken && !came && !r->paused)
			relay_fail(r, broken, &a);
	}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	return true;
}

static bool connect_server(struct relay *r)
{
	struct stream *s = NULL;
	const char *why = NULL;
	struct answers a;
	int e = credential_connect(r->credential, r->address, r->flags, TIME_CONNECT, &s, &why);
	if (e)
		log_warning("session %u of %s[%d]: %s: %s", r->id, r->command, (int)r->pid, r->address,
			why ? why : strerror(-e));
	answers_init(&a);
	pthread_mutex_lock(&r->lock);
	r->stream = s;
	r->alive = clock_ms();
	r->ping_at = r->alive + TIME_HEARTBEAT;
	if (e) {
		relay_fail(r, -e, &a);
	} else if (!r->closing && !r->error) {
		r->up = true;
		r->lend.wanted = lend_may(r);
		if (r->parked) {
			struct request *q = r->parked;
			relay_unpark(r, q);
			answers_add(&a, q, 0);
		}
		log_info("session %u of %s[%d]: connected to %s, %s", r->id, r->command, (int)r->pid,
			r->address, stream_security(s));
	}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	return !e;
}

static void *session_main(void *arg)
{
	struct relay *r = arg;
	struct answers a;
	pthread_setname_np(pthread_self(), "session");
	if (connect_server(r))
		while (turn(r))
			;
	await_long(r, false);
	answers_init(&a);
	pthread_mutex_lock(&r->lock);
	relay_fail(r, r->closing ? ECONNABORTED : ECONNRESET, &a);
	while (r->writing)
		pthread_cond_wait(&r->idle, &r->lock);
	struct stream *s = r->stream;
	r->stream = NULL;
	pthread_mutex_unlock(&r->lock);
	stream_close(s);
	answers_send(&a);
	second_finish(r);
	log_info("session %u of %s[%d]: over, %llu bytes out, %llu in, %llu lent", r->id, r->command,
		(int)r->pid, (unsigned long long)atomic_load(&r->bytes_out),
		(unsigned long long)atomic_load(&r->bytes_in),
		(unsigned long long)atomic_load(&r->bytes_lent));
	relay_unref(r);
	sessions_thread_ended();
	return NULL;
}

int session_thread_start(struct relay *r)
{
	pthread_attr_t attr;
	pthread_t thread;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	int e = pthread_create(&thread, &attr, session_main, r);
	pthread_attr_destroy(&attr);
	return e;
}
