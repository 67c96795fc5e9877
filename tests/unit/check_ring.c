/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared by a program and its mount, both ends in one process, without FUSE: the shim's channel
 * against a relay whose server is ours. Both ends use one mapping, so that the thread sanitizer sees what
 * they share. Then a program that writes garbage there. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "scudafs/relay.h"
#include "scudafs/rendezvous.h"
#include "wire/fds.h"
#include "wire/ring.h"

/* The program's mapping is the mount's: the only one that there is. Of the channel it maps all, of the arena
 * parts. */
static void *one_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	unsigned long from = 0;
	char line[512];
	if (!(flags & MAP_SHARED))
		return mmap(at, n, prot, flags, fd, off);
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && !from && fgets(line, sizeof(line), f))
		if (strstr(line, n == RING_ALL ? "memfd:scudafs-channel" : "memfd:scudafs-arena"))
			sscanf(line, "%lx", &from);
	fclose(f);
	return from ? (uint8_t *)from + off : MAP_FAILED;
}
static int one_munmap(void *p, size_t n)
{
	(void)p, (void)n;
	return 0;
}
/* The mount goes on in a child, and one mapping is for both. */
static int one_madvise(void *p, size_t n, int what)
{
	return what == MADV_DONTFORK ? 0 : madvise(p, n, what);
}

static long fake_syscall(long number, ...);
#define syscall fake_syscall
#include "devshim/node.c"
#include "devshim/channel.c"
#include "devshim/flusher.c"
#include "devshim/pace.c"
#undef syscall
#include "devshim/lanes.c"
#define mmap one_mmap
#define munmap one_munmap
#define madvise one_madvise
#include "devshim/ring.c"
#include "devshim/arena.c"
#undef mmap
#undef munmap
#undef madvise

bool count_on;
void count_record_on(unsigned kind, unsigned flags, uint64_t bytes) { (void)kind, (void)flags, (void)bytes; }
void count_received_on(uint64_t bytes) { (void)bytes; }
_Atomic int process_code;
_Thread_local struct thread *thread_cached;
struct thread *thread_create(void) { return NULL; }
CUresult process_die(int error, const char *what)
{
	(void)what, (void)error;
	return CUDA_ERROR_MPS_RPC_FAILURE;
}
int process_thread(void *(*run)(void *), void *arg, size_t stack, const char *name)
{
	pthread_t t;
	(void)stack, (void)name;
	int e = pthread_create(&t, NULL, run, arg);
	if (!e)
		pthread_detach(t);
	return -e;
}

/* ---- in place of the kernel and ops.c: a system call is a request of the relay */

static struct relay *relay;

struct op {
	struct request q;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
	int r;
	size_t n, room;
	uint8_t *to;
};

static void answered(struct request *q, int r, const struct iovec *v, int n)
{
	struct op *o = (struct op *)q;
	pthread_mutex_lock(&o->lock);
	o->r = r;
	for (int i = 0; i < n; i++) {
		ck_assert_uint_le(o->n + v[i].iov_len, o->room);
		memcpy(o->to + o->n, v[i].iov_base, v[i].iov_len);
		o->n += v[i].iov_len;
	}
	o->done = true;
	pthread_cond_signal(&o->cond);
	pthread_mutex_unlock(&o->lock);
}

static void op_init(struct op *o, void *to, size_t room)
{
	*o = (struct op){.q.answer = answered, .q.token = o, .to = to, .room = room};
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->cond, NULL);
}

static long op_end(struct op *o)
{
	pthread_mutex_lock(&o->lock);
	while (!o->done)
		pthread_cond_wait(&o->cond, &o->lock);
	pthread_mutex_unlock(&o->lock);
	if (o->r < 0) {
		errno = -o->r;
		return -1;
	}
	return o->r ? o->r : (long)o->n;
}

static long call_ioctl(unsigned long request, uint8_t *arg)
{
	struct ctl_wait w;
	struct op o;
	op_init(&o, arg, _IOC_SIZE(request));
	if (request == CTL_CHANNEL) {
		relay_channel(relay, &o.q);
	} else if (request == CTL_UNTIL) {
		struct ctl_until until;
		memcpy(&until, arg, sizeof until);
		relay_until(relay, &until, &o.q);
	} else {
		memcpy(&w, arg, sizeof w);
		uint8_t *bytes = malloc(w.len + 1u);
		memcpy(bytes, arg + sizeof w, w.len);
		relay_wait(relay, w.batch, w.seq, bytes, w.len, _IOC_SIZE(request) - sizeof w, &o.q);
		free(bytes);
	}
	return op_end(&o) < 0 ? -1 : 0;
}

