/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's session with the mount: one open of ctl, opened by the first nvmlInit and closed by the last
 * nvmlShutdown. A forked child has none: NVML natively has to be initialised again there too.
 *
 * Thread rule: `lock` guards the life of the session and the numbering of records; nobody waits for the
 * server under it but in session_open. A call that is under way keeps the descriptor: session_close waits for
 * it. */
#include "devshim/nvml/ahead.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "devshim/count.h"
#include "nvml.calls.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/uncancelled.h"

#define MOUNT_DEFAULT "/mnt/scuda"
#define AHEAD (sizeof(struct ctl_wait) + sizeof(struct frame))  /* of the head in a call's room */

/* Tells a server that this is the shim, should its library path lead here. */
__attribute__((visibility("default"))) extern const char scudafs_shim_marker[];
const char scudafs_shim_marker[] = "scudafs";

static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	unsigned opens, calls;      /* nvmlInit less nvmlShutdown; calls under way */
	int fd;
	uint64_t seq, batch;        /* of records; of batches, which are one record as a rule */
	unsigned number;            /* of this session, among all that the process had */
	int error;                  /* errno that ended the session, else 0 */
	uint64_t unknown[(NVML_CALL_COUNT + 63) / 64];  /* calls that the server lacks */
	bool hooked;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER, .fd = -1};

static void in_child(void)
{
	session.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	session.idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	if (session.fd >= 0)
		close(session.fd);
	session.fd = -1;
	session.opens = session.calls = 0;
	ahead_in_child();
}

static unsigned long wait_class(size_t n)
{
	return n <= 256 ? CTL_WAIT_256 : n <= 1024 ? CTL_WAIT_1K : n <= 4096 ? CTL_WAIT_4K : CTL_WAIT_16K;
}

static ssize_t read_at(int fd, void *p, size_t n, int64_t at)
{
	ssize_t r;
	do
		r = pread(fd, p, n, at);
	while (r < 0 && (errno == EINTR || errno == EAGAIN));
	return r < 0 ? -errno : r;
}

/* Fetches an answer of n bytes that does not fit into the ioctl. */
static int fetch(int fd, struct call *c, uint64_t seq, size_t n)
{
	if (n > sizeof(struct frame) + LIMIT_HEAD + LIMIT_REPLY)
		return -EPROTO;
	free(c->large);
	c->large = malloc(n);
	for (size_t at = 0; c->large && at < n;) {
		size_t piece = n - at < LIMIT_BATCH ? n - at : LIMIT_BATCH;
		ssize_t r = read_at(fd, c->large + at, piece, CTL_REPLY(seq) + (int64_t)at);
		if (r <= 0)
			return r ? (int)r : -EPROTO;
		at += (size_t)r;
	}
	return c->large ? 0 : -ENOMEM;
}

/* Gives n bytes, which follow the ctl_wait in the call's room and end with the record of that seq, as a
 * batch, or nothing (batch 0), and parks until the answer is there: *answer points at the frame, *answer_len
 * its bytes. */
