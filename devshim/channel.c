/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered stream of records. A record gets its number and its place in the queue under one lock; whoever
 * cuts a batch off the queue numbers it under the same lock and then writes it without: the daemon puts
 * batches back into the order of their numbers. So a thread that parks in the kernel holds nobody up but the
 * peer's own order.
 *
 * Thread rule: `order` guards the fields of the queue. The flusher thread sends what gathers while nobody
 * waits; it is woken only when it sleeps. `queued` is written under the lock and read without. */
#include "devshim/channel.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "devshim/count.h"
#include "devshim/lanes.h"
#include "devshim/process.h"
#include "wire/ctl.h"
#include "wire/limits.h"
#include "wire/log.h"

#define PAGE 4096u
#define QUEUE_BYTES LIMIT_BATCH             /* of one queue buffer */
#define QUEUE_FULL (QUEUE_BYTES - (64u << 10))  /* the thread that passes it flushes */
#define COPY_BULK (32u << 10)               /* bulk up to this is copied into the queue */
#define LOOK_CPUS 8                         /* a flusher that looks takes a processor from nobody */
#define LOOK_NS 50000
#define GRACE_NS 3000
#define PAUSES 8                            /* between two looks */
#define SPARE 3                             /* queue buffers kept for the next batch */

#define PACE 2048                           /* posts from one marker to the next */

struct queue { uint8_t *bytes; size_t len; };

static struct {
	_Atomic int fd;
	pthread_mutex_t order;
	struct queue queue;                 /* records not in a batch yet */
	uint8_t *spare[SPARE];
	unsigned nspare;
	uint64_t seq, batch;                /* the last ones given */
	bool flusher;                       /* the thread was started */
	_Atomic uint32_t wake;              /* futex word of the flusher: 1 while it sleeps */
	_Atomic bool queued;                /* what the flusher looks at: the queue is not empty */
} channel = {.fd = -1, .order = PTHREAD_MUTEX_INITIALIZER};

/* How far a program may run ahead of its GPU. Natively a launch waits once some thousand are under way; here the queues on the way hold a hundred times as many. So every
 * PACE posts a marker goes with them, and the next marker waits for the answer of the one before: at most twice PACE posts are behind what the server has handed
 * to its driver. A program that waits anyway never needs one. `lock` is held while one thread waits: the others have to, too. */
static struct {
	pthread_mutex_t lock;
	_Atomic uint64_t last;              /* record that was the last marker, or was answered itself */
	uint64_t marker;                    /* whose answer is not fetched yet; 0: none */
} pace = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A batch cut off the queue: its first bytes are the queue's, then come bytes of one record's bulk. */
struct batch {
	uint64_t number;                    /* of the first batch; bulk takes the numbers behind it */
	struct queue queue;
	const uint8_t *bulk;
	size_t bulk_len;
};

/* Per thread: room for an ioctl and its answer, and for an answer that does not fit. */
struct room { uint8_t ioctl[16384]; uint8_t *large; size_t large_len; };
static _Thread_local struct room *room __attribute__((tls_model("initial-exec")));

/* A write that the daemon has parked for long comes back with EAGAIN: its queue is full because the GPU is behind. The same batch number goes
 * again, for as long as the daemon finds the server alive. Raw system calls: libc's pwrite and pread are cancellation points, which the application's API calls must
 * not be. */
static long ctl_writev(const struct iovec *v, int n, int64_t at)
{
	long r;
	do
		r = syscall(SYS_pwritev, channel.fd, v, n, at, 0);
	while (r < 0 && (errno == EINTR || errno == EAGAIN));
	return r < 0 ? -errno : r;
}