static long call_write(const struct iovec *v, int n, int64_t at)
{
	uint8_t *all = malloc(LIMIT_BATCH), *to = all;
	struct op o;
	for (int i = 0; i < n; to += v[i++].iov_len)
		memcpy(to, v[i].iov_base, v[i].iov_len);
	op_init(&o, NULL, 0);
	relay_post(relay, (uint64_t)(at - CTL_REGION(1)) / LIMIT_BATCH, all, (size_t)(to - all), &o.q);
	long r = op_end(&o);
	free(all);
	return r;
}

static long call_read(uint8_t *p, size_t n, int64_t at)
{
	struct op o;
	op_init(&o, p, n);
	if (at >= CTL_REPLY(0)) {
		uint64_t a = (uint64_t)(at - CTL_REPLY(0));
		relay_reply(relay, a >> 28, a & 0xfffffff, n, &o.q);
	} else {
		uint64_t a = (uint64_t)(at - CTL_DATA(0, 0));
		relay_data(relay, a >> 40, a & 0xffffffffff, n, &o.q);
	}
	return op_end(&o);
}

static long fake_syscall(long number, ...)
{
	va_list ap;
	va_start(ap, number);
	long a = va_arg(ap, long), b = va_arg(ap, long), c = va_arg(ap, long), d = va_arg(ap, long),
		e = va_arg(ap, long), f = va_arg(ap, long);
	va_end(ap);
	switch (number) {
	case SYS_ioctl: return call_ioctl((unsigned long)b, (uint8_t *)c);
	case SYS_pwritev: return call_write((const struct iovec *)b, (int)c, d);
	case SYS_pread64: return call_read((uint8_t *)b, (size_t)c, d);
	}
	return syscall(number, a, b, c, d, e, f);
}

/* ---- the server: a record's head says what it wants: its own thread and count there, bytes in the answer,
 * bytes of a transfer */

struct wish { uint32_t thread, count; uint64_t answer, data, transfer; };
#define THREADS 6
#define CHUNK 200000u

static int listener, peer, second_peer = -1;
enum offer { OFFER_NONE, OFFER_WRONG, OFFER_ONE, OFFER_CUT };
static enum offer offer;                /* what who asks for a second connection gets */
static _Atomic unsigned striped;        /* records whose bulk came by both */
static const struct share_token token = {{0x0123456789abcdef, 0xfedcba9876543210}};
static pthread_t server;
static char address[64], folder[64];
static _Atomic uint64_t records, markers, bulk_sum, wrong;
static uint8_t pattern[6 << 20];
static uint8_t *pinned;                 /* the same, where the mount sees it, at `pinned_at` */
static uint64_t pinned_at;

/* Bytes in another order have another sum. */
static uint64_t sum_of(const uint8_t *p, size_t n, size_t from)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += p[i] * (uint64_t)((from + i) % 65521 + 1);
	return sum;
}

static bool get_from(int fd, void *p, size_t n)
{
	ssize_t r = 1;
	for (size_t at = 0; at < n && r > 0; at += (size_t)r)
		r = recv(fd, (char *)p + at, n - at, 0);
	return r > 0;
}
static bool get(void *p, size_t n) { return get_from(peer, p, n); }

