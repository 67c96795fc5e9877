/* SPDX-License-Identifier: Apache-2.0 */
/* Counted buffers and queues of them. Small ones come from malloc; large ones have one size and are kept in a
 * list while they are in demand. In a large one the byte behind a frame's header begins a page: the kernel
 * moves a request's bytes page by page, and does so in one piece where both sides' pages agree.
 *
 * Thread rule: the list of kept buffers has its own lock, the innermost of all. */
#include "scudafs/buffer.h"
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "scudafs/clock.h"

#define BUFFER_SMALL (128u << 10)   /* up to here malloc is good enough */
#define PAGE 4096u
#define LARGE_FRONT (PAGE - sizeof(struct frame) - sizeof(struct buffer))   /* unused bytes before it */
#define BUFFER_KEEP 24              /* large buffers kept at most */
#define BUFFER_IDLE_MS 1500         /* without use for this long they go back */

static struct {
	pthread_mutex_t lock;
	struct buffer *list;
	unsigned count;
	uint64_t used;                  /* when one was taken or given back last */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(LARGE_FRONT % _Alignof(struct buffer) == 0, "a buffer's place");

static struct buffer *large_new(void)
{
	uint8_t *p;
	if (posix_memalign((void **)&p, PAGE, LARGE_FRONT + sizeof(struct buffer) + BUFFER_LARGE))
		return NULL;
	return (struct buffer *)(p + LARGE_FRONT);
}

static void release(struct buffer *b)
{
	if (b)
		free(b->cap == BUFFER_LARGE ? (uint8_t *)b - LARGE_FRONT : (uint8_t *)b);
}

struct buffer *buffer_create(size_t n)
{
	struct buffer *b = NULL;
	if (n > BUFFER_LARGE)
		return NULL;
	size_t cap = n <= BUFFER_SMALL ? n : BUFFER_LARGE;
	if (cap == BUFFER_LARGE) {
		pthread_mutex_lock(&kept.lock);
		b = kept.list;
		if (b) {
			kept.list = b->next;
			kept.count--;
			kept.used = clock_ms();
		}
		pthread_mutex_unlock(&kept.lock);
	}
	if (!b)
		b = cap == BUFFER_LARGE ? large_new() : malloc(sizeof(*b) + cap);
	if (!b)
		return NULL;
	*b = (struct buffer){.refs = 1, .cap = cap, .data = (uint8_t *)(b + 1)};
	return b;
}

struct buffer *buffer_elsewhere(const uint8_t *p, size_t n, void (*done)(void *arg), void *arg)
{
	struct buffer *b = malloc(sizeof(*b));
	if (b)
		*b = (struct buffer){.refs = 1, .len = n, .data = (uint8_t *)p, .done = done, .arg = arg};
	return b;
}

struct buffer *buffer_copy(const void *p, size_t n)
{
	struct buffer *b = buffer_create(n);
	if (!b)
		return NULL;
	memcpy(b->data, p, n);
	b->len = n;
	return b;
}

static void part_done(void *whole)
{
	buffer_unref(whole);
}

struct buffer *buffer_part(struct buffer *b, size_t from, size_t n)
{
	struct buffer *part = buffer_elsewhere(b->data + b->off + from, n, part_done, b);
	if (part)
		buffer_ref(b);
	return part;
}

struct buffer *buffer_ref(struct buffer *b)
{
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	return b;
}

void buffer_unref(struct buffer *b)
{
	if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (b->done)
		b->done(b->arg);
	if (b->cap == BUFFER_LARGE) {
		pthread_mutex_lock(&kept.lock);
		if (kept.count < BUFFER_KEEP) {
			b->next = kept.list;
			kept.list = b;
			kept.count++;
			kept.used = clock_ms();
			b = NULL;
		}
		pthread_mutex_unlock(&kept.lock);
	}
	release(b);
}

void buffer_trim(void)
{
	struct buffer *list = NULL;
	pthread_mutex_lock(&kept.lock);
	if (kept.list && clock_ms() - kept.used > BUFFER_IDLE_MS) {
		list = kept.list;
		kept.list = NULL;
		kept.count = 0;
	}
	pthread_mutex_unlock(&kept.lock);
	if (!list)
		return;
	while (list) {
		struct buffer *next = list->next;
		release(list);
		list = next;
	}
	malloc_trim(0);
}

void queue_push(struct queue *q, struct buffer *b)
{
	b->next = NULL;
	if (q->tail)
		q->tail->next = b;
	else
		q->head = b;
	q->tail = b;
	q->bytes += b->len - b->off;
}

void queue_push_front(struct queue *q, struct buffer *b)
{
	b->next = q->head;
	q->head = b;
	if (!q->tail)
		q->tail = b;
	q->bytes += b->len - b->off;
}

struct buffer *queue_pop(struct queue *q)
{
	struct buffer *b = q->head;
	if (!b)
		return NULL;
	q->head = b->next;
	if (!q->head)
		q->tail = NULL;
	b->next = NULL;
	q->bytes -= b->len - b->off;
	return b;
}

void queue_consume(struct queue *q, size_t n)
{
	while (n) {
		struct buffer *b = q->head;
		size_t left = b->len - b->off;
		if (n < left) {
			b->off += n;
			q->bytes -= n;
			return;
		}
		n -= left;
		buffer_unref(queue_pop(q));
	}
}

void queue_clear(struct queue *q)
{
	struct buffer *b;
	while ((b = queue_pop(q)))
		buffer_unref(b);
}

void queue_remove(struct queue *q, struct buffer *b)
{
	struct buffer **at = &q->head, *before = NULL;
	while (*at != b) {
		before = *at;
		at = &before->next;
	}
	*at = b->next;
	if (q->tail == b)
		q->tail = before;
	q->bytes -= b->len - b->off;
	b->next = NULL;
}
