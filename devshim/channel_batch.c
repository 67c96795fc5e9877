/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are written to the session node: in how many requests, each of which has a number, and by
 * how many threads; and the memory of the queues that they are cut from. The daemon puts batches back into
 * the order of their numbers.
 *
 * Thread rule: channel_state.h. A batch belongs to who has cut it off. */
#include "devshim/channel_state.h"
#include <errno.h>
#include <sys/mman.h>
#include "devshim/lanes.h"
#include "wire/ctl.h"

#define PAGE 4096u

static uint8_t *buffer_new(void)
{
	void *p = mmap(NULL, QUEUE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

uint8_t *channel_buffer(void)
{
	return channel.nspare ? channel.spare[--channel.nspare] : buffer_new();
}

static void buffer_give_back(uint8_t *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&channel.order);
	if (channel.nspare < QUEUE_SPARE) {
		channel.spare[channel.nspare++] = p;
		p = NULL;
	}
	pthread_mutex_unlock(&channel.order);
	if (p)
		munmap(p, QUEUE_BYTES);
}

/* How many batches a cut needs. The queue and the front of the bulk share the first. */
uint64_t channel_batches(struct batch *b)
{
	uint64_t n = 0;
	b->narrow = node_is_narrow();
	if (b->narrow)
		return (b->queue.len + b->bulk_len + NODE_NARROW - 1) / NODE_NARROW;
	size_t before = b->queue.len;
	size_t at = 0;
	do {
		at += before >= LIMIT_BATCH - PAGE ? 0 :
			node_piece(b->bulk + at, b->bulk_len - at, b->queue.bytes, before);
		before = 0;
		n++;
	} while (at < b->bulk_len);
	return n;
}

/* Writes n bytes of the bulk from `at` on as a batch, behind `before` bytes of the queue. */
static int piece_write(const struct batch *b, uint64_t number, size_t before, size_t at, size_t n)
{
	struct iovec v[2] = {{b->queue.bytes, before}, {(void *)(b->bulk + at), n}};
	long r = node_writev(before ? v : v + 1, n && before ? 2 : 1, CTL_POST(number));
	return r < 0 ? (int)r : (size_t)r == before + n ? 0 : -EPROTO;
}

/* A long bulk, by several threads at once: the daemon knows the order. */
struct spread { const struct batch *b; uint64_t number; size_t at; };

static int piece_spread(void *arg, uint64_t i)
{
	const struct spread *s = arg;
	size_t at = s->at + i * LIMIT_BATCH, left = s->b->bulk_len - at;
	return piece_write(s->b, s->number + i, 0, at, left < LIMIT_BATCH ? left : LIMIT_BATCH);
}

static int batch_write_narrow(const struct batch *b)
{
	size_t all = b->queue.len + b->bulk_len;
	uint64_t number = b->number;
	for (size_t at = 0; at < all; at += NODE_NARROW) {
		size_t n = all - at < NODE_NARROW ? all - at : NODE_NARROW;
		size_t front = at < b->queue.len ? b->queue.len - at : 0;
		size_t skip = front ? 0 : at - b->queue.len;
		front = front < n ? front : n;
		struct iovec v[2] = {
			{b->queue.bytes + (front ? at : 0), front}, {(void *)(b->bulk + skip), n - front}};
		long r = node_writev(v, n > front ? 2 : 1, CTL_POST(number++));
		if (r != (long)n)
			return r < 0 ? (int)r : -EPROTO;
	}
	return 0;
}

int channel_write(const struct batch *b)
{
	size_t before = b->queue.len, at = 0;
	uint64_t number = b->number;
	if (b->narrow)
		return batch_write_narrow(b);
	do {
		size_t left = b->bulk_len - at;
		if (!before && left >= LANES_LEAST &&
				node_piece(b->bulk + at, left, NULL, 0) == LIMIT_BATCH) {
			struct spread s = {b, number, at};
			return lanes_run(piece_spread, &s, (left + LIMIT_BATCH - 1) / LIMIT_BATCH);
		}
		size_t n = before >= LIMIT_BATCH - PAGE ? 0 :
			node_piece(b->bulk + at, left, b->queue.bytes, before);
		int e = piece_write(b, number, before, at, n);
		if (e)
			return e;
		at += n;
		before = 0;
		number++;
	} while (at < b->bulk_len);
	return 0;
}

int channel_send_cut(struct batch *b)
{
	int r = channel_write(b);
	buffer_give_back(b->queue.bytes);
	return r;
}
