/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that mirror the program's threads, and the baton. Who holds the baton is the only one to read
 * the connection, so records are taken in their order; it runs a record of its own thread, or hands record
 * and baton to the thread whose it is.
 *
 *   HELD   by a mirror thread, which runs a POST or waits for the connection; or by the reader for a moment
 *   FREE   a WAIT is running, or nobody wants it; the reader's epoll is armed, it takes it when bytes come
 *
 * A thread that ran a WAIT takes the baton back after its reply if nobody has it: a program with one
 * thread never pays a hand-over. Each mirror has a slot for the record that comes next beside the one that
 * it runs, because the reply of a WAIT may be answered by the program's next record before the mirror has
 * put the old one away.
 *
 * Thread rule: the table of mirrors and a mirror's slot belong to the holder of the baton; `turn` hands
 * both over. */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "server/state.h"

#define HEAD_FIRST 2048         /* bytes of head that a new mirror has room for */
#define CODE_ROOM 5             /* the reply's result, in front of what x->out holds */

struct mirror {
	struct exec x;              /* first: an exec is its mirror */
	uint32_t id;
	bool holds;                 /* the baton; the mirror's own thread only */
	sem_t turn;                 /* the slot is full, and the baton comes with it */
	struct frame slot;
	uint8_t *slot_head, *head;  /* swapped when the slot becomes the record that runs */
	size_t slot_cap, head_cap;
	uint8_t *out;
	struct mirror *next;        /* in its bucket */
};

static void reader_watch(struct session *s, unsigned events)
{
	struct epoll_event e = {.events = events, .data.fd = stream_fd(s->stream)};

	if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, e.data.fd, &e))
		session_lost(s, "epoll: %s", strerror(errno));
}

void baton_wake(struct session *s)
{
	static const uint64_t one = 1;

	if (write(s->wake, &one, sizeof one) < 0 && errno != EAGAIN)
		session_lost(s, "eventfd: %s", strerror(errno));
}

void baton_release(struct session *s)
{
	bool buffered = input_buffered(s);

	/* Free first, then armed: an event that found the baton held would be lost. */
	atomic_store(&s->baton, BATON_FREE);
	if (!buffered)
		reader_watch(s, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT);
	else
		baton_wake(s);
}

bool baton_take(struct session *s)
{
	int free = BATON_FREE;

	if (!atomic_compare_exchange_strong(&s->baton, &free, BATON_HELD))
		return false;
	/* The end of the connection still wakes the reader. */
	reader_watch(s, EPOLLRDHUP | EPOLLONESHOT);
	return true;
}

static struct mirror *mirror_find(struct session *s, uint32_t id)
{
	struct mirror *m = s->mirrors[id % MIRROR_BUCKETS];

	while (m && m->id != id)
		m = m->next;
	return m;
}

static void mirror_free(struct mirror *m)
{
	sem_destroy(&m->turn);
	exec_finish(&m->x);
	free(m->x.arena);       /* the chunk kept for a next record */
	free(m->slot_head);
	free(m->head);
	free(m->out);
	free(m);
}

/* The baton's holder is the mirror itself. */
static void mirror_remove(struct mirror *m)
{
	struct session *s = m->x.session;
	struct mirror **at = &s->mirrors[m->id % MIRROR_BUCKETS];

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	s->mirror_count--;
}