static void put(struct frame f, const void *body, size_t n)
{
	struct iovec v[2] = {{&f, sizeof f}, {(void *)body, n}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	size_t left = sizeof f + n;
	while (left) {
		ssize_t r = sendmsg(peer, &m, MSG_NOSIGNAL);
		if (r <= 0)
			return;
		left -= (size_t)r;
		for (int i = 0; i < 2 && r; i++) {
			size_t part = (size_t)r < v[i].iov_len ? (size_t)r : v[i].iov_len;
			v[i].iov_base = (uint8_t *)v[i].iov_base + part;
			v[i].iov_len -= part;
			r -= (ssize_t)part;
		}
	}
}

static bool serve_record(const struct frame *f, uint32_t *count)
{
	static uint8_t bulk[STRIPE];
	struct wish w;
	uint64_t sum = 0;
	if (f->flags & FRAME_PACE) {
		wrong += f->seq != ++records;
		markers++;
		put((struct frame){.kind = FRAME_REPLY, .seq = f->seq}, NULL, 0);
		return true;
	}
	if (f->head_len != sizeof w || f->bulk_len > sizeof pattern || !get(&w, sizeof w))
		return false;
	for (size_t at = 0, n; at < f->bulk_len; at += n) {
		n = f->bulk_len - at < sizeof bulk ? f->bulk_len - at : sizeof bulk;
		if (offer == OFFER_CUT && striped == 2 && at == 3 * STRIPE)
			shutdown(second_peer, SHUT_RDWR);
		if (!get_from(f->flags & FRAME_STRIPED && at / STRIPE % 2 ? second_peer : peer, bulk, n))
			return false;
		sum += sum_of(bulk, n, at);
	}
	striped += f->flags & FRAME_STRIPED ? 1 : 0;
	bulk_sum += sum;
	wrong += f->seq != ++records || w.thread != f->thread || w.thread > THREADS ||
			w.count != ++count[w.thread];
	if (f->kind != FRAME_WAIT)
		return true;
	for (uint64_t at = 0; at < w.data; at += CHUNK) {
		uint64_t n = w.data - at < CHUNK ? w.data - at : CHUNK;
		put((struct frame){.kind = FRAME_DATA, .ctx = w.transfer, .seq = at, .bulk_len = n},
				pattern + at, n);
	}
	put((struct frame){.kind = FRAME_REPLY, .seq = f->seq, .head_len = 1, .bulk_len = w.answer},
		pattern, 1 + w.answer);
	return true;
}

/* The daemon asks for a second connection. */
static void meet_second(void)
{
	struct frame f;
	struct preamble p;
	put((struct frame){.kind = FRAME_SECOND, .seq = offer ? token.word[0] : 0,
			.ctx = offer ? token.word[1] : 0},
		NULL, 0);
	if (!offer)
		return;
	second_peer = accept(listener, NULL, NULL);
	ck_assert(get_from(second_peer, &p, sizeof p) && get_from(second_peer, &f, sizeof f));
	ck_assert_uint_eq(p.flags, PREAMBLE_SECOND);
	ck_assert_mem_eq(p.routing, &token, sizeof token);
	ck_assert_uint_eq(f.kind, FRAME_PING);
	f = (struct frame){.kind = offer == OFFER_WRONG ? FRAME_BYE : FRAME_PONG};
	ck_assert_int_eq(send(second_peer, &f, sizeof f, MSG_NOSIGNAL), sizeof f);
}

static void *server_main(void *unused)
{
	uint32_t count[THREADS + 1] = {0};
	struct preamble p;
	struct frame f;
	(void)unused;
	peer = accept(listener, NULL, NULL);
	if (!get(&p, sizeof p))
		return NULL;
	while (get(&f, sizeof f)) {
		if (f.kind == FRAME_PING)
			put((struct frame){.kind = FRAME_PONG, .seq = f.seq}, NULL, 0);
		else if (f.kind == FRAME_SECOND)
			meet_second();
		else if (!serve_record(&f, count))
			break;
	}
	shutdown(peer, SHUT_RDWR);
	return NULL;
}

static void setup(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	char path[128];
	struct op o;
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 31 >> 3);
	records = markers = bulk_sum = wrong = striped = 0;
	offer = OFFER_NONE;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert(!bind(listener, (struct sockaddr *)&a, sizeof a) && !listen(listener, 1) &&
		!getsockname(listener, (struct sockaddr *)&a, &n));
	snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(a.sin_port));
	ck_assert_int_eq(pthread_create(&server, NULL, server_main, NULL), 0);
	/* In place of the mount: a folder in which the sockets are made. */
	snprintf(folder, sizeof folder, "/tmp/scudafs-ring.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/sessions", folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	rendezvous_init(folder);
	struct relay_options options = {.id = relay_new_id(), .address = address, .pid = getpid(),
			.uid = getuid(),
		.connections = CONNECTIONS_TWO};
	op_init(&o, NULL, 0);
	relay_create(&options, &o.q);
	ck_assert_int_eq(op_end(&o), 0);
	relay = o.q.relay;
	snprintf(path, sizeof path, "%s/ctl", folder);
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(channel_open(path), 0);
	ck_assert(ring_is_open());
	pinned = arena_alloc(sizeof pattern, &pinned_at);
	ck_assert_ptr_nonnull(pinned);
	memcpy(pinned, pattern, sizeof pattern);
}