static long ctl_read(void *p, size_t n, int64_t at)
{
	long r;
	do
		r = syscall(SYS_pread64, channel.fd, p, n, at);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static long ctl_ioctl(unsigned long request, void *arg)
{
	long r;
	do
		r = syscall(SYS_ioctl, channel.fd, request, arg);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

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

/* The kernel sends a write in requests of at most 256 pages, and a batch must be one request. */
static size_t piece_of(const uint8_t *bulk, size_t left, size_t before)
{
	size_t pages = (before + PAGE - 1) / PAGE;
	size_t most = LIMIT_BATCH - pages * PAGE - ((uintptr_t)bulk & (PAGE - 1));
	if (before == 0 && most > LIMIT_BATCH)
		most = LIMIT_BATCH;
	return left < most ? left : most;
}

/* How many batches a cut needs. The queue and the front of the bulk share the first. */
static uint64_t batches_of(const struct batch *b)
{
	uint64_t n = 0;
	size_t before = b->queue.len;
	size_t at = 0;
	do {
		at += before >= LIMIT_BATCH - PAGE ? 0 : piece_of(b->bulk + at, b->bulk_len - at, before);
		before = 0;
		n++;
	} while (at < b->bulk_len);
	return n;
}

/* Writes n bytes of the bulk from `at` on as a batch, behind `before` bytes of the queue. */
static int piece_write(const struct batch *b, uint64_t number, size_t before, size_t at, size_t n)
{
	struct iovec v[2] = {{b->queue.bytes, before}, {(void *)(b->bulk + at), n}};
	long r = ctl_writev(before ? v : v + 1, n && before ? 2 : 1, CTL_POST(number));
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

static int batch_write(const struct batch *b)
{
	size_t before = b->queue.len, at = 0;
	uint64_t number = b->number;
	do {
		size_t left = b->bulk_len - at;
		if (!before && left >= LANES_LEAST && piece_of(b->bulk + at, left, 0) == LIMIT_BATCH) {
			struct spread s = {b, number, at};
			return lanes_run(piece_spread, &s, (left + LIMIT_BATCH - 1) / LIMIT_BATCH);
		}
		size_t n = before >= LIMIT_BATCH - PAGE ? 0 : piece_of(b->bulk + at, left, before);
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
	count_record(f.kind, f.flags, sizeof f + f.head_len + f.bulk_len);
	return sizeof f + r->head_len;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Waits until the queue is `filled` or empty, at most so long. */
static bool look(bool filled, uint64_t ns)
{
	uint64_t end = now_ns() + ns;
	while (atomic_load_explicit(&channel.queued, memory_order_relaxed) != filled) {
		if (now_ns() >= end)
			return false;
		for (int i = 0; i < PAUSES; i++)
			relax();
	}
	return true;
}

/* Where there are processors enough, the flusher looks for posts for a while before it sleeps, so that they
 * pay for no wake-up; and it leaves one alone for a moment, because a wait that follows takes it along. */
static void *flusher(void *unused)
{
	cpu_set_t set;
	bool looks = !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) >= LOOK_CPUS;
	(void)unused;
	for (;;) {
		bool seen = looks && look(true, LOOK_NS);
		if (seen)
			look(false, GRACE_NS);
		pthread_mutex_lock(&channel.order);
		if (!channel.queue.len && seen) {
			pthread_mutex_unlock(&channel.order);
			continue;
		}
		if (!channel.queue.len) {
			atomic_store(&channel.wake, 1);
			pthread_mutex_unlock(&channel.order);
			while (atomic_load(&channel.wake))
				syscall(SYS_futex, &channel.wake, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
			continue;
		}
		struct batch b = cut(NULL, 0);
		pthread_mutex_unlock(&channel.order);
		int r = send_cut(&b);
		if (r) {
			process_die(r, "sending");
			return NULL;
		}
	}
}

/* After the lock: gets what was queued on its way, when nobody is at it. */
static void wake_flusher(void)
{
	uint32_t asleep = 1;
	if (atomic_load_explicit(&channel.wake, memory_order_relaxed) &&
			atomic_compare_exchange_strong(&channel.wake, &asleep, 0))
		syscall(SYS_futex, &channel.wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Under the lock: the flusher exists from the first post on. */
static bool start_flusher(void)
{
	if (!channel.flusher && process_thread(flusher, NULL, 64u << 10, "scuda-flush") == 0)
		channel.flusher = true;
	return channel.flusher;
}

/* Sends a record that carries more than is worth copying: at once, straight from the caller's memory. */
static int send_now(struct record *r)
{
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

/* A record's answer is here: what was posted before it has had its turn. */
static void pace_answered(uint64_t seq)
{
	uint64_t last = atomic_load_explicit(&pace.last, memory_order_relaxed);
	while ((int64_t)(seq - last) > 0 && !atomic_compare_exchange_weak(&pace.last, &last, seq))
		;
}

static uint64_t channel_posted(void)
{
	pthread_mutex_lock(&channel.order);
	uint64_t seq = channel.seq;
	pthread_mutex_unlock(&channel.order);
	return seq;
}

static int enqueue(struct record *r)
{
	int saved = errno;
	size_t n = sizeof(struct frame) + r->head_len + r->bulk_len;
	struct batch full = {0};
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
	bool started = start_flusher();
	struct batch own = {0};
	if (!started)
		own = cut(NULL, 0);
	pthread_mutex_unlock(&channel.order);
	int e = full.number ? send_cut(&full) : 0;
	if (own.number) {
		int e2 = send_cut(&own);
		e = e ? e : e2;
	}
	wake_flusher();
	errno = saved;
	return e;
}

/* Sends what is queued and the marker m, and parks until the answer of the marker before it is there: the daemon looks for that only when all
 * batches up to this one have come. Its own buffer, guarded by pace.lock: the thread's room may hold an answer that is being read. */
static int pace_exchange(struct record *m, uint64_t before)
{
	static _Alignas(struct ctl_wait) uint8_t buf[16384];
	const size_t most = sizeof buf - 1 - sizeof(struct ctl_wait);
	uint8_t *to = buf + sizeof(struct ctl_wait);
	struct ctl_wait w = {.seq = before};
	struct batch full = {0};
	pthread_mutex_lock(&channel.order);
	if (channel.queue.len + sizeof(struct frame) > most)
		full = cut(NULL, 0);
	w.len = (uint32_t)(channel.queue.len + sizeof(struct frame));
	if (channel.queue.len)
		memcpy(to, channel.queue.bytes, channel.queue.len);
	channel.queue.len = 0;
	atomic_store_explicit(&channel.queued, false, memory_order_relaxed);
	number_record(m);
	memcpy(to + w.len - sizeof(struct frame), m->bytes, sizeof(struct frame));
	w.batch = ++channel.batch;
	pthread_mutex_unlock(&channel.order);
	long r = full.number ? send_cut(&full) : 0;
	while (!r) {
		memcpy(buf, &w, sizeof w);
		r = ctl_ioctl(CTL_WAIT_16K, buf);
		memcpy(&w, buf, sizeof w);
		if (r || !(w.flags & CTL_AGAIN))
			break;
		w = (struct ctl_wait){.seq = before};
	}
	return (int)r;
}

static int keep_pace(uint32_t thread)
{
	int saved = errno, e = 0;
	pthread_mutex_lock(&pace.lock);
	if (channel.fd >= 0 && (int64_t)(channel_posted() - atomic_load(&pace.last)) >= PACE) {
		uint8_t bytes[sizeof(struct frame)];
		struct record m = {.bytes = bytes, .kind = FRAME_WAIT, .flags = FRAME_PACE, .thread = thread};
		e = pace.marker ? pace_exchange(&m, pace.marker) : enqueue(&m);
		if (!e) {
			pace.marker = m.seq;
			atomic_store(&pace.last, m.seq);
		}
	}
	pthread_mutex_unlock(&pace.lock);
	errno = saved;
	return e;
}

int channel_post(struct record *r)
{
	if (r->bulk_len > COPY_BULK)
		return channel_send(r);
	int e = enqueue(r);
	if (!e && r->kind == FRAME_POST &&
			(int64_t)(r->seq - atomic_load_explicit(&pace.last, memory_order_relaxed)) >= PACE)
		e = keep_pace(r->thread);
	return e;
}

int channel_send(struct record *r)
{
	int saved = errno;
	int e = send_now(r);
	errno = saved;
	return e;
}

static unsigned long wait_class(size_t n, size_t *size)
{
	static const struct { size_t n; unsigned long request; } classes[] = {
		{256, CTL_WAIT_256}, {1024, CTL_WAIT_1K}, {4096, CTL_WAIT_4K}, {16383, CTL_WAIT_16K}};
	unsigned i = 0;
	while (i < 3 && n > classes[i].n)
		i++;
	*size = classes[i].n;
	return classes[i].request;
}

static struct room *room_of_thread(void)
{
	if (!room)
		room = malloc(sizeof *room);
	if (room)
		room->large = NULL;
	return room;
}

static int read_large(uint64_t seq, size_t n, const uint8_t **bytes)
{
	if (n > sizeof(struct frame) + LIMIT_HEAD + LIMIT_REPLY)
		return -EPROTO;
	uint8_t *p = malloc(n);
	if (!p)
		return -ENOMEM;
	room->large = p;
	for (size_t at = 0; at < n;) {
		size_t part = n - at < LIMIT_BATCH ? n - at : LIMIT_BATCH;
		long r = ctl_read(p + at, part, CTL_REPLY(seq) + (int64_t)at);
		if (r == -EAGAIN)
			continue;
		if (r <= 0)
			return r ? (int)r : -EPROTO;
		at += (size_t)r;
	}
	*bytes = p;
	return 0;
}

static int answer_check(uint64_t seq, const uint8_t *bytes, size_t n, struct answer *a)
{
	const char *why;
	if (n < sizeof a->frame)
		return -EPROTO;
	memcpy(&a->frame, bytes, sizeof a->frame);
	if (frame_check(&a->frame, false, &why) || a->frame.kind != FRAME_REPLY || a->frame.seq != seq)
		return -EPROTO;
	if (a->frame.bulk_len > LIMIT_REPLY || n != sizeof a->frame + a->frame.head_len + a->frame.bulk_len)
		return -EPROTO;
	count_received(n);
	a->head = bytes + sizeof a->frame;
	a->bulk = a->head + a->frame.head_len;
	return 0;
}

/* Parks until the answer is there, or, with `once`, for one round. The ioctl's buffer has `len` bytes of
 * records behind its header in the first round. */
static int await(uint64_t batch, uint64_t seq, size_t len, size_t expected, bool once, struct answer *a)
{
	uint8_t *buf = room->ioctl;
	struct ctl_wait w = {.batch = batch, .seq = seq, .len = (uint32_t)len};
	free(room->large);
	room->large = NULL;
	for (;;) {
		/* An answer that cannot fit is fetched apart: no use in a large ioctl, which is copied whole. */
		bool fits = expected <= sizeof room->ioctl - 1 - sizeof w;
		size_t need = len > expected || !fits ? len : expected, size;
		unsigned long request = wait_class(sizeof w + need, &size);
		memcpy(buf, &w, sizeof w);
		long r = ctl_ioctl(request, buf);
		if (r < 0)
			return (int)r;
		struct ctl_wait out;
		memcpy(&out, buf, sizeof out);
		if (out.flags & CTL_AGAIN) {
			w = (struct ctl_wait){.seq = seq};
			len = 0;
			if (once)
				return -EAGAIN;
			continue;
		}
		const uint8_t *bytes = buf + sizeof w;
		if (out.flags & CTL_LARGE) {
			int e = read_large(seq, out.len, &bytes);
			if (e)
				return e;
		} else if (out.len > size - sizeof w) {
			return -EPROTO;
		}
		return answer_check(seq, bytes, out.len, a);
	}
}

static int await_sent(uint64_t seq, size_t expected, bool once, struct answer *a)
{
	int saved = errno;
	int e = -ENOMEM;
	if (room || room_of_thread())
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

int channel_wait(struct record *r, size_t expected, struct answer *a)
{
	int saved = errno;
	size_t n = sizeof(struct frame) + r->head_len + r->bulk_len;
	int e = 0;
	if (!room && !room_of_thread())
		return -ENOMEM;
	expected += sizeof(struct frame) + 64;
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
		free(room->large);
	free(room);
	room = NULL;
}

long channel_read_data(uint64_t transfer, uint64_t offset, void *p, size_t n)
{
	int saved = errno;
	/* One request, for the same reason as a batch. */
	long r = ctl_read(p, piece_of(p, n, 0), CTL_DATA(transfer, offset));
	if (r > 0)
		count_received((uint64_t)r);
	errno = saved;
	return r ? r : -EPROTO;
}

long channel_read_upcalls(void *p, size_t n)
{
	long r = ctl_read(p, n, CTL_UPCALL);
	if (r > 0)
		count_received((uint64_t)r);
	return r;
}

int channel_upcall_done(uint64_t upcall)
{
	struct frame f = {.kind = FRAME_UPCALL_DONE, .seq = upcall};
	struct iovec v = {&f, sizeof f};
	long r = ctl_writev(&v, 1, CTL_ASIDE);
	return r < 0 ? (int)r : 0;
}

bool channel_has_queued(void)
{
	pthread_mutex_lock(&channel.order);
	bool has = channel.queue.len > 0;
	pthread_mutex_unlock(&channel.order);
	return has;
}

int channel_open(const char *path)
{
	/* An open that is interrupted starts again with a new connection: under a profiler's timer it would
	 * never come to an end. It is over within TIME_CONNECT. */
	sigset_t all, before;
	int fd;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	do
		fd = open(path, O_RDWR | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	int e = -errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (fd < 0)
		return e;
	if (fd <= STDERR_FILENO) {
		/* The program has closed a standard stream: what it prints must not end here. */
		int high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		e = -errno;
		close(fd);
		if (high < 0)
			return e;
		fd = high;
	}
	channel.seq = channel.batch = 0;
	pace.last = pace.marker = 0;
	atomic_store(&channel.queued, false);
	channel.queue.len = 0;
	channel.fd = fd;
	return 0;
}

void channel_close(void)
{
	close(channel.fd);
	channel.fd = -1;
}

void channel_forget(void)
{
	int fd = atomic_exchange(&channel.fd, -1);
	if (fd >= 0)
		syscall(SYS_close, fd);
}
