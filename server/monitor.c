/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread obeys the listener; each connection has a thread of its own that may block, since there
 * is one connection per mount and each asks every few seconds. When the listener is gone, so is the
 * monitor.
 *
 * Thread rule: `shared` is set before the first connection's thread; its counters are atomic. */
#include "server/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/address.h"
#include "server/monitor_keys.h"
#include "server/options.h"
#include "server/origin.h"
#include "server/pending.h"
#include "server/share.h"
#include "server/snapshot.h"
#include "wire/frame.h"
#include "wire/log.h"
#include "wire/msg.h"
#include "wire/stream.h"

static struct {
	const struct options *options;
	const struct snapshot *snapshot;
	atomic_uint sessions, connections, last_connection;
	int listener;
} shared;

/* Connections whose handshake goes on: who says nothing must not keep new mounts out, so one has to go for
 * one too many (origin.h). */
static struct {
	pthread_mutex_t lock;
	uint64_t last;
	/* order 0: free; fd: of our own */
	struct handshake {
		uint64_t order;
		int fd;
		bool dropped;
		struct origin from;
	} list[2 * LIMIT_PENDING];
} handshakes = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct connection {
	struct handshake *handshake;
	int fd;
	bool tls;
	uint32_t number;            /* never used twice */
	unsigned kept;              /* files of its mount that stand for shared handles */
	struct key key;             /* with tls: what it came by */
};

/* To the listener, who keeps what sessions share. */
static void tell_share(const struct connection *c, enum share_op op, const struct frame *f)
{
	struct share_message m = {.op = op, .connection = c->number};
	ssize_t n;

	if (f)
		m.token = (struct share_token){{f->seq, f->ctx}};
	do
		n = send(shared.listener, &m, sizeof m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		log_warning("the listener does not listen: %m");
}

static int keep(struct connection *c, struct stream *s, const struct frame *f)
{
	struct frame reply = {.kind = FRAME_KEPT, .seq = f->seq, .ctx = f->ctx};
	struct iovec v = {&reply, sizeof reply};

	reply.call = c->kept >= LIMIT_SHARED_EACH;
	if (!reply.call) {
		c->kept++;
		tell_share(c, SHARE_KEEP, f);
	}
	return stream_write_all(s, &v, 1, TIME_DEAD);
}

/* Answers one frame; 0, or -errno when the connection shall end. */
static int answer(struct connection *c, struct stream *s, const struct frame *f, uint8_t *buf)
{
	struct frame reply = {.kind = FRAME_PONG, .seq = f->seq};
	struct iovec v[2] = {{&reply, sizeof reply}};
	struct msg m;

	if (f->kind == FRAME_KEEP)
		return keep(c, s, f);
	if (f->kind == FRAME_DROP) {
		c->kept -= c->kept > 0;
		tell_share(c, SHARE_DROP, f);
		return 0;
	}
	msg_init(&m, buf, LIMIT_SNAPSHOT);
	if (f->kind == FRAME_GET_SNAPSHOT) {
		snapshot_encode(shared.snapshot, atomic_load(&shared.sessions), true, &m);
		if (m.bad)
			return -EMSGSIZE;
		reply.kind = FRAME_SNAPSHOT;
		reply.head_len = m.len;
	} else if (f->kind != FRAME_PING) {
		return -EPROTO;
	}
	v[1] = (struct iovec){buf, m.len};
	return stream_write_all(s, v, 2, TIME_DEAD);
}

static int serve_connection(struct connection *c, struct stream *s)
{
	uint8_t *buf = malloc(LIMIT_SNAPSHOT);
	struct frame f;
	int r = buf ? 0 : -ENOMEM;

	while (!r) {
		r = stream_read_all(s, &f, sizeof f, 2 * TIME_DEAD);
		if (!r)
			r = frame_check(&f, true, NULL);
		/* A mount asks every few seconds: soon enough to be told that its key is no more. */
		if (!r && c->tls && !monitor_keys_have(&c->key))
			r = -EKEYREVOKED;
		if (!r)
			r = answer(c, s, &f, buf);
	}
	free(buf);
	return r;
}

/* NULL: even those that were dropped are too many. */
static struct handshake *handshake_begin(int fd)
{
	struct handshake *h = NULL, *of[2 * LIMIT_PENDING];
	struct claim claim[2 * LIMIT_PENDING];
	int n = 0;

	pthread_mutex_lock(&handshakes.lock);
	for (unsigned i = 0; i < sizeof handshakes.list / sizeof *handshakes.list; i++) {
		struct handshake *k = &handshakes.list[i];

		if (!k->order) {
			h = k;
		} else if (!k->dropped) {
			claim[n] = (struct claim){k->from, k->order};
			of[n++] = k;
		}
	}
	if (n >= LIMIT_PENDING) {
		struct handshake *gone = of[origin_gives_way(claim, n)];

		shutdown(gone->fd, SHUT_RDWR);
		gone->dropped = true;
	}
	/* A descriptor of our own: the connection's may be closed, and be another's, before this ends. */
	if (h)
		*h = (struct handshake){.order = ++handshakes.last,
			.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3),
			.from = origin_of(fd)};
	pthread_mutex_unlock(&handshakes.lock);
	return h;
}

static void handshake_end(struct handshake *h)
{
	pthread_mutex_lock(&handshakes.lock);
	if (h->fd >= 0)
		close(h->fd);
	h->order = 0;
	pthread_mutex_unlock(&handshakes.lock);
}