static void teardown(void)
{
	char command[128];
	arena_free(pinned, sizeof pattern, pinned_at);
	channel_close();
	relay_close(relay);
	pthread_join(server, NULL);
	close(peer);
	close(listener);
	if (second_peer >= 0)
		close(second_peer);
	second_peer = -1;
	ck_assert(relay_end_all(3000));
	snprintf(command, sizeof command, "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* ---- the tests */

static void fill(struct record *r, uint8_t *bytes, enum frame_kind kind, const struct wish *w)
{
	memcpy(bytes + sizeof(struct frame), w, sizeof *w);
	*r = (struct record){.bytes = bytes, .head_len = sizeof *w, .kind = (uint8_t)kind,
			.thread = w->thread};
}

static void place(void *to, uint64_t offset, const void *p,
		size_t n) { memcpy((uint8_t *)to + offset, p, n); }

/* The sum of the bulk bytes that were sent; UINT64_MAX: something was wrong. */
static uint64_t exchange(uint32_t thread, unsigned rounds)
{
	static const uint64_t answers[] = {0, 100, 4000, 16000, 16300, 60000, 200000, LIMIT_REPLY - 1};
	static const uint64_t transfers[] = {1, 300, 65536, 300001, LIMIT_REPLY, sizeof pattern};
	static const size_t bulks[] = {0, 0, 0, 10, 4000, 32768, 100000, 131072, 131073, 700000, 1 << 20,
			sizeof pattern};
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)], *own = malloc(sizeof pattern), *to = own;
	uint64_t to_at = 0;
	uint8_t *seen = arena_alloc(sizeof pattern, &to_at);
	uint64_t sum = 0;
	unsigned seed = thread;
	struct answer a;
	struct record r;
	int e = 0;
	for (unsigned i = 1; i <= rounds && !e; i++) {
		struct wish w = {.thread = thread, .count = i};
		unsigned kind = (unsigned)rand_r(&seed) % 8;
		unsigned size = (unsigned)rand_r(&seed) % 64, at = size % 3 ? 0 : pinned_at ? 17 : 0;
		size_t bulk = bulks[size < 62 ? size % 11 : 11];
		if (kind == 0) {
			uint64_t got = 0;
			bool direct = seen && rand_r(&seed) % 3 == 0;
			w.data = transfers[(unsigned)rand_r(&seed) % 6];
			to = direct ? seen : own;
			w.transfer = thread * 100000 + i;
			fill(&r, bytes, FRAME_WAIT, &w);
			memset(to, 0, w.data);
			e = channel_wait_data(&r, w.transfer, w.data, direct ? to_at : 0, place, to, &got,
					&a);
			if (e == -ENOTSUP || e == -EAGAIN) {
				e = e == -ENOTSUP ? channel_send(&r) : 0;
				for (long n; got < w.data && !e; got += n > 0 ? (uint64_t)n : 0) {
					n = channel_read_data(w.transfer, got, to + got,
							w.data - got < LIMIT_REPLY ? w.data - got :
							LIMIT_REPLY);
					e = n < 0 && n != -EAGAIN ? (int)n : 0;
				}
				e = e ? e : channel_await(r.seq, 0, &a);
			}
			wrong += got != w.data || memcmp(to, pattern, w.data);
		} else if (kind < 4) {
			w.answer = answers[(unsigned)rand_r(&seed) % 8];
			fill(&r, bytes, FRAME_WAIT, &w);
			r.bulk = at ? pinned + at : pattern;
			r.bulk_len = bulk - (bulk > at ? at : 0);
			r.bulk_at = at && r.bulk_len ? pinned_at + at : 0;
			e = channel_wait(&r, w.answer, &a);
			wrong += !e && (a.frame.seq != r.seq || a.frame.bulk_len != w.answer ||
					*a.head != *pattern ||
				memcmp(a.bulk, pattern + 1, w.answer));
			channel_taken();
		} else {
			fill(&r, bytes, FRAME_POST, &w);
			r.bulk = at ? pinned + at : pattern;
			r.bulk_len = bulk - (bulk > at ? at : 0);
			r.bulk_at = at && r.bulk_len ? pinned_at + at : 0;
			r.bulk_held = i % 2;
			e = channel_post(&r);
		}
		if (r.bulk_len)
			sum += sum_of(r.bulk, r.bulk_len, 0);
	}
	arena_free(seen, sizeof pattern, to_at);
	free(own);
	return e ? UINT64_MAX : sum;
}

