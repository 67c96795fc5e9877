/* SPDX-License-Identifier: Apache-2.0 */
/* A session's process: handshake, hello, driver, and then the reader, which is the main thread. The reader
 * never enters the driver, so it sees the end of the connection and ends the process while other threads
 * are inside it; the kernel and the driver then take back all that the session held.
 *
 * Thread rule: session_run is the main thread; the ends (session_end, session_lost) may come from any
 * thread, the first one counts. */
#include "server/session.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/cache.h"
#include "server/fence.h"
#include "server/nvml.h"
#include "server/state.h"
#include "wire/deadline.h"
#include "wire/keys.h"
#include "wire/log.h"
#include "wire/msg.h"
#include "wire/transport.h"

#define TIME_BYE 500            /* what saying BYE may take */
/* While a host function runs: how often the reader looks for its end in bytes that wait. */
#define TIME_SCAN 2

static struct session self = {
	.next_seq = 1,
	.baton = BATON_HELD,
	.second_asked = ATOMIC_FLAG_INIT,
	.input_lock = PTHREAD_MUTEX_INITIALIZER,
	.write_lock = PTHREAD_MUTEX_INITIALIZER,
	.alive_lock = PTHREAD_MUTEX_INITIALIZER,
	.ready_lock = PTHREAD_MUTEX_INITIALIZER,
	.ready_cond = PTHREAD_COND_INITIALIZER,
	.deliver_lock = PTHREAD_MUTEX_INITIALIZER,
	.later_lock = PTHREAD_MUTEX_INITIALIZER,
	.later_end = &self.later,
	.upcall_lock = PTHREAD_MUTEX_INITIALIZER,
	.upcall_cond = PTHREAD_COND_INITIALIZER,
	.output_lock = PTHREAD_MUTEX_INITIALIZER,
	.nvml_lock = PTHREAD_MUTEX_INITIALIZER,
};

struct session *session_self(void)
{
	return &self;
}

bool session_soft(const struct session *s)
{
	return s->start->driver.soft;
}

/* ---- the end ---- */

/* Says BYE unless another thread is stuck in the middle of a frame, and gives the peer a moment to read
 * it: closing with unread bytes would reset the connection and lose it. */
static void say_bye(struct session *s, CUresult code, const char *text)
{
	uint8_t head[512];
	struct frame f = {.kind = FRAME_BYE};
	struct iovec v[2] = {{&f, sizeof f}, {head, 0}};
	int64_t deadline = transport_now_ms() + TIME_BYE;
	struct msg m;

	msg_init(&m, head, sizeof head);
	put_array(&m, 2);
	put_i64(&m, code);
	put_text(&m, text);
	f.head_len = v[1].iov_len = m.len;
	if (deadline_lock(&s->write_lock, 200) || stream_write_all(s->stream, v, 2, TIME_BYE))
		return;
	shutdown(stream_fd(s->stream), SHUT_WR);
	while (transport_now_ms() < deadline) {
		struct timeval t = {0, 100000};
		ssize_t n;

		setsockopt(stream_fd(s->stream), SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
		n = recv(stream_fd(s->stream), head, sizeof head, 0);
		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
	}
}

static _Noreturn void finish(struct session *s, CUresult code, const char *fmt, va_list args)
{
	static atomic_flag first = ATOMIC_FLAG_INIT;
	struct report *r = s->start->report;

	/* Another thread ends the process this instant. */
	if (atomic_flag_test_and_set(&first))
		for (;;)
			pause();
	vsnprintf(r->reason, sizeof r->reason, fmt, args);
	atomic_store(&r->ended, 1);
	if (code && s->stream)
		say_bye(s, code, r->reason);
	_exit(0);
}

void session_end(struct session *s, CUresult code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	finish(s, code, fmt, args);
}

void session_lost(struct session *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	finish(s, 0, fmt, args);
}

/* ---- the driver ---- */

void session_wait_driver(struct session *s)
{
	if (atomic_load_explicit(&s->driver_ready, memory_order_acquire))
		return;
	pthread_mutex_lock(&s->ready_lock);
	while (!atomic_load(&s->driver_ready))
		pthread_cond_wait(&s->ready_cond, &s->ready_lock);
	pthread_mutex_unlock(&s->ready_lock);
}

/* NVML is loaded by the first call that needs it: a session that computes has no use for it. */
void session_wait_nvml(struct session *s)
{
	pthread_mutex_lock(&s->nvml_lock);
	if (!s->nvml_tried) {
		s->nvml_tried = true;
		if (session_soft(s)) {
			session_wait_driver(s);
			nvml_open_soft();
		} else if (!nvml_open()) {
			session_end(s, CUDA_ERROR_SYSTEM_NOT_READY, "this host has no NVML");
		} else {
			nvml_translate_processes();
		}
	}
	pthread_mutex_unlock(&s->nvml_lock);
}

static void *load_driver(void *arg)
{
	struct session *s = arg;
	char why[256];
	CUresult r;

	if (driver_open(&s->start->driver, why, sizeof why))
		session_end(s, CUDA_ERROR_MPS_SERVER_NOT_READY, "driver: %s", why);
	r = drv.cuInit(0);
	if (r)
		session_end(s, r, "driver: cuInit gave %d", (int)r);
	pthread_mutex_lock(&s->ready_lock);
	atomic_store_explicit(&s->driver_ready, 1, memory_order_release);
	pthread_cond_broadcast(&s->ready_cond);
	pthread_mutex_unlock(&s->ready_lock);
	return NULL;
}

static void start_driver(struct session *s)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, load_driver, s);

	if (r)
		session_end(s, CUDA_ERROR_OUT_OF_MEMORY, "thread: %s", strerror(r));
	pthread_detach(thread);
}

