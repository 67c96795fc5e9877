/* SPDX-License-Identifier: Apache-2.0 */
/* The queues behind streams: submission, order, runner threads, marks, waits for all that is queued.
 *
 * Thread rule: see stream.h. */
#include "server/soft/stream.h"
#include <signal.h>
#include <stdlib.h>
#include "server/soft/capture.h"
#include "server/soft/engine.h"
#include "server/soft/logs.h"
#include "wire/deadline.h"
#include "wire/log.h"

/* ---- marks */

static struct mark *mark_create(void)
{
	struct mark *m = calloc(1, sizeof *m);
	if (m) {
		m->refs = 1;
		m->serial = ++soft.serial;
	}
	return m;
}

struct mark *mark_ref(struct mark *m)
{
	if (m)
		m->refs++;
	return m;
}

void mark_unref(struct mark *m)
{
	if (m && !--m->refs)
		free(m);
}

static void mark_end(struct mark *m)
{
	m->time = now_ns();
	m->done = true;
	pthread_cond_broadcast(&soft.progress);
}

void mark_wait(struct mark *m)
{
	mark_ref(m);
	while (!m->done)
		pthread_cond_wait(&soft.progress, &soft.lock);
	mark_unref(m);
}

void print_pending(void)
{
	pthread_mutex_unlock(&soft.lock);
	engine_printf_flush();
	pthread_mutex_lock(&soft.lock);
}

/* ---- running */

static bool ready(const struct stream *s)
{
	const struct op *op = s->head;
	if (!op || s->running)
		return false;
	for (unsigned i = 0; i < op->nwaits; i++)
		if (!op->waits[i]->done)
			return false;
	return true;
}

static void op_free(struct op *op)
{
	work_finish(&op->work);
	for (unsigned i = 0; i < op->nwaits; i++)
		mark_unref(op->waits[i]);
	free(op->waits);
	mark_unref(op->mark);
	free(op);
}

/* Runs the head of a ready stream, without the lock. */
static void step(struct stream *s)
{
	struct op *op = s->head;
	struct context *c = op->work.context ? op->work.context : s->object.context;
	object_ref(s);
	object_ref(c);
	s->running = true;
	CUresult before = c->error;
	pthread_mutex_unlock(&soft.lock);
	CUresult r = CUDA_SUCCESS;
	if (before)
		work_skip(&op->work, before);
	else
		r = work_run(&op->work, c);
	if (r)
		soft_log(CU_LOG_LEVEL_ERROR, "work in a stream failed with code %d, and its context is lost",
				(int)r);
	/* Work goes on as long as its step does: a callback here must not wait for it. */
	struct thread *t = thread_self();
	bool inside = t->callback;
	t->callback = true;
	logs_tell();
	t->callback = inside;
	pthread_mutex_lock(&soft.lock);
	if (r)
		context_fail(c, r);
	s->running = false;
	s->head = op->next;
	s->pending--;
	if (!s->head)
		s->tail = NULL;
	mark_end(op->mark);
	op_free(op);
	pthread_cond_signal(&s->wake);
	object_unref(c);
	object_unref(s);
}

static void *runner(void *p)
{
	struct stream *s = p;
	pthread_mutex_lock(&soft.lock);
	while (s->head || s->running || !s->closing) {
		if (ready(s))
			step(s);
		else
			pthread_cond_wait(s->head && !s->running ? &soft.progress : &s->wake, &soft.lock);
	}
	s->runner = false;
	object_unref(s);
	pthread_mutex_unlock(&soft.lock);
	return NULL;
}

static bool runner_start(struct stream *s)
{
	if (s->runner)
		return true;
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); /* the program's signals are for the program's threads */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	object_ref(s);
	int r = pthread_create(&thread, &attr, runner, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r) {
		object_unref(s);
		log_error("no thread for a stream: error %d", r);
		return false;
	}
	s->runner = true;
	return true;
}

/* ---- submitting */

static bool op_wait(struct op *op, struct mark *m)
{
	if (!m || m->done)
		return true;
	struct mark **w = realloc(op->waits, (op->nwaits + 1) * sizeof *w);
	if (!w)
		return false;
	op->waits = w;
	op->waits[op->nwaits++] = mark_ref(m);
	return true;
}

/* The legacy stream and the streams that are not non-blocking wait for each other. */
static bool legacy_order(const struct stream *s, struct op *op)
{
	const struct context *c = s->object.context;
	if (!s->legacy)
		return !s->blocking || !c->legacy || op_wait(op, c->legacy->last);
	for (const struct stream *t = c->streams; t; t = t->next)
		if (t != s && t->blocking && !op_wait(op, t->last))
			return false;
	return true;
}

