/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered stream of records. A record gets its number and its place in the queue under one lock; whoever
 * cuts a batch off the queue numbers it under the same lock and then writes it without: the daemon puts
 * batches back into the order of their numbers. So a thread that parks in the kernel holds nobody up but the
 * peer's own order.
 *
 * Thread rule: `order` guards the fields of the queue. `queued` is written under the lock and read without. */
#include "devshim/channel.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "devshim/arena.h"
#include "devshim/channel_parts.h"
#include "devshim/count.h"
#include "devshim/flusher.h"
#include "devshim/lanes.h"
#include "devshim/node.h"
#include "devshim/pace.h"
#include "devshim/ring.h"
#include "wire/copy.h"
#include "wire/ctl.h"
#include "wire/hops.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/ring.h"

#define PAGE 4096u
#define QUEUE_BYTES LIMIT_BATCH             /* of one queue buffer */
#define QUEUE_FULL (QUEUE_BYTES - (64u << 10))  /* the thread that passes it flushes */
#define COPY_BULK (32u << 10)               /* bulk up to this is copied into the queue */
#define COPY_SHARED (128u << 10)            /* the same for shared memory */
#define SPARE 3                             /* queue buffers kept for the next batch */

struct queue { uint8_t *bytes; size_t len; };

static struct {
	pthread_mutex_t order;
	struct queue queue;                 /* records not in a batch yet */
	uint8_t *spare[SPARE];
	unsigned nspare;
	uint64_t seq, batch;                /* the last ones given */
	_Atomic bool queued;                /* what the flusher looks at: the queue is not empty */
} channel = {.order = PTHREAD_MUTEX_INITIALIZER};

/* A batch cut off the queue: its first bytes are the queue's, then come bytes of one record's bulk. */
struct batch {
	uint64_t number;                    /* of the first batch; bulk takes the numbers behind it */
	struct queue queue;
	const uint8_t *bulk;
	size_t bulk_len;
	bool narrow;                        /* in pieces as small as node_is_narrow says */
};

/* Per thread: room for an ioctl and its answer, and for an answer that does not fit. */
struct room { uint8_t ioctl[NODE_ROOM]; uint8_t *large; int held; };
static _Thread_local struct room *room __attribute__((tls_model("initial-exec")));

static uint8_t *buffer_new(void)
{
	void *p = mmap(NULL, QUEUE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void buffer_give_back(uint8_t *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&channel.order);
	if (channel.nspare < SPARE) {
		channel.spare[channel.nspare++] = p;
		p = NULL;
	}
	pthread_mutex_unlock(&channel.order);
	if (p)
		munmap(p, QUEUE_BYTES);
}

/* How many batches a cut needs. The queue and the front of the bulk share the first. */
static uint64_t batches_of(struct batch *b)
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
		size_t front = at < b->queue.len ? b->queue.len - at : 0, skip = front ? 0 : at - b->queue.len;
		front = front < n ? front : n;
		struct iovec v[2] = {{b->queue.bytes + (front ? at : 0), front}, {(void *)(b->bulk + skip), n - front}};
		long r = node_writev(v, n > front ? 2 : 1, CTL_POST(number++));
		if (r != (long)n)
			return r < 0 ? (int)r : -EPROTO;
	}
	return 0;
}

static int batch_write(const struct batch *b)
{
	size_t before = b->queue.len, at = 0;
	uint64_t number = b->number;
	if (b->narrow)
		return batch_write_narrow(b);
	do {
		size_t left = b->bulk_len - at;
		if (!before && left >= LANES_LEAST && node_piece(b->bulk + at, left, NULL, 0) == LIMIT_BATCH) {
			struct spread s = {b, number, at};
			return lanes_run(piece_spread, &s, (left + LIMIT_BATCH - 1) / LIMIT_BATCH);
		}
		size_t n = before >= LIMIT_BATCH - PAGE ? 0 : node_piece(b->bulk + at, left, b->queue.bytes, before);
		int e = piece_write(b, number, before, at, n);
		if (e)
			return e;
		at += n;
		before = 0;
		number++;
	} while (at < b->bulk_len);
	return 0;
}

/* Under the lock: takes the queue, and the bulk behind it, as batches. */
static struct batch cut(const void *bulk, size_t bulk_len)
{
	struct batch b = {.queue = channel.queue, .bulk = bulk, .bulk_len = bulk_len};
	channel.queue = (struct queue){0};
	atomic_store_explicit(&channel.queued, false, memory_order_relaxed);
	b.number = channel.batch + 1;
	channel.batch += batches_of(&b);
	return b;
}