/* ---- the reader ---- */

/* The baton was free and bytes came: deal with what is no record, hand the first record to its thread. */
static void reader_turn(struct session *s)
{
	struct frame f;

	if (!baton_take(s))
		return;
	if (input_record(s, &f, false))
		baton_hand(s, &f);
	else
		baton_release(s);
}

/* Somebody has the baton and is in the driver. */
static bool holder_busy(struct session *s)
{
	return atomic_load(&s->baton) == BATON_HELD && !atomic_load(&s->receiving);
}

/* Every TIME_HEARTBEAT. A holder that is long in the driver cannot answer PING, so the reader speaks up. */
static void reader_tick(struct session *s)
{
	bool busy = holder_busy(s);

	if (busy) {
		input_scan(s);
		send_pong(s, 0);
	}
	alive_check(s, busy && !atomic_load(&s->held_up));
}

static void reader_event(struct session *s, const struct epoll_event *e)
{
	uint64_t count;

	if (e->data.fd == s->signals)
		session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "the server is stopping");
	if (e->data.fd == s->output || e->data.fd == s->errors) {
		output_drain(s, false);
		return;
	}
	if (e->data.fd == s->wake) {
		if (read(s->wake, &count, sizeof count) < 0 && errno != EAGAIN)
			session_lost(s, "eventfd: %s", strerror(errno));
	} else if (e->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		int error = 0;
		socklen_t n = sizeof error;

		getsockopt(stream_fd(s->stream), SOL_SOCKET, SO_ERROR, &error, &n);
		session_lost(s, error ? "connection: %s" : "the program closed the connection",
				strerror(error));
	}
	reader_turn(s);
}

static _Noreturn void reader_loop(struct session *s)
{
	int64_t tick = transport_now_ms() + TIME_HEARTBEAT;

	for (;;) {
		struct epoll_event e[4];
		int64_t left = tick - transport_now_ms();
		int n;

		if (left <= 0) {
			reader_tick(s);
			tick = transport_now_ms() + TIME_HEARTBEAT;
			continue;
		}
		if (atomic_load(&s->upcalls_waiting)) {
			if (holder_busy(s))
				input_scan(s);
			if (left > TIME_SCAN)
				left = TIME_SCAN;
		}
		n = epoll_wait(s->epoll, e, 4, left);
		if (n < 0 && errno != EINTR)
			session_lost(s, "epoll: %s", strerror(errno));
		for (int i = 0; i < n; i++)
			reader_event(s, &e[i]);
	}
}

/* ---- the beginning ---- */

static void watch(struct session *s, int fd, unsigned events)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	if (fd < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e))
		session_lost(s, "epoll: %s", strerror(errno));
}

static void open_reader(struct session *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	watch(s, s->signals, EPOLLIN);
	watch(s, s->wake, EPOLLIN);
	watch(s, s->output, EPOLLIN);
	if (s->errors >= 0)
		watch(s, s->errors, EPOLLIN);
	watch(s, stream_fd(s->stream), EPOLLRDHUP | EPOLLONESHOT);
}

static void accept_stream(struct session *s)
{
	const char *identity = "", *why = "";
	struct stream *stream;
	char client[LIMIT_NAME + 8];
	int r = stream_accept(s->start->fd, s->start->keys, TIME_TLS, &stream, &identity, &why);

	if (!r && s->start->preamble & (PREAMBLE_PACK | PREAMBLE_PACK_ALWAYS))
		r = stream_pack(stream, s->start->preamble & PREAMBLE_PACK_ALWAYS);
	/* No key stays in the memory of a process that runs the program's code. */
	keys_free(s->start->keys);
	if (r)
		session_lost(s, "%s", why);
	s->stream = stream;
	/* A key may have any name, a user's number included. */
	snprintf(client, sizeof client, "%s%s", s->start->keys ? "key " : "", identity);
	cache_open(s->start->cache, client);
	snprintf(s->report->identity, sizeof s->report->identity, "%s", identity);
	snprintf(s->report->security, sizeof s->report->security, "%s", stream_security(stream));
	atomic_store(&s->report->authenticated, 1);
}

void session_run(const struct session_start *start)
{
	struct session *s = &self;
	struct rlimit no_core = {0, 0};
	struct frame f;
	int r;

	s->start = start;
	s->report = start->report;
	s->began = s->heard = transport_now_ms();
	driver_clear_environment();
	setrlimit(RLIMIT_CORE, &no_core);
	mallopt(M_ARENA_MAX, 4);
	if (start->fence && (r = fence_build()) < 0)
		log_warning("address space not fenced: %s", strerror(-r));
	accept_stream(s);
	s->handles = handles_create();
	if (!input_open(s, FIRST, s->stream) || !s->handles)
		session_end(s, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
	r = output_open(s);
	if (r)
		session_end(s, CUDA_ERROR_OPERATING_SYSTEM, "standard output: %s", strerror(-r));
	open_reader(s);
	while (!s->greeted) {
		input_record(s, &f, true);
		hello_answer(s, &f);
	}
	if (s->wants_driver || session_soft(s))
		start_driver(s);
	baton_release(s);
	reader_loop(s);
}
