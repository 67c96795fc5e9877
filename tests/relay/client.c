/* SPDX-License-Identifier: Apache-2.0 */
/* A program on the session node of a mount whose server is fake.c: `client CTL COMMAND [ARGS]` does one
 * thing and says how long it took, or fails. It uses the contract of wire/ctl.h and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/relay/peer.h"
#include "wire/ctl.h"

static int fd;
static atomic_ullong batch, seq;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t record(
	uint8_t *p, unsigned kind, unsigned call, const void *head, size_t n, uint64_t bulk, uint64_t number)
{
	struct frame f = {.kind = (uint8_t)kind,
		.call = (uint16_t)call,
		.head_len = (uint32_t)n,
		.bulk_len = bulk,
		.thread = 1,
		.seq = number};
	memcpy(p, &f, sizeof(f));
	if (n)
		memcpy(p + sizeof(f), head, n);
	return sizeof(f) + n;
}

/* Waits for the reply of a record; returns its bytes in `reply` (16 KiB of room). 0 or -1 with errno. */
static int wait_for(unsigned call, const void *head, size_t n, uint8_t *reply, size_t *len)
{
	uint8_t b[16384];
	struct ctl_wait w;
	pthread_mutex_lock(&order);
	w = (struct ctl_wait){.batch = ++batch, .seq = ++seq};
	pthread_mutex_unlock(&order);
	uint64_t number = w.seq;
	w.len = (uint32_t)record(b + sizeof(w), FRAME_WAIT, call, head, n, 0, number);
	for (;;) {
		memcpy(b, &w, sizeof(w));
		size_t need = sizeof(w) + w.len;
		unsigned long request = need <= 256    ? CTL_WAIT_256
					: need <= 1024 ? CTL_WAIT_1K
					: need <= 4096 ? CTL_WAIT_4K
						       : CTL_WAIT_16K;
		if (ioctl(fd, request, b) < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		struct ctl_wait out;
		memcpy(&out, b, sizeof(out));
		if (out.flags & CTL_AGAIN) {
			w = (struct ctl_wait){.seq = number};
			continue;
		}
		if (len)
			*len = out.len;
		if (!(out.flags & CTL_LARGE) && reply)
			memcpy(reply, b + sizeof(out), out.len);
		return (int)out.flags;
	}
}

static int check_reply(const uint8_t *reply, size_t len, const void *head, size_t n)
{
	struct frame f;
	memcpy(&f, reply, sizeof(f));
	return len != sizeof(f) + n || f.kind != FRAME_REPLY || memcmp(reply + sizeof(f), head, n);
}

static void *echo_thread(void *arg)
{
	long count = *(long *)arg;
	uint8_t reply[16384];
	for (long i = 0; i < count; i++) {
		char head[64];
		size_t len;
		memset(head, (int)i, sizeof(head));
		if (wait_for(PEER_ECHO, head, sizeof(head), reply, &len) ||
			check_reply(reply, len, head, sizeof(head)))
			die("echo");
	}
	return NULL;
}

static void echo(long count, long threads)
{
	pthread_t t[64];
	double start = now();
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, echo_thread, &count);
	for (long i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	double d = now() - start;
	printf("echo: %ld x %ld, %.1f us each, %.0f/s\n", threads, count, d / (double)count * 1e6,
		(double)(count * threads) / d);
}

static void *pages(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* One post with so many MiB of bulk, then a wait. */
static void upload(long mib, int check)
{
	uint8_t b[128], reply[16384];
	uint8_t *p = pages(1 << 20);
	unsigned long long sum = 0, got[2];
	double start = now();
	size_t n = record(b, FRAME_POST, check ? PEER_COUNT : PEER_ECHO, NULL, 0, (uint64_t)mib << 20, ++seq),
	       len;
	if (pwrite(fd, b, n, CTL_POST(++batch)) != (ssize_t)n)
		die("pwrite of a header");
	for (long i = 0; i < mib; i++) {
		for (long k = 0; check && k < 1 << 20; k++) {
			p[k] = peer_byte((unsigned long long)i, (unsigned long long)k);
			sum += p[k] * ((unsigned long long)(i << 20) + (unsigned long long)k + 1);
		}
		ssize_t r;
		batch++;
		do
			r = pwrite(fd, p, 1 << 20, CTL_POST(batch));
		while (r < 0 && (errno == EINTR || errno == EAGAIN));
		if (r != 1 << 20)
			die("pwrite of bulk");
	}
	if (wait_for(PEER_COUNT, NULL, 0, reply, &len))
		die("wait");
	double d = now() - start;
	memcpy(got, reply + sizeof(struct frame), sizeof(got));
	if (got[0] != (unsigned long long)mib << 20 || (check && got[1] != sum)) {
		fprintf(stderr, "upload: %llu bytes, sum %llu instead of %llu\n", got[0], got[1], sum);
		exit(1);
	}
	printf("upload: %ld MiB, %.2f GB/s\n", mib, (double)mib * 1048576 / d / 1e9);
}

struct part {
	uint64_t transfer;
	size_t from, to, piece;
	int check;
};
static void *download_thread(void *arg)
{
	struct part *a = arg;
	uint8_t *p = pages(1 << 20);
	for (size_t at = a->from; at < a->to;) {
		size_t n = a->to - at < a->piece ? a->to - at : a->piece;
		ssize_t r = pread(fd, p, n, CTL_DATA(a->transfer, at));
		if (r < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (r <= 0)
			die("pread of data");
		for (ssize_t i = 0; i < r && a->check; i++)
			if (p[i] != peer_byte(a->transfer, at + (size_t)i)) {
				fprintf(stderr, "download: byte %zu is wrong\n", at + (size_t)i);
				exit(1);
			}
		at += (size_t)r;
	}
	return NULL;
}

static void *download_wait(void *arg)
{
	uint64_t *a = arg;
	if (wait_for((unsigned)a[3], a, 24, NULL, NULL))
		die("wait");
	return NULL;
}

static void download(size_t bytes, size_t piece, size_t step, int threads, int after)
{
	uint64_t a[4] = {77, bytes, piece, PEER_DATA};
	struct part parts[8];
	pthread_t w, t[8];
	double start = now();
	pthread_create(&w, NULL, download_wait, a);
	if (after)
		pthread_join(w, NULL);
	for (int i = 0; i < threads; i++) {
		size_t share = (bytes / (size_t)threads + 4095) & ~(size_t)4095,
		       end = (size_t)(i + 1) * share;
		parts[i] = (struct part){
			77, (size_t)i * share, end < bytes ? end : bytes, step, bytes <= 64 << 20};
		pthread_create(&t[i], NULL, download_thread, &parts[i]);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	if (!after)
		pthread_join(w, NULL);
	printf("download: %zu bytes in pieces of %zu, read by %zu and %d, %.2f GB/s\n", bytes, piece, step,
		threads, (double)bytes / (now() - start) / 1e9);
}

static void bulk_reply(size_t n)
{
	uint8_t *p = pages((1 << 20) + 65536 + 4096);
	uint64_t a = n;
	size_t len = 0;
	int flags = wait_for(PEER_BULK, &a, 8, p, &len);
	if (flags < 0)
		die("wait");
	if (flags & CTL_LARGE) {
		for (size_t at = 0; at < len;) {
			ssize_t r = pread(fd, p + at, len - at < 300000 ? len - at : 300000,
				CTL_REPLY(seq) + (int64_t)at);
			if (r <= 0)
				die("pread of a reply");
			at += (size_t)r;
		}
	}
	if (len != n + sizeof(struct frame))
		die("length of the reply");
	for (size_t i = 0; i < n; i++)
		if (p[sizeof(struct frame) + i] != peer_byte(seq, i)) {
			fprintf(stderr, "reply: byte %zu is wrong\n", i);
			exit(1);
		}
	printf("reply of %zu: right\n", n);
}

static void *upcall_thread(void *arg)
{
	long left = *(long *)arg;
	uint8_t *p = pages(LIMIT_UPCALL + sizeof(struct frame));
	while (left > 0) {
		ssize_t r = pread(fd, p, LIMIT_UPCALL + sizeof(struct frame), CTL_UPCALL);
		if (r < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (r <= 0)
			die("pread of upcalls");
		for (ssize_t at = 0; at < r;) {
			struct frame f, done = {.kind = FRAME_UPCALL_DONE};
			memcpy(&f, p + at, sizeof(f));
			done.seq = f.seq;
			if (pwrite(fd, &done, sizeof(done), CTL_ASIDE) != sizeof(done))
				die("pwrite aside");
			at += (ssize_t)(sizeof(f) + f.head_len + f.bulk_len);
			left--;
		}
	}
	return NULL;
}

static void upcalls(long count)
{
	pthread_t t;
	uint64_t a = (uint64_t)count;
	pthread_create(&t, NULL, upcall_thread, &count);
	if (wait_for(PEER_UPCALL, &a, 8, NULL, NULL))
		die("wait");
	pthread_join(t, NULL);
	printf("upcalls: %ld\n", count);
}

/* Batches by many threads in a wrong order; the echo behind them proves that all have passed. */
struct shuffle {
	long from, step, count;
};
static void *shuffle_thread(void *arg)
{
	struct shuffle *s = arg;
	for (long i = s->count - 1 - s->from; i >= 0; i -= s->step) {
		uint8_t b[64];
		size_t n = record(b, FRAME_POST, 0, NULL, 0, 0, (uint64_t)i + 2);
		ssize_t r;
		do
			r = pwrite(fd, b, n, CTL_POST(i + 2));
		while (r < 0 && (errno == EINTR || errno == EAGAIN));
		if (r != (ssize_t)n)
			die("pwrite");
	}
	return NULL;
}

static void shuffle(long threads)
{
	struct shuffle s[64];
	pthread_t t[64];
	struct stat st;
	/* what a program does first: only then do writes go side by side */
	if (wait_for(PEER_ECHO, "abc", 3, NULL, NULL) || fstat(fd, &st) || st.st_size != CTL_SIZE)
		die("the size");
	/* each thread can hold one batch back, so there are as many as batches */
	for (long i = 0; i < threads; i++) {
		s[i] = (struct shuffle){i, threads, threads};
		pthread_create(&t[i], NULL, shuffle_thread, &s[i]);
	}
	for (long i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	batch = seq = (unsigned long long)threads + 1;
	if (wait_for(PEER_ECHO, "abc", 3, NULL, NULL))
		die("echo");
	printf("shuffle: %ld batches\n", threads);
}

static void on_alarm(int s)
{
	(void)s;
}

/* What a call fails with, and how soon. */
static void failing(unsigned call, uint64_t a)
{
	double start = now();
	int r = wait_for(call, &a, 8, NULL, NULL);
	int e = errno;
	printf("call %u: %s after %.2f s", call, r < 0 ? strerrorname_np(e) : "done", now() - start);
	r = wait_for(PEER_ECHO, "abc", 3, NULL, NULL);
	printf(", then %s\n", r < 0 ? strerrorname_np(errno) : "done");
}

/* Everything that a program could do to the node, at random: the daemon must live through it, and so must
 * other sessions. */
static atomic_long strikes;
static void *hostile_thread(void *arg)
{
	unsigned seed = *(unsigned *)arg;
	static const int64_t regions[] = {
		CTL_POST(0), CTL_DATA(0, 0), CTL_REPLY(0), CTL_UPCALL, CTL_ASIDE, 0};
	static const unsigned long requests[] = {
		CTL_WAIT_256, CTL_WAIT_1K, CTL_WAIT_4K, CTL_WAIT_16K, 0x5401};
	uint8_t *b = pages(1 << 20);
	while (atomic_fetch_sub(&strikes, 1) > 0) {
		struct frame f = {.kind = (uint8_t)(rand_r(&seed) % 8),
			.thread = (uint32_t)(rand_r(&seed) % 8 != 0),
			.seq = (uint64_t)(rand_r(&seed) % 50),
			.bulk_len = rand_r(&seed) % 4 ? 0 : (uint64_t)(rand_r(&seed) % 100000)};
		struct ctl_wait w = {.batch = atomic_fetch_add(&batch, rand_r(&seed) % 20 != 0) + 1,
			.seq = (uint64_t)(rand_r(&seed) % 50),
			.len = (uint32_t)sizeof(f)};
		size_t n = (size_t)(rand_r(&seed) % (rand_r(&seed) % 8 ? 200 : 1 << 20));
		int64_t at = regions[rand_r(&seed) % 6];
		if (rand_r(&seed) % 10 == 0)
			w.len = (uint32_t)rand_r(&seed);
		memcpy(b, &w, sizeof(w));
		memcpy(b + sizeof(w), &f, sizeof(f));
		ssize_t r;
		switch (rand_r(&seed) % 4) {
		case 0: r = ioctl(fd, requests[rand_r(&seed) % 5], b); break;
		case 1:
			r = pread(
				fd, b, n, at + (rand_r(&seed) % 2 ? (int64_t)(rand_r(&seed) % 5) << 40 : 0));
			break;
		case 2: r = pwrite(fd, b + sizeof(w), sizeof(f) + n / 2, CTL_POST(w.batch)); break;
		default: r = pwrite(fd, b + sizeof(w), sizeof(f), rand_r(&seed) % 2 ? CTL_ASIDE : at); break;
		}
		if (r < 0 && (errno == ECONNABORTED || errno == ENOTCONN))
			die("the daemon is gone");
	}
	return NULL;
}

static void hostile(long count, unsigned seed)
{
	pthread_t t[8];
	unsigned seeds[8];
	struct sigaction s = {.sa_handler = on_alarm};
	sigaction(SIGALRM, &s, NULL);
	ualarm(3000, 3000);
	strikes = count;
	for (unsigned i = 0; i < 8; i++) {
		seeds[i] = seed * 8 + i;
		pthread_create(&t[i], NULL, hostile_thread, &seeds[i]);
	}
	double end = now() + 2;
	while (atomic_load(&strikes) > 0 && now() < end)
		usleep(1000);
	/* whoever is parked stays so for a while: leaving it to the end of the process is part of the test */
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	const char *what = argv[2];
	long a = argc > 3 ? atol(argv[3]) : 0, b = argc > 4 ? atol(argv[4]) : 0,
	     c = argc > 5 ? atol(argv[5]) : 0, d = argc > 6 ? atol(argv[6]) : 0,
	     e = argc > 7 ? atol(argv[7]) : 0;
	double start = now();
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		printf("open: %s after %.2f s\n", strerrorname_np(errno), now() - start);
		return 1;
	}
	if (!strcmp(what, "open"))
		printf("open: %.0f us\n", (now() - start) * 1e6);
	else if (!strcmp(what, "echo"))
		echo(a, b ? b : 1);
	else if (!strcmp(what, "upload"))
		upload(a, (int)b);
	else if (!strcmp(what, "download"))
		download((size_t)a, (size_t)b, (size_t)c, d ? (int)d : 1, (int)e);
	else if (!strcmp(what, "reply"))
		bulk_reply((size_t)a);
	else if (!strcmp(what, "upcalls"))
		upcalls(a);
	else if (!strcmp(what, "shuffle"))
		shuffle(a);
	else if (!strcmp(what, "call"))
		failing((unsigned)a, (uint64_t)b);
	else if (!strcmp(what, "hostile"))
		hostile(a, (unsigned)b);
	else if (!strcmp(what, "hold")) {
		/* a child keeps the descriptor when this process ends */
		if (fork() == 0) {
			sleep((unsigned)a);
			_exit(0);
		}
	} else if (!strcmp(what, "interrupt")) {
		struct sigaction s = {.sa_handler = on_alarm};
		sigaction(SIGALRM, &s, NULL);
		ualarm(20000, 20000);
		failing(PEER_SLOW, (uint64_t)a);
		ualarm(0, 0);
	} else
		return 2;
	return 0;
}