static int send_cut(struct batch *b)
{
	int r = batch_write(b);
	buffer_give_back(b->queue.bytes);
	return r;
}

/* Under the lock: room for n more bytes in the queue. The caller has made sure that they fit. */
static bool queue_open(void)
{
	if (!channel.queue.bytes)
		channel.queue.bytes = channel.nspare ? channel.spare[--channel.nspare] : buffer_new();
	return channel.queue.bytes;
}

static void append(const void *p, size_t n)
{
	if (n)
		memcpy(channel.queue.bytes + channel.queue.len, p, n);
	channel.queue.len += n;
}

/* Under the lock: numbers the record and writes its header. Returns the bytes of header and head. */
static size_t number_record(struct record *r)
{
	struct frame f = {.head_len = r->head_len, .kind = r->kind, .flags = r->flags, .call = r->call,
			.bulk_len = r->bulk_len,
		.thread = r->thread, .seq = ++channel.seq, .ctx = r->ctx};
	r->seq = f.seq;
	memcpy(r->bytes, &f, sizeof f);
	hop(HOP_QUEUED, f.seq);
	count_record(f.kind, f.flags, sizeof f + f.head_len + f.bulk_len);
	return sizeof f + r->head_len;
}

/* A record whose bulk the mount takes from the arena: that is batches of its own behind the record's. */
static int share_bulk(struct record *r, struct ring_wait *w, bool *shared)
{
	pthread_mutex_lock(&channel.order);
	struct batch b = {.queue = {r->bytes, number_record(r)}, .bulk = r->bulk, .bulk_len = r->bulk_len};
	b.number = channel.batch + 1;
	if (w)
		w->seq = r->seq;
	*shared = ring_put(b.number, w, b.queue.bytes, b.queue.len, NULL, 0);
	channel.batch += *shared ? 1 + arena_batches(r) : batches_of(&b);
	pthread_mutex_unlock(&channel.order);
	return *shared ? arena_send(r, b.number + 1) : batch_write(&b);
}

/* The same without a queue: the record is a batch of its own in shared memory, or, when that is full, one that
 * is written. *shared: it is there, and w with it. */
static int share(struct record *r, struct ring_wait *w, bool *shared)
{
	if (r->bulk_len > COPY_SHARED && arena_begin()) {
		int e = share_bulk(r, w, shared);
		arena_end();
		return e;
	}
	pthread_mutex_lock(&channel.order);
	struct batch b = {.queue = {r->bytes, number_record(r)}, .bulk = r->bulk, .bulk_len = r->bulk_len};
	b.number = channel.batch + 1;
	if (w)
		w->seq = r->seq;
	*shared = ring_put(b.number, w, b.queue.bytes, b.queue.len, b.bulk, b.bulk_len);
	channel.batch += *shared ? 1 : batches_of(&b);
	pthread_mutex_unlock(&channel.order);
	if (!*shared)
		return batch_write(&b);
	return w && !ring_looks() ? 0 : ring_wake(b.number);
}