static uint64_t sums[THREADS];
static unsigned rounds;
static void *worker(void *thread)
{
	sums[(uintptr_t)thread] = exchange((uint32_t)(uintptr_t)thread + 1, rounds);
	channel_thread_finish();
	return NULL;
}

/* With and without looking. */
static void exchange_by_threads(unsigned threads)
{
	pthread_t t[THREADS];
	uint64_t sum = 0;
	for (uintptr_t i = 0; i < threads; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, worker, (void *)i), 0);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(t[i], NULL);
		ck_assert_uint_ne(sums[i], UINT64_MAX);
		sum += sums[i];
	}
	/* What the last posts brought is sure to be there after a wait. */
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = rounds + 1};
	struct record r;
	struct answer a;
	fill(&r, bytes, FRAME_WAIT, &w);
	ck_assert_int_eq(channel_wait(&r, 0, &a), 0);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(records, threads * rounds + 1);
	ck_assert_uint_eq(bulk_sum, sum);
}

START_TEST(test_one_thread)
{
	ring.spin_ns = _i ? 30000 : 0;
	rounds = 300;
	exchange_by_threads(1);
}
END_TEST

START_TEST(test_threads)
{
	ring.spin_ns = _i ? 30000 : 0;
	rounds = 150;
	exchange_by_threads(THREADS);
}
END_TEST

/* A copy to the device, of one of many kinds; its sum is added. */
static int copy(unsigned i, uint32_t count, uint64_t *sum)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = count};
	struct record r;
	struct answer a;
	fill(&r, bytes, i % 4 ? FRAME_POST : FRAME_WAIT, &w);
	size_t at = i % 5 ? 0 : 4099;
	r.bulk = i % 2 ? pinned + at : pattern + at;
	r.bulk_len = sizeof pattern - at - i % 3 * 700000;
	r.bulk_at = i % 2 ? pinned_at + at : 0;
	r.bulk_held = i % 7;
	if (sum)
		*sum += sum_of(r.bulk, r.bulk_len, 0);
	return i % 4 ? channel_post(&r) : channel_wait(&r, 0, &a);
}

/* Waits for all that was posted. */
static int settle(uint32_t count)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = count};
	struct record r;
	struct answer a;
	fill(&r, bytes, FRAME_WAIT, &w);
	return channel_wait(&r, 0, &a);
}

