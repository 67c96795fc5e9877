/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor connection: connect, ask for snapshots, measure the round trip, notice the end, try again with
 * growing pauses.
 *
 * Thread rule: `lock` guards the view and the wish for a snapshot; the stream is the thread's own. */
#include "scudafs/monitor.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "scudafs/buffer.h"
#include "scudafs/clock.h"
#include "scudafs/relay.h"
#include "scudafs/text.h"
#include "wire/deadline.h"
#include "wire/frame.h"
#include "wire/log.h"
#include "wire/msg.h"
#include "wire/stream.h"

#define FRESH_MS 1000               /* a snapshot younger than this is not asked for again */
#define STALE_MS 10000              /* one older than this is renewed though nobody reads */
#define PAUSE_FIRST_MS 200
#define PAUSE_MOST_MS 5000

struct monitor {
	pthread_mutex_t lock;
	pthread_cond_t settled;
	struct monitor_view view;
	bool wanted;                /* values were read since the last snapshot was asked for */
	bool done;                  /* a first result is there */
	atomic_bool stop;
	const char *address;
	struct credential *credential;
	int wake_fd;
	struct keeper keeper;
	pthread_t thread;
	bool started;
	/* the thread's own */
	struct stream *stream;
	uint64_t asked_at, heard_at, ping_at, ping_us, seq;
	bool asking, pinging;
	struct snapshot incoming;
	uint8_t head[LIMIT_SNAPSHOT];
};

const char *monitor_address(const struct monitor *m)
{
	return m->address;
}

const struct monitor_view *monitor_lock(struct monitor *m)
{
	pthread_mutex_lock(&m->lock);
	return &m->view;
}

void monitor_unlock(struct monitor *m)
{
	pthread_mutex_unlock(&m->lock);
}

