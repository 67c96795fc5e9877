/* SPDX-License-Identifier: Apache-2.0 */
/* A bare client for tests of the session process: the process is forked over a socketpair, records are
 * built by hand. The driver is the software device, or what SCUDAFS_TEST_LIBRARY names. One thread. */
#pragma once
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/exec.h"
#include "wire/handle.h"
#include "server/report.h"
#include "server/session.h"
#include "wire/copy.h"
#include "wire/frame.h"
#include "wire/log.h"
#include "wire/msg.h"
#include "wire/transport.h"
#include "tests/unit/unit.h"
#include "cuda.calls.h"

#define PRIMARY HANDLE_ID(HANDLE_CUcontext, HANDLE_FIRST)

struct client {
	int fd;
	pid_t pid;
	uint64_t seq;
	uint64_t beats;         /* not 0: says PING of that number while it reads, as a mount does */
	int64_t beat;           /* when it said so last, ms */
	struct report *report;
	struct session_start start;
};

struct reply {
	struct frame f;
	uint8_t head[LIMIT_HEAD];
	uint8_t *bulk;
	struct msg m;           /* behind the result of a REPLY */
	int code;
};

static const char *test_library(void)
{
	static char path[300];
	const char *b = getenv("B"), *other = getenv("SCUDAFS_TEST_LIBRARY");

	snprintf(path, sizeof path, "%s/lib/libscuda-soft.so", b ? b : "build");
	return other ? other : path;
}

static void client_start(struct client *c)
{
	static const uint8_t empty_map[] = {0x80};
	int pair[2];

	memset(c, 0, sizeof *c);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	c->report = mmap(NULL, sizeof *c->report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(c->report, MAP_FAILED);
	c->start = (struct session_start){.id = 7, .fd = pair[1], .report = c->report, .snapshot = empty_map,
		.snapshot_len = sizeof empty_map};
	snprintf(c->start.driver.path, sizeof c->start.driver.path, "%s", test_library());
	c->start.driver.soft = true;
	fflush(NULL);
	c->pid = fork();
	ck_assert_int_ge(c->pid, 0);
	if (!c->pid) {
		close(pair[0]);
		log_init("session", LOG_LEVEL_ERROR);
		signal(SIGPIPE, SIG_IGN);
		session_run(&c->start);
	}
	close(pair[1]);
	c->fd = pair[0];
}

/* The exit status; fails when the process does not end within 5 s (unit_slow) or dies of a signal. */
static void client_finish(struct client *c, const char *reason)
{
	int status = -1;

	for (int i = 0; i < 500 * unit_slow() && !waitpid(c->pid, &status, WNOHANG); i++)
		usleep(10000);
	if (status == -1) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
		ck_abort_msg("the session did not end");
	}
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status %#x, %s", status, c->report->reason);
	ck_assert_int_eq(atomic_load(&c->report->ended), 1);
	if (reason)
		ck_assert_msg(strstr(c->report->reason, reason) != NULL, "reason: %s", c->report->reason);
	munmap(c->report, sizeof *c->report);
	if (c->fd >= 0)
		close(c->fd);
}

static void client_close(struct client *c)
{
	close(c->fd);
	c->fd = -1;
	client_finish(c, NULL);
}

static void client_raw(struct client *c, const void *p, size_t n)
{
	while (n) {
		ssize_t r = send(c->fd, p, n, MSG_NOSIGNAL);

		/* A session that ended has said why in its report. */
		if (r < 0)
			return;
		p = (const uint8_t *)p + r;
		n -= r;
	}
}

static uint64_t client_send(struct client *c, struct frame f, const struct msg *head, const void *bulk,
		size_t n)
{
	if (f.kind <= FRAME_THREAD_END)
		f.seq = ++c->seq;
	f.head_len = head ? head->len : 0;
	f.bulk_len = n;
	client_raw(c, &f, sizeof f);
	if (head)
		client_raw(c, head->buf, head->len);
	client_raw(c, bulk, n);
	return f.seq;
}

static bool client_readable(struct client *c)
{
	const struct frame ping = {.kind = FRAME_PING, .seq = c->beats};
	const int64_t end = transport_now_ms() + 20000 * unit_slow();
	struct pollfd w = {.fd = c->fd, .events = POLLIN};
	int64_t now;
	int ready;

	do {
		now = transport_now_ms();
		if (c->beats && now - c->beat >= TIME_HEARTBEAT) {
			client_raw(c, &ping, sizeof ping);
			c->beat = now;
		}
		ready = poll(&w, 1, c->beats ? TIME_HEARTBEAT : (int)(end - now));
	} while (!ready && c->beats && now < end);
	return ready == 1;
}

