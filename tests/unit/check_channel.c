// SPDX-License-Identifier: Apache-2.0
/* The program's end of the channel against a stand-in for the kernel and the daemon: batches in the order of
 * their numbers, whatever order they come in; repeated after interrupts; bulk uncopied and never in a request
 * of more than 256 pages; answers that come late or do not fit; many threads at once. */
#include <stdarg.h>
#include <unistd.h>
#include <sys/uio.h>
static long fake_syscall(long number, ...);
#define syscall fake_syscall
#include "devshim/node.c"
#include "devshim/channel.c"
#include "devshim/channel_batch.c"
#include "devshim/channel_shared.c"
#include "devshim/channel_answer.c"
#include "devshim/flusher.c"
#include "devshim/pace.c"
#undef syscall
#include "devshim/lanes.c"
#include "devshim/ring.c"
#include "devshim/ring_open.c"
#include "devshim/ring_await.c"
#include "devshim/arena.c"
#include "devshim/arena_pinned.c"
#include "tests/unit/unit.h"
#include <stdio.h>

bool count_on;
void count_record_on(unsigned kind, unsigned flags, uint64_t bytes) { (void)kind, (void)flags, (void)bytes; }
void count_received_on(uint64_t bytes) { (void)bytes; }
_Atomic int process_code;
_Thread_local struct thread *thread_cached;
struct thread *thread_create(void) { return NULL; }
static _Atomic int died;
CUresult process_die(int error, const char *what)
{
	(void)what;
	died = error;
	return CUDA_ERROR_MPS_RPC_FAILURE;
}
int process_thread(void *(*run)(void *), void *arg, size_t stack, const char *name)
{
	pthread_t t;
	(void)stack;
	(void)name;
	int e = pthread_create(&t, NULL, run, arg);
	if (!e)
		pthread_detach(t);
	return -e;
}

/* ---- the stand-in. A record's head holds its own number again; its answer repeats head and `answer_bulk`
 * bytes. */

#define AHEAD 4096
static struct {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	uint64_t batch, records;            /* taken in order so far */
	struct { uint8_t *p; size_t n; } ahead[AHEAD];
	uint8_t *stream;                    /* bytes not parsed yet */
	size_t have, cap;
	uint64_t sum;                       /* of all bulk bytes */
	uint64_t last_reply;                /* the highest seq answered */
	size_t answer_bulk;
	unsigned interrupt_every, again_every, calls;
	bool bad;
	int error;
} peer = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};

static void parse(void)
{
	struct frame f;
	while (peer.have >= sizeof f) {
		memcpy(&f, peer.stream, sizeof f);
		size_t n = sizeof f + f.head_len + f.bulk_len;
		if (peer.have < n)
			break;
		uint64_t again = 0;
		if (f.head_len == sizeof again)
			memcpy(&again, peer.stream + sizeof f, sizeof again);
		peer.bad |= f.seq != ++peer.records || (f.head_len == sizeof again && again != f.thread);
		for (size_t i = n - f.bulk_len; i < n; i++)
			peer.sum += peer.stream[i];
		if (f.kind == FRAME_WAIT) {
			peer.last_reply = f.seq;
			pthread_cond_broadcast(&peer.answered);
		}
		memmove(peer.stream, peer.stream + n, peer.have - n);
		peer.have -= n;
	}
}

static void arrive(const uint8_t *p, size_t n)
{
	if (peer.have + n > peer.cap) {
		peer.cap = 2 * (peer.have + n);
		peer.stream = realloc(peer.stream, peer.cap);
	}
	memcpy(peer.stream + peer.have, p, n);
	peer.have += n;
	parse();
}

static void take_batch(uint64_t batch, const struct iovec *v, int n)
{
	if (batch <= peer.batch || peer.ahead[batch % AHEAD].p)
		return;     /* a repetition */
	size_t all = 0, pages = 0;
	for (int i = 0; i < n; i++) {
		all += v[i].iov_len;
		if (v[i].iov_len)
			pages += (((uintptr_t)v[i].iov_base & 4095) + v[i].iov_len + 4095) / 4096;
	}
	peer.bad |= all > LIMIT_BATCH || pages > 256 || all == 0;
	uint8_t *p = malloc(all + 1);
	peer.ahead[batch % AHEAD].p = p;
	peer.ahead[batch % AHEAD].n = all;
	for (int i = 0; i < n; p += v[i++].iov_len)
		memcpy(p, v[i].iov_base, v[i].iov_len);
	while (peer.ahead[(peer.batch + 1) % AHEAD].p) {
		unsigned slot = (unsigned)(++peer.batch % AHEAD);
		arrive(peer.ahead[slot].p, peer.ahead[slot].n);
		free(peer.ahead[slot].p);
		peer.ahead[slot].p = NULL;
	}
}

