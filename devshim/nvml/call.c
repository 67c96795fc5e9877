/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the stubs: records of their own numbering, and, with some, the questions that are sent along
 * (ahead.h).
 *
 * Thread rule: session.h. */
#include "devshim/nvml/call.h"
#include <errno.h>
#include <stdlib.h>
#include "devshim/count.h"
#include "devshim/nvml/ahead.h"
#include "devshim/nvml/session.h"
#include "wire/log.h"
#include "wire/uncancelled.h"

#define AHEAD (sizeof(struct ctl_wait) + sizeof(struct frame))  /* of the head in a call's room */

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
		r = exchange_answer(fd, c, 0, p->seq[i], 0, &answer, &n);
		if (!r && !exchange_answers(answer, n, p->seq[i]))
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
	r = exchange_answer(fd, c, batch, f.seq, p.len + sizeof f + f.head_len, &answer, &n);
	if (!r)
		r = exchange_take(c, f.seq, answer, n);
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

void call_start(struct call *c, unsigned id)
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
	call_start(c, id);
	return r;
}

int call_wait(struct call *c)
{
	int saved = errno, r = c->out.bad ? NVML_ERROR_INVALID_ARGUMENT : send_record(c);

	errno = saved;
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