static void wake(struct monitor *m)
{
	uint64_t one = 1;
	if (write(m->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_warning("%s: wake: %m", m->address);
}

void monitor_touch(struct monitor *m)
{
	pthread_mutex_lock(&m->lock);
	bool first = !m->wanted;
	m->wanted = true;
	pthread_mutex_unlock(&m->lock);
	if (first)
		wake(m);
}

void monitor_keep(struct monitor *m, struct kept *file)
{
	keeper_open(&m->keeper, file);
	wake(m);
}

void monitor_drop(struct monitor *m, struct kept *file)
{
	if (keeper_close(&m->keeper, file))
		wake(m);
}

static void settle(struct monitor *m)
{
	m->done = true;
	pthread_cond_broadcast(&m->settled);
}

void monitor_accept(struct monitor *m, const struct snapshot *s)
{
	pthread_mutex_lock(&m->lock);
	if (m->view.state == MONITOR_LOST && m->view.known) {
		log_info("%s: back again", m->address);
		atomic_fetch_add(&counters.reconnects, 1);
	}
	m->view.snapshot = *s;
	m->view.state = MONITOR_READY;
	m->view.known = true;
	m->view.error = 0;
	m->view.why[0] = '\0';
	settle(m);
	pthread_mutex_unlock(&m->lock);
}

static void lost(struct monitor *m, int error, const char *why)
{
	if (atomic_load(&m->stop))
		return;
	pthread_mutex_lock(&m->lock);
	if (m->view.state != MONITOR_LOST || strcmp(m->view.why, why))
		log_warning("%s: %s", m->address, why);
	m->view.state = MONITOR_LOST;
	m->view.error = error;
	snprintf(m->view.why, sizeof(m->view.why), "%s", why);
	text_clean(m->view.why);
	settle(m);
	pthread_mutex_unlock(&m->lock);
}

static int send_frame(struct monitor *m, unsigned kind)
{
	struct frame f = {.kind = (uint8_t)kind, .seq = ++m->seq};
	struct iovec v = {&f, sizeof(f)};
	return stream_write_all(m->stream, &v, 1, TIME_DEAD);
}

static int ask(struct monitor *m, uint64_t now)
{
	m->asking = true;
	m->asked_at = now;
	pthread_mutex_lock(&m->lock);
	m->wanted = false;
	pthread_mutex_unlock(&m->lock);
	return send_frame(m, FRAME_GET_SNAPSHOT);
}

static int on_bye(struct monitor *m, size_t n, char *why, size_t cap)
{
	struct msg in;
	char text[100];
	msg_init(&in, m->head, n);
	get_array(&in, 2);
	get_i64(&in);
	get_text(&in, text, sizeof(text));
	snprintf(why, cap, "the server ended the connection: %s", get_end(&in) ? text : "no reason given");
	return -ESHUTDOWN;
}

/* One frame from the server. 0 or -errno with `why`. */
static int receive(struct monitor *m, char *why, size_t cap)
{
	struct frame f;
	const char *wrong = NULL;
	int e = stream_read_all(m->stream, &f, sizeof(f), TIME_DEAD);
	if (!e && (frame_check(&f, false, &wrong) || f.bulk_len || f.head_len > sizeof(m->head))) {
		snprintf(why, cap, "a bad frame: %s", wrong ? wrong : "too long");
		return -EPROTO;
	}
	if (!e)
		e = stream_read_all(m->stream, m->head, f.head_len, TIME_DEAD);
	if (e) {
		snprintf(why, cap, "%s", e == -ECONNRESET ? "the connection has ended" : strerror(-e));
		return e;
	}
	m->heard_at = clock_ms();
	if (f.kind == FRAME_PONG) {
		uint64_t rtt = clock_us() - m->ping_us;
		m->pinging = false;
		pthread_mutex_lock(&m->lock);
		m->view.rtt_us = rtt ? rtt : 1;
		pthread_mutex_unlock(&m->lock);
		return 0;
	}
	if (f.kind == FRAME_KEPT && keeper_answer(&m->keeper, &f))
		return 0;
	if (f.kind == FRAME_BYE)
		return on_bye(m, f.head_len, why, cap);
	if (f.kind != FRAME_SNAPSHOT || snapshot_decode(m->head, f.head_len, &m->incoming)) {
		bool malformed = f.kind == FRAME_SNAPSHOT;
		snprintf(why, cap, "%s", malformed ? "a malformed snapshot" : "an unexpected frame");
		return -EPROTO;
	}
	m->asking = false;
	monitor_accept(m, &m->incoming);
	return 0;
}

static int tell_keeps(struct monitor *m)
{
	struct frame f;
	int e = 0;
	while (!e && keeper_next(&m->keeper, &f)) {
		struct iovec v = {&f, sizeof(f)};
		e = stream_write_all(m->stream, &v, 1, TIME_DEAD);
	}
	return e;
}

/* What is due now, and how long until the next thing is, in *timeout. */
static int keep_time(struct monitor *m, int *timeout, char *why, size_t cap)
{
	uint64_t now = clock_ms();
	int e = 0;
	if ((m->pinging || m->asking) && clock_since(now, m->heard_at) >= TIME_DEAD) {
		snprintf(why, cap, "silent for %d ms", TIME_DEAD);
		return -ETIMEDOUT;
	}
	if (keeper_is_overdue(&m->keeper)) {
		snprintf(why, cap, "it does not say whether it keeps a shared handle");
		return -ETIMEDOUT;
	}
	pthread_mutex_lock(&m->lock);
	bool wanted = m->wanted;
	pthread_mutex_unlock(&m->lock);
	uint64_t age = now - m->asked_at;
	if (!m->asking && (age >= STALE_MS || (wanted && age >= FRESH_MS)))
		e = ask(m, now);
	if (!e && now >= m->ping_at) {
		m->ping_at = now + TIME_HEARTBEAT;
		buffer_trim();
		if (!m->pinging) {
			m->pinging = true;
			m->ping_us = clock_us();
			e = send_frame(m, FRAME_PING);
		}
	}
	*timeout = (int)(m->ping_at - now);
	if (wanted && !m->asking && age < FRESH_MS && *timeout > (int)(FRESH_MS - age))
		*timeout = (int)(FRESH_MS - age);
	if (!e)
		e = tell_keeps(m);
	if (e)
		snprintf(why, cap, "%s", strerror(-e));
	return e;
}

/* Serves a connection until it ends; says why. */
static int serve(struct monitor *m, char *why, size_t cap)
{
	m->asking = m->pinging = false;
	m->heard_at = clock_ms();
	m->asked_at = m->heard_at - STALE_MS;
	m->ping_at = m->heard_at;
	while (!atomic_load(&m->stop)) {
		int timeout, e = keep_time(m, &timeout, why, cap);
		if (e)
			return e;
		struct pollfd p[2] = {
			{.fd = stream_fd(m->stream), .events = POLLIN}, {.fd = m->wake_fd, .events = POLLIN}};
		bool pending = stream_pending(m->stream);
		if (poll(p, 2, pending ? 0 : timeout) < 0 && errno != EINTR) {
			snprintf(why, cap, "poll: %s", strerror(errno));
			return -EIO;
		}
		uint64_t count;
		if (p[1].revents && read(m->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			log_warning("%s: eventfd: %m", m->address);
		if ((pending || p[0].revents) && (e = receive(m, why, cap)))
			return e;
	}
	return 0;
}

static void pause_for(struct monitor *m, int ms)
{
	uint64_t end = clock_ms() + (uint64_t)ms, now, count;
	while (!atomic_load(&m->stop) && (now = clock_ms()) < end) {
		struct pollfd p = {.fd = m->wake_fd, .events = POLLIN};
		if (poll(&p, 1, (int)(end - now)) > 0 && read(m->wake_fd, &count, sizeof(count)) < 0)
			log_warning("%s: eventfd: %m", m->address);
	}
}

static void *monitor_main(void *arg)
{
	struct monitor *m = arg;
	int pause = PAUSE_FIRST_MS;
	while (!atomic_load(&m->stop)) {
		char why[160] = "";
		const char *reason = NULL;
		int e = credential_connect(m->credential, m->address, PREAMBLE_MONITOR, TIME_CONNECT,
			&m->stream, &reason);
		if (e) {
			lost(m, -e, reason ? reason : strerror(-e));
		} else {
			pthread_mutex_lock(&m->lock);
			snprintf(m->view.security, sizeof(m->view.security), "%s",
				stream_security(m->stream));
			pthread_mutex_unlock(&m->lock);
			uint64_t since = clock_ms();
			keeper_up(&m->keeper);
			e = serve(m, why, sizeof(why));
			keeper_down(&m->keeper, e ? -e : ESHUTDOWN);
			stream_close(m->stream);
			m->stream = NULL;
			lost(m, -e, why);
			if (clock_ms() - since > PAUSE_MOST_MS)
				pause = PAUSE_FIRST_MS;
		}
		pause_for(m, pause);
		pause = pause * 2 < PAUSE_MOST_MS ? pause * 2 : PAUSE_MOST_MS;
	}
	return NULL;
}

struct monitor *monitor_create(const char *address, struct credential *credential)
{
	struct monitor *m = calloc(1, sizeof(*m));
	if (!m || (m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		free(m);
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->settled, NULL);
	keeper_init(&m->keeper);
	m->address = address;
	m->credential = credential;
	return m;
}

int monitor_start(struct monitor *m)
{
	int e = pthread_create(&m->thread, NULL, monitor_main, m);
	m->started = !e;
	return -e;
}

void monitor_settle(struct monitor *m, uint64_t deadline)
{
	pthread_mutex_lock(&m->lock);
	while (m->started && !m->done) {
		struct timespec t = {
			.tv_sec = (time_t)(deadline / 1000), .tv_nsec = (long)(deadline % 1000) * 1000000};
		if (pthread_cond_clockwait(&m->settled, &m->lock, CLOCK_MONOTONIC, &t) != ETIMEDOUT)
			continue;
		m->view.error = ETIMEDOUT;
		snprintf(m->view.why, sizeof(m->view.why), "no answer in time");
		break;
	}
	pthread_mutex_unlock(&m->lock);
}

void monitor_destroy(struct monitor *m)
{
	if (!m)
		return;
	atomic_store(&m->stop, true);
	wake(m);
	if (m->started && deadline_join(m->thread, 1000)) {
		pthread_detach(m->thread);
		return;
	}
	close(m->wake_fd);
	pthread_mutex_destroy(&m->lock);
	pthread_cond_destroy(&m->settled);
	free(m);
}