static size_t build_reply(uint64_t seq, uint8_t *out)
{
	struct frame f = {.kind = FRAME_REPLY, .seq = seq, .head_len = 9, .bulk_len = peer.answer_bulk};
	memcpy(out, &f, sizeof f);
	memset(out + sizeof f, 7, 9);
	for (size_t i = 0; i < f.bulk_len; i++)
		out[sizeof f + 9 + i] = (uint8_t)(i * 31 >> 3);
	return sizeof f + 9 + f.bulk_len;
}

static long failing(int e)
{
	errno = e;
	return -1;
}

static long fake_wait(unsigned long request, uint8_t *arg)
{
	size_t size = _IOC_SIZE(request);
	struct ctl_wait w;
	memcpy(&w, arg, sizeof w);
	if (w.batch)
		take_batch(w.batch, &(struct iovec){arg + sizeof w, w.len}, 1);
	peer.bad |= sizeof w + w.len > size || (w.batch == 0) != (w.len == 0);
	if (peer.interrupt_every && ++peer.calls % peer.interrupt_every == 0)
		return failing(EINTR);
	while (peer.last_reply < w.seq)
		pthread_cond_wait(&peer.answered, &peer.lock);
	struct ctl_wait out = {.seq = w.seq};
	if (peer.again_every && ++peer.calls % peer.again_every == 0) {
		out.flags = CTL_AGAIN;
	} else {
		uint8_t *reply = malloc(sizeof(struct frame) + LIMIT_REPLY + 64);
		out.len = (uint32_t)build_reply(w.seq, reply);
		if (out.len > size - sizeof out)
			out.flags = CTL_LARGE;
		else
			memcpy(arg + sizeof out, reply, out.len);
		free(reply);
	}
	memcpy(arg, &out, sizeof out);
	return 0;
}

static long fake_read(uint8_t *p, size_t n, int64_t at)
{
	static uint8_t reply[sizeof(struct frame) + LIMIT_REPLY + 64];
	for (uint64_t seq = 1; seq <= peer.last_reply; seq++) {
		if (at < CTL_REPLY(seq) || at >= CTL_REPLY(seq + 1))
			continue;
		size_t all = build_reply(seq, reply), from = (size_t)(at - CTL_REPLY(seq));
		n = from > all ? 0 : n < all - from ? n : all - from;
		memcpy(p, reply + from, n);
		return (long)n;
	}
	return failing(EINVAL);
}

static long fake_syscall(long number, ...)
{
	va_list ap;
	va_start(ap, number);
	long a = va_arg(ap, long), b = va_arg(ap, long), c = va_arg(ap, long), d = va_arg(ap, long),
			e = va_arg(ap, long), f = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_futex)
		return syscall(number, a, b, c, d, e, f);
	long r = 0;
	pthread_mutex_lock(&peer.lock);
	if (peer.error) {
		/* The kernel does so to the thread that writes. */
		if (peer.error == EFBIG)
			pthread_kill(pthread_self(), SIGXFSZ);
		r = failing(peer.error);
	} else if (number == SYS_ioctl) {
		r = fake_wait((unsigned long)b, (uint8_t *)c);
	} else if (number == SYS_pread64) {
		r = fake_read((uint8_t *)b, (size_t)c, d);
	} else {
		const struct iovec *v = (const struct iovec *)b;
		take_batch((uint64_t)(d - CTL_REGION(1)) / LIMIT_BATCH, v, (int)c);
		for (int i = 0; i < (int)c; i++)
			r += (long)v[i].iov_len;
		if (peer.interrupt_every && ++peer.calls % peer.interrupt_every == 0)
			r = failing(EINTR);
	}
	pthread_mutex_unlock(&peer.lock);
	return r;
}

/* ---- the tests */

static int send_record(enum frame_kind kind, uint32_t thread, const void *bulk, size_t bulk_len,
		struct answer *a)
{
	uint8_t bytes[sizeof(struct frame) + 8];
	uint64_t again = thread;
	memcpy(bytes + sizeof(struct frame), &again, 8);
	struct record r = {.bytes = bytes, .head_len = 8, .kind = (uint8_t)kind, .thread = thread,
			.bulk = bulk, .bulk_len = bulk_len};
	return kind == FRAME_POST ? channel_post(&r) : channel_wait(&r, 0, a);
}

START_TEST(posts_then_wait)
{
	struct answer a;
	errno = 77;
	for (unsigned i = 0; i < 2000; i++)
		ck_assert_int_eq(send_record(FRAME_POST, 1, NULL, 0, NULL), 0);
	ck_assert_int_eq(send_record(FRAME_WAIT, 1, NULL, 0, &a), 0);
	ck_assert_uint_eq(peer.records, 2001);
	ck_assert_uint_eq(a.frame.seq, 2001);
	ck_assert_uint_eq(a.head[8], 7);
	ck_assert_int_eq(errno, 77);
	ck_assert(!peer.bad && !died);
}
END_TEST

