/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered stream of records. A record gets its number and its place in the queue under one lock; whoever
 * cuts a batch off the queue numbers it under the same lock and then writes it without: the daemon puts
 * batches back into the order of their numbers. So a thread that parks in the kernel holds nobody up but the
 * peer's own order.
 *
 * Thread rule: channel_state.h. */
#include "devshim/channel.h"
#include <errno.h>
#include <stdlib.h>
#include "devshim/channel_parts.h"
#include "devshim/channel_state.h"
#include "devshim/flusher.h"
#include "devshim/pace.h"
#include "wire/ctl.h"
#include "wire/log.h"

#define QUEUE_FULL (QUEUE_BYTES - (64u << 10))  /* the thread that passes it flushes */
#define COPY_BULK (32u << 10)               /* bulk up to this is copied into the queue */

struct channel_state channel = {.order = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock: takes the queue, and the bulk behind it, as batches. */
static struct batch cut(const void *bulk, size_t bulk_len)
{
	struct batch b = {.queue = channel.queue, .bulk = bulk, .bulk_len = bulk_len};
	channel.queue = (struct queue){0};
	atomic_store_explicit(&channel.queued, false, memory_order_relaxed);
	b.number = channel.batch + 1;
	channel.batch += channel_batches(&b);
	return b;
}

/* Under the lock: room for n more bytes in the queue. The caller has made sure that they fit. */
static bool queue_open(void)
{
	if (!channel.queue.bytes)
		channel.queue.bytes = channel_buffer();
	return channel.queue.bytes;
}

static void append(const void *p, size_t n)
{
	if (n)
		memcpy(channel.queue.bytes + channel.queue.len, p, n);
	channel.queue.len += n;
}

/* Sends a record that carries more than is worth copying: at once, straight from the caller's memory. */
static int send_now(struct record *r)
{
	bool shared;
	if (ring_is_open())
		return channel_share(r, NULL, &shared);
	pthread_mutex_lock(&channel.order);
	size_t n = sizeof(struct frame) + r->head_len;
	struct batch first = {0}, second;
	if (channel.queue.len + n > QUEUE_BYTES)
		first = cut(NULL, 0);
	if (!queue_open()) {
		pthread_mutex_unlock(&channel.order);
		int e = first.number ? channel_send_cut(&first) : 0;
		return e ? e : -ENOMEM;
	}
	append(r->bytes, number_record(r));
	second = cut(r->bulk, r->bulk_len);
	pthread_mutex_unlock(&channel.order);
	int e = first.number ? channel_send_cut(&first) : 0;
	int e2 = channel_send_cut(&second);
	return e ? e : e2;
}

bool channel_is_filled(void)
{
	return atomic_load_explicit(&channel.queued, memory_order_relaxed);
}

int channel_flush(_Atomic uint32_t *asleep)
{
	pthread_mutex_lock(&channel.order);
	if (!channel.queue.len) {
		if (asleep)
			atomic_store(asleep, 1);
		pthread_mutex_unlock(&channel.order);
		return 1;
	}
	struct batch b = cut(NULL, 0);
	pthread_mutex_unlock(&channel.order);
	return channel_send_cut(&b);
}

uint64_t channel_posted(void)
{
	pthread_mutex_lock(&channel.order);
	uint64_t seq = channel.seq;
	pthread_mutex_unlock(&channel.order);
	return seq;
}

int channel_enqueue(struct record *r)
{
	int saved = errno;
	size_t n = sizeof(struct frame) + r->head_len + r->bulk_len;
	struct batch full = {0};
	if (ring_is_open()) {
		int e = send_now(r);
		errno = saved;
		return e;
	}
	pthread_mutex_lock(&channel.order);
	if (channel.queue.len + n > QUEUE_FULL)
		full = cut(NULL, 0);
	if (!queue_open()) {
		pthread_mutex_unlock(&channel.order);
		int e = full.number ? channel_send_cut(&full) : 0;
		return e ? e : -ENOMEM;
	}
	append(r->bytes, number_record(r));
	append(r->bulk, r->bulk_len);
	if (!atomic_load_explicit(&channel.queued, memory_order_relaxed))
		atomic_store_explicit(&channel.queued, true, memory_order_relaxed);
	bool started = flusher_start();
	struct batch own = {0};
	if (!started)
		own = cut(NULL, 0);
	pthread_mutex_unlock(&channel.order);
	int e = full.number ? channel_send_cut(&full) : 0;
	if (own.number) {
		int e2 = channel_send_cut(&own);
		e = e ? e : e2;
	}
	flusher_wake();
	errno = saved;
	return e;
}

int channel_exchange(struct record *m, uint64_t before, uint8_t *buf)
{
	const size_t most = NODE_ROOM - 1 - sizeof(struct ctl_wait);
	uint8_t *to = buf + sizeof(struct ctl_wait), *large = NULL;
	struct batch full = {0};
	struct answer a;
	if (ring_is_open()) {
		int e = send_now(m);
		if (!e)
			e = node_wait(buf, 0, 0, before, sizeof(struct frame) + 64, false, &large, &a);
		free(large);
		return e;
	}
	pthread_mutex_lock(&channel.order);
	if (channel.queue.len + sizeof(struct frame) > most)
		full = cut(NULL, 0);
	size_t len = channel.queue.len;
	if (len)
		memcpy(to, channel.queue.bytes, len);
	channel.queue.len = 0;
	atomic_store_explicit(&channel.queued, false, memory_order_relaxed);
	number_record(m);
	memcpy(to + len, m->bytes, sizeof(struct frame));
	uint64_t batch = ++channel.batch;
	pthread_mutex_unlock(&channel.order);
	/* The daemon looks for the answer only when all batches up to this one have come. */
	int r = full.number ? channel_send_cut(&full) : 0;
	if (!r)
		r = node_wait(buf, batch, len + sizeof(struct frame), before, sizeof(struct frame) + 64,
			false, &large, &a);
	free(large);
	return r;
}

int channel_post(struct record *r)
{
	if (r->bulk_len > (ring_is_open() ? COPY_SHARED : COPY_BULK))
		return channel_send(r);
	int e = channel_enqueue(r);
	return !e && r->kind == FRAME_POST ? pace_posted(r->seq, r->thread) : e;
}

int channel_send(struct record *r)
{
	int saved = errno;
	int e = send_now(r);
	errno = saved;
	return e;
}

int channel_wait(struct record *r, size_t expected, struct answer *a)
{
	int saved = errno;
	size_t n = sizeof(struct frame) + r->head_len + r->bulk_len;
	int e = 0;
	if (!channel_room_of_thread())
		return -ENOMEM;
	expected += sizeof(struct frame) + 64;
	if (ring_is_open()) {
		struct ring_wait w = {.slot = ring_take_slot(expected), .area = -1};
		e = channel_wait_shared(r, &w, NULL, expected, a);
		if (!e)
			pace_answered(r->seq);
		errno = saved;
		return e;
	}
	const size_t most = sizeof channel_room->ioctl - 1 - sizeof(struct ctl_wait);
	uint8_t *to = channel_room->ioctl + sizeof(struct ctl_wait);
	struct queue taken = {0};
	uint64_t batch = 0;
	pthread_mutex_lock(&channel.order);
	bool fits = channel.queue.len + n <= most;
	if (fits) {
		/* The queue and the record leave as one batch. */
		taken = channel.queue;
		channel.queue.len = 0;
		if (taken.len)
			atomic_store_explicit(&channel.queued, false, memory_order_relaxed);
		number_record(r);
		batch = ++channel.batch;
		if (taken.len)
			memcpy(to, taken.bytes, taken.len);
	}
	pthread_mutex_unlock(&channel.order);
	if (fits) {
		memcpy(to + taken.len, r->bytes, sizeof(struct frame) + r->head_len);
		if (r->bulk_len)
			memcpy(to + taken.len + sizeof(struct frame) + r->head_len, r->bulk, r->bulk_len);
		e = channel_await_answer(batch, r->seq, taken.len + n, expected, false, a);
	} else {
		e = send_now(r);
		if (!e)
			e = channel_await_answer(0, r->seq, 0, expected, false, a);
	}
	if (!e)
		pace_answered(r->seq);
	errno = saved;
	return e;
}

/* ---- outside the order ---- */

long channel_read_data(uint64_t transfer, uint64_t offset, void *p, size_t n)
{
	int saved = errno;
	/* One request, for the same reason as a batch. */
	long r = node_read(p, node_piece(p, n, NULL, 0), CTL_DATA(transfer, offset));
	if (r > 0)
		count_received((uint64_t)r);
	errno = saved;
	return r ? r : -EPROTO;
}

long channel_read_upcalls(void *p, size_t n)
{
	long r = node_read(p, n, CTL_UPCALL);
	if (r > 0)
		count_received((uint64_t)r);
	return r;
}

int channel_upcall_done(uint64_t upcall)
{
	struct frame f = {.kind = FRAME_UPCALL_DONE, .seq = upcall};
	struct iovec v = {&f, sizeof f};
	long r = node_writev(&v, 1, CTL_ASIDE);
	return r < 0 ? (int)r : 0;
}

/* ---- life ---- */

int channel_open(const char *path)
{
	int e = node_open(path);
	if (e)
		return e;
	channel.seq = channel.batch = 0;
	pace_reset();
	atomic_store(&channel.queued, false);
	channel.queue.len = 0;
	ring_open(path);
	return 0;
}

void channel_settle(void)
{
	struct stat st;
	int e = node_stat(&st);
	if (e)
		log_info("the size of ctl: %s", strerror(e));
}

void channel_close(void)
{
	ring_close();
	node_close();
}

void channel_forget(void)
{
	ring_forget();
	node_forget();
}
