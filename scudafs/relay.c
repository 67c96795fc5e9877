/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: their table, their life, and the thread that each has. The thread connects, then polls its
 * stream: it receives, writes what the stream did not take at once, keeps the heartbeat and answers parked
 * requests whose time is over. When the connection or the opener ends it answers everybody and goes; the
 * relay itself stays until the last close.
 *
 * Thread rule: see relay_state.h. The table has its own lock, taken before a relay's. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "scudafs/answerer.h"
#include "scudafs/rendezvous.h"
#include "scudafs/spin.h"
#include "scudafs/text.h"
#include "wire/deadline.h"
#include "wire/ring.h"

#define POLLED 4
#define LINGER_NS 800               /* a launch and the synchronize behind it leave together */
#define LOOKS 10                    /* at shared memory, between two at the descriptors */
#define THREAD_STACK (256u << 10)
#define LATE_MS 2000                /* a loop this late was stopped itself: silence says nothing then */
#define BROKEN_MS 500               /* after a failed write: how long to look for the server's last words */
#define BACKLOG (64 << 10)          /* unacknowledged bytes from which an acknowledgement is a sign of life */

struct counters counters;
static atomic_uint last_id;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct relay *list;
	unsigned threads;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

void answers_send(struct answers *a)
{
	struct request *q = a->head;
	answers_init(a);
	while (q) {
		struct request *next = q->next;
		struct buffer *hold[REQUEST_PARTS];
		memcpy(hold, q->hold, sizeof(hold));
		if (!q->result && q->wait.seq && !q->parts)
			q->part[q->parts++] = (struct iovec){&q->wait, sizeof(q->wait)};
		q->answer(q, q->result, q->part, q->result ? 0 : q->parts);
		for (int i = 0; i < REQUEST_PARTS; i++)
			buffer_unref(hold[i]);
		q = next;
	}
}

void relay_park(struct relay *r, struct request *q, int state, struct answers *a)
{
	if (q->interrupted && q->interrupted(q)) {
		answers_add(a, q, -EINTR);
		return;
	}
	q->state = state;
	q->deadline = clock_ms() + TIME_PARK;
	if (r->paused && (state == PARK_REPLY || state == PARK_DATA))
		relay_wake(r);
	if (r->parked) {
		q->next = r->parked;
		q->prev = r->parked->prev;
		q->prev->next = q->next->prev = q;
	} else {
		r->parked = q->next = q->prev = q;
	}
}

void relay_unpark(struct relay *r, struct request *q)
{
	if (q->state == PARK_ORDER && q->copy) {
		r->ahead -= q->copy->len - q->copy->off;
		buffer_unref(q->copy);
		q->copy = NULL;
	}
	q->state = PARK_NONE;
	if (q->next == q) {
		r->parked = NULL;
		return;
	}
	if (r->parked == q)
		r->parked = q->next;
	q->prev->next = q->next;
	q->next->prev = q->prev;
}

bool relay_parked(const struct relay *r, int state)
{
	for (struct request *q = r->parked; q; q = q->next == r->parked ? NULL : q->next)
		if (q->state == state)
			return true;
	return false;
}

void relay_fail(struct relay *r, int error, struct answers *a)
{
	if (r->error)
		return;
	/* The program takes ENOMEM for the end of one call, and would go on to call a session that is over. */
	error = error == ENOMEM && r->up ? ENOBUFS : error;
	r->error = error;
	second_wake(r);
	if (r->channel)
		channel_fail(r->channel, error);
	while (r->parked) {
		struct request *q = r->parked;
		relay_unpark(r, q);
		answers_add(a, q, -error);
	}
	relay_wake(r);
}

/* Has it come true? `transfer` is the number of the wait, 0: stretches that are sent. */
static bool is_true(const struct relay *r, const struct request *q)
{
	if (!q->transfer)
		return arena_sent(channel_arena(r->channel)) >= q->offset;
	return channel_has_answered(r->channel, q->transfer) || channel_got(r->channel, q->transfer) >= q->offset;
}