/* Queues; takes w. `async`: somebody else than the caller has to run it. */
static CUresult queue(
	struct stream *s, struct work *w, struct mark **marks, unsigned n, bool async, struct mark **out)
{
	struct op *op = calloc(1, sizeof *op);
	if (!op) {
		work_finish(w);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	op->work = *w;
	op->mark = mark_create();
	bool good = op->mark && legacy_order(s, op);
	for (unsigned i = 0; i < n && good; i++)
		good = op_wait(op, marks[i]);
	bool nothing = good && w->type == WORK_EMPTY && !s->head && !op->nwaits;
	if (good && !nothing && async)
		good = runner_start(s);
	if (!good) {
		op_free(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	mark_unref(s->last);
	s->last = mark_ref(op->mark);
	if (out)
		*out = mark_ref(op->mark);
	if (nothing) {
		mark_end(op->mark);
		op_free(op);
		return CUDA_SUCCESS;
	}
	if (s->tail)
		s->tail->next = op;
	else
		s->head = op;
	s->tail = op;
	s->pending++;
	pthread_cond_signal(&s->wake);
	return CUDA_SUCCESS;
}

CUresult stream_submit(struct stream *s, struct work *w, struct mark **mark)
{
	if (mark)
		*mark = NULL;
	CUresult r = s->object.context->error;
	if (!r)
		r = capture_check(s);
	if (r) {
		work_finish(w);
		return r;
	}
	/* As a real device's queue: the call waits for room. */
	object_ref(s);
	while (!s->capture && s->pending >= STREAM_DEPTH)
		pthread_cond_wait(&soft.progress, &soft.lock);
	r = s->capture ? capture_add(s, w) : queue(s, w, NULL, 0, true, mark);
	object_unref(s);
	return r;
}

CUresult stream_wait_marks(struct stream *s, struct mark **marks, unsigned n, struct mark **mark)
{
	struct work w = {.type = WORK_EMPTY};
	return queue(s, &w, marks, n, true, mark);
}

static bool helpable(const struct op *op)
{
	/* the program's functions run on threads of ours, as it may expect from the real driver */
	return op->work.type != WORK_HOST && op->work.type != WORK_CALLBACK && op->work.type != WORK_GRAPH;
}

/* Would work submitted now start at once? */
static bool calm(const struct stream *s)
{
	const struct context *c = s->object.context;
	if (s->head || s->running)
		return false;
	return s->legacy ? stream_idle(s)
			 : !s->blocking || !c->legacy || !c->legacy->last || c->legacy->last->done;
}

CUresult stream_submit_eager(struct stream *s, struct work *w)
{
	CUresult r = s->object.context->error;
	if (r || s->capture || !calm(s) || !helpable(&(struct op){.work = *w}) || capture_check(s))
		return stream_submit(s, w, NULL);
	r = queue(s, w, NULL, 0, false, NULL);
	if (!r && ready(s))
		step(s);
	return r;
}

CUresult stream_submit_wait(struct stream *s, struct work *w)
{
	struct context *c = s->object.context;
	CUresult r = c->error;
	if (!r)
		r = s->capture ? capture_spoil(s) : capture_check(s);
	if (r) {
		work_finish(w);
		return r;
	}
	struct mark *m = NULL;
	r = queue(s, w, NULL, 0, !helpable(&(struct op){.work = *w}), &m);
	if (r)
		return r;
	object_ref(s);
	object_ref(c);
	while (!m->done) {
		if (ready(s) && helpable(s->head))
			step(s);
		else
			pthread_cond_wait(&soft.progress, &soft.lock);
	}
	mark_unref(m);
	print_pending();
	r = c->error;
	object_unref(c);
	object_unref(s);
	return r;
}

bool stream_idle(const struct stream *s)
{
	if (s->last && !s->last->done)
		return false;
	if (!s->legacy)
		return true;
	/* the legacy stream is done when the streams that it waits for are */
	for (const struct stream *t = s->object.context->streams; t; t = t->next)
		if (t->blocking && t->last && !t->last->done)
			return false;
	return true;
}

void stream_drain(struct stream *s)
{
	struct context *c = s->object.context;
	object_ref(s);
	object_ref(c);
	if (s->legacy) {
		struct mark *m = NULL;
		if (!stream_wait_marks(s, NULL, 0, &m))
			mark_wait(m);
		mark_unref(m);
	} else if (s->last) {
		mark_wait(s->last);
	}
	print_pending();
	object_unref(s);
	object_unref(c);
}

void context_drain(struct context *c)
{
	uint64_t until = soft.serial;
	object_ref(c);
	for (struct stream *s = c->streams; s;) {
		struct mark *m = s->last;
		if (m && !m->done && m->serial <= until) {
			mark_wait(m);
			s = c->streams; /* the list may have changed meanwhile */
		} else {
			s = s->next;
		}
	}
	print_pending();
	object_unref(c);
}

#define DYING_SECONDS 10

void context_drain_dying(struct context *c)
{
	struct timespec end = deadline_in(DYING_SECONDS * 1000);
	bool late = false;
	for (struct stream *s = c->streams; s && !late;) {
		if (s->last && !s->last->done) {
			late = pthread_cond_clockwait(&soft.progress, &soft.lock, CLOCK_MONOTONIC, &end) != 0;
			s = c->streams;
		} else {
			s = s->next;
		}
	}
	if (late) {
		log_warning(
			"a context is destroyed while its work goes on since %d s: ending it", DYING_SECONDS);
		c->cancel = true;
	}
	context_drain(c);
}