/* Whoever reaches the port is refused as often as it likes. */
static bool may_log(void)
{
	pthread_mutex_lock(&handshakes.lock);
	bool may = pending_may_log();
	pthread_mutex_unlock(&handshakes.lock);
	return may;
}

static void *connection_main(void *arg)
{
	struct connection c = *(struct connection *)arg;
	const char *identity = "", *why = "";
	char peer[96];
	struct stream *s = NULL;
	struct monitor_keys *keys;
	int r;

	free(arg);
	address_peer(c.fd, peer, sizeof peer);
	keys = c.tls ? monitor_keys_take() : NULL;
	r = stream_accept(c.fd, monitor_keys_list(keys), TIME_TLS, &s, &identity, &why);
	if (!r && keys)
		c.key = *keys_find(monitor_keys_list(keys), identity);
	monitor_keys_give(keys);
	handshake_end(c.handshake);
	if (r) {
		if (may_log())
			log_warning("monitor connection from %s refused: %s", peer, why);
		return NULL;
	}
	if (atomic_fetch_add(&shared.connections, 1) >= LIMIT_SESSIONS) {
		log_warning("monitor connection of %s from %s refused: there are %u", identity, peer,
			LIMIT_SESSIONS);
		stream_close(s);
	} else {
		log_debug("monitor connection of %s from %s, TLS %s", identity, peer, stream_security(s));
		r = serve_connection(&c, s);
		tell_share(&c, SHARE_END, NULL);
		if (r == -EKEYREVOKED)
			log_info("monitor connection of %s from %s ended: its key was taken out or changed",
				identity, peer);
		else if (r != -ECONNRESET && r != -EPIPE)
			log_warning("monitor connection of %s from %s ended: %s", identity, peer,
				strerror(-r));
		stream_close(s);
	}
	explicit_bzero(&c.key, sizeof c.key);
	atomic_fetch_sub(&shared.connections, 1);
	return NULL;
}

static void start_connection(int fd, bool tls)
{
	struct connection *c = malloc(sizeof *c);
	pthread_attr_t attributes;
	pthread_t thread;
	int r = ENOMEM;

	struct handshake *h = c ? handshake_begin(fd) : NULL;

	if (c && !h)
		r = EUSERS;
	else if (c) {
		*c = (struct connection){.handshake = h, .fd = fd, .tls = tls,
			.number = atomic_fetch_add(&shared.last_connection, 1) + 1};
		pthread_attr_init(&attributes);
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		r = pthread_create(&thread, &attributes, connection_main, c);
		pthread_attr_destroy(&attributes);
	}
	if (!r)
		return;
	if (may_log())
		log_warning("monitor connection refused: %s", strerror(r));
	if (h)
		handshake_end(h);
	close(fd);
	free(c);
}

/* The listener has read the file just now, and found it right. */
static void read_keys_again(void)
{
	const char *why = "";
	struct keys *keys;
	int r = keys_load(shared.options->keys_path, &keys, &why);

	if (r)
		log_warning("%s: %s; mounts come by the old keys", shared.options->keys_path, why);
	else
		monitor_keys_set(keys);
}

/* One packet of the listener; false when it is gone. */
static bool obey(int fd)
{
	union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control;
	struct monitor_order order;
	struct iovec v = {&order, sizeof order};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			.msg_controllen = sizeof control};
	struct cmsghdr *c;
	int passed = -1;
	ssize_t n;

	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
			c->cmsg_len == CMSG_LEN(sizeof passed))
		memcpy(&passed, CMSG_DATA(c), sizeof passed);
	if (n != sizeof order)
		order.kind = MONITOR_KEYS + 1;
	if (order.kind == MONITOR_SESSIONS)
		atomic_store(&shared.sessions, order.value);
	else if (order.kind == MONITOR_KEYS)
		read_keys_again();
	else if (passed >= 0 && order.kind < MONITOR_SESSIONS) {
		start_connection(passed, order.kind == MONITOR_CONNECTION_TLS);
		passed = -1;
	}
	if (passed >= 0)
		close(passed);
	return true;
}

static int tell(int fd, const struct monitor_ready *r)
{
	ssize_t n;

	do
		n = send(fd, r, offsetof(struct monitor_ready, blob) + r->blob_len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -1 : 0;
}

_Noreturn void monitor_run(const struct options *o, struct keys *keys, int fd)
{
	static struct monitor_ready ready;
	const char *why = "";
	struct msg m;

	shared.options = o;
	shared.listener = fd;
	monitor_keys_set(keys);
	driver_clear_environment();
	if (driver_find(o->driver, &ready.choice, &ready.devices, ready.text, sizeof ready.text)) {
		ready.devices = 0;
		tell(fd, &ready);
		_exit(3);
	}
	shared.snapshot = snapshot_read(&ready.choice, ready.devices, &why);
	msg_init(&m, ready.blob, sizeof ready.blob);
	if (shared.snapshot) {
		snapshot_describe(shared.snapshot, ready.text, sizeof ready.text);
		snapshot_encode(shared.snapshot, 0, false, &m);
		why = "the snapshot is too large";
	}
	if (!shared.snapshot || m.bad) {
		ready.devices = 0;
		strcpy(ready.text, why);
		tell(fd, &ready);
		_exit(3);
	}
	ready.blob_len = m.len;
	if (tell(fd, &ready))
		_exit(1);
	while (obey(fd))
		;
	_exit(0);
}