/* The connection is over, `r` as recv gave it: fails, and tells how the process ended. */
static void client_closed(struct client *c, ssize_t r)
{
	const char *how = r ? strerror(errno) : "the end of the stream";
	int status = -1;

	for (int i = 0; i < 100 && !waitpid(c->pid, &status, WNOHANG); i++)
		usleep(10000);
	ck_abort_msg("the session closed: '%s', %s, status %#x", c->report->reason, how, (unsigned)status);
}

static void client_read(struct client *c, void *p, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t r;

		ck_assert_msg(client_readable(c), "the session does not answer");
		r = recv(c->fd, (uint8_t *)p + got, n - got, 0);
		if (r <= 0)
			client_closed(c, r);
		got += r;
	}
}

/* The next frame of any kind. */
static void client_frame(struct client *c, struct reply *r)
{
	const char *why = "";

	client_read(c, &r->f, sizeof r->f);
	ck_assert_msg(!frame_check(&r->f, false, &why), "%s", why);
	client_read(c, r->head, r->f.head_len);
	r->bulk = realloc(r->bulk, r->f.bulk_len + 1);
	client_read(c, r->bulk, r->f.bulk_len);
	msg_init(&r->m, r->head, r->f.head_len);
}

/* The next one that is no PONG; fails unless it is the REPLY to seq. Returns its result. */
static int client_reply(struct client *c, struct reply *r, uint64_t seq)
{
	do
		client_frame(c, r);
	while (r->f.kind == FRAME_PONG);
	ck_assert_msg(r->f.kind == FRAME_REPLY, "%s instead of REPLY", frame_kind_name(r->f.kind));
	ck_assert_uint_eq(r->f.seq, seq);
	r->code = get_i64(&r->m);
	return r->code;
}

static void client_hello_head(struct msg *m)
{
	put_map(m, 4);
	put_text(m, "protocol");
	put_i64(m, PROTOCOL_VERSION);
	put_text(m, "command");
	put_text(m, "test");
	put_text(m, "pid");
	put_i64(m, getpid());
	put_text(m, "calls");
	put_array(m, CALL_COUNT);
	for (int i = 0; i < CALL_COUNT; i++) {
		put_array(m, 2);
		put_text(m, call_names[i].name);
		put_u64(m, call_names[i].signature);
	}
}

static void client_hello(struct client *c)
{
	static uint8_t buf[LIMIT_HEAD];
	struct reply r = {0};
	struct msg m;
	uint64_t seq;

	msg_init(&m, buf, sizeof buf);
	client_hello_head(&m);
	ck_assert(!m.bad);
	seq = client_send(c, (struct frame){.kind = FRAME_HELLO, .thread = 1}, &m, NULL, 0);
	client_frame(c, &r);
	ck_assert_int_eq(r.f.kind, FRAME_REPLY);
	ck_assert_uint_eq(r.f.seq, seq);
	ck_assert_uint_eq(get_map(&r.m, 10), 7);
	free(r.bulk);
}

/* A call with up to four unsigned arguments. */
static uint64_t client_call(struct client *c, unsigned kind, unsigned call, unsigned thread, uint64_t ctx,
		int n, const uint64_t *v)
{
	uint8_t buf[128];
	struct msg m;

	msg_init(&m, buf, sizeof buf);
	for (int i = 0; i < n; i++)
		put_u64(&m, v[i]);
	return client_send(c, (struct frame){.kind = kind, .call = call, .thread = thread, .ctx = ctx}, &m,
			NULL, 0);
}
#define CALL(c, kind, call, thread, ctx, ...) client_call(c, kind, CALL_##call, thread, ctx, \
	sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

/* Retains the primary context of device 0, so that calls with ctx PRIMARY work. */
static void client_context(struct client *c)
{
	struct reply r = {0};

	ck_assert_int_eq(client_reply(c, &r, CALL(c, FRAME_WAIT, cuDevicePrimaryCtxRetain, 1, 0, 0)), 0);
	ck_assert_uint_eq(get_u64(&r.m), PRIMARY);
	free(r.bulk);
}

/* The session ends, for this reason, and has said so to us. */
static inline void client_bye(struct client *c, const char *reason)
{
	struct reply r = {0};

	do
		client_frame(c, &r);
	while (r.f.kind != FRAME_BYE);
	ck_assert_uint_eq(get_array(&r.m, 2), 2);
	ck_assert_int_ne(get_i64(&r.m), 0);
	get_skip(&r.m);
	ck_assert(get_end(&r.m));
	free(r.bulk);
	/* The session waits for us to have read it. */
	close(c->fd);
	c->fd = -1;
	client_finish(c, reason);
}