void relay_tell_until(struct relay *r, struct answers *a)
{
	for (struct request *q = r->parked, *next; q; q = next) {
		next = q->next == r->parked ? NULL : q->next;
		if (q->state != PARK_UNTIL || !is_true(r, q))
			continue;
		relay_unpark(r, q);
		answers_add(a, q, 0);
	}
}

void relay_until(struct relay *r, const struct ctl_until *u, struct request *q)
{
	struct answers a;
	answers_init(&a);
	relay_ref(r);
	q->wait = (struct ctl_wait){0};
	q->transfer = u->seq;
	q->offset = u->count;
	pthread_mutex_lock(&r->lock);
	/* Who waits may have put there what nobody has seen. */
	if (!r->error)
		outbound_drain(r, &a, 0);
	if (r->error || !r->channel)
		answers_add(&a, q, r->error ? -r->error : -EINVAL);
	else if (is_true(r, q))
		answers_add(&a, q, 0);
	else
		relay_park(r, q, PARK_UNTIL, &a);
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	relay_unref(r);
}

void relay_wake(struct relay *r)
{
	uint64_t one = 1;
	if (write(r->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_warning("session %u: wake: %m", r->id);
}

void relay_ref(struct relay *r)
{
	atomic_fetch_add(&r->refs, 1);
}

void relay_unref(struct relay *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	stream_close(r->stream);
	outbound_finish(r);
	inbound_finish(r);
	channel_free(r->channel);
	close(r->wake_fd);
	if (r->pid_fd >= 0)
		close(r->pid_fd);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->idle);
	free(r);
}

static struct relay *relay_find(unsigned id)
{
	pthread_mutex_lock(&table.lock);
	struct relay *r = table.list;
	while (r && r->id != id)
		r = r->next;
	if (r)
		relay_ref(r);
	pthread_mutex_unlock(&table.lock);
	return r;
}

/* ---- the session's thread ---- */

static void expire(struct relay *r, uint64_t now, struct answers *a)
{
	while (r->parked && r->parked->deadline <= now) {
		struct request *q = r->parked;
		int state = q->state;
		relay_unpark(r, q);
		if (state == PARK_REPLY) {
			q->wait.flags = CTL_AGAIN;
			q->wait.len = 0;
		}
		/* A read says "nothing yet"; a batch, taken or not, is simply to be sent again under its
		 * number. */
		bool post = state == PARK_ORDER || state == PARK_ROOM;
		answers_add(a, q, state == PARK_REPLY ? 0 : post ? -EINTR : -EAGAIN);
	}
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

static void heartbeat(struct relay *r, uint64_t now, struct answers *a)
{
	look_for_acknowledgements(r, now);
	/* While we do not listen, silence says nothing. */
	if (r->paused)
		r->alive = now;
	else if (clock_since(now, r->alive) >= TIME_DEAD) {
		log_warning("session %u: %s has been silent for %d ms", r->id, r->address, TIME_DEAD);
		relay_fail(r, ETIMEDOUT, a);
		return;
	}
	if (now < r->ping_at)
		return;
	r->ping_at = now + TIME_HEARTBEAT;
	buffer_trim();
	/* What is on its way tells the server that we live; in the middle of a record it looks for that itself. */
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

static int next_time(const struct relay *r, uint64_t now)
{
	uint64_t t = r->ping_at;
	if (r->alive + TIME_DEAD < t)
		t = r->alive + TIME_DEAD;
	if (r->parked && r->parked->deadline < t)
		t = r->parked->deadline;
	if (r->paused && t > now + READING_MS)
		t = now + READING_MS;
	if (r->broken && t > now + BROKEN_MS)
		t = now + BROKEN_MS;
	return t > now ? (int)(t - now) : 0;
}

/* Makes the shared memory that the program has asked for, and the socket through which it gets it. */
static void offer_channel(struct relay *r)
{
	struct answers a;
	answers_init(&a);
	atomic_store(&r->socket, SOCKET_COMING);
	struct channel *c = channel_create();
	int fd = c ? rendezvous_listen(r->id) : -ENOMEM;
	log_debug("session %u: a socket for shared memory: %s", r->id, fd < 0 ? strerror(-fd) : "there");
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

/* What the session's thread looks for in shared memory. */
struct look {
	struct channel *c;          /* NULL: nothing */
	bool takes;                 /* there is room for what the program puts there */
	bool stalled;               /* data waits until the program has made room */
};

static bool is_there(const struct relay *r, const struct look *l)
{
	return l->c && ((l->takes && channel_has_news(l->c)) || (l->stalled && !inbound_stalled(r)));
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

/* There was something to do: until when more is looked for. Long where the program waits for an answer, for it
 * looks for it, too. Under the lock. */
static void look_on(struct relay *r)
{
	if (!spin_us())
		return;
	await_long(r, r->waiting_count && r->channel && channel_is_used(r->channel));
	r->spin_until = clock_us() + (r->awaits_long ? spin_await_us() : spin_us());
}

/* Waits for what there is to do: for a while it looks, at shared memory too, then it sleeps. */
static int await_events(struct relay *r, struct pollfd *p, const struct look *l, int timeout)
{
	int n;
	while (!(n = poll(p, POLLED, 0)) && clock_us() < r->spin_until)
		for (int i = 0; i < LOOKS; i++) {
			if (is_there(r, l))
				return 0;
			spin_relax();
		}
	if (n)
		return n;
	await_long(r, false);
	if (l->c)
		channel_sleeps(l->c, true);
	if (!is_there(r, l))
		n = poll(p, POLLED, timeout);
	if (l->c)
		channel_sleeps(l->c, false);
	return n;
}

/* One turn of the thread's loop; false when the session is over. */
static bool turn(struct relay *r)
{
	struct answers a;
	answers_init(&a);
	pthread_mutex_lock(&r->lock);
	bool over = r->closing || r->error;
	bool offer = !over && r->asked && !r->channel;
	r->asked &= !offer;
	struct look look = {.c = r->channel && channel_is_used(r->channel) ? r->channel : NULL,
		.takes = relay_queued(r) <= LIMIT_QUEUE, .stalled = inbound_stalled(r)};
	uint64_t now = clock_ms();
	r->paused = !over && (look.stalled || inbound_full(r, now));
	int timeout = over ? 0 : next_time(r, now), broken = r->broken;
	short events = (r->paused ? 0 : POLLIN) | (r->blocked ? POLLOUT : 0);
	pthread_mutex_unlock(&r->lock);
	if (over)
		return false;
	if (offer)
		offer_channel(r);
	struct pollfd p[POLLED] = {{.fd = events ? stream_fd(r->stream) : -1, .events = events},
		{.fd = r->wake_fd, .events = POLLIN}, {.fd = r->pid_fd, .events = POLLIN},
		{.fd = r->channel ? channel_fd(r->channel) : -1, .events = POLLIN}};
	bool pending = (events & POLLIN) && (stream_pending(r->stream) || inbound_pending(r));
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
	bool came = false;
	if ((events & POLLIN) && (pending || p[0].revents & (POLLIN | POLLHUP | POLLERR)))
		came = inbound_receive(r);

	uint64_t late = now + (uint64_t)timeout + LATE_MS;
	pthread_mutex_lock(&r->lock);
	now = clock_ms();
	if (now > late)
		r->alive = now;
	if (p[0].revents & (POLLOUT | POLLHUP | POLLERR))
		r->blocked = false;
	if (p[2].revents) {
		log_debug("session %u: process %d has ended", r->id, (int)r->pid);
		relay_fail(r, ESHUTDOWN, &a);
	}
	if (!r->error && !r->closing) {
		busy |= outbound_drain(r, &a, spin_us() ? LINGER_NS : 0);
		outbound_flush(r, &a);
		if (came || busy)
			look_on(r);
		expire(r, now, &a);
		heartbeat(r, now, &a);
		check_stall(r, now, &a);
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
	log_info("session %u of %s[%d]: over, %llu bytes out, %llu in", r->id, r->command, (int)r->pid,
		(unsigned long long)atomic_load(&r->bytes_out),
		(unsigned long long)atomic_load(&r->bytes_in));
	relay_unref(r);
	pthread_mutex_lock(&table.lock);
	table.threads--;
	pthread_cond_broadcast(&table.ended);
	pthread_mutex_unlock(&table.lock);
	return NULL;
}

/* ---- life ---- */

/* The opener may be any thread of its process; a pidfd is of the process. */
static pid_t process_of(pid_t tid)
{
	char path[64], line[128];
	int pid = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	FILE *f = fopen(path, "re");
	while (f && !pid && fgets(line, sizeof(line), f))
		sscanf(line, "Tgid: %d", &pid);
	if (f)
		fclose(f);
	return pid ? pid : tid;
}

static void identify(struct relay *r, const struct relay_options *o)
{
	char path[64];
	snprintf(r->command, sizeof(r->command), "unknown");
	r->uid = o->uid;
	r->pid_fd = -1;
	if (o->pid <= 0)
		return;
	r->pid = process_of(o->pid);
	r->pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)r->pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(r->command, sizeof(r->command), f))
		text_clean(r->command);
	fclose(f);
}

static int start_thread(struct relay *r)
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

unsigned relay_new_id(void)
{
	return atomic_fetch_add(&last_id, 1) + 1;
}

void relay_create(const struct relay_options *o, struct request *q)
{
	struct answers a;
	answers_init(&a);
	struct relay *r = calloc(1, sizeof(*r) + RECEIVE_BYTES);
	q->relay = NULL;
	if (!r || (r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		free(r);
		q->answer(q, r ? -errno : -ENOMEM, NULL, 0);
		return;
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->idle, NULL);
	atomic_init(&r->refs, 3);   /* the opener, the thread, this function */
	snprintf(r->address, sizeof(r->address), "%s", o->address);
	r->credential = o->credential;
	r->flags = o->flags;
	r->second.wish = o->connections;
	r->receive = (uint8_t *)(r + 1);
	identify(r, o);

	pthread_mutex_lock(&table.lock);
	r->id = o->id;
	r->node = o->node;
	r->server = o->server;
	table.threads++;
	struct relay **at = &table.list;
	while (*at)
		at = &(*at)->next;
	*at = r;
	pthread_mutex_unlock(&table.lock);
	atomic_fetch_add(&counters.sessions, 1);

	pthread_mutex_lock(&r->lock);
	q->relay = r;
	relay_park(r, q, PARK_OPEN, &a);
	pthread_mutex_unlock(&r->lock);
	int e = start_thread(r);
	if (e) {
		log_warning("session %u: no thread: %s", r->id, strerror(e));
		pthread_mutex_lock(&table.lock);
		table.threads--;
		pthread_mutex_unlock(&table.lock);
		pthread_mutex_lock(&r->lock);
		relay_fail(r, e, &a);
		pthread_mutex_unlock(&r->lock);
		relay_unref(r);
	}
	answers_send(&a);
	relay_unref(r);
}

void relay_close(struct relay *r)
{
	struct answers a;
	if (!r)
		return;
	answers_init(&a);
	pthread_mutex_lock(&table.lock);
	struct relay **at = &table.list;
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	pthread_mutex_unlock(&table.lock);
	pthread_mutex_lock(&r->lock);
	r->closing = true;
	relay_fail(r, ECONNABORTED, &a);
	relay_wake(r);
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	relay_unref(r);
}

void relay_interrupt(unsigned id, const void *token)
{
	struct answers a;
	struct relay *r = relay_find(id);
	if (!r)
		return;
	answers_init(&a);
	pthread_mutex_lock(&r->lock);
	for (struct request *q = r->parked; q; q = q->next == r->parked ? NULL : q->next)
		if (q->token == token) {
			relay_unpark(r, q);
			answers_add(&a, q, -EINTR);
			break;
		}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	relay_unref(r);
}

void relay_channel(struct relay *r, struct request *q)
{
	struct answers a;
	answers_init(&a);
	q->wait = (struct ctl_wait){0};
	pthread_mutex_lock(&r->lock);
	if (r->error || r->asked || r->channel) {
		answers_add(&a, q, r->error ? -r->error : -EBUSY);
	} else {
		r->asked = true;
		relay_park(r, q, PARK_CHANNEL, &a);
		relay_wake(r);
	}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
}

/* ---- what the tree shows ---- */

bool relay_has_socket(unsigned id)
{
	struct relay *r = relay_find(id);
	bool has = r && atomic_load(&r->socket) == SOCKET_THERE;
	relay_unref(r);
	return has;
}

bool relay_make_socket(unsigned id)
{
	struct relay *r = relay_find(id);
	int coming = SOCKET_COMING;
	bool made = r && atomic_compare_exchange_strong(&r->socket, &coming, SOCKET_THERE);
	relay_unref(r);
	return made;
}

unsigned relay_id(const struct relay *r)
{
	return r->id;
}

bool relay_server(uint64_t node, unsigned *server)
{
	pthread_mutex_lock(&table.lock);
	const struct relay *r = table.list;
	while (r && r->node != node)
		r = r->next;
	if (r)
		*server = r->server;
	pthread_mutex_unlock(&table.lock);
	return r;
}

bool relay_is_used(uint64_t node)
{
	pthread_mutex_lock(&table.lock);
	struct relay *r = table.list;
	while (r && r->node != node)
		r = r->next;
	bool used = false;
	if (r) {
		pthread_mutex_lock(&r->lock);
		used = r->asked || r->batch;
		pthread_mutex_unlock(&r->lock);
	}
	pthread_mutex_unlock(&table.lock);
	return used;
}

bool relay_info(unsigned id, struct relay_info *out)
{
	struct relay *r = relay_find(id);
	if (!r)
		return false;
	*out = (struct relay_info){.id = id,
		.pid = r->pid,
		.uid = r->uid,
		.bytes_out = atomic_load(&r->bytes_out),
		.bytes_in = atomic_load(&r->bytes_in),
		.waits = atomic_load(&r->waits)};
	memcpy(out->command, r->command, sizeof(out->command));
	relay_unref(r);
	return true;
}

unsigned relay_list(unsigned after, unsigned *ids, unsigned max)
{
	unsigned n = 0;
	pthread_mutex_lock(&table.lock);
	for (struct relay *r = table.list; r && n < max; r = r->next)
		if (r->id > after)
			ids[n++] = r->id;
	pthread_mutex_unlock(&table.lock);
	return n;
}

bool relay_end_all(int timeout_ms)
{
	unsigned ids[64], last = 0;
	for (unsigned n; (n = relay_list(last, ids, 64));) {
		for (unsigned i = 0; i < n; i++) {
			struct relay *r = relay_find(ids[i]);
			struct answers a;
			if (!r)
				continue;
			answers_init(&a);
			pthread_mutex_lock(&r->lock);
			relay_fail(r, ESHUTDOWN, &a);
			pthread_mutex_unlock(&r->lock);
			answers_send(&a);
			relay_unref(r);
		}
		last = ids[n - 1];
	}
	struct timespec end = deadline_in(timeout_ms);
	pthread_mutex_lock(&table.lock);
	while (table.threads && !pthread_cond_clockwait(&table.ended, &table.lock, CLOCK_MONOTONIC, &end))
		;
	bool done = !table.threads;
	pthread_mutex_unlock(&table.lock);
	answerer_finish();
	return done;
}