/* Large copies go by two connections, or, when the server has no second one for us, by one. */
START_TEST(test_second)
{
	uint64_t sum = 0;
	uint32_t count = 0;
	ring.spin_ns = _i & 1 ? 30000 : 0;
	offer = (enum offer)(_i / 2);
	for (unsigned i = 1; i <= 60 && striped < 16; i++)
		ck_assert_int_eq(copy(i, ++count, &sum), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(bulk_sum, sum);
	if (offer == OFFER_ONE)
		ck_assert_uint_ge(striped, 16);
	else
		ck_assert_uint_eq(striped, 0);
}
END_TEST

/* The second connection is lost in the middle of a copy: so is the session. */
START_TEST(test_second_lost)
{
	uint32_t count = 0;
	int e = 0;
	offer = OFFER_CUT;
	for (unsigned i = 1; i <= 4000 && !e; i++)
		e = copy(4 * i + 1, ++count, NULL);
	ck_assert_int_eq(e, -ECONNRESET);
}
END_TEST

/* It is lost while nothing is on its way: the session goes on without it. */
START_TEST(test_second_idle)
{
	uint64_t sum = 0;
	uint32_t count = 0;
	offer = OFFER_ONE;
	for (unsigned i = 1; i <= 400 && striped < 2; i++)
		ck_assert_int_eq(copy(i, ++count, &sum), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_ge(striped, 2);
	shutdown(second_peer, SHUT_WR);
	/* The daemon closes it when it has seen that. */
	uint8_t byte;
	ck_assert_int_eq(recv(second_peer, &byte, 1, 0), 0);
	unsigned before = striped;
	for (unsigned i = 1; i <= 20; i++)
		ck_assert_int_eq(copy(i, ++count, &sum), 0);
	ck_assert_int_eq(settle(++count), 0);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(bulk_sum, sum);
	ck_assert_uint_eq(striped, before);
}
END_TEST

/* Many posts, so that the ring is full for long: the rest goes by the node, and all comes in order. */
START_TEST(test_full)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct record r;
	struct answer a;
	rounds = 6000;
	for (unsigned i = 1; i <= rounds; i++) {
		struct wish w = {.thread = 1, .count = i};
		fill(&r, bytes, i == rounds ? FRAME_WAIT : FRAME_POST, &w);
		r.bulk = pattern;
		r.bulk_len = 20000;
		ck_assert_int_eq(i == rounds ? channel_wait(&r, 0, &a) : channel_post(&r), 0);
	}
	ck_assert_uint_ge(markers, 2);
	ck_assert_uint_eq(records, rounds + markers);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* All slots are taken: the others wait without one. */
START_TEST(test_no_slots)
{
	while (ring_take_slot(0) >= 0)
		;
	while (ring_take_area() >= 0)
		;
	rounds = 60;
	exchange_by_threads(THREADS);
}
END_TEST

/* A wait for an answer that nobody was asked for ends at once. */
START_TEST(test_nothing_asked)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = 1};
	struct record r;
	struct answer a;
	fill(&r, bytes, FRAME_WAIT, &w);
	ck_assert_int_eq(channel_wait(&r, 0, &a), 0);
	ck_assert_int_eq(node_sleep(r.seq), 0);
	ck_assert_int_eq(channel_await(r.seq + 5, 0, &a), -EPROTO);
}
END_TEST

/* Few threads look long for their answers; none when the program wants its waits asleep. */
START_TEST(test_look_time)
{
	bool counts;
	ring.spin_ns = 30000;
	ring.await_ns = 7000000;
	ring.awaiting_most = 2;
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(look_time(&counts), 7000000);
		ck_assert(counts);
	}
	ck_assert_uint_eq(look_time(&counts), 30000);
	ck_assert(!counts);
	ring.awaiting = 0;
	rounds = 20;
	exchange_by_threads(THREADS);
	ck_assert_uint_eq(ring.awaiting, 0);
	ring_wait_asleep();
	ck_assert_uint_eq(look_time(&counts), 30000);
	ck_assert(!counts);
}
END_TEST

/* The session ends: posts and waits say so. */
START_TEST(test_end)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = 1};
	struct record r;
	struct answer a;
	fill(&r, bytes, FRAME_WAIT, &w);
	ck_assert_int_eq(channel_wait(&r, 0, &a), 0);
	shutdown(peer, SHUT_RDWR);
	ck_assert_int_eq(channel_wait(&r, 0, &a), -ECONNRESET);
	ck_assert_int_eq(channel_post(&r), -ECONNRESET);
}
END_TEST

/* ---- a program that is not ours */

static int wait_for_error(void)
{
	int e = 0;
	for (unsigned i = 0; i < 3000 && !(e = atomic_load(&ring.control->error)); i++) {
		ring_wake(ALIVE_EVERY + 1);
		usleep(1000);
	}
	return e;
}

static const struct ring_segment bad[] = {
	{.len = 0, .batch = 1},
	{.len = RING_RECORD + 1, .batch = 1},
	{.len = UINT32_MAX, .batch = 1},
	{.len = 100, .batch = 1},                           /* longer than what was appended */
	{.len = 40, .batch = 0},
	{.len = 40, .batch = 1, .zero = 1},
	{.len = 40, .batch = 1, .slot = RING_SLOTS + 1, .seq = 1},
	{.len = 40, .batch = 1, .slot = 255, .seq = 1},
	{.len = 40, .batch = 1, .slot = 1},                 /* of no record */
	{.len = 40, .batch = 1, .area = RING_SLOTS},        /* an area alone */
	{.len = 40, .batch = 1, .slot = 1, .seq = 1, .area = 1},            /* a small one */
	{.len = 40, .batch = 1, .slot = 1, .seq = 1, .area = 255},
	{.len = 40, .batch = 1, .slot = RING_SLOTS, .seq = 1, .area = RING_SLOTS},
	{.len = 40, .batch = 1, .slot = 1, .seq = 1, .area = RING_SINK},    /* a sink of no bytes */
	{.len = 40, .batch = 1, .slot = 2, .seq = 1, .area = RING_SINK},    /* those of bad_sinks */
	{.len = 40, .batch = 1, .slot = 3, .seq = 1, .area = RING_SINK},
	{.len = 40, .batch = 1, .slot = 4, .seq = 1, .area = RING_SINK},
	{.len = 40, .batch = 1, .slot = 5, .seq = 1, .area = RING_SINK},
	{.len = 40, .batch = 1},                            /* good; its record is not */
};
static const struct { uint64_t at, n, room; } bad_sinks[] = {{LIMIT_ARENA, 1, 0}, {4096, UINT64_MAX, 0},
	{LIMIT_ARENA - 4096, 1 << 20, 4097}, {UINT64_MAX, 1, 1}};