/* Sends a record that carries more than is worth copying: at once, straight from the caller's memory. */
static int send_now(struct record *r)
{
	bool shared;
	if (ring_is_open())
		return share(r, NULL, &shared);
	pthread_mutex_lock(&channel.order);
	size_t n = sizeof(struct frame) + r->head_len;
	struct batch first = {0}, second;
	if (channel.queue.len + n > QUEUE_BYTES)
		first = cut(NULL, 0);
	if (!queue_open()) {
		pthread_mutex_unlock(&channel.order);
		int e = first.number ? send_cut(&first) : 0;
		return e ? e : -ENOMEM;
	}
	append(r->bytes, number_record(r));
	second = cut(r->bulk, r->bulk_len);
	pthread_mutex_unlock(&channel.order);
	int e = first.number ? send_cut(&first) : 0;
	int e2 = send_cut(&second);
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
	return send_cut(&b);
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
		int e = full.number ? send_cut(&full) : 0;
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
	int e = full.number ? send_cut(&full) : 0;
	if (own.number) {
		int e2 = send_cut(&own);
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
	int r = full.number ? send_cut(&full) : 0;
	if (!r)
		r = node_wait(buf, batch, len + sizeof(struct frame), before, sizeof(struct frame) + 64, false,
			&large, &a);
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

static struct room *room_of_thread(void)
{
	if (!room) {
		room = malloc(sizeof *room);
		if (room)
			room->large = NULL, room->held = -1;
	}
	return room;
}

/* By ctl an answer apart from its data costs a request more; in shared memory it costs nothing, and the server sends
 * data from pinned memory. */
size_t channel_answer_room(void)
{
	return ring_is_open() ? ring_slot_room(0) - sizeof(struct frame) - 256 : COPY_SMALL;
}

void channel_taken(void)
{
	if (room && room->held >= 0) {
		ring_give(room->held);
		room->held = -1;
	}
}

static void forget_answer(void)
{
	channel_taken();
	free(room->large);
	room->large = NULL;
}

static int await(uint64_t batch, uint64_t seq, size_t len, size_t expected, bool once, struct answer *a)
{
	forget_answer();
	return node_wait(room->ioctl, batch, len, seq, expected, once, &room->large, a);
}

static int await_sent(uint64_t seq, size_t expected, bool once, struct answer *a)
{
	int saved = errno;
	int e = -ENOMEM;
	if (room_of_thread())
		e = await(0, seq, 0, sizeof(struct frame) + 64 + expected, once, a);
	errno = saved;
	return e;
}

int channel_await(uint64_t seq, size_t expected, struct answer *a)
{
	return await_sent(seq, expected, false, a);
}

int channel_await_once(uint64_t seq, size_t expected, struct answer *a)
{
	return await_sent(seq, expected, true, a);
}

/* Sends the record and waits for its answer, in shared memory if there is a slot. */
static int wait_shared(struct record *r, struct ring_wait *w, struct ring_sink *sink, size_t expected,
	struct answer *a)
{
	bool shared, held;
	forget_answer();
	int e = share(r, w->slot >= 0 ? w : NULL, &shared);
	if (shared && w->slot >= 0) {
		e = e ? e : ring_await(w, sink, room->ioctl, &room->large, &held, a);
		if (!e && held)
			room->held = w->slot;
		return e;
	}
	ring_give(w->slot);
	ring_give(w->area);
	if (!e)
		e = sink ? -EAGAIN : await(0, r->seq, 0, expected, false, a);
	return e;
}

/* Where n bytes of data will be awaited: at their own place when the mount sees that, in an area, or in a sink. */
static bool data_place(struct ring_wait *w, struct ring_sink *sink, size_t n, uint64_t pinned)
{
	if (pinned) {
		w->n = n;
		w->at = pinned;
	} else if (n <= RING_AREA) {
		w->area = ring_take_area();
	} else if ((sink->around = arena_sink_take(&w->at))) {
		w->n = n;
		w->room = ARENA_SINK;
	}
	return w->n || w->area >= 0;
}

int channel_wait_data(struct record *r, uint64_t transfer, size_t n, uint64_t pinned,
	void (*place)(void *arg, uint64_t offset, const void *p, size_t n), void *arg, uint64_t *got,
	struct answer *a)
{
	struct ring_sink sink = {.place = place, .arg = arg, .n = n};
	struct ring_wait w = {.slot = ring_take_slot(0), .area = -1, .transfer = transfer & 0x3ffff};
	int saved = errno, e = -ENOTSUP;
	if (w.slot < 0)
		return -ENOTSUP;
	if (!room_of_thread() || !data_place(&w, &sink, n, pinned))
		ring_give(w.slot);
	else
		e = wait_shared(r, &w, &sink, 0, a);
	/* After an error the session is over, and the mount may still write there. */
	if (sink.around && (!e || e == -EAGAIN))
		arena_sink_give(w.at);
	*got = sink.got;
	if (!e)
		pace_answered(r->seq);
	errno = saved;
	return e;
}

int channel_wait(struct record *r, size_t expected, struct answer *a)
{
	int saved = errno;
	size_t n = sizeof(struct frame) + r->head_len + r->bulk_len;
	int e = 0;
	if (!room_of_thread())
		return -ENOMEM;
	expected += sizeof(struct frame) + 64;
	if (ring_is_open()) {
		struct ring_wait w = {.slot = ring_take_slot(expected), .area = -1};
		e = wait_shared(r, &w, NULL, expected, a);
		if (!e)
			pace_answered(r->seq);
		errno = saved;
		return e;
	}
	const size_t most = sizeof room->ioctl - 1 - sizeof(struct ctl_wait);
	uint8_t *to = room->ioctl + sizeof(struct ctl_wait);
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
		e = await(batch, r->seq, taken.len + n, expected, false, a);
	} else {
		e = send_now(r);
		if (!e)
			e = await(0, r->seq, 0, expected, false, a);
	}
	if (!e)
		pace_answered(r->seq);
	errno = saved;
	return e;
}

void channel_thread_finish(void)
{
	if (room)
		forget_answer();
	free(room);
	room = NULL;
}

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
