/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way between a program and a server. Large buffers are kept for reuse, because fresh pages
 * cost more than the copy.
 *
 * Thread rule: buffers are counted and may be shared by threads as long as nobody changes their bytes; a
 * queue of them needs its owner's lock. */
#pragma once
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/frame.h"
#include "wire/limits.h"

/* The most that one buffer ever holds: a whole frame from the server, or a batch. */
#define BUFFER_LARGE (sizeof(struct frame) + LIMIT_HEAD + LIMIT_REPLY)

struct buffer {
	struct buffer *next;        /* in a queue */
	atomic_uint refs;
	size_t off, len, cap;       /* bytes [off, len) are in use; `cap` is the room */
	uint64_t tag;               /* the owner's: what the bytes are */
	uint8_t *data;
	void (*done)(void *arg);    /* bytes that lie elsewhere (cap 0): they are needed no longer */
	void *arg;
};

struct queue {
	struct buffer *head, *tail;
	size_t bytes;               /* of all buffers, [off, len) */
};

/* Room for n <= BUFFER_LARGE bytes, none used; NULL when there is no memory. */
struct buffer *buffer_create(size_t n);
/* n bytes that lie elsewhere, of any number; `done` is called when the last reference goes. */
struct buffer *buffer_elsewhere(const uint8_t *p, size_t n, void (*done)(void *arg), void *arg);
/* n bytes of b from byte `from` of its bytes in use on, which keep b. NULL when there is no memory. */
struct buffer *buffer_part(struct buffer *b, size_t from, size_t n);
struct buffer *buffer_copy(const void *p, size_t n);
struct buffer *buffer_ref(struct buffer *b);
void buffer_unref(struct buffer *b);    /* NULL is fine */
/* Gives large buffers back to the system that have not been needed for a second or two; called now and
 * then by anybody. */
void buffer_trim(void);

void queue_push(struct queue *q, struct buffer *b);
void queue_push_front(struct queue *q, struct buffer *b);
struct buffer *queue_pop(struct queue *q);
/* One of the queue's, wherever it is. */
void queue_remove(struct queue *q, struct buffer *b);
/* Drops n bytes from the front. */
void queue_consume(struct queue *q, size_t n);
void queue_clear(struct queue *q);