/* Reads the record's head into the slot. */
static void slot_fill(struct mirror *m, const struct frame *f)
{
	if (f->head_len > m->slot_cap) {
		size_t cap = m->slot_cap;
		uint8_t *head;

		while (cap < f->head_len)
			cap *= 2;
		head = realloc(m->slot_head, cap);
		if (!head)
			session_end(m->x.session, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
		m->slot_head = head;
		m->slot_cap = cap;
	}
	m->slot = *f;
	input_take(m->x.session, m->slot_head, f->head_len);
}

static void slot_begin(struct mirror *m)
{
	uint8_t *head = m->head;
	size_t cap = m->head_cap;

	m->head = m->slot_head;
	m->head_cap = m->slot_cap;
	m->slot_head = head;
	m->slot_cap = cap;
	m->x.frame = m->slot;
	m->x.bulk_left = m->slot.bulk_len;
	m->x.bulk = NULL;
	m->x.bulk_len = 0;
	msg_init(&m->x.in, m->head, m->slot.head_len);
	msg_init(&m->x.out, m->out, LIMIT_HEAD - CODE_ROOM);
}

static void release(struct mirror *m)
{
	m->holds = false;
	baton_release(m->x.session);
}

void baton_bulk_taken(struct exec *x)
{
	struct mirror *m = (struct mirror *)x;

	if (x->frame.kind == FRAME_WAIT && m->holds)
		release(m);
}

/* Runs the record that is in the slot. False when the thread ends with it. */
static bool run(struct mirror *m)
{
	struct exec *x = &m->x;
	CUresult r;

	slot_begin(m);
	if (x->frame.kind == FRAME_THREAD_END)
		return false;
	if (x->frame.kind == FRAME_WAIT && !x->bulk_left)
		release(m);
	r = exec_run(x);
	if (x->bulk_left) {
		input_skip(x->session, &x->frame, x->frame.bulk_len - x->bulk_left, x->bulk_left);
		x->bulk_left = 0;
	}
	if (m->holds)
		baton_bulk_taken(x);
	if (x->frame.kind == FRAME_WAIT)
		send_reply(x, r);
	else if (r)
		exec_failed(x, r);
	exec_finish(x);
	return true;
}

/* Takes records while they are our own. Returns with the baton given away; false when the thread ends. */
static bool run_all(struct mirror *m)
{
	struct session *s = m->x.session;
	struct frame f;

	m->holds = true;
	for (;;) {
		if (!run(m))
			return false;
		if (!m->holds)
			m->holds = baton_take(s);
		if (!m->holds)
			return true;
		input_record(s, &f, true);
		if (f.thread != m->id)
			break;
		slot_fill(m, &f);
	}
	m->holds = false;
	baton_hand(s, &f);
	return true;
}

static void *mirror_main(void *arg)
{
	struct mirror *m = arg;
	struct session *s = m->x.session;

	do {
		while (sem_wait(&m->turn) && errno == EINTR)
			;
	} while (run_all(m));
	mirror_remove(m);
	mirror_free(m);
	baton_release(s);
	return NULL;
}

static struct mirror *mirror_create(struct session *s, uint32_t id)
{
	struct mirror *m = calloc(1, sizeof *m);
	pthread_attr_t attributes;
	pthread_t thread;
	int r;

	if (s->mirror_count >= LIMIT_THREADS)
		session_end(s, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "more than %d threads", LIMIT_THREADS);
	if (m) {
		m->slot_head = malloc(HEAD_FIRST);
		m->head = malloc(HEAD_FIRST);
		m->out = malloc(LIMIT_HEAD);
	}
	if (!m || !m->slot_head || !m->head || !m->out)
		session_end(s, CUDA_ERROR_OUT_OF_MEMORY, "out of memory for a thread");
	m->slot_cap = m->head_cap = HEAD_FIRST;
	m->x.session = s;
	m->id = id;
	sem_init(&m->turn, 0, 0);
	m->next = s->mirrors[id % MIRROR_BUCKETS];
	s->mirrors[id % MIRROR_BUCKETS] = m;
	s->mirror_count++;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attributes, mirror_main, m);
	pthread_attr_destroy(&attributes);
	if (r)
		session_end(s, CUDA_ERROR_OUT_OF_MEMORY, "thread: %s", strerror(r));
	return m;
}

void baton_hand(struct session *s, const struct frame *f)
{
	struct mirror *m = mirror_find(s, f->thread);

	/* A thread that never called needs none to end. */
	if (!m && f->kind == FRAME_THREAD_END) {
		baton_release(s);
		return;
	}
	if (!m)
		m = mirror_create(s, f->thread);
	slot_fill(m, f);
	sem_post(&m->turn);
}