static int exchange(int fd, struct call *c, uint64_t batch, uint64_t seq, size_t n, const uint8_t **answer,
	size_t *answer_len)
{
	struct ctl_wait w = {.batch = batch, .seq = seq, .len = (uint32_t)n};
	unsigned long request;

	for (;;) {
		/* Answers are small as a rule; a larger one is fetched. */
		request = wait_class(sizeof w + (w.len > 1000 ? w.len : 1000));
		memcpy(c->room, &w, sizeof w);
		if (ioctl(fd, request, c->room) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		memcpy(&w, c->room, sizeof w);
		if (!(w.flags & CTL_AGAIN))
			break;
		w = (struct ctl_wait){.seq = seq};
	}
	*answer_len = w.len;
	*answer = c->room + sizeof w;
	count_received(w.len);
	if (!(w.flags & CTL_LARGE))
		return w.len <= _IOC_SIZE(request) - sizeof w ? 0 : -EPROTO;
	int r = fetch(fd, c, seq, w.len);
	*answer = c->large;
	return r;
}

/* Is it the answer to that record? */
static bool answers(const uint8_t *answer, size_t n, uint64_t seq)
{
	struct frame a;
	const char *why;

	if (n < sizeof a)
		return false;
	memcpy(&a, answer, sizeof a);
	return !frame_check(&a, false, &why) && a.kind == FRAME_REPLY && a.seq == seq && !a.bulk_len &&
	       n == sizeof a + a.head_len;
}

/* The answer's head into c->in. */
static int take(struct call *c, uint64_t seq, const uint8_t *answer, size_t n)
{
	if (!answers(answer, n, seq))
		return -EPROTO;
	msg_init(&c->in, (void *)(answer + sizeof(struct frame)), n - sizeof(struct frame));
	return 0;
}

/* The answers to what was sent along: they are at the daemon, or about to be. */
static int collect(int fd, const struct ahead_plan *p)
{
	struct call *c = malloc(sizeof *c);
	int r = c ? 0 : -ENOMEM;

	for (unsigned i = 0; !r && i < p->count; i++) {
		const uint8_t *answer;
		uint8_t *copy;
		size_t n;

		c->large = NULL;
		r = exchange(fd, c, 0, p->seq[i], 0, &answer, &n);
		if (!r && !answers(answer, n, p->seq[i]))
			r = -EPROTO;
		if (!r) {
			copy = malloc(n);
			if (copy) {
				memcpy(copy, answer, n);
				ahead_keep(p, i, copy, n);
			}
		}
		free(c->large);
	}
	free(c);
	return r;
}

/* Numbers the records of a batch: those sent along, then the call's own. The lock is held. */
static void number(struct ahead_plan *p, struct frame *f)
{
	size_t at = 0;

	for (unsigned i = 0; i < p->count; i++) {
		struct frame g;

		memcpy(&g, p->bytes + at, sizeof g);
		g.seq = p->seq[i] = ++session.seq;
		memcpy(p->bytes + at, &g, sizeof g);
		count_record(g.kind, g.flags, sizeof g + g.head_len);
		at += sizeof g + g.head_len;
	}
	f->seq = ++session.seq;
	count_record(f->kind, f->flags, sizeof *f + f->head_len);
}

static int send_record(struct call *c)
{
	uncancelled state = uncancelled_begin();
	struct frame f = {.kind = FRAME_WAIT, .call = (uint16_t)c->id, .thread = c->thread};
	f.head_len = (uint32_t)c->out.len;
	const uint8_t *answer = NULL;
	struct ahead_plan p;
	uint64_t batch;
	size_t n = 0;
	int r, fd;

	if (ahead_ask(c, &p))
		return 0;
	if (p.len + sizeof f + c->out.len > sizeof c->room - 1 - sizeof(struct ctl_wait))
		p.count = 0, p.len = 0;
	pthread_mutex_lock(&session.lock);
	if (session.fd < 0 || session.error) {
		r = session.error ? -session.error : -ENOTCONN;
		pthread_mutex_unlock(&session.lock);
		return r;
	}
	number(&p, &f);
	batch = ++session.batch;
	fd = session.fd;
	session.calls++;
	pthread_mutex_unlock(&session.lock);
	if (p.count) {
		log_debug("%u questions are asked with %s", p.count, nvml_call_names[c->id].name);
		memmove(c->room + AHEAD + p.len, c->room + AHEAD, c->out.len);
		memcpy(c->room + sizeof(struct ctl_wait), p.bytes, p.len);
	}
	else
		log_debug("%s is asked alone", nvml_call_names[c->id].name);
	memcpy(c->room + sizeof(struct ctl_wait) + p.len, &f, sizeof f);
	r = exchange(fd, c, batch, f.seq, p.len + sizeof f + f.head_len, &answer, &n);
	if (!r)
		r = take(c, f.seq, answer, n);
	if (!r && p.count)
		r = collect(fd, &p);
	pthread_mutex_lock(&session.lock);
	if (r && !session.error) {
		session.error = -r;
		log_errno(r, "the session is over: %m");
	}
	if (!--session.calls)
		pthread_cond_broadcast(&session.idle);
	pthread_mutex_unlock(&session.lock);
	return r;
}

/* ---- the stubs' calls ---- */

static void begin(struct call *c, unsigned id)
{
	c->id = id;
	c->thread = 1;
	c->large = NULL;
	msg_init(&c->out, c->room + AHEAD, sizeof c->room - 1 - AHEAD);
	msg_init(&c->in, NULL, 0);
}

int call_begin(struct call *c, unsigned id)
{
	int r = 0;

	pthread_mutex_lock(&session.lock);
	if (!session.opens)
		r = NVML_ERROR_UNINITIALIZED;
	else if (session.unknown[id / 64] >> id % 64 & 1)
		r = NVML_ERROR_FUNCTION_NOT_FOUND;
	pthread_mutex_unlock(&session.lock);
	begin(c, id);
	return r;
}

int call_wait(struct call *c)
{
	int r = c->out.bad ? NVML_ERROR_INVALID_ARGUMENT : send_record(c);

	if (r)
		return r < 0 ? NVML_SESSION(-r) : r;
	r = (int)get_i64(&c->in);
	return c->in.bad ? NVML_SESSION(EPROTO) : r;
}

int call_end(struct call *c, int r)
{
	if (!r && !get_end(&c->in))
		r = NVML_SESSION(EPROTO);
	free(c->large);
	c->large = NULL;
	return r;
}

nvmlReturn_t nvml_local(int r)
{
	return nvml_remote(r);
}

nvmlReturn_t nvml_remote(int r)
{
	if (r < NVML_SESSION(0))
		return (nvmlReturn_t)r;
	switch (r - NVML_SESSION(0)) {
	case ENOENT: case ENOTDIR: case ECONNREFUSED: case EHOSTUNREACH: case ETIMEDOUT:
		return session.seq ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_DRIVER_NOT_LOADED;
	case EACCES: case EPERM:
		return NVML_ERROR_NO_PERMISSION;
	case ENOMEM:
		return NVML_ERROR_MEMORY;
	default:
		return NVML_ERROR_GPU_IS_LOST;
	}
}

bool put_handle(struct call *c, unsigned type, const void *h)
{
	(void)type;
	put_u64(&c->out, (uintptr_t)h);
	return true;
}

void *get_handle(struct call *c, unsigned type)
{
	(void)type;
	return (void *)(uintptr_t)get_u64(&c->in);
}

void handle_drop(unsigned type, const void *h)
{
	(void)type;
	(void)h;
}

nvmlReturn_t nvml_call_unsupported(unsigned id, const char *why)
{
	log_info("%s is not supported: %s", nvml_call_names[id].name, why);
	return NVML_ERROR_NOT_SUPPORTED;
}

/* ---- the session's life ---- */

/* The calls by the number of their list; or, for a server of another build, one by one. */
static void put_hello(struct msg *m, bool listed)
{
	const char *user = getenv("USER");

	put_map(m, 7);
	put_text(m, "protocol"), put_u64(m, PROTOCOL_VERSION);
	put_text(m, "version"), put_text(m, VERSION);
	put_text(m, "pid"), put_u64(m, (uint64_t)getpid());
	put_text(m, "uid"), put_u64(m, getuid());
	put_text(m, "user"), put_text(m, user && strlen(user) < LIMIT_NAME ? user : "");
	put_text(m, "command"), put_text(m, program_invocation_short_name);
	if (!listed) {
		put_text(m, "list"), put_u64(m, NVML_CALL_LIST);
		return;
	}
	put_text(m, "calls"), put_array(m, NVML_CALL_COUNT);
	for (unsigned i = 0; i < NVML_CALL_COUNT; i++) {
		put_array(m, 2);
		put_text(m, nvml_call_names[i].name);
		put_u64(m, nvml_call_names[i].signature);
	}
}

/* Notes the calls that the server lacks; *again: it wants to see the list. 0, or -EPROTO. */
static int take_hello(struct msg *m, bool *again)
{
	char field[64];
	size_t n = get_map(m, 64);

	for (size_t i = 0; i < n && !m->bad; i++) {
		get_text(m, field, sizeof field);
		if (!strcmp(field, "unknown")) {
			for (size_t k = get_array(m, LIMIT_CALLS); k && !m->bad; k--) {
				uint64_t id = get_u64(m);
				if (id < NVML_CALL_COUNT)
					session.unknown[id / 64] |= (uint64_t)1 << id % 64;
			}
		} else if (!strcmp(field, "again")) {
			*again = get_bool(m);
		} else {
			get_skip(m);
		}
	}
	return get_end(m) ? 0 : -EPROTO;
}

/* One that lists the calls is larger than an ioctl takes: its bytes go ahead as a batch, the wait follows. */
static int send_hello(int fd, struct call *c, uint8_t *bytes, uint64_t number, bool *again)
{
	struct frame f = {.kind = FRAME_HELLO, .thread = 1, .seq = number};
	const uint8_t *answer;
	size_t n = sizeof f, there;
	struct msg m;
	bool listed = *again;
	ssize_t r = 0;

	msg_init(&m, bytes + sizeof f, LIMIT_HEAD);
	put_hello(&m, listed);
	f.head_len = (uint32_t)m.len;
	memcpy(bytes, &f, sizeof f);
	n += m.len;
	count_record(f.kind, f.flags, n);
	if (listed) {
		do
			r = pwrite(fd, bytes, n, CTL_POST(number));
		while (r < 0 && errno == EINTR);
		if (r < 0)
			return -errno;
	} else {
		memcpy(c->room + sizeof(struct ctl_wait), bytes, n);
	}
	*again = false;
	r = exchange(fd, c, listed ? 0 : number, number, listed ? 0 : n, &answer, &there);
	if (!r)
		r = take(c, number, answer, there);
	if (!r)
		r = take_hello(&c->in, again);
	return r ? (int)r : *again && listed ? -EPROTO : 0;
}

/* The lock is held. Returns the number of hellos that it took, or -errno. */
static int hello(int fd)
{
	uint8_t *bytes = malloc(sizeof(struct frame) + LIMIT_HEAD);
	struct call *c = malloc(sizeof *c);
	bool again = false;
	int r = -ENOMEM, number = 0;

	if (bytes && c) {
		begin(c, 0);
		do
			r = send_hello(fd, c, bytes, (uint64_t)++number, &again);
		while (!r && again);
		free(c->large);
	}
	free(bytes);
	free(c);
	return r ? r : number;
}

const char *mount_path(void)
{
	const char *mount = getenv("SCUDAFS_MOUNT");

	return mount && *mount ? mount : MOUNT_DEFAULT;
}

static int open_session(void)
{
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof path, "%s/" CTL_NAME, mount_path());
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return log_errno(-errno, "%s: %m", path);
	memset(session.unknown, 0, sizeof session.unknown);
	r = hello(fd);
	if (r < 0) {
		close(fd);
		return log_errno(r, "hello: %m");
	}
	session.fd = fd;
	session.seq = session.batch = (uint64_t)r;
	session.error = 0;
	session.number++;
	return 0;
}

unsigned session_number(void)
{
	pthread_mutex_lock(&session.lock);
	unsigned n = session.number;
	pthread_mutex_unlock(&session.lock);
	return n;
}

int session_open(void)
{
	uncancelled state = uncancelled_begin();
	int r = 0;

	pthread_mutex_lock(&session.lock);
	if (!session.hooked) {
		log_init("libnvidia-ml", -1);
		pthread_atfork(NULL, NULL, in_child);
		session.hooked = true;
	}
	if (!session.opens)
		r = open_session();
	if (!r)
		session.opens++;
	pthread_mutex_unlock(&session.lock);
	return r ? NVML_SESSION(-r) : 0;
}

int session_close(void)
{
	uncancelled state = uncancelled_begin();
	pthread_mutex_lock(&session.lock);
	if (!session.opens) {
		pthread_mutex_unlock(&session.lock);
		return NVML_ERROR_UNINITIALIZED;
	}
	if (!--session.opens) {
		while (session.calls)
			pthread_cond_wait(&session.idle, &session.lock);
		close(session.fd);
		session.fd = -1;
		session.seq = 0;
		ahead_forget();
	}
	pthread_mutex_unlock(&session.lock);
	return 0;
}