static const size_t sizes[] = {0, 1, 100, 4096, 16300, 16383, 32768, 32769, 65536, 1048575, 1048576, 1048577,
		5000001, 9000001};
START_TEST(bulk)
{
	static uint8_t data[9000001 + 4096];
	struct answer a;
	uint64_t sum = 0;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i ^ i >> 8);
	peer.interrupt_every = 3;
	for (unsigned off = 0; off < 3; off++) {
		const uint8_t *p = data + off * 1361;
		for (size_t i = 0; i < sizes[_i]; i++)
			sum += 2 * p[i];
		ck_assert_int_eq(send_record(FRAME_POST, 3, NULL, 0, NULL), 0);
		ck_assert_int_eq(send_record(FRAME_POST, 3, p, sizes[_i], NULL), 0);
		ck_assert_int_eq(send_record(FRAME_WAIT, 3, p, sizes[_i], &a), 0);
	}
	ck_assert_uint_eq(peer.sum, sum);
	ck_assert_uint_eq(peer.records, 9);
	ck_assert_uint_eq(peer.have, 0);
	ck_assert(!peer.bad && !died);
}
END_TEST

static const size_t answers[] = {0, 100, 300, 1000, 5000, 16300, 16400, LIMIT_REPLY};
START_TEST(answer_sizes)
{
	struct answer a;
	peer.again_every = 2;
	peer.interrupt_every = 3;
	peer.answer_bulk = answers[_i];
	for (unsigned n = 0; n < 5; n++) {
		size_t right = 0;
		ck_assert_int_eq(send_record(FRAME_WAIT, 2, NULL, 0, &a), 0);
		ck_assert_uint_eq(a.frame.bulk_len, answers[_i]);
		/* libcheck notes each assertion, which a million of them would not survive under a sanitizer.
		 * */
		while (right < answers[_i] && a.bulk[right] == (uint8_t)(right * 31 >> 3))
			right++;
		ck_assert_uint_eq(right, answers[_i]);
	}
	ck_assert(!peer.bad);
}
END_TEST

static void *worker(void *arg)
{
	static const uint8_t data[100000];
	uint32_t thread = (uint32_t)(uintptr_t)arg;
	struct answer a;
	for (unsigned i = 0; i < 600; i++) {
		int e = i % 7 == 6 ? send_record(FRAME_WAIT, thread, data, i % 2 ? 20 : 0, &a) :
			send_record(FRAME_POST, thread, data, i % 50 == 0 ? sizeof data : i % 3 * 100, NULL);
		if (e)
			return arg;
	}
	channel_thread_finish();
	return NULL;
}

START_TEST(threads)
{
	pthread_t t[6];
	peer.interrupt_every = 5;
	for (uintptr_t i = 0; i < 6; i++)
		ck_assert(pthread_create(&t[i], NULL, worker, (void *)(i + 1)) == 0);
	for (unsigned i = 0; i < 6; i++) {
		void *failed;
		pthread_join(t[i], &failed);
		ck_assert_ptr_null(failed);
	}
	struct answer a;
	ck_assert_int_eq(send_record(FRAME_WAIT, 9, NULL, 0, &a), 0);
	ck_assert_uint_eq(peer.records, 6 * 600 + 1);
	ck_assert(!peer.bad && !died);
}
END_TEST

START_TEST(errors)
{
	struct answer a;
	peer.error = ECONNRESET;
	ck_assert_int_eq(send_record(FRAME_WAIT, 1, NULL, 0, &a), -ECONNRESET);
	ck_assert_int_eq(send_record(FRAME_POST, 1, NULL, 0, NULL), 0);
	for (unsigned i = 0; i < 2000 && !died; i++)
		usleep(1000);
	ck_assert_int_eq(died, -ECONNRESET);
}
END_TEST

/* A limit of file sizes that comes while a large record is under way ends the session, and not the program.
 * */
START_TEST(limited)
{
	static uint8_t bytes[2 << 20];
	sigset_t pending;

	died = 0;
	peer.error = EFBIG;
	ck_assert_int_eq(send_record(FRAME_POST, 3, bytes, sizeof bytes, NULL), -EFBIG);
	sigpending(&pending);
	ck_assert(!sigismember(&pending, SIGXFSZ));
}
END_TEST

int main(void)
{
	/* Something that stands for the node. */
	node_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!held_look(node_fd, &held))
		return 1;
	Suite *s = suite_create("channel");
	setenv("SCUDAFS_LANES", "3", 1);    /* whatever processors there are */
	TCase *t = tcase_create("stream");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, posts_then_wait);
	tcase_add_loop_test(t, bulk, 0, sizeof sizes / sizeof *sizes);
	tcase_add_loop_test(t, answer_sizes, 0, sizeof answers / sizeof *answers);
	tcase_add_test(t, threads);
	tcase_add_test(t, errors);
	tcase_add_test(t, limited);
	suite_add_tcase(s, t);
	return unit_run(s);
}
