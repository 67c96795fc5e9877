/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are run out of their turn. A POST may block in the driver until a host function has run (a
 * copy between two places of the host's memory does), and what runs the host function at the program's end
 * may have to ask for bytes first: its WAIT stands behind the POST. The reader takes such records out of the
 * bytes that wait (input_scan), and one thread runs them in their order. Each is a WAIT, so the thread that
 * sent it sends nothing before its answer; or an exchange of memory used in place, for which the host
 * function's thread may wait at the program's end, and which stands in an order of its own
 * (mirror_exchange.c).
 *
 * Thread rule: aside_run from the reader; one thread of ours runs the records, as exec.h says. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/state.h"

#define CODE_ROOM 5 /* the reply's result, in front of what x->out holds */

struct aside {
	struct aside *next;
	struct frame frame;
	uint8_t body[];             /* head, bulk */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t came;
	struct aside *first, **end;
	size_t bytes; /* of those that wait and the one that runs */
	bool started;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER, .end = &queue.first};

static size_t size_of(const struct frame *f)
{
	return sizeof(struct aside) + f->head_len + f->bulk_len;
}

static void run(struct exec *x, struct aside *a, uint8_t *out)
{
	x->frame = a->frame;
	x->bulk_left = a->frame.bulk_len;
	x->aside = a->body + a->frame.head_len;
	x->bulk = NULL;
	x->bulk_len = 0;
	msg_init(&x->in, a->body, a->frame.head_len);
	msg_init(&x->out, out, LIMIT_HEAD - CODE_ROOM);
	CUresult r = exec_run(x);

	if (a->frame.kind == FRAME_WAIT)
		send_reply(x, r);
	else if (r)
		exec_failed(x, r);
	exec_finish(x);
}

static void *runner(void *session)
{
	struct exec x = {.session = session};
	uint8_t *out = malloc(LIMIT_HEAD);

	if (!out)
		session_end(session, CUDA_ERROR_OUT_OF_MEMORY, "out of memory for a thread");
	for (;;) {
		pthread_mutex_lock(&queue.lock);
		while (!queue.first)
			pthread_cond_wait(&queue.came, &queue.lock);
		struct aside *a = queue.first;

		queue.first = a->next;
		if (!queue.first)
			queue.end = &queue.first;
		pthread_mutex_unlock(&queue.lock);
		run(&x, a, out);
		pthread_mutex_lock(&queue.lock);
		queue.bytes -= size_of(&a->frame);
		pthread_mutex_unlock(&queue.lock);
		free(a);
	}
}

/* Under the lock. */
static bool start(struct session *s)
{
	pthread_t thread;

	if (queue.started)
		return true;
	if (pthread_create(&thread, NULL, runner, s))
		return false;
	pthread_detach(thread);
	return queue.started = true;
}

bool aside_run(struct session *s, const struct frame *f, const uint8_t *body)
{
	size_t n = size_of(f);
	struct aside *a = n <= LIMIT_QUEUE ? malloc(n) : NULL;
	bool ok;

	if (!a)
		return false;
	a->next = NULL;
	a->frame = *f;
	memcpy(a->body, body, f->head_len + f->bulk_len);
	pthread_mutex_lock(&queue.lock);
	ok = n <= LIMIT_QUEUE - queue.bytes && start(s);
	if (ok) {
		queue.bytes += n;
		*queue.end = a;
		queue.end = &a->next;
		pthread_cond_signal(&queue.came);
	}
	pthread_mutex_unlock(&queue.lock);
	if (!ok)
		free(a);
	return ok;
}