START_TEST(test_bad_segment)
{
	uint8_t none[40] = {0};
	for (unsigned i = 0; i < sizeof bad_sinks / sizeof *bad_sinks; i++) {
		struct ring_slot *s = ring_slot_at(ring.memory, i + 1);
		s->at = bad_sinks[i].at, s->n = bad_sinks[i].n, s->room = bad_sinks[i].room;
	}
	ring_copy_in(ring.memory, 0, &bad[_i], sizeof bad[_i]);
	ring_copy_in(ring.memory, sizeof bad[_i], none, sizeof none);
	atomic_store(&ring.control->head, sizeof bad[_i] + sizeof none);
	ck_assert_int_eq(wait_for_error(), EPROTO);
}
END_TEST

static const struct ring_bulk bad_bulks[] = {
	{.batch = 1, .at = LIMIT_ARENA, .len = 1},
	{.batch = 1, .at = LIMIT_ARENA - 4096, .len = 4097},
	{.batch = 1, .at = 4096, .len = UINT64_MAX},
	{.batch = 1, .at = UINT64_MAX, .len = 2},
	{.batch = 1, .at = 0, .len = 0},
	{.batch = 0, .at = 0, .len = 100},
	{.batch = 1, .at = 0, .len = 100},                  /* good; but no record has begun */
};
START_TEST(test_bad_bulk)
{
	*ring_bulk_at(ring.memory, 0) = bad_bulks[_i];
	atomic_store(&ring.control->given, 1);
	ck_assert_int_eq(wait_for_error(), EPROTO);
}
END_TEST

START_TEST(test_bad_given)
{
	static const uint64_t all[] = {RING_BULKS + 1, UINT64_MAX, 1ull << 63};
	atomic_store(&ring.control->given, all[_i]);
	ck_assert_int_eq(wait_for_error(), EPROTO);
}
END_TEST

/* Pinned memory comes and goes: what is given back is there again, and in one piece. */
START_TEST(test_arena)
{
	void *p[64];
	uint64_t at[64], again;
	unsigned seed = 1;
	for (unsigned i = 0; i < 64; i++) {
		p[i] = arena_alloc((1 + i % 7) * 4096, &at[i]);
		ck_assert_ptr_nonnull(p[i]);
		for (unsigned k = 0; k < i; k++)
			ck_assert(at[i] >= at[k] + (1 + k % 7) * 4096 || at[k] >= at[i] + (1 + i % 7) * 4096);
	}
	for (unsigned left = 64; left; left--) {
		unsigned i = (unsigned)rand_r(&seed) % 64;
		while (!p[i])
			i = (i + 1) % 64;
		arena_free(p[i], (1 + i % 7) * 4096, at[i]);
		p[i] = NULL;
	}
	ck_assert_ptr_nonnull(arena.free);
	ck_assert_ptr_null(arena.free->next);
	ck_assert_ptr_null(arena_alloc(LIMIT_ARENA, &again));
	p[0] = arena_alloc(arena.free->n, &again);
	ck_assert_ptr_nonnull(p[0]);
	ck_assert_ptr_null(arena.free);
	ck_assert_ptr_null(arena_alloc(4096, &again));
	arena_free(p[0], LIMIT_ARENA - PINNED - sizeof pattern, again);
}
END_TEST

