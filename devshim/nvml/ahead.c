/* SPDX-License-Identifier: Apache-2.0 */
/* The table of questions, in the order in which they were last asked.
 *
 * Thread rule: as ahead.h. */
#include "devshim/nvml/ahead.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "nvml.calls.h"
#include "wire/frame.h"

#define ENTRIES 256
#define HEAD_MOST 2048          /* bytes of a question's arguments: larger ones are not asked ahead */

#define AGAIN_MOST 4            /* times that a round asks the same question */

struct question {
	uint64_t order;             /* of the last time; 0: the entry is free */
	int64_t asked;              /* ms */
	unsigned id;
	size_t len, answer_len;
	uint8_t *head, *answer;     /* answer: asked ahead, not used yet */
	int64_t fetched;
};

static struct {
	pthread_mutex_t lock;
	uint64_t order;
	struct question table[ENTRIES];
} ahead = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void empty(struct question *q)
{
	free(q->head);
	free(q->answer);
	*q = (struct question){0};
}

/* The entry of a question: the one whose turn it is, when a round asks it several times; NULL: it has none
 * yet. */
static struct question *find(const struct call *c, int64_t now)
{
	struct question *first = NULL, *answered = NULL;
	unsigned n = 0;

	for (struct question *q = ahead.table; q < ahead.table + ENTRIES; q++) {
		if (!q->order || q->id != c->id || q->len != c->out.len ||
			memcmp(q->head, c->out.buf, q->len))
			continue;
		n++;
		if (!first || q->order < first->order)
			first = q;
		if (q->answer && now - q->fetched < AHEAD_FRESH && (!answered || q->order < answered->order))
			answered = q;
	}
	if (answered)
		return answered;
	/* All were asked in this round: this is once more. */
	return first && now - first->asked < AHEAD_LOOP && n < AGAIN_MOST ? NULL : first;
}

/* A free entry, made free where there is none. */
static struct question *make(const struct call *c)
{
	struct question *oldest = ahead.table;

	for (struct question *q = ahead.table; q < ahead.table + ENTRIES && oldest->order; q++)
		if (q->order < oldest->order)
			oldest = q;
	empty(oldest);
	oldest->head = malloc(c->out.len ? c->out.len : 1);
	if (!oldest->head)
		return NULL;
	oldest->id = c->id;
	oldest->len = c->out.len;
	memcpy(oldest->head, c->out.buf, c->out.len);
	return oldest;
}

static int by_order(const void *a, const void *b)
{
	uint64_t x = ahead.table[*(const unsigned *)a].order, y = ahead.table[*(const unsigned *)b].order;

	return x < y ? -1 : x > y;
}

/* The questions that followed the one of that order. One that was asked ahead and not needed is not asked
 * ahead again. */
static void plan(struct ahead_plan *p, uint64_t after)
{
	unsigned list[ENTRIES], n = 0;

	for (unsigned i = 0; i < ENTRIES; i++) {
		struct question *q = &ahead.table[i];

		if (q->order <= after)
			continue;
		if (q->answer)
			empty(q);
		else
			list[n++] = i;
	}
	qsort(list, n, sizeof *list, by_order);
	for (unsigned i = 0; i < n && p->count < AHEAD_MOST; i++) {
		const struct question *q = &ahead.table[list[i]];
		struct frame f = {.kind = FRAME_WAIT, .call = (uint16_t)q->id, .thread = 1};
		f.head_len = (uint32_t)q->len;

		if (sizeof f + q->len > sizeof p->bytes - p->len)
			break;
		memcpy(p->bytes + p->len, &f, sizeof f);
		memcpy(p->bytes + p->len + sizeof f, q->head, q->len);
		p->len += sizeof f + q->len;
		p->entry[p->count] = list[i];
		p->ticket[p->count++] = q->order;
	}
}

bool ahead_ask(struct call *c, struct ahead_plan *p)
{
	struct question *q;
	bool there = false;
	int64_t now = now_ms();

	p->count = 0;
	p->len = 0;
	if (!nvml_call_names[c->id].asks || c->thread != 1 || c->out.len > HEAD_MOST)
		return false;
	pthread_mutex_lock(&ahead.lock);
	q = find(c, now);
	if (q && q->answer && now - q->fetched < AHEAD_FRESH) {
		there = true;
		c->large = q->answer;
		msg_init(&c->in, c->large + sizeof(struct frame), q->answer_len - sizeof(struct frame));
	} else if (q) {
		free(q->answer);
		if (now - q->asked >= AHEAD_LOOP)
			plan(p, q->order);
	} else {
		q = make(c);
	}
	if (q) {
		q->answer = NULL;
		q->asked = now;
		q->order = ++ahead.order;
	}
	pthread_mutex_unlock(&ahead.lock);
	return there;
}

void ahead_keep(const struct ahead_plan *p, unsigned i, uint8_t *answer, size_t n)
{
	struct question *q = &ahead.table[p->entry[i]];

	pthread_mutex_lock(&ahead.lock);
	if (q->order == p->ticket[i] && !q->answer) {
		q->answer = answer;
		q->answer_len = n;
		q->fetched = now_ms();
		answer = NULL;
	}
	pthread_mutex_unlock(&ahead.lock);
	free(answer);
}

void ahead_forget(void)
{
	pthread_mutex_lock(&ahead.lock);
	for (unsigned i = 0; i < ENTRIES; i++)
		empty(&ahead.table[i]);
	pthread_mutex_unlock(&ahead.lock);
}

void ahead_in_child(void)
{
	ahead.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	ahead_forget();
}