static const uint64_t heads[] = {1, 31, RING_BYTES + 1, UINT64_MAX, 1ull << 63};
START_TEST(test_bad_head)
{
	memset(ring.memory + RING_AT, 0xa5, RING_BYTES);
	atomic_store(&ring.control->head, heads[_i]);
	ck_assert_int_eq(wait_for_error(), EPROTO);
}
END_TEST

/* Whatever it writes, and while we read: the session ends or goes on, no more. */
START_TEST(test_garbage)
{
	unsigned seed = (unsigned)_i;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t at = (uint64_t)rand_r(&seed) * 8;
		uint64_t word = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 40);
		uint64_t given = atomic_load(&ring.control->given);
		if (i % 80 == 0 && given < RING_BULKS) {
			*ring_bulk_at(ring.memory, given) =
					(struct ring_bulk){.batch = 1 + (i + 49) / 50, .at = word % 4096,
				.len = word % 70000};
			atomic_store(&ring.control->given, given + 1);
		}
		if (i % 50 == 0) {
			struct ring_segment s = {.len = 40 + (uint32_t)rand_r(&seed) % 5000,
					.batch = 1 + i / 50,
				.slot = (uint8_t)(rand_r(&seed) % (RING_SLOTS + 2)), .seq = word % 4};
			uint64_t head = atomic_load(&ring.control->head);
			ring_copy_in(ring.memory, head, &s, sizeof s);
			atomic_store(&ring.control->head,
					head + (i % 3 ? ring_bytes(s.len) : word % RING_BYTES));
			ring_wake(i + 1);
		}
		/* Words, as the mount's loads and stores are not ours to order. */
		__atomic_store_n((uint64_t *)(ring.memory + RING_AT + at % (RING_ALL - RING_AT)), word,
			__ATOMIC_RELAXED);
	}
	struct ctl_wait w;
	struct op o;
	op_init(&o, &w, sizeof w);
	relay_wait(relay, 0, 3, NULL, 0, 0, &o.q);
	relay_interrupt(relay_id(relay), &o);
	op_end(&o);
}
END_TEST

/* Descriptors that were not asked for are not kept. */
START_TEST(test_descriptors)
{
	int pair[2], two[2], got[FDS_MOST] = {-1, -1, -1, -1};
	char c = 7, d = 0;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(pipe(two), 0);
	int next = dup(0);
	close(next);
	for (unsigned sent = 0; sent <= 2; sent++)
		for (unsigned asked = 0; asked <= FDS_MOST; asked++) {
			ck_assert_int_eq(fds_send(pair[0], &c, 1, two, sent, 0), 0);
			ck_assert_int_eq(fds_receive(pair[1], &d, 1, got, asked, 0),
					sent == asked ? 0 : -EPROTO);
			ck_assert_int_eq(d, 7);
			for (unsigned i = 0; i < sent && sent == asked; i++)
				ck_assert_int_eq(close(got[i]), 0);
			int now = dup(0);
			ck_assert_int_eq(now, next);
			close(now);
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ring");
	setenv("SCUDAFS_LANES", "2", 1);
	TCase *t = tcase_create("good"), *u = tcase_create("bad"), *v = tcase_create("descriptors");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_checked_fixture(u, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_set_timeout(u, 60);
	tcase_add_loop_test(t, test_one_thread, 0, 2);
	tcase_add_loop_test(t, test_threads, 0, 2);
	tcase_add_loop_test(t, test_second, 0, 6);
	tcase_add_test(t, test_second_lost);
	tcase_add_test(t, test_second_idle);
	tcase_add_test(t, test_full);
	tcase_add_test(t, test_no_slots);
	tcase_add_test(t, test_nothing_asked);
	tcase_add_test(t, test_look_time);
	tcase_add_test(t, test_end);
	tcase_add_loop_test(u, test_bad_segment, 0, sizeof bad / sizeof *bad);
	tcase_add_test(t, test_arena);
	tcase_add_loop_test(u, test_bad_bulk, 0, sizeof bad_bulks / sizeof *bad_bulks);
	tcase_add_loop_test(u, test_bad_given, 0, 3);
	tcase_add_loop_test(u, test_bad_head, 0, sizeof heads / sizeof *heads);
	tcase_add_loop_test(u, test_garbage, 0, 6);
	suite_add_tcase(s, t);
	suite_add_tcase(s, u);
	tcase_add_test(v, test_descriptors);
	suite_add_tcase(s, v);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
